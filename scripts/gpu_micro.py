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
"""
MEASURED = ("processor", "node", "latency", "latency_l2", "copying", "copying_l2", "floats", "shared_memory", "barriers")


def compile_ptx(nvrtc, arch):
    """PTX of the kernels for a GPU."""
    lib = ctypes.CDLL(str(nvrtc))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def check(result):
        if result:
            text = ctypes.create_string_buffer(1 << 16)
            lib.nvrtcGetProgramLog(program, text)
            raise RuntimeError(f"NVRTC: {result}: {text.value.decode()[:1000]}")
    check(lib.nvrtcCreateProgram(ctypes.byref(program), SOURCE.encode(), b"micro.cu", 0, None, None))
    options = (ctypes.c_char_p * 2)(f"-arch=compute_{arch}".encode(), b"-fmad=false")
    check(lib.nvrtcCompileProgram(program, 2, options))
    check(lib.nvrtcGetPTXSize(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    check(lib.nvrtcGetPTX(program, text))
    return re.sub(rb"(?m)^\.version \S+", b".version 8.0", text.value) if arch <= 90 else text.value  # see docs/gpu.md


class Gpu:
    """A device with the kernels loaded; times are by events, of the best of some runs."""

    def __init__(self, ptx, device, runs):
        self.cu, self.runs = ctypes.CDLL("libcuda.so.1"), runs
        self.handle, self.context, self.module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self.allocated, self.stream = [], ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(self.handle), int(device.partition(":")[2] or 0))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.handle)
        self.call("cuCtxPushCurrent_v2", self.context)
        self.call("cuModuleLoadDataEx", ctypes.byref(self.module), pathlib.Path(ptx).read_bytes() + b"\0", 0, None, None)
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.is_small = self.attribute(16) < 1 or runs < 5  # a try without a GPU: little work

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

    def launch(self, name, blocks, threads, *arguments):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name.encode())
        pointers = (ctypes.c_void_p * (len(arguments) + 1))(*[ctypes.addressof(a) for a in arguments])
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, self.stream, pointers, None)

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

    # ---- what is measured

    def processor(self):
        name = ctypes.create_string_buffer(64)
        self.call("cuDeviceGetName", name, 63, self.handle)
        return {"name": name.value.decode(), "capability": 10 * self.attribute(75) + self.attribute(76), "sms": self.attribute(16),
                "ghz": self.attribute(13) / 1e6, "shared_kib": self.attribute(81) // 1024, "block_kib": self.attribute(97) // 1024,
                "threads": self.attribute(39)}

    def node(self):
        """From one kernel of a graph to the next."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        n = 8 if self.is_small else 200
        self.call("cuStreamBeginCapture_v2", self.stream, 2)
        for _ in range(n):
            self.launch("empty", 1, 32)
        self.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        us = self.microseconds(lambda: self.call("cuGraphLaunch", executable, self.stream)) / n
        self.call("cuGraphExecDestroy", executable)
        self.call("cuGraphDestroy", graph)
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

    def barriers(self):
        steps = ctypes.c_uint32(8 if self.is_small else 4096)
        us = self.microseconds(lambda: self.launch("barrier", 1, 256, steps))
        return {"barrier_cycles": us * self.attribute(13) / 1e3 / steps.value}


if __name__ == "__main__":
    pathlib.Path(sys.argv[3]).write_bytes(compile_ptx(sys.argv[1], int(sys.argv[2])))
