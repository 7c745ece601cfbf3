/* Which plan of an executable a device takes, and which of its code. */
#include <stdlib.h>
#include <string.h>

#include "dlc/checksum.h"
#include "tests/device/stub.h"

static const char *target_of_choice(const char *device, int count, int capability)
{
    dlcrt_executable_info info;
    stub->set_device(count, capability);
    dlcrt_executable_close(executable);
    executable = NULL;
    if (open_on(device))
        return "none";
    dlcrt_executable_describe(executable, &info);
    return info.target;
}

START_TEST(the_best_plan_that_is_there_is_taken)
{
    use_stub();
    add_plan(0, add_model(1), "x86-64-v2");
    add_plan(1, add_model(1), "sm_80");
    add_plan(2, add_model(1), "sm_90");
    close_image();
    ck_assert_uint_eq(constants.pieces.n, 1); /* equal weights lie there once */
    ck_assert_str_eq(target_of_choice(NULL, 1, 75), "x86-64-v2");
    ck_assert_str_eq(target_of_choice(NULL, 1, 80), "sm_80");
    ck_assert_str_eq(target_of_choice(NULL, 1, 86), "sm_80");
    ck_assert_str_eq(target_of_choice(NULL, 1, 89), "sm_80");
    ck_assert_str_eq(target_of_choice(NULL, 1, 90), "sm_90");
    ck_assert_str_eq(target_of_choice(NULL, 1, 120), "sm_90"); /* PTX */
    ck_assert_str_eq(target_of_choice("cpu", 1, 90), "x86-64-v2");
    ck_assert_str_eq(target_of_choice(NULL, 0, 90), "x86-64-v2");
    ck_assert_str_eq(target_of_choice("cuda", 1, 75), "none");
    ck_assert_str_eq(dlcrt_last_error(), "executable: holds plans for x86-64-v2 and sm_80 and sm_90; none of them runs here: "
                                         "made for sm_90; cuda:0 (Virtual GPU 0) is sm_75");
    ck_assert_str_eq(target_of_choice("cuda:3", 2, 90), "none");
    ck_assert_ptr_nonnull(strstr(dlcrt_last_error(), "there is no device cuda:3; the driver sees 2"));
    ck_assert_str_eq(target_of_choice("cuda", 0, 90), "none");
    ck_assert_ptr_nonnull(strstr(dlcrt_last_error(), "the CUDA driver sees no device"));
    ck_assert_str_eq(target_of_choice("cuda:1", 2, 90), "sm_90");
    setenv("DLC_DEVICE", "cpu", 1);
    ck_assert_str_eq(target_of_choice(NULL, 1, 90), "x86-64-v2");
    dlcrt_executable_close(executable);
    ck_assert_int_eq(open_on("gpu"), DLC_USAGE);
    ck_assert_str_eq(dlcrt_last_error(), "there is no device 'gpu'; there are cpu, cuda and cuda:N");
    unsetenv("DLC_DEVICE");
}
END_TEST

/* With several devices, one that does not answer is passed over unless it was asked for. */
START_TEST(a_device_that_does_not_answer_is_passed_over)
{
    dlcrt_executable_info info;
    open_static();
    stub->set_device(2, 75);
    stub->fail_call("cuDeviceGetName", 1);
    OK(open_on(NULL));
    dlcrt_executable_describe(executable, &info);
    ck_assert_str_eq(info.device, "cuda:1 (Virtual GPU 1, sm_75)");
    dlcrt_executable_close(executable);
    executable = NULL;
    stub->fail_call("cuDeviceGetName", 1);
    ck_assert_int_eq(open_on("cuda:0"), DLC_NO_DEVICE);
}
END_TEST

START_TEST(code_that_the_driver_refuses_is_named_with_its_version)
{
    open_static();
    stub->set_device(1, 90);
    stub->fail_call("cuModuleLoadDataEx", 1);
    ck_assert_int_eq(open_on(NULL), DLC_NO_DEVICE);
    ck_assert_ptr_nonnull(strstr(dlcrt_last_error(), "for sm_75 (PTX); the driver is of CUDA 12.4"));
}
END_TEST

/* y = x0, x1, … one after another: a kernel of n + 1 buffers */
static made_model concat_model(uint32_t n)
{
    made_model m = made_begin("concat");
    dlc_value **inputs = dlc_new_array(m.arena, dlc_value *, n);
    dlc_attr axis = dlc_attr_int(DLC_ATTR_AXIS, 0);
    for (uint32_t i = 0; i < n; i++)
        inputs[i] = made_input(&m, dlc_arena_printf(m.arena, "x%u", i), DLC_F32, 1, (int64_t[]){N});
    dlc_graph_output(m.graph, "y", made_node(&m, DLC_OP_CONCAT, "concat", n, inputs, 1, 1, &axis)->outputs[0]);
    return m;
}

/* 4 KiB of parameters before CUDA 12.1, 32764 bytes from then on. */
START_TEST(a_kernel_has_as_many_parameters_as_the_driver_allows)
{
    static const struct {
        int version;
        uint32_t ninputs;
        dlc_status status;
    } cases[] = {{12000, 508, DLC_OK}, {12000, 509, DLC_LIMIT}, {12010, 509, DLC_OK}, {13000, 600, DLC_OK}};
    dlcrt_context *context;
    use_stub();
    stub->set_version(cases[_i].version);
    add_plan(0, concat_model(cases[_i].ninputs), "sm_75");
    close_image();
    OK(open_on("cuda"));
    ck_assert_int_eq(dlcrt_context_create(executable, NULL, &context), cases[_i].status);
    if (cases[_i].status == DLC_OK)
        dlcrt_context_destroy(context);
    else
        ck_assert_str_eq(dlcrt_last_error(),
                         "step 'concat': its kernel has 513 parameters, the driver allows 512");
}
END_TEST

START_TEST(a_cubin_comes_before_ptx)
{
    dlcrt_context *context;
    open_static();
    for (int is_newer = 0; is_newer < 2; is_newer++) {
        ck_assert_str_eq(target_of_choice(NULL, 1, is_newer ? 90 : 75), "sm_75");
        OK(dlcrt_context_create(executable, NULL, &context));
        ck_assert_ptr_eq(stub->newest_image(), no_code + (is_newer ? PTX_AT : 0));
        OK(run_once(context, 3));
        dlcrt_context_destroy(context);
    }
}
END_TEST

/* Every word of a plan in turn becomes every one of these values: refused, or read and sized without a device. */
START_TEST(forged_plans_are_followed_nowhere)
{
    static const uint64_t values[] = {0, 1, 7, 0x7fffffff, 0xffffffff, 1ull << 63, UINT64_MAX};
    add_plan(0, add_model(0), "sm_75");
    close_image();
    const dlc_plan *plan = entries[0].plan;
    uint32_t size_bytes = plan->size_bytes;
    unsigned char *bytes = aligned_alloc(64, (size_bytes + 63) / 64 * 64);
    for (size_t at = 0; at + 8 <= size_bytes; at += 4)
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            dlcrt_context *context;
            char text[4096];
            memcpy(bytes, plan, size_bytes);
            memcpy(bytes + at, &values[v], values[v] > UINT32_MAX ? 8 : 4);
            if (((dlc_plan *)bytes)->size_bytes > size_bytes)
                continue; /* a linked executable has no bounds to check */
            entries[0].plan = (const dlc_plan *)bytes;
            entries[0].checksum = dlc_checksum(bytes, entries[0].plan->size_bytes);
            if (entries[0].plan->device == DLC_DEVICE_CPU)
                entries[0].kernels = no_functions;
            if (open_on("none"))
                continue;
            if (dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 1}, &context) == DLC_OK) {
                dlcrt_tensor in = row_of(NULL, 5);
                (void)!dlcrt_context_prepare(context, &in, 1);
                dlcrt_context_destroy(context);
            }
            (void)dlcrt_executable_print(executable, text, sizeof text);
            dlcrt_executable_close(executable);
        }
    executable = NULL;
    free(bytes);
}
END_TEST

void add_plan_tests(TCase *tests)
{
    tcase_add_test(tests, the_best_plan_that_is_there_is_taken);
    tcase_add_test(tests, a_device_that_does_not_answer_is_passed_over);
    tcase_add_test(tests, code_that_the_driver_refuses_is_named_with_its_version);
    tcase_add_loop_test(tests, a_kernel_has_as_many_parameters_as_the_driver_allows, 0, 4);
    tcase_add_test(tests, a_cubin_comes_before_ptx);
    tcase_add_test(tests, forged_plans_are_followed_nowhere);
}
