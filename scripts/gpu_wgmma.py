"""Products of f16 by `wgmma`, written by hand for sm_90a: the candidates of the design of experiments that schedules cannot express
(`gpu_wgmma.py NVRTC FOLDER` compiles them, `gpu_wgmma.py predict PTX LIST` runs a list on the virtual GPU; gpu_steps.py measures).
A block is one or two groups of four warps, each with 64 rows. Slices of 64 of K come by cp.async, STAGES under way, into shared
memory as wgmma's swizzle of 128 bytes wants them: of a, rows of K; of b, panels of 64 columns as they lie, so it is read N-major."""
import ctypes
import json
import pathlib
import sys

import numpy as np

import gpu_experiments
import gpu_micro

SLICE = 64  # of K
TILES = ((64, 64), (64, 128), (64, 256), (128, 64), (128, 128), (128, 256))  # rows and columns of a block
STAGES, PARTS = (2, 3, 4), (1, 2, 4, 8)
FRACTION = 9  # as in gpu_experiments
MOST_SHARED = 227 << 10
SUM_THREADS = 256

COMMON = r"""
typedef unsigned short half;
__device__ __forceinline__ unsigned packed(float low, float high)
{
    half bits[2];
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits[0]) : "f"(low));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits[1]) : "f"(high));
    return bits[0] | (unsigned)bits[1] << 16;
}

/* 16 bytes, zeros where there are none. */
__device__ __forceinline__ void copy_late(unsigned to, const half *from, bool is_there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_there ? 16 : 0) : "memory");
}

/* A tile of shared memory in rows of 128 bytes, swizzled; eight such rows make 1024 bytes. leading: from one panel of columns to the next. */
__device__ __forceinline__ unsigned long long described(unsigned at, unsigned leading)
{
    return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16 | 64ull << 32 | 1ull << 62;
}

/* A slice: 16 bytes a thread and turn, the 16 bytes of a row in an order of the row's. */
template <int rows, int columns, int threads>
__device__ __forceinline__ void load_slice(unsigned at, const half *a, const half *b, int m, int n, int k, int row, int column, int first)
{
#pragma unroll
    for (int t = 0; t < rows * 8 / threads; t++) {
        const int r = (t * threads + threadIdx.x) / 8, c = threadIdx.x % 8;
        const bool is_there = row + r < m;
        copy_late(at + r * 128 + ((c ^ (r & 7)) << 4), is_there ? a + (long long)(row + r) * k + first + c * 8 : a, is_there);
    }
#pragma unroll
    for (int t = 0; t < columns * 8 / threads; t++) {
        const int r = (t * threads + threadIdx.x) / (columns / 8), c = threadIdx.x % (columns / 8);
        const bool is_there = column + c * 8 < n;
        copy_late(at + rows * 128 + c / 8 * 8192 + r * 128 + ((c % 8 ^ (r & 7)) << 4),
                  is_there ? b + (long long)(first + r) * n + column + c * 8 : b, is_there);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* The parts of K added up. */
extern "C" __global__ void add_parts(const float *parts, half *y, int count, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int p = 0; p < count; p++)
        sum += parts[(unsigned long long)p * n + i];
    y[i] = (half)packed(sum, 0);
}
"""


def multiplied(columns):
    """64 rows by so many columns by a slice, of every warp of a group: four products under way, then waited for."""
    sums = columns // 2
    names = ", ".join(f"%{i}" for i in range(sums))
    steps = "".join(f'        "add.s64 a, %{sums}, {2 * i};\\n add.s64 b, %{sums + 1}, {128 * i};\\n"\n'
                    f'        "wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16 {{{names}}}, a, b, all, 1, 1, 0, 1;\\n"\n'
                    for i in range(SLICE // 16))
    return (f"__device__ __forceinline__ void multiply_{columns}(float (&sum)[{sums}], unsigned long long a, unsigned long long b)\n{{\n"
            '    asm volatile("{\\n .reg .pred all;\\n .reg .b64 a, b;\\n setp.eq.s32 all, 0, 0;\\n"\n'
            f'        "wgmma.fence.sync.aligned;\\n"\n{steps}'
            '        "wgmma.commit_group.sync.aligned;\\n wgmma.wait_group.sync.aligned 0;\\n}"\n'
            f'        : {", ".join(f"""{chr(34)}+f{chr(34)}(sum[{i}])""" for i in range(sums))}\n        : "l"(a), "l"(b) : "memory");\n}}\n')


KERNEL = r"""
extern "C" __global__ void __launch_bounds__(@threads@) @name@(const half *a, const half *b, @out@ *y, int m, int n, int k, int parts)
{
    extern __shared__ __align__(1024) unsigned char tiles[];
    enum { ROWS = @rows@, COLUMNS = @columns@, STAGES = @stages@, THREADS = @threads@, STAGE_BYTES = (ROWS + COLUMNS) * 128 };
    const unsigned base = (unsigned)__cvta_generic_to_shared(tiles);
    const int row = blockIdx.y * ROWS, column = blockIdx.x * COLUMNS, group = threadIdx.x / 128;
    const int each = k / parts / 64, first = blockIdx.z * each;
    float sum[COLUMNS / 2];
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++)
        sum[i] = 0;
    for (int s = 0; s < STAGES - 1; s++)
        if (s < each)
            load_slice<ROWS, COLUMNS, THREADS>(base + s * STAGE_BYTES, a, b, m, n, k, row, column, (first + s) * 64);
        else
            asm volatile("cp.async.commit_group;" ::: "memory");
    for (int s = 0; s < each; s++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        asm volatile("fence.proxy.async;" ::: "memory"); /* what was copied is there for wgmma, too */
        __syncthreads();
        const int next = s + STAGES - 1; /* its place was read in the turn before */
        if (next < each)
            load_slice<ROWS, COLUMNS, THREADS>(base + next % STAGES * STAGE_BYTES, a, b, m, n, k, row, column, (first + next) * 64);
        else
            asm volatile("cp.async.commit_group;" ::: "memory");
        const unsigned at = base + s % STAGES * STAGE_BYTES;
        multiply_@columns@(sum, described(at + group * 8192, 16), described(at + ROWS * 128, 8192));
    }
    const int r = row + group * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4, c = column + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < COLUMNS / 8; i++)
        for (int h = 0; h < 2; h++)
            if (r + 8 * h < m && c + 8 * i < n) {
                const long long to = (long long)(r + 8 * h) * n + c + 8 * i;
                @store@;
            }
}
"""
STORE = {1: "*(unsigned *)(y + to) = packed(sum[4 * i + 2 * h], sum[4 * i + 2 * h + 1])",
         2: "*(float2 *)(y + (long long)blockIdx.z * m * n + to) = make_float2(sum[4 * i + 2 * h], sum[4 * i + 2 * h + 1])"}


def entry_of(rows, columns, stages, parts):
    return f"product_{rows}x{columns}_{stages}" + ("_part" if parts > 1 else "")


def shared_bytes(rows, columns, stages):
    return stages * (rows + columns) * 128


def kernels():
    """Rows, columns, stages, and 1 or 2: whole sums or parts of them; what fits in shared memory."""
    return [(rows, columns, stages, parts) for rows, columns in TILES for stages in STAGES for parts in (1, 2)
            if shared_bytes(rows, columns, stages) <= MOST_SHARED]


def source(wanted=None):
    wanted = wanted or kernels()
    text = COMMON + "".join(multiplied(columns) for columns in sorted({columns for _, columns, _, _ in wanted}))
    for rows, columns, stages, parts in wanted:
        words = {"name": entry_of(rows, columns, stages, parts), "rows": rows, "columns": columns, "stages": stages,
                 "threads": 2 * rows, "out": "half" if parts == 1 else "float", "store": STORE[parts]}
        kernel = KERNEL
        for word, value in words.items():
            kernel = kernel.replace(f"@{word}@", str(value))
        text += kernel
    return text


def experiments(shapes=gpu_experiments.SHAPES, fraction=FRACTION):
    """Those of the fraction, as gpu_experiments has them."""
    for number, (m, n, k) in enumerate(shapes):
        for t, (rows, columns) in enumerate(TILES):
            for s, stages in enumerate(STAGES):
                for p, parts in enumerate(PARTS):
                    if k % (SLICE * parts) or k // parts < SLICE * 2 or shared_bytes(rows, columns, stages) > MOST_SHARED or columns > n:
                        continue
                    if (t + s + p + number) % fraction == 0:
                        yield {"shape": (m, n, k), "row": "wgmma", "tile": (rows, columns), "stages": stages, "parts": parts,
                               "name": f"{m}x{n}x{k}.wgmma.{rows}x{columns}.s{stages}.p{parts}"}


# ---- running

def compile_files(nvrtc, folder):
    """PTX and machine code of all kernels, for sm_90a."""
    for kind, end in (("PTX", "ptx"), ("CUBIN", "cubin")):
        (pathlib.Path(folder) / f"wgmma.{end}").write_bytes(gpu_micro.compiled(nvrtc, "90a", source(), kind))


def launches(gpu, e, a, b, y, parts):
    """The experiment's kernels, each as a call without arguments, between places in device memory."""
    (m, n, k), (rows, columns) = e["shape"], e["tile"]
    number = ctypes.c_int
    grid = (-(-n // columns), -(-m // rows), e["parts"])

    def multiply():
        gpu.launch(entry_of(rows, columns, e["stages"], e["parts"]), grid, 2 * rows, a, b, y if e["parts"] == 1 else parts,
                   number(m), number(n), number(k), number(e["parts"]), shared=shared_bytes(rows, columns, e["stages"]))

    def add():
        gpu.launch("add_parts", -(-m * n // SUM_THREADS), SUM_THREADS, parts, y, number(e["parts"]), ctypes.c_uint32(m * n))
    return [multiply] if e["parts"] == 1 else [multiply, add]


def results_of(gpu, e):
    """Places for the result, and for its parts."""
    m, n, _ = e["shape"]
    return gpu.memory(2 * m * n), gpu.memory(4 * m * n * e["parts"])


def predict(ptx, wanted):
    """Every experiment once: the virtual GPU's report has a line for each kernel and launch."""
    for e in wanted:
        m, n, k = e["shape"]
        with gpu_micro.Gpu([ptx], "cuda:0", 1) as gpu:
            for launch in launches(gpu, e, gpu.memory(2 * m * k), gpu.memory(2 * k * n), *results_of(gpu, e)):
                launch()
            gpu.call("cuStreamSynchronize", gpu.stream)


def measure(files, device, e, sets, runs):
    """(Microseconds of each kernel, the result): copies of the inputs in turn, as nodes of a graph."""
    m, n, _ = e["shape"]
    with gpu_micro.Gpu(files, device, runs) as gpu:
        def put(array):
            return gpu.memory(array.nbytes, ctypes.c_void_p(array.ctypes.data))
        results = results_of(gpu, e)
        turns = [launches(gpu, e, put(a), put(b), *results) for a, b in sets]
        times = [gpu.graphed([turns[i % len(turns)][kernel] for i in range(max(runs, len(turns)))]) for kernel in range(len(turns[0]))]
        found = np.empty((m, n), np.float16)
        gpu.fetch(results[0], found)
        return times, found


if __name__ == "__main__":
    if sys.argv[1] == "predict":
        predict(sys.argv[2], json.loads(pathlib.Path(sys.argv[3]).read_text()))
    else:
        compile_files(sys.argv[1], sys.argv[2])
