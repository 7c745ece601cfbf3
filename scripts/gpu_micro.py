"""Small kernels that measure what predictions rest on (vgpu/gpus.def), through the CUDA driver alone. gpu_static.py compiles them
(`python3 gpu_micro.py NVRTC ARCH FILE`); gpu_steps.py runs them by what is below, each a method that gives parts of a row."""
import ctypes
import ctypes.util
import pathlib
import re
import sys

SOURCE = r"""
extern "C" __global__ void empty() {}

/* Each load's address is what the one before it found: cycles a load takes. */
extern "C" __global__ void chase(const unsigned *next, unsigned steps, unsigned *out)
{
    unsigned at = 0;
    for (unsigned i = 0; i < steps; i++)
        at = next[at];
    out[0] = at;
}

extern "C" __global__ void copy(const float4 *from, float4 *to, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = from[i];
}

/* Eight independent chains a thread: what the f32 lanes give. */
extern "C" __global__ void fused(float *out, unsigned steps, float by)
{
    float v[8];
    for (int k = 0; k < 8; k++)
        v[k] = threadIdx.x + k;
    for (unsigned i = 0; i < steps; i++)
#pragma unroll
        for (int k = 0; k < 8; k++)
            v[k] = __fmaf_rn(v[k], by, 1.0f);
    float sum = 0;
    for (int k = 0; k < 8; k++)
        sum += v[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/* Loads of 4 bytes a lane without conflicts: a wavefront each. */
extern "C" __global__ void shared_loads(float *out, unsigned steps)
{
    __shared__ volatile float tile[1024];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    float a = 0, b = 0, c = 0, d = 0;
    for (unsigned i = 0; i < steps; i++) {
        a += tile[(threadIdx.x + i) & 255], b += tile[(threadIdx.x + i + 32) & 255];
        c += tile[(threadIdx.x + i + 64) & 255], d += tile[(threadIdx.x + i + 96) & 255];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

extern "C" __global__ void barrier(unsigned steps)
{
    for (unsigned i = 0; i < steps; i++)
        __syncthreads();
}

/* Loads of 16 bytes: of neighbours, and of one place by all lanes. */
template <int step> __device__ void load_wide(float *out, unsigned steps)
{
    __shared__ float4 tile[512];
    tile[threadIdx.x] = tile[threadIdx.x + 256] = make_float4(threadIdx.x, 1, 2, 3);
    __syncthreads();
    float4 a = make_float4(0, 0, 0, 0);
    unsigned first = (unsigned)__cvta_generic_to_shared(tile);
    for (unsigned i = 0; i < steps; i++) {
        float x, y, z, w; /* a volatile float4 would be four loads */
        asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "r"(first + 16 * ((step * threadIdx.x + i) & 511)));
        a.x += x, a.y += y, a.z += z, a.w += w;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a.x + a.y + a.z + a.w;
}
extern "C" __global__ void shared_wide(float *out, unsigned steps) { load_wide<1>(out, steps); }
extern "C" __global__ void shared_broadcast(float *out, unsigned steps) { load_wide<0>(out, steps); }

/* Two lanes a bank. */
extern "C" __global__ void shared_conflicts(float *out, unsigned steps)
{
    __shared__ volatile float tile[1024];
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x)
        tile[i] = i;
    __syncthreads();
    float a = 0, b = 0;
    for (unsigned i = 0; i < steps; i++)
        a += tile[(2 * threadIdx.x + i) & 1023], b += tile[(2 * threadIdx.x + i + 64) & 1023];
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + b;
}

extern "C" __global__ void shared_chase(unsigned steps, unsigned *out)
{
    __shared__ volatile unsigned next[256];
    for (unsigned i = 0; i < 256; i++)
        next[i] = (i + 33) & 255;
    unsigned at = 0;
    for (unsigned i = 0; i < steps; i++)
        at = next[at];
    out[0] = at;
}

extern "C" __global__ void integers(unsigned *out, unsigned steps, unsigned by)
{
    unsigned v[8];
    for (int k = 0; k < 8; k++)
        v[k] = threadIdx.x + k;
    for (unsigned i = 0; i < steps; i++)
#pragma unroll
        for (int k = 0; k < 8; k++)
            v[k] = v[k] * by + i;
    unsigned sum = 0;
    for (int k = 0; k < 8; k++)
        sum ^= v[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void divisions(float *out, unsigned steps, float by)
{
    float a = threadIdx.x + 1.0f, b = a + 0.5f;
    for (unsigned i = 0; i < steps; i++)
        a = by / a, b = by / b;
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + b;
}

extern "C" __global__ void shuffles(unsigned *out, unsigned steps)
{
    unsigned a = threadIdx.x, b = a + 1;
    for (unsigned i = 0; i < steps; i++)
        a += __shfl_xor_sync(0xffffffffu, a, 16), b += __shfl_xor_sync(0xffffffffu, b, 1);
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + b;
}

extern "C" __global__ void atomics(unsigned *out, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++)
        atomicAdd(&out[blockIdx.x * blockDim.x + threadIdx.x], i);
}

/* Reads alone; and of every sector four bytes. */
extern "C" __global__ void reading(const float4 *from, float *out, unsigned n)
{
    float sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float4 v = from[i];
        sum += v.x + v.y + v.z + v.w;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void gathering(const float *from, float *out, unsigned n)
{
    float sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 8; i += gridDim.x * blockDim.x)
        sum += from[8 * i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

#if __CUDA_ARCH__ >= 800
/* Two chains of products of matrices a warp. */
#define PRODUCTS(name, type, letter, shape)                                                                             \
    extern "C" __global__ void name(type *out, unsigned steps)                                                          \
    {                                                                                                                   \
        type c[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};                                                                    \
        unsigned a = threadIdx.x & 1, b = threadIdx.x & 2;                                                              \
        for (unsigned i = 0; i < steps; i++)                                                                            \
            for (int k = 0; k < 2; k++)                                                                                 \
                asm volatile("mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5, %4, %5}, {%5, %4}, {%0, %1, %2, %3};" \
                             : "+" letter(c[k][0]), "+" letter(c[k][1]), "+" letter(c[k][2]), "+" letter(c[k][3])         \
                             : "r"(a), "r"(b));                                                                         \
        out[blockIdx.x * blockDim.x + threadIdx.x] = c[0][0] + c[1][1] + c[0][2] + c[1][3];                             \
    }
PRODUCTS(products_f16, float, "f", "m16n8k16.row.col.f32.f16.f16.f32")
PRODUCTS(products_tf32, float, "f", "m16n8k8.row.col.f32.tf32.tf32.f32")
PRODUCTS(products_s8, int, "r", "m16n8k32.row.col.s32.s8.s8.s32")

/* Copies that pass no register: each thread its own 16 bytes, two groups under way. */
extern "C" __global__ void late_copies(const float4 *from, float *out, unsigned n)
{
    __shared__ float4 tile[2][256];
    const unsigned tiles[2] = {(unsigned)__cvta_generic_to_shared(&tile[0][threadIdx.x]),
                               (unsigned)__cvta_generic_to_shared(&tile[1][threadIdx.x])};
    const unsigned step = gridDim.x * blockDim.x;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, half = 0;
    float sum = 0;
    if (i < n)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(tiles[0]), "l"(from + i) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (; i < n; i += step, half ^= 1) {
        if (i + step < n)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(tiles[half ^ 1]), "l"(from + i + step)
                         : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory"); /* for the older one */
        sum += tile[half][threadIdx.x].x;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
#endif
"""
MEASURED = ("processor", "node", "latency", "latency_l2", "latency_shared", "copying", "copying_l2", "reads", "reads_apart", "late",
            "floats", "whole", "quotients", "exchanges", "adding", "shared_memory", "shared_16_bytes", "shared_one_place",
            "shared_two_a_bank", "barriers", "matrices_f16", "matrices_tf32", "matrices_s8")

PLAIN_SHARED = 48 << 10  # more must be asked for
OLDER = {"skipped": "the GPU or the code is older"}


def compiled(nvrtc, arch, source, kind="PTX"):
    """PTX or, of kind CUBIN, machine code for a GPU: "80", "90a"."""
    lib = ctypes.CDLL(str(nvrtc))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def check(result):
        if result:
            text = ctypes.create_string_buffer(1 << 16)
            lib.nvrtcGetProgramLog(program, text)
            raise RuntimeError(f"NVRTC: {result}: {text.value.decode()[:1000]}")
    check(lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None))
    options = (ctypes.c_char_p * 2)(f"-arch={'compute' if kind == 'PTX' else 'sm'}_{arch}".encode(), b"-fmad=false")
    check(lib.nvrtcCompileProgram(program, 2, options))
    check(getattr(lib, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    check(getattr(lib, f"nvrtcGet{kind}")(program, text))
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    if kind != "PTX":
        return text.raw
    is_old = int(arch.rstrip("a")) <= 90  # see docs/gpu.md
    return re.sub(rb"(?m)^\.version \S+", b".version 8.0", text.value) if is_old else text.value


class Gpu:
    """A device with the kernels loaded; times are by events, of the best of some runs."""

    def __init__(self, files, device, runs):
        """files: of the same code, the first that loads is taken."""
        self.cu, self.runs = ctypes.CDLL("libcuda.so.1"), runs
        self.handle, self.context, self.module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self.allocated, self.stream = [], ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(self.handle), int(device.partition(":")[2] or 0))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.handle)
        self.call("cuCtxPushCurrent_v2", self.context)
        self.load([pathlib.Path(file) for file in files])
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.is_small = self.attribute(16) < 1 or runs < 5  # a try without a GPU: little work

    def load(self, files):
        said = ctypes.create_string_buffer(1 << 12)
        options, values = (ctypes.c_int * 2)(5, 6), (ctypes.c_void_p * 2)(ctypes.addressof(said), len(said))  # a log of errors
        for file in files:
            result = self.cu.cuModuleLoadDataEx(ctypes.byref(self.module), file.read_bytes() + b"\0", 2, options, values)
            if not result:
                return
        raise RuntimeError(f"cuModuleLoadDataEx: {result}: {said.value.decode(errors='replace')}")

    def __enter__(self):
        return self

    def __exit__(self, *what):
        for at in self.allocated:
            self.cu.cuMemFree_v2(at)
        self.cu.cuStreamDestroy_v2(self.stream)
        self.cu.cuModuleUnload(self.module)
        self.cu.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        self.cu.cuDevicePrimaryCtxRelease_v2(self.handle)

    def call(self, name, *arguments):
        result = getattr(self.cu, name)(*arguments)
        if result:
            raise RuntimeError(f"{name}: {result}")

    def attribute(self, number):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self.handle)
        return value.value

    def memory(self, nbytes, host=None):
        at = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(nbytes))
        self.allocated.append(at)
        if host is None:
            self.call("cuMemsetD8Async", at, ctypes.c_ubyte(0), ctypes.c_size_t(nbytes), self.stream)
        else:
            self.call("cuMemcpyHtoDAsync_v2", at, host, ctypes.c_size_t(nbytes), self.stream)
        self.call("cuStreamSynchronize", self.stream)
        return at

    def fetch(self, at, array):
        """Fills an array of NumPy from the device."""
        self.call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(array.ctypes.data), at, ctypes.c_size_t(array.nbytes), self.stream)
        self.call("cuStreamSynchronize", self.stream)

    def has(self, name):
        """Some kernels are for newer GPUs."""
        return self.cu.cuModuleGetFunction(ctypes.byref(ctypes.c_void_p()), self.module, name.encode()) == 0

    def launch(self, name, blocks, threads, *arguments, shared=0):
        """blocks: their number, or three of them."""
        function, grid = ctypes.c_void_p(), blocks if isinstance(blocks, tuple) else (blocks, 1, 1)
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name.encode())
        if shared > PLAIN_SHARED:
            self.call("cuFuncSetAttribute", function, 8, shared)
        pointers = (ctypes.c_void_p * (len(arguments) + 1))(*[ctypes.addressof(a) for a in arguments])
        self.call("cuLaunchKernel", function, *grid, threads, 1, 1, shared, self.stream, pointers, None)

    def microseconds(self, run, times=1):
        """Of one of so many calls between two events; the best round of some."""
        best = float("inf")
        for _ in range(self.runs):
            events = [ctypes.c_void_p(), ctypes.c_void_p()]
            for event in events:
                self.call("cuEventCreate", ctypes.byref(event), 0)
            self.call("cuEventRecord", events[0], self.stream)
            for _ in range(times):
                run()
            self.call("cuEventRecord", events[1], self.stream)
            self.call("cuStreamSynchronize", self.stream)
            ms = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(ms), *events)
            best = min(best, 1e3 * ms.value / times)
            for event in events:
                self.cu.cuEventDestroy_v2(event)
        return best

    def graphed(self, calls):
        """Microseconds of each of some calls, as nodes of a graph one after another."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamBeginCapture_v2", self.stream, 2)
        for call in calls:
            call()
        self.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        us = self.microseconds(lambda: self.call("cuGraphLaunch", executable, self.stream)) / len(calls)
        self.call("cuGraphExecDestroy", executable)
        self.call("cuGraphDestroy", graph)
        return us

    # ---- what is measured

    def processor(self):
        name = ctypes.create_string_buffer(64)
        self.call("cuDeviceGetName", name, 63, self.handle)
        return {"name": name.value.decode(), "capability": 10 * self.attribute(75) + self.attribute(76), "sms": self.attribute(16),
                "ghz": self.attribute(13) / 1e6, "shared_kib": self.attribute(81) // 1024, "block_kib": self.attribute(97) // 1024,
                "threads": self.attribute(39)}

    def node(self):
        """From one kernel of a graph to the next."""
        us = self.graphed([lambda: self.launch("empty", 1, 32)] * (8 if self.is_small else 200))
        return {"node_us": us}

    def chased(self, nbytes):
        """Cycles of a load within so many bytes, at steps that no cache line or page holds two of."""
        n, stride = nbytes // 4, 0x1fffff // 4 * 2 + 33
        steps = 64 if self.is_small else 4096
        places = [0]
        for _ in range(steps):
            places.append((places[-1] + stride) % n)
        next_of = (ctypes.c_uint32 * n)()
        for at, to in zip(places, places[1:]):
            next_of[at] = to
        table, out = self.memory(nbytes, next_of), self.memory(4)
        count = ctypes.c_uint32(steps)
        us = self.microseconds(lambda: self.launch("chase", 1, 1, table, count, out))
        return us * self.attribute(13) / 1e3 / steps

    def latency(self):
        return {"load_cycles": self.chased(1 << 16 if self.is_small else 256 << 20)}

    def latency_l2(self):
        return {"l2_cycles": self.chased(1 << 14 if self.is_small else 1 << 20)}

    def copied(self, nbytes, times):
        """GB/s, read and written."""
        from_, to, n = self.memory(nbytes), self.memory(nbytes), ctypes.c_uint32(nbytes // 16)
        blocks = 2 if self.is_small else 8 * self.attribute(16)
        return 2e-3 * nbytes / self.microseconds(lambda: self.launch("copy", blocks, 256, from_, to, n), times)

    def copying(self):
        return {"memory_gbs": self.copied(1 << 16 if self.is_small else 512 << 20, 1)}

    def copying_l2(self):
        return {"l2_gbs": self.copied(1 << 14 if self.is_small else 4 << 20, 2 if self.is_small else 20)}

    def per_cycle(self, name, work_per_thread_step, *last):
        """So much work of a multiprocessor in a cycle, with all of them full."""
        steps, threads = ctypes.c_uint32(8 if self.is_small else 4096), 256
        blocks = 2 if self.is_small else 8 * self.attribute(16)
        out = self.memory(4 * threads * blocks)
        us = self.microseconds(lambda: self.launch(name, blocks, threads, out, steps, *last))
        used = min(blocks, self.attribute(16))
        return work_per_thread_step * steps.value * threads * blocks / used / (us * self.attribute(13) / 1e3)

    def floats(self):
        return {"lanes": self.per_cycle("fused", 8, ctypes.c_float(0.5))}

    def shared_memory(self):
        return {"wavefronts": self.per_cycle("shared_loads", 4) / 32}

    def latency_shared(self):
        steps, out = ctypes.c_uint32(64 if self.is_small else 4096), self.memory(4)
        us = self.microseconds(lambda: self.launch("shared_chase", 1, 1, steps, out))
        return {"shared_cycles": us * self.attribute(13) / 1e3 / steps.value}

    def read(self, name, counted):
        """GB/s of what is counted of a large buffer."""
        nbytes = 1 << 16 if self.is_small else 512 << 20
        unit = 4 if name == "gathering" else 16
        blocks = 2 if self.is_small else 8 * self.attribute(16)
        from_, out, n = self.memory(nbytes), self.memory(4 * 256 * blocks), ctypes.c_uint32(nbytes // unit)
        return counted * 1e-3 * nbytes / self.microseconds(lambda: self.launch(name, blocks, 256, from_, out, n))

    def reads(self):
        return {"read_gbs": self.read("reading", 1)}

    def reads_apart(self):
        return {"sectors_gbs": self.read("gathering", 1)}

    def late(self):
        return {"late_gbs": self.read("late_copies", 1)} if self.has("late_copies") else OLDER

    def whole(self):
        return {"integer_lanes": self.per_cycle("integers", 8, ctypes.c_uint32(3))}

    def quotients(self):
        return {"division_lanes": self.per_cycle("divisions", 2, ctypes.c_float(3))}

    def exchanges(self):
        return {"shuffle_lanes": self.per_cycle("shuffles", 2)}

    def adding(self):
        return {"atomic_lanes": self.per_cycle("atomics", 1)}

    def shared_16_bytes(self):
        return {"wide_loads": self.per_cycle("shared_wide", 1) / 32}

    def shared_one_place(self):
        return {"broadcast_loads": self.per_cycle("shared_broadcast", 1) / 32}

    def shared_two_a_bank(self):
        return {"conflict_loads": self.per_cycle("shared_conflicts", 2) / 32}

    def matrices(self, name, depth):
        """Products of elements in a cycle of a multiprocessor; a step of a warp is two matrices of 16 x 8."""
        return {name: self.per_cycle(name, 2 * 16 * 8 * depth / 32)} if self.has(name) else OLDER

    def matrices_f16(self):
        return self.matrices("products_f16", 16)

    def matrices_tf32(self):
        return self.matrices("products_tf32", 8)

    def matrices_s8(self):
        return self.matrices("products_s8", 32)

    def barriers(self):
        steps = ctypes.c_uint32(8 if self.is_small else 4096)
        us = self.microseconds(lambda: self.launch("barrier", 1, 256, steps))
        return {"barrier_cycles": us * self.attribute(13) / 1e3 / steps.value}


if __name__ == "__main__":
    pathlib.Path(sys.argv[3]).write_bytes(compiled(sys.argv[1], sys.argv[2], SOURCE))
