#!/usr/bin/env python3
"""gpu_run.py FOLDER: the half of gpu_check that needs a GPU, in the folder that the other half made.

A step is a row of trials, with limits of time for the whole, which add up to what there is, and for each part. All run in one
process, which imports PyTorch once; a trial that crashes, hangs or leaves the GPU unusable is a row like any other, and the next ones
go on in a new process. Steps:
  facts      the GPU, driver and PyTorch; copy bandwidth and cuBLAS throughput as ceilings
  smoke      the digits, so that what cannot work at all is known at once
  micro      small kernels that measure what predictions rest on; `dlc targets --calibrate results.json` reads them back
  kernels    single kernels, cubins and PTX, against PyTorch in float64; cubins beside PyTorch: eager (cuBLAS, cuDNN) and
             torch.compile, both as CUDA graphs
  models     the same for whole models
  steps      each step of every model by events, beside what the virtual GPU predicted of it
  experiments  products of 15 shapes by some 400 schedules, and by wgmma by hand, beside what was predicted of each; read back so, too
  numerics   every carried model, cubins and PTX, against its stored reference, six times, three of them with poisoned memory
  nodes      ONNX's node tests
  sanitizer  compute-sanitizer on a sample, where there is one
  ncu        Nsight Compute's counters of 15 kernels, where it is there
  cold       from the start of a process to the first output
Prints one table; results.json has all of it, log.txt what the steps printed. The exit status tells of numerics alone: 0 when
every one that ran is right and none is missing. DLC_DEVICE is the device (default: cuda:0). float32 is without TF32; names of cases
say f16, and peers of another type are in results.json alone.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

WHOLE_S = 570  # of ten minutes, with time to start and to write the table
# step: seconds for all of it, and for one part of a trial
LIMITS_S = {"facts": (30, 30), "smoke": (15, 15), "micro": (25, 15), "kernels": (100, 45), "models": (90, 60), "steps": (25, 15),
            "experiments": (60, 20), "numerics": (80, 40), "nodes": (45, 45), "sanitizer": (40, 20), "ncu": (40, 20), "cold": (20, 15)}
JUDGED = ("smoke", "kernels", "models", "experiments", "numerics", "nodes", "sanitizer")  # steps with numerics of their own
COMPLETE = ("smoke", "numerics", "nodes")  # of these those that must come to their end
assert sum(whole for whole, _ in LIMITS_S.values()) <= WHOLE_S
AGAIN = 75  # exit status of a step's process: the GPU is unusable in it, the next trial wants a new one


# ---- the table

COLUMNS = (("step", 11), ("case", 32), ("target", 6), ("result", 7), ("error", 8), ("dlc ms", 9), ("best peer ms", 20), ("ratio", 6),
           ("ceiling", 7), ("noise", 6))


def cells(step, row, facts):
    """The columns of one row. ratio: best peer over dlc, more than 1 is faster, none where kernels were timed one by one; ceiling:
    of cuBLAS in the row's type or copying."""
    result = "skipped" if "skipped" in row else "" if "ok" not in row else "ok" if row["ok"] else "WRONG" if "error" in row else "FAILED"
    peers = {n: t for n, t in row.get("peers", {}).items() if n not in ("eager tf32", "eager f16")}
    best = min(peers, key=peers.get) if peers else None
    ms = row.get("dlc_ms")
    ceiling = ""
    cublas = f"cublas_{row.get('dtype', 'float32')}_tflop_s"
    if ms and "bytes" in row and {"copy_gb_s", cublas} <= facts.keys():
        share = max(row["flops"] / facts[cublas] / 1e9, row["bytes"] / facts["copy_gb_s"] / 1e6) / ms
        ceiling = f"{100 * share:.0f} %"
    what = row["case"] + (f" {row['tool']}" if "tool" in row else "")
    what += f" {row['pass']} of {row['pass'] + row['fail'] + row['unsupported']}" if "pass" in row else ""
    targets = row.get("target", "")
    ratio = f"{peers[best] / ms:.2f}" if best and ms and "experiments" not in row else ""
    return (step, what[:32], targets.split(",")[0] + ("…" if "," in targets else ""), result,
            f"{row['error']:.1e}" if "error" in row else "", f"{ms:.4f}" if ms else "", f"{peers[best]:.4f} {best}" if best else "",
            ratio, ceiling, f"{100 * row['noise']:.0f} %" if "noise" in row else "")


def table_text(results):
    facts = (results.get("facts", {}).get("rows") or [{}])[0]
    lines = [f"  {key}: {value}" for key, value in facts.items()] + [""]
    lines.append("| " + " | ".join(f"{name:{width}}" for name, width in COLUMNS) + " |")
    lines.append("|" + "|".join("-" * (width + 2) for _, width in COLUMNS) + "|")
    for step, result in results.items():
        for row in result["rows"] if step != "facts" else []:
            lines.append("| " + " | ".join(f"{text:{width}}" for text, (_, width) in zip(cells(step, row, facts), COLUMNS)) + " |")
    lines.append("")
    for step, result in results.items():
        lines += [f"{step}: {result['problem']}"] if result["problem"] else []
        for row in result["rows"]:
            lines += [f"{step} {row['case']} {row.get('target', '')}: {row['why']}"] if row.get("why") else []
    return "\n".join(lines)


# ---- the inner process: a step's trials

def is_spoilt():
    """True when nothing more can run on the GPU in this process."""
    import torch
    try:
        torch.cuda.synchronize()
        return False
    except RuntimeError:
        return True


def work_step(gpu_steps, folder, step, skip, lines):
    """The step's trials but the first `skip`; false: the GPU is unusable."""
    def note(**what):
        lines.write(json.dumps(what) + "\n")
        lines.flush()
    for number, (case, parts) in enumerate(gpu_steps.STEPS[step](folder)):
        if number < skip:
            continue
        note(begin=case)
        try:
            for part in parts:
                note(part=part)
        except Exception as error:  # whatever it is, it is this trial's result
            note(failed=f"{type(error).__name__}: {str(error)[:1000]}")
        note(end=case)
        if is_spoilt():
            return False
    note(done=step)
    return True


def work(args):
    """The steps, one after the other; lines of a step's journal tell of each trial how far it came."""
    import gpu_steps  # where NumPy and PyTorch are known to be
    folder = gpu_steps.Folder(args.folder, args.work)
    for number, step in enumerate(args.step.split(",")):
        print(f"==== {step}", flush=True)
        with open(journal_of(args.work, step), "a") as lines:
            if not work_step(gpu_steps, folder, step, 0 if number else args.skip, lines):
                return AGAIN
    return 0


# ---- the outer process

def journal_of(unpacked, step):
    return pathlib.Path(unpacked) / f"{step}.jsonl"


def blame(row, step, why):
    """A trial that failed: that is its result, unless it had one, and only what compares it with PyTorch is missing."""
    if "ok" in row or step not in JUDGED:
        row.setdefault("peer_problems", {})["unfinished"] = why
    else:
        row.update(ok=False, why=why)


def read_rows(journal, step):
    """The rows as far as they came, whether the last trial ended, and whether all did."""
    rows, is_whole, is_done = [], True, False
    for line in journal.read_text().splitlines() if journal.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:  # cut off
            continue
        if "begin" in entry:
            rows.append({"case": entry["begin"]})
        elif "part" in entry:
            rows[-1].update(entry["part"])
        elif "failed" in entry:
            blame(rows[-1], step, entry["failed"])
        is_whole = "end" in entry or "done" in entry
        is_done = "done" in entry
    return rows, is_whole, is_done


def end_session(process):
    """The process was made the first of a session: all that it started ends, too."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(entry.name)) == process.pid:
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:  # it ended meanwhile
            pass
    process.wait()


def attend(process, step, journal, whole_s, part_s):
    """Waits until the process has done the step, or ended: "". Or which limit it passed; then it is ended."""
    begin = last = time.monotonic()
    size = 0
    while process.poll() is None:
        time.sleep(0.05)
        now, length = time.monotonic(), journal.stat().st_size if journal.exists() else 0
        last, is_new, size = now if length != size else last, length != size, length
        if is_new and read_rows(journal, step)[2]:
            return ""
        if now - begin > whole_s or now - last > part_s:
            end_session(process)
            return "step" if now - begin > whole_s else "part"
    return ""


class Worker:
    """The process that runs trials; a new one where there is none."""

    def __init__(self, folder, unpacked, log):
        self.folder, self.unpacked, self.log, self.process = folder, unpacked, log, None

    def start(self, steps, skip):
        if self.process and self.process.poll() is None:
            return
        command = [sys.executable, "-X", "faulthandler", __file__, str(self.folder), "--step", ",".join(steps), "--skip", str(skip),
                   "--work", str(self.unpacked)]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def end(self):
        if self.process:
            end_session(self.process)


def run_step(worker, steps, limit_s):
    """All trials of the first step, in as many processes as it takes. late: time was all that was missing."""
    step = steps[0]
    journal, begin = journal_of(worker.unpacked, step), time.monotonic()
    rows, blamed = [], {}
    while True:
        if read_rows(journal, step)[2]:  # the process went on before anybody looked, and may have ended
            return {"rows": read_rows(journal, step)[0], "problem": "", "late": False}
        worker.start(steps, len(rows))
        passed = attend(worker.process, step, journal, max(1, limit_s - (time.monotonic() - begin)), LIMITS_S[step][1])
        came_to, said = len(rows), worker.log.read_text(errors="replace")[-800:].strip()
        rows, is_whole, is_done = read_rows(journal, step)
        if not is_whole and passed != "step":
            blamed[len(rows) - 1] = f"nothing came of it in {LIMITS_S[step][1]} s" if passed else \
                f"its process ended with {worker.process.returncode}: {said}"
        for number, why in blamed.items():
            blame(rows[number], step, why)
        if passed == "step":
            return {"rows": rows, "problem": f"took longer than {limit_s:.0f} s", "late": True}
        if is_done:
            return {"rows": rows, "problem": "", "late": False}
        if len(rows) == came_to:  # it never came to a trial
            return {"rows": rows, "problem": f"ended with {worker.process.returncode}: {said}", "late": False}


def without_gpu():
    """Why there is nothing to run on; "": there is."""
    command = [sys.executable, "-c", "import sys, numpy, torch; sys.exit(0 if torch.cuda.is_available() else 'PyTorch sees no GPU')"]
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stderr.strip().splitlines() or ["Python ended"])[-1] if done.returncode else ""


def is_right(results):
    """All numerics that were to run did, and none is wrong."""
    judged = {step: results[step] for step in JUDGED if step in results}
    rows = [r for result in judged.values() for r in result["rows"] if "ok" in r]
    whole = not any(r["problem"] and (step in COMPLETE or not r["late"]) for step, r in judged.items())
    return bool(rows) and whole and all(r["ok"] for r in rows)


def run_all(folder, steps, unpacked, out, begin):
    results = {}
    (out / "log.txt").write_text("")
    worker = Worker(folder, unpacked, out / "log.txt")
    for number, step in enumerate(steps):
        left = WHOLE_S - (time.monotonic() - begin)
        results[step] = run_step(worker, steps[number:], min(LIMITS_S[step][0], left)) if left > 5 else \
            {"rows": [], "problem": "no time was left", "late": True}
        (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
        print(f"{step}: {len(results[step]['rows'])} rows {results[step]['problem'][:200]}", flush=True)
    worker.end()
    verdict = "numerics are right" if is_right(results) else "NUMERICS ARE NOT RIGHT, OR NOT ALL OF THEM RAN"
    table = f"{table_text(results)}\n{verdict}\n"
    (out / "table.txt").write_text(table)
    print(table, end="")
    return 0 if is_right(results) else 1


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("folder", type=pathlib.Path)
    args.add_argument("--steps", default=",".join(LIMITS_S), help="which of them, comma separated")
    args.add_argument("--out", type=pathlib.Path, help="where results go (default: $OUT, else FOLDER/results)")
    args.add_argument("--step", help=argparse.SUPPRESS)
    args.add_argument("--skip", type=int, help=argparse.SUPPRESS)
    args.add_argument("--work", help=argparse.SUPPRESS)
    args, begin = args.parse_args(), time.monotonic()
    os.environ.setdefault("DLC_DEVICE", "cuda:0")  # as PyTorch
    if args.step:
        return work(args)
    steps, reason = args.steps.split(","), without_gpu()
    if unknown := [s for s in steps if s not in LIMITS_S]:
        print(f"There is no step {unknown[0]}; there are {', '.join(LIMITS_S)}.")
        return 2
    if reason:
        print(f"There is no GPU here, or Python has no PyTorch for it ({reason}); nothing was run.")
        return 2
    folder = args.folder.resolve()
    out = args.out or pathlib.Path(os.environ.get("OUT") or folder / "results")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gpu_check.") as unpacked:
        return run_all(folder, steps, unpacked, out, begin)


if __name__ == "__main__":
    sys.exit(main())
