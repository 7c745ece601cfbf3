/* CUDA kernels as machine code: binaries, their report, and executables that hold them. What needs NVRTC passes without it,
 * saying so. */
#include <check.h>
#include <stdio.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "codegen/ptx/nvrtc.h"
#include "codegen/ptx/object.h"
#include "dlc/dlc.h"
#include "tests/unit/made_model.h"
#include "tests/unit/suite.h"

static int has_nvrtc(void)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    const dlc_nvrtc *nvrtc;
    dlc_diag_init(&diag, arena);
    int found = dlc_nvrtc_open(&diag, &nvrtc) == DLC_OK;
    if (!found)
        printf("skipped: %s\n", diag.messages[0].text);
    dlc_arena_destroy(arena);
    return found;
}

/* y = exp(x), z = exp(y): two equal kernels; w = x times a square matrix */
static made_model some_model(void)
{
    static float b[32][32];
    made_model m = made_begin("some");
    for (int i = 0; i < 1024; i++)
        b[i / 32][i % 32] = (float)(i % 7);
    dlc_value *x = made_input(&m, "x", DLC_F32, 2, (int64_t[]){32, 32});
    dlc_value *y = made_unary(&m, DLC_OP_EXP, "y", x);
    dlc_expr n = dlc_expr_i64(m.graph->pool, 32);
    dlc_type type = {.dtype = DLC_F32, .rank = 2, .dims = {n, n}};
    dlc_value *constant = dlc_graph_constant(m.graph, "b", &type, b, sizeof b);
    dlc_graph_output(m.graph, "z", made_unary(&m, DLC_OP_EXP, "z", y));
    dlc_graph_output(m.graph, "w", made_binary(&m, DLC_OP_MATMUL, "w", x, constant));
    return m;
}

START_TEST(each_kernel_has_a_cubin_per_architecture_and_ptx_of_the_first)
{
    static const int archs[] = {75, 90};
    if (!has_nvrtc())
        return;
    made_model m = some_model();
    dlc_module *module = made_finish(&m, "sm_75");
    dlc_cuda_sources sources;
    dlc_blob *blobs[2];
    uint32_t nblobs[2];
    ck_assert_int_eq(dlc_cuda_sources_make(module, m.arena, m.graph->diag, &sources), DLC_OK);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_msg(dlc_cuda_emit(&sources, archs, 2, i + 1, m.arena, m.graph->diag, &blobs[i], &nblobs[i]) == DLC_OK,
                      "%s", m.graph->diag->messages[0].text);
    ck_assert_uint_eq(nblobs[0], nblobs[1]); /* whatever the threads did */
    for (uint32_t i = 0; i < nblobs[0]; i++) {
        ck_assert_uint_eq(blobs[0][i].size_bytes, blobs[1][i].size_bytes);
        ck_assert_mem_eq(blobs[0][i].bytes, blobs[1][i].bytes, blobs[0][i].size_bytes);
    }
    const dlc_cuda_row *rows = blobs[0][0].bytes;
    ck_assert_uint_eq(blobs[0][0].size_bytes, sources.n * 3 * sizeof *rows);
    for (uint32_t i = 0; i < sources.n * 3; i++) {
        const dlc_plan_binary *binary = &rows[i].binary;
        const dlc_blob *blob = &blobs[0][rows[i].blob];
        ck_assert_uint_eq(binary->kind, i % 3 == 2 ? DLC_BINARY_PTX : DLC_BINARY_CUBIN);
        ck_assert_uint_eq(binary->arch, i % 3 == 1 ? 90 : 75);
        ck_assert_uint_eq(binary->size_bytes, blob->size_bytes);
        if (i % 3 == 2) {
            ck_assert_ptr_nonnull(strstr(blob->bytes, dlc_arena_printf(m.arena, ".entry %s(", sources.functions[i / 3])));
            ck_assert_ptr_nonnull(strstr(blob->bytes, ".version 8.0"));
            ck_assert_uint_eq(binary->driver, 12000);
            continue;
        }
        ck_assert(binary->registers >= 8 && binary->registers <= 255);
        ck_assert_uint_eq(binary->frame_bytes, 0);
        ck_assert_uint_eq(binary->shared_bytes, 0); /* it is dynamic; what the system takes is not counted */
        ck_assert_uint_gt(binary->blocks, 0);
    }
    made_end(&m);
}
END_TEST

/* What the older language lacks is hidden where the version is lowered, and stays where it is not. */
START_TEST(ptx_says_what_it_uses)
{
    const char *newer = "\n.version 8.8\n.target sm_80\n\t.pragma \"used_bytes_mask 4095\";\n\tld;\n\t.pragma \"nounroll\";\n";
    const char *older = "\n.version 8.0\n.target sm_80\n\t// used_bytes_mask 4095        \n\tld;\n\t.pragma \"nounroll\";\n";
    char text[128];
    snprintf(text, sizeof text, "%s", newer);
    ck_assert_uint_eq(dlc_ptx_settle(text, 80, 12090), 12000);
    ck_assert_str_eq(text, older);
    snprintf(text, sizeof text, "%s", newer);
    ck_assert_uint_eq(dlc_ptx_settle(text, 100, 12090), 12090);
    ck_assert_str_eq(text, newer);
}
END_TEST

START_TEST(equal_kernels_are_compiled_once)
{
    static const int arch = 80;
    if (!has_nvrtc())
        return;
    made_model m = some_model();
    dlc_module *module = made_finish(&m, "sm_80");
    dlc_cuda_sources sources;
    ck_assert_int_eq(dlc_cuda_sources_make(module, m.arena, m.graph->diag, &sources), DLC_OK);
    const char *texts[] = {sources.texts[0], sources.texts[0], sources.texts[0]};
    const char *functions[] = {sources.functions[0], sources.functions[0], sources.functions[0]};
    dlc_cuda_launch launches[] = {sources.launches[0], sources.launches[0], sources.launches[0]};
    int64_t shared[] = {0, 0, 0};
    dlc_cuda_sources thrice = {texts, functions, launches, shared, 3};
    dlc_blob *blobs;
    uint32_t nblobs;
    ck_assert_int_eq(dlc_cuda_emit(&thrice, &arch, 1, 2, m.arena, m.graph->diag, &blobs, &nblobs), DLC_OK);
    ck_assert_uint_eq(nblobs, 1 + 2);
    const char *entry = strstr(blobs[2].bytes, ".entry ");
    ck_assert(entry && !strstr(entry + 1, ".entry "));
    made_end(&m);
}
END_TEST

START_TEST(what_nvrtc_does_not_know_is_refused)
{
    static const int arch = 30;
    dlc_cuda_sources none = {0};
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_blob *blobs;
    uint32_t nblobs;
    dlc_diag_init(&diag, arena);
    if (_i == 0)
        setenv("DLC_NVRTC", "/nonexistent", 1);
    else if (!has_nvrtc())
        return;
    ck_assert_int_eq(dlc_cuda_emit(&none, &arch, 1, 1, arena, &diag, &blobs, &nblobs), DLC_NO_DEVICE);
    ck_assert_ptr_nonnull(strstr(diag.messages[0].text, _i ? "makes no code for sm_30; it knows sm_"
                                                           : "`pip install nvidia-cuda-nvrtc-cu12`"));
    dlc_arena_destroy(arena);
}
END_TEST

START_TEST(damaged_cubins_have_no_report)
{
    static unsigned char bytes[256] = "\177ELF";
    dlc_plan_binary binary = {.arch = 90};
    ck_assert(!dlc_cubin_report(bytes, 10, "k", &binary));
    for (size_t i = 4; i < sizeof bytes; i++) {
        bytes[i] = 0xff;
        ck_assert(!dlc_cubin_report(bytes, sizeof bytes, "k", &binary));
    }
}
END_TEST

START_TEST(occupancy_is_the_least_of_four_limits)
{
    ck_assert_uint_eq(dlc_cuda_occupancy(75, 256, 32, 0), 4);       /* warps: 32 of 8 */
    ck_assert_uint_eq(dlc_cuda_occupancy(75, 256, 128, 0), 2);      /* registers: 64 Ki of 32 Ki */
    ck_assert_uint_eq(dlc_cuda_occupancy(80, 256, 32, 65536), 2);   /* shared memory: 164 KiB of 65 */
    ck_assert_uint_eq(dlc_cuda_occupancy(80, 64, 40, 0), 24);       /* 12 warps in each of four parts */
    ck_assert_uint_eq(dlc_cuda_occupancy(90, 32, 8, 0), 32);        /* blocks */
    ck_assert_uint_eq(dlc_cuda_occupancy(90, 32, 8, 6272), 32);     /* shared memory: 228 KiB of 6272 + 1024 bytes */
    ck_assert_uint_eq(dlc_cuda_occupancy(90, 32, 8, 6273), 31);
    ck_assert_uint_eq(dlc_cuda_occupancy(80, 256, 32, 1 << 20), 0); /* none fits */
    ck_assert_uint_eq(dlc_cuda_occupancy(1, 256, 32, 0), 0);        /* unknown */
}
END_TEST

/* Plans for two capabilities and a CPU: the CUDA ones are one plan with three binaries each. */
START_TEST(targets_that_agree_share_a_plan)
{
    static const char *const targets[] = {"sm_90", "sm_75", "x86-64-v2"};
    char path[64];
    size_t n[2] = {0};
    static char bytes[2][1 << 20];
    if (!has_nvrtc())
        return;
    snprintf(path, sizeof path, "/tmp/dlc_test_cuda_object_%d.so", getpid());
    for (uint32_t k = 0; k < 2; k++) {
        made_model m[3];
        dlc_executable_part parts[3] = {{0}};
        for (uint32_t i = 0; i < 3; i++) {
            m[i] = some_model();
            parts[i].module = made_finish(&m[i], targets[i]);
        }
        dlc_executable_options options = {.artifact = DLC_ARTIFACT_SO, .path = path, .name = "some", .njobs = k + 1};
        ck_assert_msg(dlc_executable_write_parts(parts, 3, &options, m[0].graph->diag) == DLC_OK, "%s",
                      m[0].graph->diag->messages[0].text);
        FILE *stream = fopen(path, "r");
        n[k] = fread(bytes[k], 1, sizeof bytes[k], stream);
        fclose(stream);
        for (uint32_t i = 0; i < 3; i++)
            made_end(&m[i]);
    }
    ck_assert_uint_eq(n[0], n[1]);
    ck_assert_mem_eq(bytes[0], bytes[1], n[0]);
    dlcrt_executable *executable;
    dlcrt_executable_info info;
    dlcrt_executable_options options = {.path = path, .device = "none"};
    ck_assert_msg(dlcrt_executable_open_with(&options, &executable) == DLC_OK, "%s", dlcrt_last_error());
    dlcrt_executable_describe(executable, &info);
    ck_assert_uint_eq(info.nplans, 2);
    ck_assert_str_eq(info.target, "sm_90,sm_75");
    static char text[1 << 16];
    ck_assert_uint_lt(dlcrt_executable_print(executable, text, sizeof text), sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "PTX of sm_75"));
    ck_assert_ptr_null(strstr(text, "PTX of sm_90"));
    dlcrt_executable_close(executable);
    ck_assert_int_eq(dlcrt_executable_open(path, &executable), DLC_OK); /* here: on the CPU */
    dlcrt_executable_describe(executable, &info);
    ck_assert(!strcmp(info.target, "x86-64-v2") || !strncmp(info.device, "cuda", 4));
    dlcrt_executable_close(executable);
    unlink(path);
}
END_TEST

/* Each kernel line of a plan ends in "0 bytes of stack, …". */
static void check_no_stack(const char *path, const char *model)
{
    dlcrt_executable *executable;
    dlcrt_executable_options options = {.path = path, .device = "none"};
    ck_assert_msg(dlcrt_executable_open_with(&options, &executable) == DLC_OK, "%s", dlcrt_last_error());
    size_t n = dlcrt_executable_print(executable, NULL, 0) + 1;
    char *text = malloc(n);
    dlcrt_executable_print(executable, text, n);
    uint32_t ncubins = 0;
    for (const char *at = text; (at = strstr(at, " registers, ")); ncubins++, at++)
        ck_assert_msg(!strncmp(at, " registers, 0 bytes of stack", 28), "%s: %.60s", model, at);
    ck_assert_uint_gt(ncubins, 0);
    free(text);
    dlcrt_executable_close(executable);
}

START_TEST(kernels_of_models_spill_nothing)
{
    static const char *const paths[] = {"models/digits.onnx"};
    char output[64];
    if (!has_nvrtc())
        return;
    snprintf(output, sizeof output, "/tmp/dlc_test_cuda_object_%d.so", getpid());
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        dlc_model *model;
        dlc_options options = {.target = "sm_75,sm_80,sm_90"};
        dlc_status status = dlc_model_open(paths[i], &options, &model);
        if (status == DLC_OK)
            status = dlc_model_write(model, "so", output, "model");
        dlc_model_note note = {.text = ""};
        (void)dlc_model_message(model, 0, &note);
        ck_assert_msg(status == DLC_OK, "%s", note.text);
        dlc_model_close(model);
        check_no_stack(output, paths[i]);
        unlink(output);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_object");
    TCase *tests = tcase_create("cuda_object");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, each_kernel_has_a_cubin_per_architecture_and_ptx_of_the_first);
    tcase_add_test(tests, ptx_says_what_it_uses);
    tcase_add_test(tests, equal_kernels_are_compiled_once);
    tcase_add_loop_test(tests, what_nvrtc_does_not_know_is_refused, 0, 2);
    tcase_add_test(tests, damaged_cubins_have_no_report);
    tcase_add_test(tests, occupancy_is_the_least_of_four_limits);
    tcase_add_test(tests, targets_that_agree_share_a_plan);
    tcase_add_test(tests, kernels_of_models_spill_nothing);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
