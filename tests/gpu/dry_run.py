#!/usr/bin/env python3
"""dry_run.py DLC WORK_DIR: the half of gpu_check that needs a GPU, where there is none: executables for this processor stand in for
those of GPUs, and fake/torch for PyTorch. What is seen is that each step finds what was carried and gives its rows, that a trial
which crashes, breaks the GPU or hangs costs itself alone, and what the exit status says. Then all steps run on the virtual GPU, with
executables for sm_75, few runs and little work, where NVRTC is there.
"""
import argparse
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import gpu_cases  # noqa: E402
import gpu_experiments  # noqa: E402
import gpu_micro  # noqa: E402
import gpu_run  # noqa: E402
import gpu_static  # noqa: E402
import gpu_steps  # noqa: E402
import gpu_wgmma  # noqa: E402

KERNELS = ("softmax_1536x128", "matmul_odd_509x1021x127")
SMALL = "softmax_1536x128"


def carry(dlc, out, target="native", kernels=KERNELS, nnodes=5, runs=20, experiments=()):
    """A folder as gpu_static.py makes it, of digits, some kernels and a few node tests; "sm_75" may be this processor."""
    args = argparse.Namespace(dlc=dlc, out=out, targets=target, jobs=2, node_tests=out.parent.parent / "node")
    check = gpu_static.Check(args)
    for folder in (check.out, check.work):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    few = check.work / "few.npz"
    with np.load(ROOT / "models/digits_test.npz") as data:
        np.savez(few, image=data["image"][:9])
    cases = [gpu_static.carry_model(check, "digits", ROOT / "models/digits.onnx", few, False)]
    for name in kernels:
        model = check.work / f"{name}.onnx"
        onnx.save(gpu_static.kernel_model(name, gpu_cases.KERNELS[name]), model)
        files = gpu_static.carried_files(check, name, model, "kernels")
        cases.append({"name": name, "kind": "kernel", "files": files, "tolerance": gpu_static.TOLERANCE})
    nodes = gpu_static.carry_nodes(check, nnodes)
    gpu_static.carry_program(check)
    for case in cases:
        case["files"] = {"sm_75": path for path in case["files"].values()}
    is_virtual = target == "sm_75"
    micro = gpu_static.carry_micro(check, ["sm_75", "sm_80"]) if is_virtual else {}
    if is_virtual:
        cases += gpu_static.carry_of_each_nvrtc(check, "digits", ROOT / "models/digits.onnx", few)
    tried = gpu_static.carry_experiments(check, "sm_90", experiments) if experiments else None
    gpu_static.finish(check, {"cases": cases, "nodes": nodes, "dtypes": gpu_static.dtypes(), "targets": ["sm_75"], "runs": runs,
                              "micro": micro, "experiments": tried})
    assert not check.problems, check.problems


def run(folder, trouble="", *options, **changes):
    """Exit status, and what results.json holds."""
    out = folder.with_name("results")
    shutil.rmtree(out, ignore_errors=True)
    environment = dict(os.environ, PYTHONPATH=str(HERE / "fake"), DLC_DEVICE="cpu", FAKE_TROUBLE=trouble, OUT=str(out))
    environment.update(changes)
    done = subprocess.run([sys.executable, folder / "gpu_run.py", folder, *options], env=environment, capture_output=True, text=True)
    print(done.stdout + done.stderr)
    assert sorted(p.name for p in out.iterdir()) == ["log.txt", "results.json", "table.txt"]
    return done.returncode, json.loads((out / "results.json").read_text())


def rows_of(results, step):
    assert not results[step]["problem"], results[step]
    return {row["case"]: row for row in results[step]["rows"]}


def check_documented():
    """docs/gpu.md has the limits of time, in the order in which steps run."""
    table = (ROOT / "docs/gpu.md").read_text().partition("| step | seconds |")[2].partition("\n\n")[0]
    rows = [(step, int(whole)) for step, whole in re.findall(r"(?m)^\| (\w+) \| (\d+) \|", table)]
    assert rows == [(step, whole) for step, (whole, _) in gpu_run.LIMITS_S.items()], rows


def check_structs(work):
    """ctypes' structs lie as the C compiler lays out those of the header."""
    source, program = work / "structs.c", work / "structs"
    fields = [(c, name) for c, struct in gpu_steps.STRUCTS.items() for name, _ in struct._fields_]
    source.write_text("#include <dlc/runtime.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n"
                      + "".join(f'printf("%zu\\n", sizeof({c}));\n' for c in gpu_steps.STRUCTS)
                      + "".join(f'printf("%zu\\n", offsetof({c}, {name}));\n' for c, name in fields) + "}\n")
    subprocess.run(["cc", "-I", ROOT / "include", "-o", program, source], check=True)
    said = [int(line) for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()]
    known = [ctypes.sizeof(s) for s in gpu_steps.STRUCTS.values()] + [getattr(gpu_steps.STRUCTS[c], name).offset for c, name in fields]
    assert said == known, list(zip([*gpu_steps.STRUCTS, *fields], said, known))


def check_all(folder):
    set_limits(folder)
    status, results = run(folder)
    assert status == 0
    assert "copy_gb_s" in rows_of(results, "facts")["machine"] and "graph_replay_us" in rows_of(results, "facts")["machine"]
    digits = rows_of(results, "numerics")["digits"]
    assert digits["ok"] and digits["same_bits"] and digits["error"] < 1e-4, digits
    nodes = rows_of(results, "nodes")["ONNX node tests"]
    assert nodes["ok"] and nodes["pass"] >= 5, nodes
    for row in rows_of(results, "kernels").values():
        assert row["ok"] and row["dlc_ms"] > 0 and "eager" in row["peers"], row
        assert row["peer_problems"] == {"compile": "there is no compiler here"}, row
    assert rows_of(results, "smoke")["digits"]["ok"]
    steps = rows_of(results, "steps")["digits"]["steps"]
    assert len(steps) >= 3 and all(s["us"] >= 0 for s in steps), steps
    assert rows_of(results, "cold")["digits, a process"]["dlc_ms"] > 0
    assert (folder.with_name("results") / "log.txt").read_text().count("==== ") == len(results)  # and one process for all
    assert "skipped" in rows_of(results, "sanitizer")["compute-sanitizer"] or shutil.which("compute-sanitizer")


def set_limits(folder, **changes):
    """The carried program's: ten times what they are, as this processor may have other work; and those that are given."""
    program = folder / "gpu_run.py"
    text = program.read_text()
    begin, end = text.index("LIMITS_S = {"), text.index("JUDGED = ")
    limits = {step: (10 * whole, 10 * part) for step, (whole, part) in gpu_run.LIMITS_S.items()} | changes
    text = f"{text[:begin]}LIMITS_S = {limits}\n{text[end:]}"
    program.write_text(re.sub(r"(?m)^WHOLE_S = .*", f"WHOLE_S = {sum(whole for whole, _ in limits.values())}", text))


def check_trouble(folder):
    """The case after the one that fails has its result."""
    first, second = KERNELS
    set_limits(folder, kernels=(1000, 3))  # a kernel that says nothing for 3 seconds hangs
    for trouble, why in (("softmax abort", "its process ended with -6"), ("softmax raise", "illegal memory access"),
                         ("softmax hang", "nothing came of it in 3 s")):
        status, results = run(folder, trouble, "--steps", "kernels,cold")
        rows = rows_of(results, "kernels")
        assert status == 1 and not rows[first]["ok"] and why in rows[first]["why"], rows
        assert rows[second]["ok"], rows
        assert "digits, a process" in rows_of(results, "cold")
    for trouble in ("compile raise", "compile hang"):  # of the peers: no matter of numerics
        status, results = run(folder, trouble, "--steps", "kernels")
        rows = rows_of(results, "kernels")
        assert status == 0 and all(rows[k]["ok"] and "eager" in rows[k]["peers"] and rows[k]["peer_problems"] for k in KERNELS), rows


def check_refusals(folder):
    """Wrong numbers, a missing program, no GPU."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["cases"][0]["tolerance"] = -1
    (folder / "manifest.json").write_text(json.dumps(manifest))
    status, results = run(folder, "", "--steps", "numerics")
    assert status == 1 and not rows_of(results, "numerics")["digits"]["ok"]
    (folder / "lib" / "libdlcrt.so").unlink()
    status, results = run(folder, "", "--steps", "numerics,cold")
    assert status == 1 and "libdlcrt.so" in results["numerics"]["problem"]
    done = subprocess.run([folder / "gpu_check"], env=dict(os.environ, PYTHONPATH=str(folder)), capture_output=True, text=True)
    assert done.returncode == 2 and "nothing was run" in done.stdout, done


def few_experiments():
    """Of a small shape each row, with and without parts and loading ahead."""
    every = list(gpu_experiments.experiments(((64, 64, 256),)))
    first = {(e["row"], e["ahead"], e["parts"] > 1): e for e in every if e["slice"] < 64}
    return [*first.values(), *list(gpu_wgmma.experiments(((64, 64, 256),), 1))[:6:3]]


def check_virtual(dlc, folder):
    """Every step on the virtual GPU, and what was measured is read back."""
    try:
        carry(dlc, folder, "sm_75", (SMALL,), 3, 2, few_experiments())
    except RuntimeError as error:
        assert "NVRTC" in str(error), error
        print(f"skipped on the virtual GPU: {error}")
        return
    set_limits(folder)
    vgpu = dlc.parent.parent / "lib" / "vgpu"
    status, results = run(folder, DLC_DEVICE="cuda:0", LD_LIBRARY_PATH=str(vgpu), DLC_VGPU_ARCH="90", FAKE_CAPABILITY="90")
    assert status == 0, results
    assert rows_of(results, "numerics")["digits"]["ok"] and rows_of(results, "nodes")["ONNX node tests"]["ok"]
    assert rows_of(results, "kernels")[SMALL]["ok"] and rows_of(results, "smoke")["digits"]["ok"]
    row = rows_of(results, "steps")["digits"]
    assert row["predicted_us"] and all(s["us"] > 0 for s in row["steps"]), row
    micro = rows_of(results, "micro")
    assert micro.keys() == set(gpu_micro.MEASURED), micro
    assert not any("why" in r or "skipped" in r or "peer_problems" in r for r in micro.values()), micro
    tried = rows_of(results, "experiments")
    assert {"64x64x256 fma", "64x64x256 mma_f16", "64x64x256 wgmma"} == tried.keys() and all(r["ok"] for r in tried.values()), tried
    kernels = [k for r in tried.values() for e in r["experiments"] for k in e["kernels"]]
    # where all blocks run, times are as predicted from a few of them
    assert len(kernels) >= 8 and all(abs(k["us"] - k["predicted_us"]) < 0.01 * k["us"] and k["bound"] for k in kernels), kernels
    assert sum("nvrtc" in case for case in rows_of(results, "numerics")) == len(gpu_static.all_nvrtcs()), results["numerics"]
    said = subprocess.run([dlc, "targets", "--calibrate", folder.with_name("results") / "results.json"], capture_output=True, text=True)
    assert said.returncode == 0 and "Virtual GPU 0" in said.stdout and "load_cycles" in said.stdout, said
    assert f"kernels_measured {len(kernels)}" in said.stdout and "prediction_error_scaled" in said.stdout, said


def main():
    dlc, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve() / "dry"
    work.mkdir(parents=True, exist_ok=True)
    folder = work / "gpu"
    check_documented()
    check_structs(work)
    carry(dlc, folder)
    check_all(folder)
    check_trouble(folder)
    check_refusals(folder)
    check_virtual(dlc.resolve(), work / "virtual")


if __name__ == "__main__":
    main()
