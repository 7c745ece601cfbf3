/*
 * The virtual GPU through its driver alone, with PTX written by hand: what programs do right and
 * what they do wrong. No NVRTC is needed.
 */
#include <check.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"
#include "vgpu/control.h"

/* The functions that are called here; resolved in order. */
#define FUNCTIONS(F)                                                                               \
    F(cuInit, (unsigned))                                                                          \
    F(cuDevicePrimaryCtxRetain, (void **, int)) F(cuDevicePrimaryCtxRelease_v2, (int)) F(          \
        cuCtxPushCurrent_v2, (void *)) F(cuCtxPopCurrent_v2, (void **)) F(cuCtxSynchronize,        \
                                                                          (void))                  \
        F(cuModuleLoadDataEx, (void **, const void *, unsigned, int *, void **)) F(                \
            cuModuleUnload, (void *)) F(cuModuleGetFunction, (void **, void *, const char *))      \
            F(cuMemHostAlloc, (void **, size_t, unsigned)) F(cuMemFreeHost, (void *))              \
            F(cuMemAlloc_v2, (uint64_t *, size_t)) F(cuMemFree_v2, (uint64_t)) F(                  \
                cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *))                    \
                F(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *)) F(                     \
                    cuMemsetD8Async, (uint64_t, unsigned char, size_t, void *))                    \
                    F(cuStreamCreate, (void **, unsigned)) F(cuStreamDestroy_v2, (void *)) F(      \
                        cuStreamSynchronize, (void *)) F(cuStreamBeginCapture_v2, (void *, int))   \
                        F(cuStreamEndCapture, (void *, void **)) F(                                \
                            cuThreadExchangeStreamCaptureMode,                                     \
                            (int *)) F(cuGraphInstantiateWithFlags,                                \
                                       (void **, void *, unsigned long long))                      \
                            F(cuGraphLaunch, (void *, void *)) F(                                  \
                                cuGraphGetNodes,                                                   \
                                (void *, void **, size_t *)) F(cuGraphDestroy, (void *))           \
                                F(cuGraphExecKernelNodeSetParams_v2,                               \
                                  (void *, void *, const void *)) F(cuGraphExecDestroy, (void *))  \
                                    F(cuEventCreate,                                               \
                                      (void **, unsigned)) F(cuEventRecord, (void *, void *))      \
                                        F(cuEventDestroy_v2, (void *))                             \
                                            F(cuEventElapsedTime, (float *, void *, void *))       \
                                                F(cuStreamWaitEvent, (void *, void *, unsigned))   \
                                                    F(cuLaunchKernel,                              \
                                                      (void *, unsigned, unsigned, unsigned,       \
                                                       unsigned, unsigned, unsigned, unsigned,     \
                                                       void *, void **, void **))
#define DECLARE(name, parameters) static int(*name) parameters;
FUNCTIONS(DECLARE)
static const vgpu_control *gpu;
static void *context, *stream;
#define OK(call) ck_assert_int_eq(call, 0)

static void begin(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    ck_assert_msg(library && (gpu = dlsym(library, "vgpu")), "libcuda.so.1 is not the virtual GPU");
#define RESOLVE(name, parameters) *(void **)&name = dlsym(library, #name);
    FUNCTIONS(RESOLVE)
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxPushCurrent_v2(context));
    OK(cuStreamCreate(&stream, 1));
}

static void end(void)
{
    OK(cuStreamDestroy_v2(stream));
    OK(cuCtxPopCurrent_v2(&context));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    ck_assert_int_eq(gpu->nlive(), 0);
}

/* An entry k(in, out) of which %rd1 and %rd2 are the addresses, %r1 the thread and %rd3 four times
 * that, %r2 shared memory for it. */
#define VERSION(version, target, body)                                                             \
    ".version " version "\n.target " target                                                        \
    "\n.address_size 64\n.extern .shared .align 16 .b8 sh[];\n"                                    \
    ".visible .entry k(.param .u64 k_0, .param .u64 k_1)\n{\n.reg .pred %p<4>;\n.reg .f32 "        \
    "%f<8>;\n.reg .b32 %r<12>;\n"                                                                  \
    ".reg .b64 %rd<12>;\nld.param.u64 %rd1, [k_0];\nld.param.u64 %rd2, [k_1];\nmov.u32 %r1, "      \
    "%tid.x;\n"                                                                                    \
    "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\nmov.u32 "   \
    "%r2, sh;\n"                                                                                   \
    "shl.b32 %r3, %r1, 2;\nadd.s32 %r2, %r2, %r3;\n" body "\n}\n"
#define ENTRY(body) VERSION("8.0", "sm_80", body)
#define STORE "st.global.u32 [%rd5], %r9;\nret;"

/* --- kernels --- */
static const struct {
    const char *what, *text;
    unsigned threads;
    int result;          /* what the driver says of the launch */
    const char *message; /* in its words */
    int first, last;     /* what the first and the last thread give for inputs 100, 101, … */
} kernels[] = {
    {"a copy", ENTRY("ld.global.u32 %r9, [%rd4];\n" STORE), 64, 0, "", 100, 163},
    {"out of bounds", ENTRY("ld.global.u32 %r9, [%rd4+256];\n" STORE), 64, 700,
     "reads out of bounds", 0, 0},
    {"not aligned", ENTRY("ld.global.u32 %r9, [%rd4+2];\n" STORE), 64, 716, "aligned", 0, 0},
    {"no memory at all", ENTRY("mov.u64 %rd4, 64;\nld.global.u32 %r9, [%rd4];\n" STORE), 64, 700,
     "reads out of bounds", 0, 0},
    {"never written", ENTRY("ld.global.u32 %r9, [%rd5];\n" STORE), 64, 719, "nobody has written", 0,
     0},
    {"an asynchronous copy",
     ENTRY("cp.async.ca.shared.global [%r2], [%rd4], "
           "4;\ncp.async.commit_group;\ncp.async.wait_group 0;\n"
           "ld.shared.u32 %r9, [%r2];\n" STORE),
     64, 0, "", 100, 163},
    {"an asynchronous copy of another thread",
     ENTRY("cp.async.ca.shared.global [%r2], [%rd4], 4;\ncp.async.wait_all;\nbar.sync 0;\nxor.b32 "
           "%r4, %r2, 252;\n"
           "ld.shared.u32 %r9, [%r4];\n" STORE),
     64, 0, "", 163, 100},
    {"an asynchronous copy that nobody waits for",
     ENTRY("cp.async.ca.shared.global [%r2], [%rd4], 4;\ncp.async.commit_group;\nld.shared.u32 "
           "%r9, [%r2];\n" STORE),
     64, 719, "has yet to arrive", 0, 0},
    {"a group of asynchronous copies too few",
     ENTRY("cp.async.ca.shared.global [%r2], [%rd4], "
           "4;\ncp.async.commit_group;\ncp.async.wait_group 1;\n"
           "ld.shared.u32 %r9, [%r2];\n" STORE),
     64, 719, "has yet to arrive", 0, 0},
    {"an asynchronous copy behind no barrier",
     ENTRY("cp.async.ca.shared.global [%r2], [%rd4], 4;\ncp.async.wait_all;\nxor.b32 %r4, %r2, 4;\n"
           "ld.shared.u32 %r9, [%r4];\n" STORE),
     64, 719, "a race", 0, 0},
    {"zeros behind an asynchronous copy",
     ENTRY("mov.u32 %r5, 0;\ncp.async.ca.shared.global [%r2], [%rd4], 4, "
           "%r5;\ncp.async.wait_all;\nld.shared.u32 %r9, [%r2];\n" STORE),
     64, 0, "", 0, 0},
    {"named barriers of two warps",
     ENTRY("ld.global.u32 %r9, [%rd4];\nst.shared.u32 [%r2], %r9;\nshr.u32 %r5, %r1, 6;\nadd.s32 "
           "%r5, %r5, 1;\n"
           "bar.sync %r5, 64;\nxor.b32 %r4, %r2, 252;\nld.shared.u32 %r9, [%r4];\n" STORE),
     128, 0, "", 163, 164},
    {"a named barrier of other warps",
     ENTRY("ld.global.u32 %r9, [%rd4];\nst.shared.u32 [%r2], %r9;\nshr.u32 %r5, %r1, 6;\nadd.s32 "
           "%r5, %r5, 1;\n"
           "bar.sync %r5, 64;\nxor.b32 %r4, %r2, 508;\nld.shared.u32 %r9, [%r4];\n" STORE),
     128, 719, "", 0, 0},
    {"who arrives and who waits",
     ENTRY("ld.global.u32 %r9, [%rd4];\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 bra WRITES;\nbar.sync 1, "
           "64;\nxor.b32 %r4, %r2, 128;\n"
           "ld.shared.u32 %r9, [%r4];\n" STORE
           "\nWRITES:\nst.shared.u32 [%r2], %r9;\nbar.arrive 1, 64;\n" STORE),
     64, 0, "", 100, 131},
    {"a loop without end", ENTRY("L:\nbra L;"), 32, 702, "does not come to its end", 0, 0},
    {"halves of a warp that shuffle apart",
     ENTRY("ld.global.u32 %r9, [%rd4];\nand.b32 %r6, %r1, 31;\nsetp.lt.u32 %p1, %r6, 16;\n@%p1 bra "
           "LOW;\n"
           "shfl.sync.bfly.b32 %r9, %r9, 1, 0x1f, 0xffff0000;\n" STORE "\nLOW:\n"
           "shfl.sync.bfly.b32 %r9, %r9, 1, 0x1f, 0x0000ffff;\n" STORE),
     64, 0, "", 101, 162},
    {"lanes of the other half",
     ENTRY("ld.global.u32 %r9, [%rd4];\nand.b32 %r6, %r1, 31;\nsetp.lt.u32 %p1, %r6, 16;\n@%p1 bra "
           "LOW;\n"
           "shfl.sync.bfly.b32 %r9, %r9, 16, 0x1f, 0xffff0000;\n" STORE "\nLOW:\n"
           "shfl.sync.bfly.b32 %r9, %r9, 16, 0x1f, 0x0000ffff;\n" STORE),
     64, 719, "a lane that does not take part", 0, 0},
    {"shuffles up",
     ENTRY("ld.global.u32 %r9, [%rd4];\nshfl.sync.up.b32 %r9|%p1, %r9, 2, 0, 0xffffffff;\n@!%p1 "
           "mov.u32 %r9, 7;\n" STORE),
     64, 0, "", 7, 161},
    {"sums by atomics",
     ENTRY("ld.global.u32 %r9, [%rd4];\nst.shared.u32 [%r2], 0;\nbar.sync 0;\nmov.u32 %r7, "
           "sh;\natom.shared.add.u32 %r8, [%r7], 1;\n"
           "bar.sync 0;\nld.shared.u32 %r9, [%r7];\n" STORE),
     64, 0, "", 64, 64},
    {"two registers in one",
     ENTRY("ld.global.u32 %r9, [%rd4];\nmov.b64 %rd9, {%r1, %r9};\nmov.b64 {%r5, %r9}, "
           "%rd9;\n" STORE),
     64, 0, "", 100, 163},
};

static int launch(const char *text, unsigned blocks, unsigned threads, unsigned shared, uint64_t in,
                  uint64_t out)
{
    void *module, *function, *parameters[] = {&in, &out};
    char log[256] = "";
    int options[] = {5, 6};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    int result = cuModuleLoadDataEx(&module, text, 2, options, values);
    ck_assert_msg(!result, "%d: %s", result, log);
    OK(cuModuleGetFunction(&function, module, "k"));
    OK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, parameters, NULL));
    result = cuStreamSynchronize(stream);
    (void)cuModuleUnload(module);
    return result;
}

START_TEST(test_kernel)
{
    enum { MOST = 128 };
    int numbers[MOST];
    uint64_t in, out;
    unsigned n = kernels[_i].threads;
    begin();
    gpu->set_limit(100000);
    for (int i = 0; i < MOST; i++)
        numbers[i] = 100 + i;
    OK(cuMemAlloc_v2(&in, n * 4));
    OK(cuMemAlloc_v2(&out, n * 4));
    OK(cuMemcpyHtoDAsync_v2(in, numbers, n * 4, stream));
    int result = launch(kernels[_i].text, 1, n, n * 4, in, out);
    ck_assert_msg(result == kernels[_i].result && strstr(gpu->fault(), kernels[_i].message),
                  "%s: %d, %s", kernels[_i].what, result, gpu->fault());
    if (result) { /* it sticks, until the context is gone */
        ck_assert_int_eq(cuMemsetD8Async(in, 0, 4, stream), result);
        ck_assert_int_eq(cuStreamSynchronize(stream), result);
        return;
    }
    OK(cuMemcpyDtoHAsync_v2(numbers, out, n * 4, stream));
    ck_assert_msg(numbers[0] == kernels[_i].first && numbers[n - 1] == kernels[_i].last,
                  "%s: %d … %d", kernels[_i].what, numbers[0], numbers[n - 1]);
    OK(cuMemFree_v2(in));
    OK(cuMemFree_v2(out));
    end();
}
END_TEST

/* 40 GB that nobody has: elements beyond 2^32 are there once they are touched. */
START_TEST(test_far_elements)
{
    static const uint64_t far[] = {0, UINT64_C(1) << 31, (UINT64_C(1) << 32) + 4,
                                   UINT64_C(39) << 30};
    uint64_t large, out;
    int found, number = 5;
    begin();
    OK(cuMemAlloc_v2(&large, UINT64_C(40) << 30));
    OK(cuMemAlloc_v2(&out, 4));
    for (int i = 0; i < 4; i++) {
        number += i;
        OK(cuMemcpyHtoDAsync_v2(large + far[i], &number, 4, stream));
        OK(launch(ENTRY("ld.global.u32 %r9, [%rd4];\n" STORE), 1, 1, 4, large + far[i], out));
        OK(cuMemcpyDtoHAsync_v2(&found, out, 4, stream));
        ck_assert_int_eq(found, number);
    }
    ck_assert_int_eq(launch(ENTRY("ld.global.u32 %r9, [%rd4];\n" STORE), 1, 1, 4,
                            large + (UINT64_C(40) << 30), out),
                     700);
}
END_TEST

/* --- what drivers refuse --- */
/* An ELF file's header of this kind, whose sections' headers would lie behind `size` bytes, and what follows it. */
#define CUBIN(kind, size, note) "\x7f" "ELF\2\1\1" kind ZEROS ZEROS ZEROS ZEROS size "\0\0\0\0\0\0\0" ZEROS ZEROS note
#define ZEROS "\0\0\0\0\0\0\0\0"
static const struct {
    const char *what, *text;
    int version, capability, result;
    const char *words;
} images[] = {
    {"PTX 8.0 on 525", VERSION("8.0", "sm_80", "ret;"), 12000, 80, 0, ""},
    {"PTX 8.4 on 525", VERSION("8.4", "sm_80", "ret;"), 12000, 80, 222, "knows PTX up to 8.0"},
    {"PTX 8.8 on 550", VERSION("8.8", "sm_75", "ret;"), 12040, 80, 222, "knows PTX up to 8.4"},
    {"PTX 9.0 on 575", VERSION("9.0", "sm_75", "ret;"), 12090, 80, 222, "knows PTX up to 8.8"},
    {"PTX 9.0 on 580", VERSION("9.0", "sm_75", "ret;"), 13000, 80, 0, ""},
    {"sm_90 on sm_80", VERSION("8.0", "sm_90", "ret;"), 13000, 80, 209, "this is sm_80"},
    {"a cubin of CUDA 12", CUBIN("\x33", "\x40", ""), 12000, 80, 209, "executes PTX alone"},
    {"a cubin of CUDA 13 on 525", CUBIN("\x41", "\x40", ""), 12000, 80, 209, "a cubin of CUDA 13; a driver of CUDA 12.0 does not load it"},
    {"a cubin of CUDA 13 that says so on 570", CUBIN("\x41", "\x50", "release 13.0    "), 12080, 100, 209, "does not load it"},
    {"a cubin of CUDA 12 for new GPUs", CUBIN("\x41", "\x50", "release 12.9    "), 12080, 100, 209, "executes PTX alone"},
    {"no PTX", "hello\n", 13000, 80, 218, "PTX line 1"},
    {"an instruction that is none", VERSION("8.0", "sm_80", "tcgen05.fence;"), 13000, 90, 218, "unknown instruction tcgen05"},
    {"a pragma of 8.3", VERSION("8.3", "sm_80", ".pragma \"used_bytes_mask 15\"; ret;"), 13000, 80, 0, ""},
    {"a pragma of 8.3 in 8.0", VERSION("8.0", "sm_80", ".pragma \"used_bytes_mask 15\"; ret;"), 13000, 80, 218, "from version 8.3 on"},
    {"sm_90a on sm_90", VERSION("8.0", "sm_90a", "wgmma.fence.sync.aligned; ret;"), 13000, 90, 0, ""},
    {"sm_90a on sm_100", VERSION("8.0", "sm_90a", "ret;"), 13000, 100, 209, "PTX for sm_90a; this is sm_100"},
    {"wgmma for sm_90", VERSION("8.0", "sm_90", "wgmma.fence.sync.aligned;"), 13000, 90, 218, "which needs sm_90a"},
    {"wgmma of s8", VERSION("8.0", "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {}, 0, 0, 1, 1, 1;"), 13000, 90, 218,
     "unknown .m64n8k32"},
};

START_TEST(test_image)
{
    char log[256] = "";
    int options[] = {5, 6};
    void *module, *values[] = {log, (void *)(uintptr_t)sizeof log};
    begin();
    gpu->set_version(images[_i].version);
    gpu->set_device(1, images[_i].capability);
    int result = cuModuleLoadDataEx(&module, images[_i].text, 2, options, values);
    ck_assert_msg(result == images[_i].result && strstr(log, images[_i].words), "%s: %d, %s",
                  images[_i].what, result, log);
    if (!result)
        OK(cuModuleUnload(module));
    end();
}
END_TEST

/* --- captures --- */
enum { GLOBAL, THREAD, RELAXED };

/* A recording is ended by what might wait for it, unless who calls has said that it does not mind.
 */
START_TEST(test_capture)
{
    static const int expected[3][3] = {
        {900, 900, 0}, {900, 900, 0}, {0, 0, 0}}; /* by the capture's mode and the thread's */
    uint64_t at = 0;
    void *graph;
    int mode = _i % 3, result = expected[_i / 3][_i % 3];
    begin();
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(cuStreamBeginCapture_v2(stream, _i / 3));
    ck_assert_int_eq(cuMemAlloc_v2(&at, 64), result);
    ck_assert_int_eq(cuStreamEndCapture(stream, &graph), result ? 901 : 0);
    if (!result) {
        OK(cuMemFree_v2(at));
        OK(cuGraphDestroy(graph));
    }
    end();
}
END_TEST

/* A graph's kernel gets other parameters; CUDA_KERNEL_NODE_PARAMS_v2. */
START_TEST(test_graph)
{
    struct {
        void *function;
        unsigned grid[3], block[3], shared_bytes;
        void **parameters, **extra;
        void *kernel, *context;
    } changed;
    int numbers[2] = {7, 8}, found = 0;
    uint64_t in, other, out;
    void *module, *function, *graph, *exec, *nodes[1], *parameters[] = {&in, &out};
    size_t n = 1;
    begin();
    OK(cuMemAlloc_v2(&in, 8));
    OK(cuMemAlloc_v2(&out, 4));
    OK(cuMemcpyHtoDAsync_v2(in, numbers, 8, stream));
    OK(cuModuleLoadDataEx(&module, ENTRY("ld.global.u32 %r9, [%rd4];\n" STORE), 0, NULL, NULL));
    OK(cuModuleGetFunction(&function, module, "k"));
    OK(cuStreamBeginCapture_v2(stream, THREAD));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 4, stream, parameters, NULL));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphGetNodes(graph, nodes, &n));
    ck_assert_uint_eq(n, 1);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    for (int i = 0; i < 2; i++) {
        OK(cuGraphLaunch(exec, stream));
        OK(cuMemcpyDtoHAsync_v2(&found, out, 4, stream));
        ck_assert_int_eq(found, numbers[i]);
        other = in + 4;
        memset(&changed, 0, sizeof changed);
        changed.function = function;
        changed.grid[0] = changed.grid[1] = changed.grid[2] = changed.block[0] = changed.block[1] =
            changed.block[2] = 1;
        changed.shared_bytes = 4;
        changed.parameters = (void *[]){&other, &out};
        OK(cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &changed));
    }
    OK(cuGraphExecDestroy(exec));
    OK(cuModuleUnload(module));
    OK(cuMemFree_v2(in));
    OK(cuMemFree_v2(out));
    end();
}
END_TEST

/* Another stream's copy is there when the event says so, and time has passed. */
START_TEST(test_events)
{
    int number = 9, found;
    uint64_t in, out;
    void *second, *events[2];
    float ms;
    begin();
    OK(cuStreamCreate(&second, 1));
    OK(cuMemAlloc_v2(&in, 4));
    OK(cuMemAlloc_v2(&out, 4));
    for (int i = 0; i < 2; i++)
        OK(cuEventCreate(&events[i], 0));
    OK(cuEventRecord(events[0], second));
    OK(cuMemcpyHtoDAsync_v2(in, &number, 4, second));
    OK(cuEventRecord(events[1], second));
    OK(cuStreamWaitEvent(stream, events[1], 0));
    OK(launch(ENTRY("ld.global.u32 %r9, [%rd4];\n" STORE), 1, 1, 4, in, out));
    OK(cuMemcpyDtoHAsync_v2(&found, out, 4, stream));
    ck_assert_int_eq(found, number);
    OK(cuEventElapsedTime(&ms, events[0], events[1]));
    ck_assert(ms > 0);
    for (int i = 0; i < 2; i++)
        OK(cuEventDestroy_v2(events[i]));
    OK(cuMemFree_v2(in));
    OK(cuMemFree_v2(out));
    OK(cuStreamDestroy_v2(second));
    end();
}
END_TEST

/* Copies to and from page-locked memory wait for the stream, and what nobody wrote is told of there, too. */
START_TEST(test_late_copies)
{
    enum { MAPPED = 2 };
    int is_written = _i, *locked;
    uint64_t at;
    void *memory;
    begin();
    OK(cuMemAlloc_v2(&at, 8));
    OK(cuMemHostAlloc(&memory, 16, MAPPED));
    locked = memory;
    memset(locked, 0, 16);
    locked[0] = locked[1] = 7;
    OK(cuMemcpyHtoDAsync_v2(at, locked, is_written ? 8 : 4, stream));
    locked[0] = 9; /* before the copy is done */
    OK(cuMemcpyDtoHAsync_v2(&locked[2], at, 8, stream));
    ck_assert_int_eq(locked[2], 0);
    ck_assert_int_eq(cuStreamSynchronize(stream), is_written ? 0 : 719);
    if (!is_written) {
        ck_assert_str_eq(gpu->fault(), "of 8 bytes copied to the host nobody has written 4");
        ck_assert_int_eq(cuStreamSynchronize(stream), 719);
        return;
    }
    ck_assert_int_eq(locked[2], 9);
    ck_assert_int_eq(locked[3], 7);
    OK(cuMemFreeHost(memory));
    OK(cuMemFree_v2(at));
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vgpu driver");
    TCase *cases = tcase_create("driver");
    tcase_add_loop_test(cases, test_kernel, 0, sizeof kernels / sizeof *kernels);
    tcase_add_test(cases, test_far_elements);
    tcase_add_loop_test(cases, test_image, 0, sizeof images / sizeof *images);
    tcase_add_loop_test(cases, test_capture, 0, 9);
    tcase_add_test(cases, test_graph);
    tcase_add_test(cases, test_events);
    tcase_add_loop_test(cases, test_late_copies, 0, 2);
    tcase_set_timeout(cases, 200);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
