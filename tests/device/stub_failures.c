/* Every call of the driver failing in turn. */
#include <string.h>

#include "tests/device/stub.h"

static int is_release(const char *symbol)
{
    return strstr(symbol, "Destroy") || strstr(symbol, "Free") || strstr(symbol, "Unload") || strstr(symbol, "Release") ||
           strstr(symbol, "Pop");
}

/* What the first context left on the device goes into the second, or a row of the host's. */
static dlc_status run_after(dlcrt_context *first, dlcrt_context *second, int run)
{
    float x[N] = {(float)run}, y[N];
    dlcrt_tensor in = row_of(x, 1), middle = {.on_device = 1}, out = {.data = y, .size_bytes = sizeof y};
    DLC_TRY(dlcrt_context_run(first, &in, 1, &middle, 1));
    DLC_TRY(dlcrt_context_run(second, run % 2 ? &middle : &in, 1, &out, 1));
    ck_assert_float_eq(y[0], (float)run + (run % 2 ? 2 : 1));
    return DLC_OK;
}

static dlc_status run_profiled(void)
{
    dlcrt_context *context = NULL;
    dlc_status status = dlcrt_context_create(executable, &(dlcrt_context_options){.profile = 1}, &context);
    for (int run = 0; status == DLC_OK && run < 2; run++)
        status = run_once(context, (float)run);
    dlcrt_context_destroy(context);
    return status;
}

/* Two contexts, some runs each and of both, a third with a profile, closed in any case. */
static dlc_status scenario(void)
{
    dlcrt_context *contexts[2] = {NULL};
    dlc_status status = open_on(NULL);
    for (int i = 0; status == DLC_OK && i < 2; i++) {
        void *legacy = (void *)1;
        dlcrt_context_options options = {.poison = 1, .stream = i ? legacy : NULL};
        status = dlcrt_context_create(executable, &options, &contexts[i]);
        for (int run = 0; status == DLC_OK && run < 3; run++)
            status = run_once(contexts[i], (float)run);
    }
    for (int run = 0; status == DLC_OK && run < 4; run++)
        status = run_after(contexts[0], contexts[1], run);
    status = status ? status : run_profiled();
    for (int i = 0; i < 2; i++)
        dlcrt_context_destroy(contexts[i]);
    dlcrt_executable_close(executable);
    executable = NULL;
    return status;
}

START_TEST(each_call_failing_ends_in_its_own_words)
{
    unsigned nfailures = 0;
    open_static();
    stub->fail_call(symbols[_i], 1);
    for (unsigned nth = 1;; nth++) {
        stub->fail_call(symbols[_i], nth);
        dlc_status status = scenario();
        ck_assert_int_eq(stub->nlive(), 0);
        if (!stub->has_failed())
            break;
        nfailures++;
        if (is_release(symbols[_i])) {
            ck_assert_int_eq(status, DLC_OK);
            continue;
        }
        if (!status && (!strcmp(symbols[_i], "cuCtxPushCurrent_v2") || strstr(symbols[_i], "CaptureMode")))
            continue; /* when it was closed, or taken back what was said */
        if (!strcmp(symbols[_i], "cuModuleLoadDataEx")) {
            ck_assert_int_eq(status, DLC_OK); /* by the PTX */
            continue;
        }
        ck_assert_int_ne(status, DLC_OK);
        const char *error = dlcrt_last_error();
        int is_memory = !strcmp(symbols[_i], "cuMemAlloc_v2");
        ck_assert_msg(strstr(error, symbols[_i]) && strstr(error, is_memory ? "CUDA_ERROR_OUT_OF_MEMORY (2, out of memory)"
                                                                            : "CUDA_ERROR_UNKNOWN (999, unknown error)"),
                      "%s", error);
        ck_assert_int_eq(status, is_memory ? DLC_LIMIT : DLC_NO_DEVICE);
    }
    int is_quiet = !strncmp(symbols[_i], "cuGetError", 10) || !strcmp(symbols[_i], "cuFuncSetAttribute") ||
                   !strcmp(symbols[_i], "cuMemcpyDtoDAsync_v2") || strstr(symbols[_i], "MemcpyNode") ||
                   !strcmp(symbols[_i], "cuMemsetD8Async") || !strcmp(symbols[_i], "cuEventRecord");
    ck_assert_msg(is_quiet || nfailures, "%s is never called", symbols[_i]);
    stub->fail_call(NULL, 0);
    OK(scenario());
}
END_TEST

/* A failure within a run leaves a context that works. */
START_TEST(a_context_survives_a_failed_run)
{
    static const char *const calls[] = {"cuLaunchKernel",       "cuMemcpyHtoDAsync_v2", "cuGraphCreate",
                                        "cuGraphAddKernelNode", "cuGraphLaunch",        "cuGraphInstantiateWithFlags",
                                        "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize",  "cuCtxPushCurrent_v2"};
    dlcrt_context *context;
    open_static();
    OK(open_on(NULL));
    OK(dlcrt_context_create(executable, NULL, &context));
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        stub->fail_call(calls[i], 1);
        for (int run = 0; run < 4; run++)
            (void)!run_once(context, 1);
        ck_assert_msg(stub->has_failed() || i == 2 || i == 3 || i == 5, "%s", calls[i]);
        stub->fail_call(NULL, 0);
        OK(run_once(context, 2));
    }
    dlcrt_context_destroy(context);
}
END_TEST

void add_failure_tests(TCase *tests)
{
    tcase_add_loop_test(tests, each_call_failing_ends_in_its_own_words, 0, (int)nsymbols);
    tcase_add_test(tests, a_context_survives_a_failed_run);
}
