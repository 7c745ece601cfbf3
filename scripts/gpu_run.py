#!/usr/bin/env python3
"""gpu_run.py FOLDER: the half of gpu_check that needs a GPU, in the folder that the other half made.

Steps, each in a process of its own with its own time limit, so that one that fails or hangs does not stop the next:
  facts      the GPU, driver and PyTorch; copy bandwidth and cuBLAS throughput as ceilings
  numerics   every carried executable against its stored or recomputed reference, twice, and with poisoned memory
  nodes      ONNX's node tests
  sanitizer  compute-sanitizer on a sample, where there is one
  kernels    single kernels beside PyTorch: eager (cuBLAS, cuDNN) and torch.compile, both as CUDA graphs
  models     the same for whole models
  cold       from the start of a process to the first output
Prints one table; results.json has all of it. The exit status tells of numerics alone: 0 when every one that ran is right and
none is missing. All of it is float32 without TF32, unless a column says otherwise.
"""
import argparse
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

try:
    import numpy as np
except ImportError:  # main says so
    np = None

LIMITS_S = {"facts": 60, "numerics": 120, "nodes": 120, "sanitizer": 60, "kernels": 160, "models": 150, "cold": 40}
COMPILING_SHARE = 0.5  # of a step's time: after it PyTorch compiles nothing more
JUDGED = ("numerics", "nodes", "sanitizer", "kernels", "models")  # steps with numerics of their own
WHOLE_S = 570


# ---- the runtime

class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t), ("dtype", ctypes.c_int),
                ("rank", ctypes.c_uint32), ("dims", ctypes.c_int64 * 8), ("on_device", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


class OpenOptions(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("image", ctypes.c_void_p), ("fd", ctypes.c_int), ("device", ctypes.c_char_p),
                ("reserved", ctypes.c_uint32 * 4)]


class ContextOptions(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_uint32), ("profile", ctypes.c_uint32), ("poison", ctypes.c_uint32), ("is_async", ctypes.c_uint32),
                ("stream", ctypes.c_void_p), ("reserved", ctypes.c_uint32 * 4)]


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


NUMPY_DTYPES = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "bool": "bool", "uint8": "u8", "int8": "i8"}


class Model:
    """An executable and a context on the GPU. Arrays are of numpy, or tensors of torch on the GPU."""

    def __init__(self, runtime, path, poison=False, stream=None):
        self.rt, self.executable, self.context = runtime, ctypes.c_void_p(), ctypes.c_void_p()
        options = OpenOptions(path=str(path).encode(), fd=-1, device=b"cuda")
        runtime.check(runtime.lib.dlcrt_executable_open_with(ctypes.byref(options), ctypes.byref(self.executable)))
        options = ContextOptions(poison=poison, is_async=stream is not None, stream=stream)
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

    def wait(self):
        self.rt.check(self.rt.lib.dlcrt_context_wait(self.context))

    def bytes(self):
        return self.rt.lib.dlcrt_context_bytes(self.context)

    def close(self):
        self.rt.lib.dlcrt_context_destroy(self.context)
        self.rt.lib.dlcrt_executable_close(self.executable)


# ---- the folder

class Folder:
    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        self.manifest = json.loads((self.path / "manifest.json").read_text())
        self.unpacked = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"gpu_check.{os.getuid()}"
        self.unpacked.mkdir(exist_ok=True)

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
        """Of a case's files the one for most GPUs that runs here."""
        fitting = [t for t in case["files"] if arch_of(t) <= capability]
        return max(fitting, key=len) if fitting else None


def arch_of(targets):
    """The oldest GPU that a file is for; it has PTX of that, too."""
    return min(int(t.removeprefix("sm_")) for t in targets.split(","))


def capability():
    import torch
    major, minor = torch.cuda.get_device_capability()
    return 10 * major + minor


def program(folder):
    environment = dict(os.environ, DLC_DEVICE="cuda", LD_LIBRARY_PATH=f"{folder.path / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    return str(folder.path / "bin" / "dlc"), environment


def relative_error(found, expected):
    """Largest error over largest value; a NaN where none is expected is infinite."""
    if np.isnan(found).any() != np.isnan(expected).any():
        return float("inf")
    return float(np.abs(found.astype(np.float64) - expected).max() / max(np.abs(expected).max(), 1e-30))


# ---- measuring

def milliseconds(call, seconds=0.6, rounds=2):
    """Median over repetitions in the stream, twice: (better median, how much the two differ)."""
    import torch
    medians = []
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    for _ in range(rounds):
        times, end = [], time.monotonic() + seconds / rounds
        while len(times) < 30 or (time.monotonic() < end and len(times) < 2000):
            events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            events[0].record()
            call()
            events[1].record()
            events[1].synchronize()
            times.append(events[0].elapsed_time(events[1]))
            if len(times) >= 5 and time.monotonic() > end + seconds:
                break
        medians.append(statistics.median(times))
    return min(medians), max(medians) / min(medians) - 1


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


def peer_times(function, inputs, with_compile, row):
    """Fills row["peers"] and what torch.compile took; a peer that fails is named, never fatal."""
    import torch
    row["peers"], row["peer_problems"] = {}, {}

    def measure(name, make):
        try:
            row["peers"][name] = milliseconds(as_graph(make(), inputs), 0.3)[0]
        except Exception as error:  # of PyTorch, whatever it is
            row["peer_problems"][name] = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    measure("eager", lambda: function)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    measure("eager tf32", lambda: function)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if with_compile:
        begin = time.monotonic()
        measure("compile", lambda: torch.compile(function))
        row["torch_compile_s"] = round(time.monotonic() - begin, 1)


def dlc_time(folder, runtime, case, inputs, shape, capability_here, row):
    """Times the best file on the stream of PyTorch, inputs and outputs on the GPU. Returns the outputs."""
    import torch
    target = folder.best(case, capability_here)
    output = torch.full(shape, float("nan"), device="cuda")
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()  # inputs and the NaNs are there
    with torch.cuda.stream(stream):
        model = Model(runtime, folder.executable(case["files"][target]), stream=stream.cuda_stream)
        row["target"] = target
        row["dlc_ms"], row["noise"] = milliseconds(model.prepared(inputs, [output]))
        row["memory_mb"] = round(model.bytes() / 1e6, 1)
    model.wait()
    model.close()
    return output


def plain_float32():
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)


# ---- steps: each yields rows

def step_facts(folder):
    import torch
    plain_float32()
    query = "name,driver_version,memory.total,clocks.max.sm"
    found = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True).stdout
    row = {"case": "machine", "gpu": found.strip(), "capability": capability(), "torch": torch.__version__, "cuda": torch.version.cuda}
    x = torch.randn(1 << 28, device="cuda")
    y = torch.empty_like(x)
    row["copy_gb_s"] = round(2 * x.nbytes / milliseconds(lambda: y.copy_(x))[0] / 1e6)
    for dtype in (torch.float32, torch.float16):
        a = torch.randn(8192, 8192, device="cuda").to(dtype)
        row[f"cublas_{str(dtype)[6:]}_tflop_s"] = round(2 * 8192**3 / milliseconds(lambda: a @ a)[0] / 1e9, 1)
    one = torch.zeros(1, device="cuda")
    row["graph_replay_us"] = round(1e3 * milliseconds(as_graph(lambda v: v.add_(1), [one]))[0], 2)
    yield row


def check_file(folder, runtime, case, target):
    """A model's executable against its stored outputs, run twice and with poisoned memory."""
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
    return {"case": case["name"], "target": target, "error": error, "same_bits": same, "seconds": round(time.monotonic() - begin, 2),
            "ok": error <= case["tolerance"] and same}


def step_numerics(folder):
    runtime, here = Runtime(folder.path, folder.manifest["dtypes"]), capability()
    for case in folder.cases("model"):
        for target in case["files"]:
            if arch_of(target) > here:
                yield {"case": case["name"], "target": target, "skipped": "made for a newer GPU"}
                continue
            try:
                yield check_file(folder, runtime, case, target)
            except RuntimeError as error:
                yield {"case": case["name"], "target": target, "ok": False, "why": str(error)}


def step_nodes(folder):
    nodes = folder.manifest["nodes"]
    with tarfile.open(folder.path / nodes["archive"]) as tar:
        tar.extractall(folder.unpacked, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    dlc, environment = program(folder)
    done = subprocess.run([dlc, "test", folder.unpacked / "nodes", "--quiet", "--jobs", "8", "--json"], env=environment,
                          capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    result = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    row = {"case": "ONNX node tests", "target": nodes["target"], "ok": done.returncode == 0 and bool(result.get("pass")),
           "pass": result.get("pass", 0), "fail": result.get("fail", nodes["carried"]), "unsupported": result.get("unsupported", 0)}
    if not row["ok"]:
        row["why"] = "\n".join(lines[:40]) + done.stderr[-2000:]
    yield row


def step_sanitizer(folder):
    places = [os.environ.get("PATH", ""), *(str(p) for p in sorted(pathlib.Path("/usr/local").glob("cuda*/bin")))]
    tool, here = shutil.which("compute-sanitizer", path=":".join(places)), capability()
    if not tool:
        yield {"case": "compute-sanitizer", "skipped": "it is not installed here"}
        return
    dlc, environment = program(folder)
    wanted = [c for c in folder.manifest["cases"] if c["name"] in ("digits", "matmul_odd_509x1021x127", "softmax_1536x128", "conv_3x3_64_56")]
    for case in wanted:
        target = folder.best(case, here)
        inputs = ["--inputs", folder.path / case["inputs"]] if "inputs" in case else []
        for check in ("memcheck", "racecheck", "initcheck"):
            done = subprocess.run([tool, "--tool", check, "--error-exitcode", "99", dlc, "run", folder.executable(case["files"][target]),
                                   *inputs, "--quiet"], env=environment, capture_output=True, text=True)
            yield {"case": case["name"], "target": target, "tool": check, "ok": done.returncode == 0,
                   **({} if done.returncode == 0 else {"why": (done.stdout + done.stderr)[-2000:]})}


def step_kernels(folder):
    import torch
    import gpu_cases
    import gpu_torch
    plain_float32()
    begin = time.monotonic()
    runtime, here = Runtime(folder.path, folder.manifest["dtypes"]), capability()
    for case in folder.cases("kernel"):
        kind, shapes, attributes = gpu_cases.KERNELS[case["name"]]
        function = gpu_torch.kernel(kind, attributes)
        row = {"case": case["name"], "ok": False}
        inputs = [torch.randn(s, device="cuda") for s in shapes]
        try:
            expected = function(*[x.double() for x in inputs])
            output = dlc_time(folder, runtime, case, inputs, expected.shape, here, row)
            row["error"] = relative_error(output.cpu().numpy(), expected.cpu().numpy())
            row["ok"] = row["error"] <= case["tolerance"]
        except RuntimeError as error:
            row["why"] = str(error)[:500]
        row["flops"], row["bytes"] = gpu_cases.work((kind, shapes, attributes))
        peer_times(function, inputs, time.monotonic() - begin < COMPILING_SHARE * LIMITS_S["kernels"], row)
        yield row


def step_models(folder):
    import torch
    import gpu_torch
    import nets
    plain_float32()
    begin = time.monotonic()
    runtime, here = Runtime(folder.path, folder.manifest["dtypes"]), capability()
    for case in folder.cases("model"):
        if case["name"] not in nets.NETS:
            continue
        x = torch.from_numpy(np.load(folder.path / case["inputs"])["x"]).cuda()
        expected = np.load(folder.path / case["expected"])
        expected = expected[expected.files[0]]
        row = {"case": case["name"], "ok": False}
        try:
            output = dlc_time(folder, runtime, case, [x], expected.shape, here, row)
            row["error"] = relative_error(output.cpu().numpy(), expected)
            row["ok"] = row["error"] <= case["tolerance"]
        except RuntimeError as error:
            row["why"] = str(error)[:500]
        function = gpu_torch.network(case["name"])
        with torch.no_grad():
            row["peer_error"] = relative_error(function(x).cpu().numpy(), expected)
        peer_times(function, [x], time.monotonic() - begin < COMPILING_SHARE * LIMITS_S["models"], row)
        yield row


COLD_PEER = "import sys; sys.path.insert(0, sys.argv[1])\nimport torch, gpu_torch\nprint(gpu_torch.network('resnet50')(torch.ones(1,3,224,224,device='cuda')).sum().item())"


def step_cold(folder):
    dlc, environment = program(folder)
    here = capability()
    for case in folder.cases("model"):
        target = folder.best(case, here)
        if case["name"] not in ("digits", "resnet50") or not target:
            continue
        times = []
        for _ in range(5):
            begin = time.monotonic()
            done = subprocess.run([dlc, "run", folder.executable(case["files"][target]), "--inputs", folder.path / case["inputs"], "--quiet"],
                                  env=environment, capture_output=True, text=True)
            times.append(1e3 * (time.monotonic() - begin))
        yield {"case": f"{case['name']}, a process", "target": target, "dlc_ms": statistics.median(times),
               **({"why": done.stderr[-500:]} if done.returncode else {})}
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", COLD_PEER, folder.path], capture_output=True)
    yield {"case": "resnet50 in PyTorch, a process", "peers": {"eager": 1e3 * (time.monotonic() - begin)}}


STEPS = {"facts": step_facts, "numerics": step_numerics, "nodes": step_nodes, "sanitizer": step_sanitizer, "kernels": step_kernels,
         "models": step_models, "cold": step_cold}


# ---- the table

COLUMNS = (("step", 9), ("case", 32), ("target", 6), ("result", 7), ("error", 8), ("dlc ms", 9), ("best peer ms", 20), ("ratio", 6),
           ("ceiling", 7), ("noise", 6))


def cells(step, row, facts):
    """The columns of one row. ratio: best peer over dlc, more than 1 is faster; ceiling: of cuBLAS float32 or copying."""
    result = "skipped" if "skipped" in row else "" if "ok" not in row else "ok" if row["ok"] else "WRONG" if "error" in row else "FAILED"
    peers = {n: t for n, t in row.get("peers", {}).items() if "tf32" not in n}
    best = min(peers, key=peers.get) if peers else None
    ms = row.get("dlc_ms")
    ceiling = ""
    if ms and "bytes" in row and facts.get("copy_gb_s"):
        share = max(row["flops"] / facts["cublas_float32_tflop_s"] / 1e9, row["bytes"] / facts["copy_gb_s"] / 1e6) / ms
        ceiling = f"{100 * share:.0f} %"
    what = row["case"] + (f" {row['tool']}" if "tool" in row else f" {row['pass']} of {row['pass'] + row['fail'] + row['unsupported']}" if "pass" in row else "")
    targets = row.get("target", "")
    return (step, what[:32], targets.split(",")[0] + ("…" if "," in targets else ""), result, f"{row['error']:.1e}" if "error" in row else "",
            f"{ms:.4f}" if ms else "", f"{peers[best]:.4f} {best}" if best else "",
            f"{peers[best] / ms:.2f}" if best and ms else "", ceiling, f"{100 * row['noise']:.0f} %" if "noise" in row else "")


def print_table(results):
    facts = (results.get("facts", {}).get("rows") or [{}])[0]
    for key, value in facts.items():
        print(f"  {key}: {value}")
    print()
    print("| " + " | ".join(f"{name:{width}}" for name, width in COLUMNS) + " |")
    print("|" + "|".join("-" * (width + 2) for _, width in COLUMNS) + "|")
    for step, result in results.items():
        for row in result["rows"] if step != "facts" else []:
            print("| " + " | ".join(f"{text:{width}}" for text, (_, width) in zip(cells(step, row, facts), COLUMNS)) + " |")
    print()
    for step, result in results.items():
        if result["problem"]:
            print(f"{step}: {result['problem']}")
        for row in result["rows"]:
            if row.get("why"):
                print(f"{step} {row['case']} {row.get('target', '')}: {row['why']}")


# ---- the whole

def run_step(folder, step, out, limit_s):
    """In a process of its own; rows are there as far as it came."""
    rows_path, problem = out / f"{step}.jsonl", ""
    rows_path.unlink(missing_ok=True)
    command = [sys.executable, __file__, str(folder.path), "--step", step, "--out", str(out)]
    try:
        with open(out / f"{step}.log", "w") as log:
            status = subprocess.run(command, stdout=log, stderr=log, timeout=limit_s).returncode
        if status:
            problem = f"ended with {status}: " + (out / f"{step}.log").read_text()[-800:].strip()
    except subprocess.TimeoutExpired:
        problem = f"took longer than {limit_s:.0f} s"
    rows = [json.loads(line) for line in rows_path.read_text().splitlines()] if rows_path.exists() else []
    return {"rows": rows, "problem": problem}


def has_gpu():
    command = [sys.executable, "-c", "import sys, torch; sys.exit(not torch.cuda.is_available())"]
    return bool(shutil.which("nvidia-smi")) and subprocess.run(command, capture_output=True).returncode == 0


def is_right(results):
    """All numerics that were to run did, and none is wrong."""
    rows = [r for step in JUDGED for r in results.get(step, {}).get("rows", []) if "ok" in r]
    whole = not any(results[s]["problem"] for s in ("numerics", "nodes") if s in results)
    return bool(rows) and whole and all(r["ok"] for r in rows)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("folder", type=pathlib.Path)
    args.add_argument("--steps", default=",".join(STEPS), help="which of them, comma separated")
    args.add_argument("--step", help=argparse.SUPPRESS)
    args.add_argument("--out", type=pathlib.Path, help="where results go (default: $OUT, else FOLDER/results)")
    args = args.parse_args()
    if not args.step and not has_gpu():
        print("There is no GPU here (nvidia-smi finds none), or Python has no PyTorch for it; nothing was run.")
        return 2
    folder = Folder(args.folder)
    out = args.out or pathlib.Path(os.environ.get("OUT") or folder.path / "results")
    out.mkdir(parents=True, exist_ok=True)
    if args.step:
        with open(out / f"{args.step}.jsonl", "w") as rows:
            for row in STEPS[args.step](folder):
                rows.write(json.dumps(row) + "\n")
                rows.flush()
        return 0
    begin, results = time.monotonic(), {}
    for step in args.steps.split(","):
        left = WHOLE_S - (time.monotonic() - begin)
        results[step] = run_step(folder, step, out, min(LIMITS_S[step], left)) if left > 5 else {"rows": [], "problem": "no time was left"}
        (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
        print(f"{step}: {len(results[step]['rows'])} rows {results[step]['problem'][:200]}", flush=True)
    print_table(results)
    print("numerics are right" if is_right(results) else "NUMERICS ARE NOT RIGHT, OR NOT ALL OF THEM RAN")
    return 0 if is_right(results) else 1


if __name__ == "__main__":
    sys.exit(main())
