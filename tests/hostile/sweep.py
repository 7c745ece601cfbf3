#!/usr/bin/env python3
"""sweep.py DLC FAULTS.so MODEL FOLDER [COMMAND...]: lets each allocation and each access to files of a command fail once (faults.c), and sees
that the command ends by itself, with a sentence unless it came through, with what it writes whole or absent, and with no other file left.
DLC_POINTS=N: about N points of each command and kind, evenly spaced; 0: all. Prints what is not so and exits 1."""
import os
import pathlib
import subprocess
import sys

DLC, FAULTS, MODEL, OUT = sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
POINTS = int(os.environ.get("DLC_POINTS", "40"))
CLEAN = {0, 2, 5, 7}  # it came through; a file whose first bytes could not be read is taken for another kind; files; memory

COMMANDS = {
    "compile": ["compile", MODEL, "-o", "made.so", "--jobs", "1"],
    "inspect": ["inspect", MODEL],
    "explain": ["explain", MODEL],
    "opt": ["opt", MODEL, "-o", "made.dlc"],
    "run": ["run", "model.so", "--outputs", "made.npz", "--threads", "2"],
}


def call(arguments, **fault):
    environment = {**os.environ, "TMPDIR": str(OUT / "tmp"), "DLC_CACHE_DIR": str(OUT / "cache"), "LD_PRELOAD": FAULTS, **fault}
    return subprocess.run([DLC, *arguments], cwd=OUT, env=environment, capture_output=True, timeout=120)


def left():
    return {str(path.relative_to(OUT)) for path in OUT.rglob("*")}


def sweep(name, kind, total, whole):
    """How many points were tried, and what went wrong at them."""
    arguments, bad, codes = COMMANDS[name], 0, {}
    before = left()
    step = max(1, total // POINTS) if POINTS else 1
    for n in range(1, total + 1, step):
        try:
            done = call(arguments, DLC_FAULT=f"{kind}:{n}")
        except subprocess.TimeoutExpired:
            print(f"{name}: {kind} {n}: no end")
            bad += 1
            continue
        code, text = done.returncode, done.stderr.decode(errors="replace")
        made = [path for path in OUT.glob("made.*")]
        faults = []
        if code not in CLEAN:
            faults.append(f"exit {code}")
        if code and "dlc" not in text:
            faults.append("no sentence")
        for path in made:
            if path.read_bytes() != whole:
                faults.append(f"{path.name} is not whole")
            path.unlink()
        if not code and whole and not made:
            faults.append("nothing was made")
        more = left() - before
        if more:
            faults.append(f"left: {sorted(more)}")
            for path in more:
                (OUT / path).unlink(missing_ok=True)
        if faults:
            bad += 1
            print(f"{name}: {kind} {n} of {total}: {'; '.join(faults)}: {' '.join(text.split())[:160]}", flush=True)
        codes[code] = codes.get(code, 0) + 1
    print(f"{name}: {kind}: {total} points, every {step}: " + ", ".join(f"{n} end with {code}" for code, n in sorted(codes.items())), flush=True)
    return bad


def main():
    (OUT / "tmp").mkdir(parents=True, exist_ok=True)
    (OUT / "cache").mkdir(exist_ok=True)
    subprocess.run([DLC, "compile", MODEL, "-o", OUT / "model.so", "--quiet"], check=True)
    bad = 0
    for name in sys.argv[5:] or COMMANDS:
        done = call(COMMANDS[name], DLC_FAULT_COUNT=str(OUT / "count"))
        if done.returncode:
            sys.exit(f"{name} ends with {done.returncode} where nothing fails: {done.stderr.decode()}")
        memory, io = (int(word) for word in (OUT / "count").read_text().split())
        (OUT / "count").unlink()
        made = list(OUT.glob("made.*"))
        whole = made[0].read_bytes() if made else None
        for path in made:
            path.unlink()
        bad += sweep(name, "memory", memory, whole) + sweep(name, "io", io, whole)
    print(f"{bad} points do not end clean")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
