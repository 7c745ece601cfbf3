"""The steps of gpu_run.py: what runs on the GPU, and what is measured of it. A step yields trials, (case, a generator of the parts
of its row); what counts is yielded before what may take long. gpu_run.py says what the steps are for."""
import ctypes
import json
import lzma
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tarfile
import time

import numpy as np

COMPILING_S = 75  # of a step: after them PyTorch compiles nothing more
RUNS = 20  # between two events
ROTATED_BYTES, MOST_COPIES = 60 << 20, 7  # of inputs, so that each run finds them in memory


# ---- the runtime

class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t), ("dtype", ctypes.c_int),
                ("rank", ctypes.c_uint32), ("dims", ctypes.c_int64 * 8), ("on_device", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


class OpenOptions(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("image", ctypes.c_void_p), ("fd", ctypes.c_int), ("device", ctypes.c_char_p),
                ("plan", ctypes.c_uint32), ("reserved", ctypes.c_uint32 * 3)]


class ContextOptions(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_uint32), ("profile", ctypes.c_uint32), ("poison", ctypes.c_uint32), ("async", ctypes.c_uint32),
                ("stream", ctypes.c_void_p), ("is_current", ctypes.c_uint32), ("max_mebibytes", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32 * 2)]


class StepInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kernel", ctypes.c_char_p), ("peak", ctypes.c_char_p), ("is_kernel", ctypes.c_int)]


class StepProfile(ctypes.Structure):
    _fields_ = [("begin_ns", ctypes.c_int64), ("end_ns", ctypes.c_int64), ("units", ctypes.c_int64), ("flops", ctypes.c_double),
                ("bytes", ctypes.c_double), ("runs", ctypes.c_int64)]


STRUCTS = {"dlcrt_tensor": Tensor, "dlcrt_executable_options": OpenOptions, "dlcrt_context_options": ContextOptions,
           "dlcrt_step_info": StepInfo, "dlcrt_step_profile": StepProfile}


class Runtime:
    """libdlcrt through ctypes (include/dlc/runtime.h)."""

    def __init__(self, folder, dtypes):
        self.lib = ctypes.CDLL(str(folder / "lib" / "libdlcrt.so"))
        self.lib.dlcrt_last_error.restype = ctypes.c_char_p
        self.lib.dlcrt_context_bytes.restype = ctypes.c_size_t
        self.lib.dlcrt_context_bytes.argtypes = [ctypes.c_void_p]
        self.lib.dlcrt_context_wait.argtypes = [ctypes.c_void_p]
        for name in ("dlcrt_executable_close", "dlcrt_context_destroy"):
            getattr(self.lib, name).argtypes = [ctypes.c_void_p]
            getattr(self.lib, name).restype = None
        self.numbers = {name: i for i, name in enumerate(dtypes)}

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.dlcrt_last_error().decode())


NUMPY_DTYPES = {"float32": "f32", "float16": "f16", "float64": "f64", "int64": "i64", "int32": "i32", "bool": "bool", "uint8": "u8", "int8": "i8"}


class Model:
    """An executable and a context on the GPU. Arrays are of numpy, or tensors of torch on the GPU."""

    def __init__(self, runtime, path, poison=False, stream=None, profile=False):
        self.rt, self.executable, self.context = runtime, ctypes.c_void_p(), ctypes.c_void_p()
        options = OpenOptions(path=str(path).encode(), fd=-1)  # on DLC_DEVICE
        runtime.check(runtime.lib.dlcrt_executable_open_with(ctypes.byref(options), ctypes.byref(self.executable)))
        options = ContextOptions(poison=poison, stream=stream, profile=profile, **{"async": stream is not None})
        runtime.check(runtime.lib.dlcrt_context_create(self.executable, ctypes.byref(options), ctypes.byref(self.context)))

    def tensor(self, array, name=None):
        is_device = not isinstance(array, np.ndarray)
        dtype = str(array.dtype).removeprefix("torch.")
        size = array.numel() * array.element_size() if is_device else array.nbytes
        return Tensor(name and name.encode(), array.data_ptr() if is_device else array.ctypes.data, size,
                      self.rt.numbers[NUMPY_DTYPES[dtype]], array.ndim, (ctypes.c_int64 * 8)(*array.shape), int(is_device), 0)

    def run(self, inputs, outputs, names=None):
        """inputs, outputs: arrays in the model's order; of inputs a name each may be given."""
        ins = (Tensor * len(inputs))(*[self.tensor(a, names and names[i]) for i, a in enumerate(inputs)])
        outs = (Tensor * len(outputs))(*[self.tensor(a) for a in outputs])
        self.rt.check(self.rt.lib.dlcrt_context_run(self.context, ins, len(inputs), outs, len(outputs)))

    def prepared(self, inputs, outputs):
        """A call without arguments that runs once, for timing."""
        ins = (Tensor * len(inputs))(*[self.tensor(a) for a in inputs])
        outs = (Tensor * len(outputs))(*[self.tensor(a) for a in outputs])
        run, context, check = self.rt.lib.dlcrt_context_run, self.context, self.rt.check
        return lambda: check(run(context, ins, len(inputs), outs, len(outputs)))

    def profile(self):
        """Of the last run: (nodes, microseconds) by step that runs a kernel."""
        steps, info, times = [], StepInfo(), StepProfile()
        while self.rt.lib.dlcrt_executable_step(self.executable, len(steps), ctypes.byref(info)) and \
                self.rt.lib.dlcrt_context_profile(self.context, len(steps), ctypes.byref(times)):
            steps.append((info.name.decode(), info.is_kernel, (times.end_ns - times.begin_ns) / 1e3))
        return [(name, us) for name, is_kernel, us in steps if is_kernel]

    def wait(self):
        self.rt.check(self.rt.lib.dlcrt_context_wait(self.context))

    def bytes(self):
        return self.rt.lib.dlcrt_context_bytes(self.context)

    def close(self):
        self.rt.lib.dlcrt_context_destroy(self.context)
        self.rt.lib.dlcrt_executable_close(self.executable)


# ---- the folder

class Folder:
    """What is carried, and a folder for what is unpacked of it."""

    def __init__(self, path, work):
        self.path, self.unpacked = pathlib.Path(path).resolve(), pathlib.Path(work)
        self.manifest = json.loads((self.path / "manifest.json").read_text())
        globals()["RUNS"] = self.manifest.get("runs", RUNS)

    def cases(self, kind):
        return [c for c in self.manifest["cases"] if c["kind"] == kind]

    def executable(self, packed):
        path = self.unpacked / packed.replace("/", "_").removesuffix(".xz")
        if not path.exists():
            part = path.with_suffix(".part")
            part.write_bytes(lzma.decompress((self.path / packed).read_bytes()))
            part.rename(path)
        return path

    def best(self, case, capability):
        """Of a case's files the one for most GPUs that runs here; None: none does."""
        fitting = [t for t in case["files"] if arch_of(t) <= capability]
        return max(fitting, key=lambda t: t.count(",")) if fitting else None


def arch_of(targets):
    """The oldest GPU that a file is for; it has PTX of that, too."""
    return min(int(t.removeprefix("sm_")) for t in targets.split(","))


def capability():
    import torch
    major, minor = torch.cuda.get_device_capability()
    return 10 * major + minor


def program(folder):
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{folder.path / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    return str(folder.path / "bin" / "dlc"), environment


def relative_error(found, expected):
    """Largest error over largest value; a NaN where none is expected is infinite."""
    if np.isnan(found).any() != np.isnan(expected).any():
        return float("inf")
    return float(np.abs(found.astype(np.float64) - expected).max() / max(np.abs(expected).max(), 1e-30))


# ---- measuring

def milliseconds(*calls, rounds=3):
    """Of a run, by events around RUNS of them, the calls in turn: (best round, how much the rounds differ)."""
    import torch
    times = []
    for call in calls * 3 if len(calls) == 1 else calls:
        call()
    torch.cuda.synchronize()
    for _ in range(rounds):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        for n in range(RUNS):
            calls[n % len(calls)]()
        events[1].record()
        events[1].synchronize()
        times.append(events[0].elapsed_time(events[1]) / RUNS)
    return min(times), max(times) / max(min(times), 1e-9) - 1


def rotated(inputs):
    """The inputs, and as many copies of them as it takes to be larger than the caches."""
    nbytes = sum(x.numel() * x.element_size() for x in inputs)
    return [inputs] + [[x.clone() for x in inputs] for _ in range(min(MOST_COPIES, ROTATED_BYTES // max(nbytes, 1)))]


def as_graph(function, inputs):
    """One run captured as a CUDA graph: replay it."""
    import torch
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            function(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        kept = function(*inputs)
    return lambda: graph.replay() or kept


def first_line(error):
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def peer_times(function, inputs, with_compile, others=None):
    """Parts of a row: times so far, and which peers failed, which is never fatal. others: functions by name."""
    import torch
    peers, problems = {}, {}

    def measure(name, make):
        try:
            peers[name] = milliseconds(*[as_graph(make(), some) for some in rotated(inputs)])[0]
        except Exception as error:  # of PyTorch, whatever it is
            problems[name] = first_line(error)
        return {"peers": peers, "peer_problems": problems}
    yield measure("eager", lambda: function)
    for name, other in (others or {}).items():
        yield measure(name, lambda other=other: other)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    yield measure("eager tf32", lambda: function)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if with_compile:
        begin = time.monotonic()
        yield measure("compile", lambda: torch.compile(function))
        yield {"torch_compile_s": round(time.monotonic() - begin, 1)}


def dlc_time(folder, runtime, case, target, inputs, shape, dtype=None):
    """Times a file on a stream of PyTorch, inputs and outputs on the GPU, where they are used as they lie. Returns the outputs and
    columns of a row. Each copy of the inputs has a context of its own, so no run changes a graph."""
    import torch
    output = torch.full(shape, float("nan"), device="cuda", dtype=dtype or torch.float32)
    stream, models = torch.cuda.Stream(), []
    sets = rotated(inputs)
    torch.cuda.synchronize()  # inputs and the NaNs are there
    try:
        for _ in sets:
            models.append(Model(runtime, folder.executable(case["files"][target]), stream=stream.cuda_stream))
        with torch.cuda.stream(stream):
            calls = [model.prepared(some, [output]) for model, some in zip(models, sets)]
            for _ in range(2):  # launched, then made a graph
                for call in calls:
                    call()
            ms, noise = milliseconds(*calls)
        for model in models:
            model.wait()
        return output, {"target": target, "dlc_ms": ms, "noise": noise, "memory_mb": round(models[0].bytes() / 1e6, 1)}
    finally:
        for model in models:
            model.close()


def plain_float32():
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)


# ---- the steps

NEWER = {"skipped": "made for a newer GPU"}


def step_facts(folder):
    import torch

    def machine():
        plain_float32()
        query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm", "--format=csv,noheader"]
        found = subprocess.run(query, capture_output=True, text=True).stdout.strip() if shutil.which("nvidia-smi") else ""
        yield {"gpu": found or torch.cuda.get_device_name(), "capability": capability(), "device": os.environ["DLC_DEVICE"], "torch": torch.__version__,
               "cuda": torch.version.cuda}
        x = torch.randn(1 << 28, device="cuda")
        y = torch.empty_like(x)
        yield {"copy_gb_s": round(2 * 4 * x.numel() / milliseconds(lambda: y.copy_(x))[0] / 1e6)}
        for dtype in (torch.float32, torch.float16):
            a = torch.randn(8192, 8192, device="cuda").to(dtype)
            yield {f"cublas_{str(dtype)[6:]}_tflop_s": round(2 * 8192**3 / milliseconds(lambda: a @ a)[0] / 1e9, 1)}
        one = torch.zeros(1, device="cuda")
        yield {"graph_replay_us": round(1e3 * milliseconds(as_graph(lambda v: v.add_(1), [one]))[0], 2)}
    yield "machine", machine()


def check_file(folder, runtime, case, target):
    """A model's executable against its stored outputs, run three times and three times with poisoned memory."""
    inputs, expected = np.load(folder.path / case["inputs"]), np.load(folder.path / case["expected"])
    names = [n for n in inputs.files if n not in ("labels", *expected.files)]
    arrays = [np.ascontiguousarray(inputs[n]) for n in names]
    found = []
    begin = time.monotonic()
    for poison in (False, True):
        model = Model(runtime, folder.executable(case["files"][target]), poison=poison)
        for _ in range(3):
            outputs = [np.full_like(expected[n], 77) for n in expected.files]
            model.run(arrays, outputs, names)
            found.append(outputs)
        model.close()
    error = max(relative_error(f, expected[n]) for n, f in zip(expected.files, found[0]))
    same = all(np.array_equal(a, b, equal_nan=True) for outputs in found[1:] for a, b in zip(outputs, found[0]))
    yield {"error": error, "same_bits": same, "seconds": round(time.monotonic() - begin, 2), "ok": error <= case["tolerance"] and same,
           **({} if same else {"why": "six runs gave different bits"})}


def files_of(folder, case, here, check):
    """A trial for each of the case's files."""
    for target in case["files"]:
        def row(target=target):
            yield {"target": target}
            yield from [NEWER] if arch_of(target) > here else check(target)
        yield case["name"], row()


def step_numerics(folder):
    runtime, here = Runtime(folder.path, folder.manifest["dtypes"]), capability()
    for case in folder.cases("model"):
        yield from files_of(folder, case, here, lambda target, case=case: check_file(folder, runtime, case, target))


def step_smoke(folder):
    """The smallest model by its first file: the driver, loading, launching and graphs."""
    runtime, here = Runtime(folder.path, folder.manifest["dtypes"]), capability()
    for case in folder.cases("model")[:1]:
        target = folder.best(case, here)
        yield case["name"], check_file(folder, runtime, case, target) if target else iter([NEWER])


def step_steps(folder):
    """Each step's least time of some runs, and the prediction of the virtual GPU for this GPU where the model was run there."""
    runtime, here = Runtime(folder.path, folder.manifest["dtypes"]), capability()

    def row(case, target):
        inputs, expected = np.load(folder.path / case["inputs"]), np.load(folder.path / case["expected"])
        names = [n for n in inputs.files if n not in ("labels", *expected.files)]
        arrays, outputs = [np.ascontiguousarray(inputs[n]) for n in names], [np.empty_like(expected[n]) for n in expected.files]
        model = Model(runtime, folder.executable(case["files"][target]), profile=True)
        least = {}
        for _ in range(RUNS):
            model.run(arrays, outputs, names)
            for number, (name, us) in enumerate(model.profile()):
                least[number] = (name, min(us, least.get(number, (name, us))[1]))
        model.close()
        predicted = case.get("predicted_us", {}).get(str(here), {})
        steps = [{"step": name, "us": round(us, 2)} for name, us in least.values()]
        yield {"target": target, "steps": steps, "dlc_ms": sum(us for _, us in least.values()) / 1e3, "predicted_us": predicted}
    for case in folder.cases("model"):
        target = folder.best(case, here)
        yield case["name"], row(case, target) if target else iter([NEWER])


def step_micro(folder):
    import gpu_micro
    wanted = folder.manifest.get("micro") or {}
    here = capability()
    fitting = [arch for arch in wanted if int(arch) <= here]

    def row(name):
        with gpu_micro.Gpu([folder.path / wanted[max(fitting, key=int)]], os.environ["DLC_DEVICE"], RUNS) as gpu:
            yield getattr(gpu, name)()
    for name in gpu_micro.MEASURED if fitting else []:
        yield name, row(name)


def unpack(folder, archive):
    with tarfile.open(folder.path / archive) as tar:
        tar.extractall(folder.unpacked, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


def median_times(model, inputs, output):
    """Microseconds of each kernel, the median of some runs; copies of the inputs in turn, as peers have them: caches are cold."""
    sets, times = rotated(inputs), []
    for n in range(-2, RUNS):  # launched, then made a graph
        model.run(sets[n % len(sets)], [output])
        times += [[us for _, us in model.profile()]] if n >= 0 else []
    return [statistics.median(of_kernel) for of_kernel in zip(*times)]


def experiment_result(folder, runtime, e, inputs, expected):
    """One schedule's times and error; what is predicted of a kernel stands beside what it took."""
    import torch
    output = torch.full(expected.shape, float("nan"), device="cuda", dtype=inputs[0].dtype)
    model = Model(runtime, folder.unpacked / "experiments" / f"{e['name']}.so", profile=True)
    try:
        times = median_times(model, inputs, output)
    finally:
        model.close()
    return compared(e, times, output.cpu().numpy(), expected)


def compared(e, times, found, expected):
    """A row of an experiment: each kernel's time beside its prediction, and the error."""
    if len(times) != len(e["kernels"]):
        raise RuntimeError(f"{e['name']}: {len(times)} kernels ran, {len(e['kernels'])} were predicted")
    kernels = [{**kernel, "us": round(us, 3)} for kernel, us in zip(e["kernels"], times)]
    return {"name": e["name"], "kernels": kernels, "us": round(sum(times), 3), "error": relative_error(found, expected.cpu().numpy())}


def wgmma_result(folder, files, e, inputs, expected):
    """The same of a kernel that is no executable of dlc's."""
    import gpu_wgmma
    sets = [[x.cpu().numpy() for x in some] for some in rotated(inputs)]
    paths = [folder.executable(file) for file in files]
    return compared(e, *gpu_wgmma.measure(paths, os.environ["DLC_DEVICE"], e, sets, RUNS), expected)


def step_experiments(folder):
    """A trial for all schedules of a shape and row, beside cuBLAS."""
    import itertools
    import torch
    import gpu_experiments
    carried = folder.manifest.get("experiments") or {"experiments": [], "target": "sm_0"}
    if arch_of(carried["target"]) > capability():
        yield "experiments", iter([NEWER])
        return
    plain_float32()
    runtime = Runtime(folder.path, folder.manifest["dtypes"])
    if carried["experiments"]:
        unpack(folder, carried["archive"])

    def row(several):
        (m, n, k), is_f16, is_by_hand = several[0]["shape"], several[0]["row"] != "fma", several[0]["row"] == "wgmma"
        if is_by_hand and capability() != 90:
            yield {"skipped": "wgmma is for sm_90a alone"}
            return
        dtype, results = torch.float16 if is_f16 else torch.float32, []
        inputs = [torch.randn(s, device="cuda").to(dtype) for s in ((m, k), (k, n))]
        expected = inputs[0].double() @ inputs[1].double()
        yield {"target": "sm_90a" if is_by_hand else carried["target"]}
        for e in several:
            results.append(wgmma_result(folder, carried["wgmma"], e, inputs, expected) if is_by_hand else
                           experiment_result(folder, runtime, e, inputs, expected))
            best, error = min(results, key=lambda r: r["us"]), max(r["error"] for r in results)
            yield {"experiments": results, "best": best["name"], "dlc_ms": best["us"] / 1e3, "error": error,
                   "ok": error <= (4e-3 if is_f16 else 1e-4)}
        yield from peer_times(lambda a, b: a @ b, inputs, False)
    for group, several in itertools.groupby(carried["experiments"], gpu_experiments.group_of):
        yield group, row(list(several))


def found_tool(name):
    """Its path, or None: on the PATH, or in a toolkit."""
    places = [os.environ.get("PATH", ""), *(str(p) for p in sorted(pathlib.Path("/usr/local").glob("cuda*/bin")))]
    return shutil.which(name, path=":".join(places))


COUNTERS = ("gpu__time_duration.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes.sum",
            "lts__t_sectors.sum", "l1tex__data_bank_conflicts_pipe_lsu.sum", "smsp__inst_executed.sum",
            "sm__inst_executed_pipe_tensor.sum", "sm__warps_active.avg.pct_of_peak_sustained_active")


def step_ncu(folder):
    """Counters of what the virtual GPU counts, too, of every launch; the first ones are cold."""
    import gpu_cases
    tool, here = found_tool("ncu"), capability()
    if not tool:
        yield "ncu", iter([{"skipped": "it is not installed here"}])
        return
    dlc, environment = program(folder)

    def row(case, target):
        yield {"target": target}
        done = subprocess.run([tool, "--clock-control", "none", "--csv", "--metrics", ",".join(COUNTERS), dlc, "run",
                               folder.executable(case["files"][target]), "--quiet"], env=environment, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
        yield {"counters": lines} if len(lines) > 1 else {"skipped": "ncu does not work here", "why": (done.stdout + done.stderr)[-500:]}
    for case in folder.cases("kernel"):
        target = folder.best(case, here)
        if case["name"] in gpu_cases.PROFILED and target:
            yield case["name"], row(case, target)


def step_nodes(folder):
    nodes = folder.manifest["nodes"]

    def row():
        unpack(folder, nodes["archive"])
        dlc, environment = program(folder)
        done = subprocess.run([dlc, "test", folder.unpacked / "nodes", "--quiet", "--jobs", "8", "--json"], env=environment,
                              capture_output=True, text=True)
        lines = done.stdout.strip().splitlines()
        result = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        wrong = [f"{c['name']}: {c.get('why', c['outcome'])}" for c in result.get("cases", []) if c["outcome"] != "PASS"]
        ok = done.returncode == 0 and bool(result.get("pass"))
        yield {"target": nodes["target"], "ok": ok, "pass": result.get("pass", 0), "fail": result.get("fail", nodes["carried"]),
               "unsupported": result.get("unsupported", 0), **({} if ok else {"why": "\n".join(wrong[:40]) + done.stderr[-2000:]})}
    yield "ONNX node tests", row() if nodes else iter([{"ok": False, "why": "none are carried"}])


FOUND = 99  # exit status of compute-sanitizer when it found something


def sanitized(command, environment):
    """Part of a row: what the tool said, or why it could not look."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    said = (done.stdout + done.stderr)[-2000:]
    if done.returncode in (0, FOUND) and "not supported" not in said:
        return {"ok": done.returncode == 0, **({} if done.returncode == 0 else {"why": said})}
    return {"skipped": "compute-sanitizer does not work here", "why": said}


def step_sanitizer(folder):
    tool, here = found_tool("compute-sanitizer"), capability()
    if not tool:
        yield "compute-sanitizer", iter([{"skipped": "it is not installed here"}])
        return
    dlc, environment = program(folder)
    wanted = [c for c in folder.manifest["cases"] if c["name"] in ("digits", "matmul_odd_509x1021x127", "softmax_1536x128", "conv_3x3_64_56")]
    for case in wanted:
        target = folder.best(case, here)
        inputs = ["--inputs", folder.path / case["inputs"]] if "inputs" in case else []
        for check in ("memcheck", "racecheck", "initcheck"):
            def row(case=case, target=target, inputs=inputs, check=check):
                yield {"target": target or "", "tool": check}
                yield NEWER if not target else sanitized(
                    [tool, "--tool", check, "--error-exitcode", str(FOUND), dlc, "run", folder.executable(case["files"][target]),
                     *inputs, "--quiet"], environment)
            yield case["name"], row()


def step_kernels(folder):
    import torch
    import gpu_cases
    import gpu_torch
    plain_float32()
    begin = time.monotonic()
    runtime, here = Runtime(folder.path, folder.manifest["dtypes"]), capability()

    def check(case, target):
        kind, shapes, attributes = gpu_cases.KERNELS[case["name"]]
        function = gpu_torch.kernel(kind, attributes)
        dtype = torch.float16 if attributes.get("dtype") == "f16" else torch.float32
        inputs = [torch.randn(s, device="cuda").to(dtype) for s in shapes]
        expected = function(*[x.double() for x in inputs])
        output, columns = dlc_time(folder, runtime, case, target, inputs, expected.shape, dtype)
        error = relative_error(output.cpu().numpy(), expected.cpu().numpy())
        flops, nbytes = gpu_cases.work((kind, shapes, attributes))
        yield {**columns, "error": error, "ok": error <= case["tolerance"], "flops": flops, "bytes": nbytes,
               "dtype": str(dtype)[6:]}
        if target == folder.best(case, here):
            yield from peer_times(function, inputs, time.monotonic() - begin < COMPILING_S, gpu_torch.other_peers(kind))
    for case in folder.cases("kernel"):
        yield from files_of(folder, case, here, lambda target, case=case: check(case, target))


def step_models(folder):
    import torch
    import gpu_torch
    import nets
    plain_float32()
    begin = time.monotonic()
    runtime, here = Runtime(folder.path, folder.manifest["dtypes"]), capability()

    def given(case):
        """Input and reference: carried, or made here by PyTorch in float64."""
        if case["kind"] == "batch":
            x = torch.from_numpy(nets.random_input(nets.NETS[case["net"]][1], case["batch"])).cuda()
            with torch.no_grad():
                return x, gpu_torch.network(case["net"], torch.float64)(x if "int" in str(x.dtype) else x.double()).cpu().numpy()
        expected = np.load(folder.path / case["expected"])
        return torch.from_numpy(np.load(folder.path / case["inputs"])["x"]).cuda(), expected[expected.files[0]]

    def row(case, target):
        x, expected = given(case)
        output, columns = dlc_time(folder, runtime, case, target, [x], expected.shape)
        error = relative_error(output.cpu().numpy(), expected)
        yield {**columns, "error": error, "ok": error <= case["tolerance"]}
        net = case.get("net", case["name"])
        function = gpu_torch.network(net)
        try:
            with torch.no_grad():
                yield {"peer_error": relative_error(function(x).cpu().numpy(), expected)}
        except Exception as error:  # of PyTorch, whatever it is
            yield {"peer_problems": {"eager": first_line(error)}}
            return
        half = gpu_torch.network(net, torch.float16)
        others = {"eager f16": lambda x: half(x if "int" in str(x.dtype) else x.half())}
        yield from peer_times(function, [x], time.monotonic() - begin < COMPILING_S, others)
    for case in folder.cases("model") + folder.cases("batch"):
        target = folder.best(case, here)
        if case.get("net", case["name"]) in nets.NETS:
            yield case["name"], row(case, target) if target else iter([NEWER])


COLD_PEER = "import sys; sys.path.insert(0, sys.argv[1])\nimport torch, gpu_torch\nprint(gpu_torch.network('resnet50')(torch.ones(1,3,224,224,device='cuda')).sum().item())"


def milliseconds_of_process(command, environment=None):
    begin = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return 1e3 * (time.monotonic() - begin), done.stderr[-500:] if done.returncode else ""


def step_cold(folder):
    dlc, environment = program(folder)
    here = capability()

    def row(case, target):
        yield {"target": target}
        command = [dlc, "run", folder.executable(case["files"][target]), "--inputs", folder.path / case["inputs"], "--quiet"]
        times, problems = zip(*[milliseconds_of_process(command, environment) for _ in range(5)])
        yield {"why": max(problems)} if any(problems) else {"dlc_ms": statistics.median(times)}

    def peer():
        ms, problem = milliseconds_of_process([sys.executable, "-c", COLD_PEER, folder.path])
        yield {"peer_problems": {"eager": problem}} if problem else {"peers": {"eager": ms}}
    for case in folder.cases("model"):
        target = folder.best(case, here)
        if case["name"] in ("digits", "resnet50") and target:
            yield f"{case['name']}, a process", row(case, target)
    yield "resnet50 in PyTorch, a process", peer()


STEPS = {"facts": step_facts, "smoke": step_smoke, "micro": step_micro, "kernels": step_kernels, "models": step_models,
         "steps": step_steps, "experiments": step_experiments, "numerics": step_numerics, "nodes": step_nodes,
         "sanitizer": step_sanitizer, "ncu": step_ncu, "cold": step_cold}
