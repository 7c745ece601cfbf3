"""As much of PyTorch as gpu_steps.py uses, on NumPy: its tensors are arrays, its GPU is this processor. gpu_check's second half is
tried with it where there is no GPU (dry_run.py)."""
import contextlib
import os
import time
import types

import numpy as np

__version__ = "0 (fake)"
version = types.SimpleNamespace(cuda="0.0")
float32, float16, float64 = "torch.float32", "torch.float16", "torch.float64"


class Tensor(np.ndarray):
    def cuda(self):
        return self

    cpu = cuda

    def numpy(self):
        return np.asarray(self)

    def double(self):
        return self.astype(np.float64)

    def to(self, *what):
        dtypes = [w.removeprefix("torch.") for w in what if str(w).startswith("torch.")]
        return self.astype(dtypes[0]) if dtypes else self

    def half(self):
        return self.astype(np.float16)

    def numel(self):
        return self.size

    def element_size(self):
        return self.itemsize

    def clone(self):
        return self.copy()

    def copy_(self, other):
        self[...] = other
        return self

    def add_(self, value):
        self += value
        return self


def tensor_of(array):
    return np.ascontiguousarray(array).view(Tensor)


def manual_seed(seed):
    np.random.seed(seed)


def randn(*shape, device=None):
    shape = shape[0] if isinstance(shape[0], tuple) else shape
    # what is only measured may be small
    if np.prod(shape) >= 1 << 26:
        shape = (1 << 16,) if len(shape) == 1 else (8, 8)
    return tensor_of(np.random.standard_normal(shape).astype(np.float32))


def full(shape, value, device=None, dtype=float32):
    return tensor_of(np.full(shape, value, str(dtype).removeprefix("torch.")))


def zeros(shape, device=None):
    return full(shape, 0)


def empty_like(tensor):
    return tensor_of(np.zeros_like(tensor))


def from_numpy(array):
    return tensor_of(array)


def softmax(x, axis):
    trouble("softmax")
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def trouble(place):
    """What a test asks for: FAKE_TROUBLE is "PLACE abort", "PLACE hang" or "PLACE raise"."""
    where, _, what = os.environ.get("FAKE_TROUBLE", "").partition(" ")
    if where != place:
        return
    if what == "abort":
        os.abort()
    if what == "hang":
        time.sleep(1000)
    cuda.is_broken = True
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


@contextlib.contextmanager
def no_grad():
    yield


def compile(function):
    trouble("compile")
    raise RuntimeError("there is no compiler here\nsecond line")


# ---- torch.cuda

class Event:
    def __init__(self, enable_timing):
        self.at = 0

    def record(self):
        self.at = time.monotonic()

    def synchronize(self):
        synchronize()

    def elapsed_time(self, end):
        return 1e3 * (end.at - self.at)


class Stream:
    cuda_stream = None


class CUDAGraph:
    def replay(self):
        pass


def synchronize():
    if cuda.is_broken:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")


cuda = types.SimpleNamespace(
    is_broken=False, is_available=lambda: True, get_device_name=lambda: "this processor",
    get_device_capability=lambda: divmod(int(os.environ.get("FAKE_CAPABILITY", "75")), 10),
    synchronize=synchronize, Event=Event, Stream=Stream, CUDAGraph=CUDAGraph, stream=lambda s: contextlib.nullcontext(),
    graph=lambda g: contextlib.nullcontext())
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=False)),
                                 cudnn=types.SimpleNamespace(allow_tf32=False, benchmark=False))
