#!/usr/bin/env python3
"""gpu_static.py DLC OUT: the half of gpu_check that needs no GPU.

Compiles models and kernels for several GPUs (each twice: the bytes must be equal), reports registers, stack, shared memory and
occupancy of every kernel, and fills OUT, a folder of less than 64 MiB, with what the other half needs on a machine with a GPU:
executables, inputs, outputs computed on this CPU, ONNX's node tests, the program, and gpu_run.py itself.
"""
import argparse
import ctypes
import concurrent.futures
import json
import lzma
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import gpu_cases
import gpu_experiments
import gpu_micro
import gpu_wgmma

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PREDICTING_S = 30  # of a model on the virtual GPU
LIMIT_MIB = 64
TOLERANCE = 1e-4  # largest error over largest value; sums in another order
TOLERANCE_F16 = 4e-3  # results are rounded to f16, those inside of a kernel's as well
SAMPLED_BLOCKS = 2  # of a kernel that is only predicted
BATCHES = ("resnet50:8", "resnet50:32", "minilm:8", "minilm:32")


class Check:
    def __init__(self, args):
        self.dlc, self.out, self.work = args.dlc.resolve(), args.out.resolve(), args.out.resolve().with_name(args.out.name + ".work")
        self.targets, self.jobs = args.targets.split(","), args.jobs
        self.report, self.problems, self.is_quick = [], [], getattr(args, "quick", False)
        self.node_tests = args.node_tests or self.work / "node"

    def run(self, *command):
        return subprocess.run([str(self.dlc), *map(str, command)], capture_output=True, text=True)

    def must(self, *command):
        done = self.run(*command)
        if done.returncode:
            raise RuntimeError(f"dlc {' '.join(map(str, command))} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def problem(self, text):
        self.problems.append(text)
        print(f"  PROBLEM {text}", flush=True)


# ---- compiling

def compiled_twice(check, name, model, target):
    """Compiles, reports, and checks that a second time gives the same bytes."""
    paths = [check.work / f"{name}.{target}.{i}.so" for i in (0, 1)]
    seconds = []
    for path in paths:
        begin = time.monotonic()
        check.must("compile", model, "--target", target, "-o", path, "--name", "model")
        seconds.append(time.monotonic() - begin)
    same = paths[0].read_bytes() == paths[1].read_bytes()
    if not same:
        check.problem(f"{name} for {target}: two compilations differ")
    size = paths[0].stat().st_size
    for path in paths:
        path.unlink()
    return {"model": name, "target": target, "seconds": round(min(seconds), 2), "bytes": size, "same_bytes": same}


def reported(check, name, model, target):
    found = json.loads(check.must("inspect", model, "--target", target, "--format", "json", "--quiet"))
    if "no_report" in found:
        check.problem(f"{name} for {target}: {found['no_report']}")
    keys = ("code", "name", "threads", "registers", "frame_bytes", "shared_bytes", "blocks_per_multiprocessor", "cubin_bytes")
    kernels = {k["code"]: {key: k.get(key) for key in keys} for k in found["kernels"]}
    for kernel in kernels.values():
        if kernel["frame_bytes"]:
            check.problem(f"{name} for {target}: kernel {kernel['name']} spills ({kernel['frame_bytes']} bytes of stack)")
    return {"launches": len(found["kernels"]), "kernels": list(kernels.values())}


def print_row(row):
    most = lambda key: max((k[key] or 0 for k in row["kernels"]), default=0)
    blocks = [k["blocks_per_multiprocessor"] for k in row["kernels"] if k["blocks_per_multiprocessor"]]
    warps = [k["blocks_per_multiprocessor"] * k["threads"] // 32 for k in row["kernels"] if k["blocks_per_multiprocessor"]]
    print(f"  {row['model']:32} {row['target']:6} {row['seconds']:7.2f} s {row['bytes'] / 1e6:8.2f} MB  "
          f"{row['launches']:4} launches {len(row['kernels']):4} kernels  registers {most('registers'):3}  "
          f"stack {most('frame_bytes'):3}  shared {most('shared_bytes'):6}  blocks {min(blocks, default=0):2}  "
          f"warps {min(warps, default=0):2}  {'same' if row['same_bytes'] else 'DIFFERENT'}", flush=True)


def study(check, name, model):
    for target in check.targets:
        row = compiled_twice(check, name, model, target)
        row.update(reported(check, name, model, target))
        check.report.append(row)
        print_row(row)


# ---- what is carried

def pack(check, source, to):
    """Weights of two values take a bit each when compressed."""
    to.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(to, "wb", preset=1) as packed:
        packed.write(source.read_bytes())
    source.unlink()


def carried_files(check, name, model, folder, with_oldest=True):
    """One file for all targets; and, so that its PTX is tried on newer GPUs, one for the oldest alone."""
    every = ",".join(check.targets)
    files = {every: f"{folder}/{name}.so.xz"}
    if with_oldest and len(check.targets) > 1:
        files[check.targets[0]] = f"{folder}/{name}.{check.targets[0]}.so.xz"
    for targets, path in files.items():
        made = check.work / "carried.so"
        check.must("compile", model, "--target", targets, "-o", made, "--name", "model")
        pack(check, made, check.out / path)
    return files


def carry_model(check, name, model, inputs, with_oldest):
    """The reference comes from the CPU's plan of the same model."""
    folder = check.out / "models"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(inputs, folder / f"{name}.in.npz")
    check.must("run", model, "--inputs", inputs, "--outputs", folder / f"{name}.expected.npz", "--quiet")
    return {"name": name, "kind": "model", "files": carried_files(check, name, model, "models", with_oldest),
            "inputs": f"models/{name}.in.npz", "expected": f"models/{name}.expected.npz", "tolerance": TOLERANCE,
            "predicted_us": predicted(check, model, inputs, 2 if check.is_quick else PREDICTING_S) if "sm_75" in check.targets else {}}


def kernel_model(name, row):
    kind, shapes, at = row
    dtype = TensorProto.FLOAT16 if at.get("dtype") == "f16" else TensorProto.FLOAT
    x = [f"x{i}" for i in range(len(shapes))]
    node = helper.make_node
    axes = numpy_helper.from_array(np.array([0 if kind == "sum_columns" else 1], np.int64), "axes")
    nodes = {
        "matmul": lambda: [node("MatMul", x, ["y"])],
        "linear": lambda: [node("MatMul", x[:2], ["a"]), node("Add", ["a", x[2]], ["y"])],
        "linear_gelu": lambda: [node("MatMul", x[:2], ["a"]), node("Add", ["a", x[2]], ["b"]), node("Gelu", ["b"], ["y"])],
        "conv_relu": lambda: [node("Conv", x, ["a"], pads=[at["pad"]] * 4, strides=[at["stride"]] * 2, group=at["groups"]),
                              node("Relu", ["a"], ["y"])],
        "softmax": lambda: [node("Softmax", x, ["y"], axis=-1)],
        "layer_norm": lambda: [node("LayerNormalization", x, ["y"], epsilon=1e-5)],
        "add_gelu": lambda: [node("Add", x, ["a"]), node("Gelu", ["a"], ["y"])],
        "transpose": lambda: [node("Transpose", x, ["y"], perm=[1, 0])],
        "sum_rows": lambda: [node("ReduceSum", [x[0], "axes"], ["y"], keepdims=0)],
        "sum_columns": lambda: [node("ReduceSum", [x[0], "axes"], ["y"], keepdims=0)],
        "max_pool": lambda: [node("MaxPool", x, ["y"], kernel_shape=[2, 2], strides=[2, 2])],
        "attention": lambda: [node("Transpose", x[1:2], ["t"], perm=[0, 2, 1]), node("MatMul", [x[0], "t"], ["a"]),
                              node("Mul", ["a", "scale"], ["b"]), node("Softmax", ["b"], ["c"], axis=-1),
                              node("MatMul", ["c", x[2]], ["y"])],
    }[kind]()
    scale = numpy_helper.from_array(np.array(shapes[0][-1] ** -0.5, helper.tensor_dtype_to_np_dtype(dtype)), "scale")
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(n, dtype, s) for n, s in zip(x, shapes)],
                              [helper.make_tensor_value_info("y", dtype, None)],
                              [axes] if kind.startswith("sum") else [scale] if kind == "attention" else [])
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))


def kernel_tolerance(name):
    return TOLERANCE_F16 if gpu_cases.KERNELS[name][2].get("dtype") == "f16" else TOLERANCE


def carry_batch(check, entry):
    """A network of nets.py at another batch: inputs and reference are made on the GPU."""
    net, _, batch = entry.partition(":")
    name, folder = f"{net}_b{batch}", check.work / "nets"
    if not (folder / f"{name}.onnx").exists():
        subprocess.run([sys.executable, ROOT / "models/seeded_models.py", folder, entry], check=True, stdout=subprocess.DEVNULL)
    files = carried_files(check, name, folder / f"{name}.onnx", "models", False)
    return {"name": name, "kind": "batch", "net": net, "batch": int(batch), "files": files, "tolerance": TOLERANCE}


def carry_of_each_nvrtc(check, name, model, inputs):
    """The model's code by every NVRTC that is there: which driver takes which is what nobody has seen."""
    found = []
    for nvrtc in all_nvrtcs():
        version, before = nvrtc.name.rpartition(".")[2], os.environ.get("DLC_NVRTC")
        os.environ["DLC_NVRTC"] = str(nvrtc)
        try:
            found.append(carry_model(check, f"{name}_nvrtc_{version}", model, inputs, False))
        finally:
            os.environ.pop("DLC_NVRTC")
            os.environ.update({"DLC_NVRTC": before} if before else {})
    return found


# ---- experiments

def product_model(shape, dtype):
    m, n, k = shape
    kind = TensorProto.FLOAT16 if dtype == "f16" else TensorProto.FLOAT
    infos = [helper.make_tensor_value_info(name, kind, dims) for name, dims in (("a", (m, k)), ("b", (k, n)), ("y", (m, n)))]
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["y"])], "product", infos[:2], infos[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def number_of(line):
    """Of a line's kernel, NAME#NUMBER, in the order of loading."""
    return int(line[0].rpartition("#")[2])


def report_of(check, command, capability, report):
    """The virtual GPU's table of what a command launches, few blocks of each: a header and lines in the order of loading."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(check.dlc.parent.parent / "lib" / "vgpu"), DLC_VGPU_REPORT=str(report),
                       DLC_VGPU_ARCH=str(capability), DLC_VGPU_SAMPLE=str(SAMPLED_BLOCKS))
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[1]} on the virtual GPU: {done.stderr.strip()[-300:]}")
    lines = [line.split("\t") for line in report.read_text().splitlines()]
    report.unlink()
    return lines[0], sorted(lines[1:], key=number_of)


def launched(check, made, capability):
    """Predicted microseconds and bound of each kernel of an executable, in their order, by a few blocks of each on the virtual GPU."""
    gpu = next((name for name, arch in GPUS.items() if arch == capability), None)
    if not gpu:
        raise RuntimeError(f"no predictions for sm_{capability}; there are some for {', '.join(map(str, GPUS.values()))}")
    head, lines = report_of(check, [check.dlc, "run", made, "--device", "cuda", "--quiet"], capability, made.with_suffix(".tsv"))
    at = head.index(f"{gpu} us")
    return [{"predicted_us": float(line[at]), "bound": line[at + 1]} for line in lines]


def carry_experiment(check, e, target, folder):
    """Compiles one and predicts it. Its row, or why there is none."""
    made, text, model = (folder / f"{e['name']}.{end}" for end in ("so", "txt", "onnx"))
    onnx.save(product_model(e["shape"], gpu_experiments.ROWS[e["row"]][0]), model)
    text.write_text(gpu_experiments.text(e, target))
    try:
        done = check.run("compile", model, "--target", target, "--schedule", text, "-o", made, "--name", "model", "--jobs", 1,
                         "--rewrite", f"split={e['parts']}" if e["parts"] > 1 else "none")
        if done.returncode or " 1 of " not in done.stderr:
            return f"{e['name']}: {done.stderr.strip()[-300:]}"
        return {**e, "kernels": launched(check, made, int(target.removeprefix("sm_")))}
    except RuntimeError as error:
        return f"{e['name']}: {error}"
    finally:
        text.unlink()
        model.unlink()


def carry_wgmma(check, nvrtc, wanted):
    """Candidates written by hand, by wgmma: one file of code for all, and what is predicted of each."""
    if not wanted:
        return {}, []
    gpu_wgmma.compile_files(nvrtc, check.work)
    listed = check.work / "wgmma.json"
    listed.write_text(json.dumps(wanted))
    head, lines = report_of(check, [sys.executable, HERE / "gpu_wgmma.py", "predict", check.work / "wgmma.ptx", listed], 90,
                            check.work / "wgmma.tsv")
    at, rows = head.index("H200 us"), []
    for e in wanted:
        count = 1 if e["parts"] == 1 else 2
        mine, lines = sorted(lines[:count], key=lambda line: line[0].startswith("add_parts")), lines[count:]
        rows.append({**e, "kernels": [{"predicted_us": float(line[at]), "bound": line[at + 1]} for line in mine]})
    files = [f"wgmma.{end}" for end in ("cubin", "ptx")]
    for file in files:
        pack(check, check.work / file, check.out / f"{file}.xz")
    return {"wgmma": [f"{file}.xz" for file in files]}, rows


def carry_experiments(check, target, wanted):
    """The design of experiments: every schedule compiled for one GPU, in one archive."""
    folder, begin = check.work / "experiments", time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with concurrent.futures.ThreadPoolExecutor(check.jobs) as pool:
        rows = list(pool.map(lambda e: carry_experiment(check, e, target, folder), [e for e in wanted if e["row"] != "wgmma"]))
    made = [row for row in rows if isinstance(row, dict)]
    by_hand, nvrtc = [e for e in wanted if e["row"] == "wgmma"], find_nvrtc()
    files, by_hand = carry_wgmma(check, nvrtc, by_hand if nvrtc else [])
    made = sorted(made + by_hand, key=lambda e: [wanted_e["name"] for wanted_e in wanted].index(e["name"]))
    for why in [row for row in rows if isinstance(row, str)]:
        check.problem(why)
    with tarfile.open(check.out / "experiments.tar.xz", "w:xz", preset=1) as tar:
        tar.add(folder, "experiments")
    print(f"  {len(made)} experiments for {target} in {time.monotonic() - begin:.0f} s", flush=True)
    return {"archive": "experiments.tar.xz", "target": target, "experiments": made, **files}


# ---- node tests

def to_npy(source, to, order):
    """The tensors of a data set as npy files, inputs in the model's order; False when a dtype has no npy form."""
    to.mkdir(parents=True)
    for path in sorted(source.glob("*.pb")):
        tensor = onnx.load_tensor(path)
        if tensor.data_type not in NPY_DTYPES:
            return False
        stem = path.stem
        if stem.startswith("input") and tensor.name in order:
            stem = f"input_{order.index(tensor.name)}"
        np.save(to / f"{stem}.npy", numpy_helper.to_array(tensor))
    return True


NPY_DTYPES = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BOOL, TensorProto.INT8, TensorProto.INT16,
              TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64, TensorProto.BFLOAT16}


def carry_node(check, source, to, target):
    """One node test as executable and npy files. Returns why not, or ""."""
    graph = onnx.load(source / "model.onnx").graph
    if any(i.type.WhichOneof("value") != "tensor_type" for i in list(graph.input) + list(graph.output)):
        return "an input or output is no tensor"
    try:
        for data in source.glob("test_data_set_*"):
            if not to_npy(data, to / data.name, [i.name for i in graph.input]):
                return "a dtype has no npy form"
        if (source / "data.json").exists():
            shutil.copyfile(source / "data.json", to / "data.json")
        done = check.run("compile", source / "model.onnx", "--target", target, "-o", to / "model.so", "--name", "model", "--jobs", 1)
        said = done.stderr.strip().splitlines() or [f"dlc compile ended with {done.returncode}"]
        return said[0] if done.returncode else ""
    finally:
        if not (to / "model.so").exists():
            shutil.rmtree(to, ignore_errors=True)


def node_sources(check, count):
    """Every so manieth test that passes on the CPU."""
    folder = check.node_tests
    subprocess.run([sys.executable, "-W", "ignore", ROOT / "tests/onnx/make_node_tests.py", folder], check=True,
                   stdout=subprocess.DEVNULL)
    listed = {line.split()[0] for line in (ROOT / "tests/onnx/expected-node.txt").read_text().splitlines() if line and line[0] != "#"}
    names = sorted(p.parent.name for p in folder.glob("*/model.onnx") if p.parent.name not in listed)
    return [folder / n for n in (names if not count else names[::max(1, len(names) // count)])]


def carry_nodes(check, count):
    target, to = check.targets[0], check.work / "nodes"
    shutil.rmtree(to, ignore_errors=True)
    sources = node_sources(check, count)
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(check.jobs) as pool:
        reasons = dict(zip([s.name for s in sources], pool.map(lambda s: carry_node(check, s, to / s.name, target), sources)))
    left = {n: r for n, r in reasons.items() if r}
    with tarfile.open(check.out / "nodes.tar.xz", "w:xz", preset=1) as tar:
        tar.add(to, "nodes")
    print(f"  {len(sources) - len(left)} node tests for {target} in {time.monotonic() - begin:.0f} s; {len(left)} left out", flush=True)
    return {"archive": "nodes.tar.xz", "target": target, "carried": len(sources) - len(left), "left_out": left}


# ---- the program

def carry_program(check):
    """dlc, the runtime, and the two small libraries dlc is linked with."""
    folder = check.out / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    (check.out / "bin").mkdir(exist_ok=True)
    shutil.copy(check.dlc, check.out / "bin" / "dlc")
    shutil.copy(check.dlc.parent.parent / "lib" / "libdlcrt.so", folder / "libdlcrt.so")
    for line in subprocess.run(["ldd", check.dlc], capture_output=True, text=True).stdout.splitlines():
        part = line.split()
        if part[0].startswith(("libcjson", "libz.")):
            shutil.copy(part[2], folder / part[0])
    scripts = ("gpu_check", "gpu_run.py", "gpu_steps.py", "gpu_cases.py", "gpu_torch.py", "gpu_micro.py", "gpu_experiments.py",
               "gpu_wgmma.py")
    for path in [HERE / name for name in scripts] + [ROOT / "models" / "nets.py"]:
        shutil.copy(path, check.out / path.name)


def all_nvrtcs():
    """Those that scripts/setup, a toolkit or the user's DLC_NVRTC brings, one of each major version."""
    named = os.environ.get("DLC_NVRTC")
    folders = [pathlib.Path(named)] if named else [
        *sorted((ROOT / ".venv").glob("lib/python3*/site-packages/nvidia/*/lib")),
        *sorted(pathlib.Path("/usr/local").glob("cuda*/lib*"))]
    files = [f for folder in folders for f in ([folder] if folder.is_file() else sorted(folder.glob("libnvrtc.so.1[23]")))]
    return list({f.name: f for f in reversed(files)}.values())[::-1]


def find_nvrtc():
    """One of them, with what it needs loaded; None."""
    found = all_nvrtcs()
    for other in [b for f in found[:1] for b in sorted(f.parent.glob("libnvrtc-builtins.so.*"))]:
        ctypes.CDLL(str(other))
    return found[0] if found else None


def carry_micro(check, targets):
    """PTX of the small kernels, by capability; none where NVRTC is not found."""
    nvrtc, carried = find_nvrtc(), {}
    for target in targets if nvrtc else []:
        arch = target.removeprefix("sm_")
        (check.out / f"micro_{arch}.ptx").write_bytes(gpu_micro.compiled(nvrtc, arch, gpu_micro.SOURCE))
        carried[arch] = f"micro_{arch}.ptx"
    return carried


GPUS = {"T4": 75, "A100": 80, "RTX 3090": 86, "L4": 89, "H200": 90, "B200": 100}  # of vgpu/gpus.def, by what gpu_run.py finds


def predicted(check, model, inputs, seconds):
    """Microseconds by kernel and capability, of the model on the virtual GPU; nothing where that takes longer."""
    made, report, vgpu = check.work / "predicted.so", check.work / "predicted.tsv", check.dlc.parent.parent / "lib" / "vgpu"
    check.must("compile", model, "--target", "sm_75", "-o", made)
    environment = dict(os.environ, LD_LIBRARY_PATH=str(vgpu), DLC_VGPU_REPORT=str(report), DLC_VGPU_ARCH="90")
    report.unlink(missing_ok=True)
    try:
        subprocess.run([check.dlc, "run", made, "--device", "cuda", "--inputs", inputs, "--quiet"], env=environment, timeout=seconds,
                       check=True, stdout=subprocess.DEVNULL)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return {}
    lines = [line.rstrip("\n").split("\t") for line in report.read_text().splitlines()]
    columns = {str(arch): lines[0].index(f"{gpu} us") for gpu, arch in GPUS.items()}
    return {arch: {line[0].strip().partition("#")[0]: float(line[at]) for line in lines[1:]} for arch, at in columns.items()}


def dtypes():
    """The runtime's numbers of dtypes, from the one table."""
    rows = [line for line in (ROOT / "include/dlc/dtype.def").read_text().splitlines() if line.startswith("DLC_DTYPE(")]
    return [line.split('"')[1] for line in rows]


# ---- the whole

def models(check, args):
    """Name, file and inputs of every model, made where they are not stored."""
    found = [("digits", ROOT / "models/digits.onnx", ROOT / "models/digits_test.npz")]
    names = ["squeezenet"] if args.quick else ["squeezenet", "mobilenet_v2", "resnet50", "minilm", "vit_b_16"]
    folder = check.work / "nets"
    if not all((folder / f"{n}.onnx").exists() for n in names):
        subprocess.run([sys.executable, ROOT / "models/seeded_models.py", folder, *names], check=True, stdout=subprocess.DEVNULL)
    found += [(n, folder / f"{n}.onnx", folder / f"{n}.in.npz") for n in names]
    if not args.quick:
        light = check.work / "light"
        if not light.exists():
            subprocess.run([sys.executable, ROOT / "models/light_models.py", light], check=True, stdout=subprocess.DEVNULL)
        found += [(n, light / n / "model.onnx", None) for n in ("light_resnet50", "light_squeezenet")]
    return found


def guarded(check, what, function, *args):
    """A step that fails is a problem; the next one still runs."""
    try:
        return function(*args)
    except (RuntimeError, OSError, subprocess.CalledProcessError, KeyError, ValueError) as error:
        check.problem(f"{what}: {error}")
        return None


def prepare(check, args):
    cases = []
    print("models: every target twice", flush=True)
    for name, model, inputs in models(check, args):
        guarded(check, name, study, check, name, model)
        if inputs is not None:
            cases.append(guarded(check, name, carry_model, check, name, model, inputs, name in ("digits", "squeezenet")))
    if not args.quick:
        digits = ROOT / "models/digits.onnx", ROOT / "models/digits_test.npz"
        cases += guarded(check, "NVRTCs", carry_of_each_nvrtc, check, "digits", *digits) or []
        cases += [guarded(check, entry, carry_batch, check, entry) for entry in BATCHES]
    print("kernels", flush=True)
    for name in gpu_cases.FEW_KERNELS if args.quick else gpu_cases.KERNELS:
        model = check.work / f"{name}.onnx"
        onnx.save(kernel_model(name, gpu_cases.KERNELS[name]), model)
        guarded(check, name, study, check, name, model)
        files = guarded(check, name, carried_files, check, name, model, "kernels")
        if files:
            cases.append({"name": name, "kind": "kernel", "files": files, "tolerance": kernel_tolerance(name)})
    print("node tests", flush=True)
    nodes = guarded(check, "node tests", carry_nodes, check, args.nodes)
    carry_program(check)
    micro = guarded(check, "small kernels", carry_micro, check, check.targets)
    print("experiments", flush=True)
    every = list(gpu_experiments.experiments(rows=gpu_experiments.rows_of(check.targets[-1])))
    wanted = [e for e in every if e["row"] == "fma"][::90] if args.quick else with_wgmma(check.targets, every)
    experiments = guarded(check, "experiments", carry_experiments, check, check.targets[-1], wanted)
    return {"cases": [c for c in cases if c], "nodes": nodes, "dtypes": dtypes(), "targets": check.targets, "micro": micro,
            "experiments": experiments}


def with_wgmma(targets, experiments):
    """Those by hand behind the schedules of their shape."""
    more = list(gpu_wgmma.experiments()) if "sm_90" in targets else []
    return sorted(experiments + more, key=lambda e: gpu_experiments.SHAPES.index(e["shape"]))


def finish(check, manifest):
    (check.out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    (check.out / "static.json").write_text(json.dumps({"report": check.report, "problems": check.problems}, indent=1) + "\n")
    size = sum(p.stat().st_size for p in check.out.rglob("*") if p.is_file()) / 2**20
    print(f"{check.out.name}: {size:.1f} MiB, {len(manifest['cases'])} executables and their data")
    if size > LIMIT_MIB:
        check.problem(f"the folder has more than {LIMIT_MIB} MiB")
    if check.problems:
        print(f"{len(check.problems)} problems")
    return 1 if check.problems else 0


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("dlc", type=pathlib.Path)
    args.add_argument("out", type=pathlib.Path)
    args.add_argument("--targets", default="sm_75,sm_80,sm_90", help="what is compiled, reported and carried, the oldest first")
    args.add_argument("--nodes", type=int, default=200, help="about so many node tests are carried; 0: all")
    args.add_argument("--node-tests", type=pathlib.Path, help="where node tests are made, or found; default: OUT.work/node")
    args.add_argument("--jobs", type=int, default=os.cpu_count())
    args.add_argument("--quick", action="store_true", help="a few models and kernels, to see that all works")
    args = args.parse_args()
    check = Check(args)
    shutil.rmtree(check.out, ignore_errors=True)
    check.out.mkdir(parents=True)
    check.work.mkdir(exist_ok=True)
    sys.exit(finish(check, prepare(check, args)))


if __name__ == "__main__":
    main()
