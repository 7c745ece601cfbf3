#!/usr/bin/env python3
"""kernel_counts.py DLC WORK_DIR [MODEL …]: fusion is the same engine for every target, so a model has no more kernels for a GPU
than for the CPU. Compares the plans of both for the stored and the made models; exceptions, each with its reason, stand in
more-kernels-cuda.txt.
"""
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


# as far as fusion decides: rewrites make more kernels of one where a device has processors to spare
PASSES = "dce,cse,const_fold,simplify,const_fold,simplify,cse,dce,layout,fuse,lower"


def launches(dlc, model, target):
    # without NVRTC there is no report of the kernels to wait for
    command = [dlc, "inspect", model, "--target", target, "--format", "json", "--quiet", "--passes", PASSES]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, DLC_NVRTC="/nonexistent"))
    if done.returncode:
        sys.exit(f"{model} for {target}: {done.stdout}{done.stderr}")
    return len(json.loads(done.stdout)["kernels"])


def models(work):
    """The stored ones, the light ones of ONNX, and known networks."""
    subprocess.run([sys.executable, ROOT / "models/light_models.py", work / "light"], check=True, stdout=subprocess.DEVNULL)
    names = ["mobilenet_v2", "minilm", "vit_b_16"]
    if not all((work / "nets" / f"{n}.onnx").exists() for n in names):
        subprocess.run([sys.executable, ROOT / "models/seeded_models.py", work / "nets", *names], check=True, stdout=subprocess.DEVNULL)
    return [ROOT / "models/digits.onnx", *sorted(work.glob("light/*/model.onnx")), *(work / "nets" / f"{n}.onnx" for n in names)]


def allowed():
    lines = [line.split("#")[0].split() for line in (HERE / "more-kernels-cuda.txt").read_text().splitlines()]
    return {line[0]: int(line[1]) for line in lines if line}


def main():
    dlc, work = sys.argv[1], pathlib.Path(sys.argv[2])
    work.mkdir(parents=True, exist_ok=True)
    limits, nwrong = allowed(), 0
    for model in [pathlib.Path(m) for m in sys.argv[3:]] or models(work):
        name = model.parent.name if model.name == "model.onnx" else model.stem
        cpu, gpu = launches(dlc, model, "x86-64-v3"), launches(dlc, model, "sm_75")
        limit = limits.get(name, cpu)
        is_wrong = gpu > limit or (name in limits and gpu <= cpu)
        nwrong += is_wrong
        print(f"{name:24} {cpu:4} on the CPU {gpu:4} on the GPU{'' if not is_wrong else f', where at most {limit} are expected'}"
              f"{', so its line can go' if name in limits and gpu <= cpu else ''}", flush=True)
    sys.exit(4 if nwrong else 0)


if __name__ == "__main__":
    main()
