#!/usr/bin/env python3
"""sweep.py DLC FAULTS.so MODEL FOLDER [COMMAND...]: lets allocations and accesses to files of a command fail, one in each run (faults.c),
and sees that the command ends by itself, with a sentence unless it came through, with what it writes whole or absent, and with no other
file left. Tried is one call of each way (three callers) by which any comes, in the command's process and in those it forks.
DLC_POINTS=N: about N points of each command, evenly spaced, and the last ones; 0: all. Prints what is not so and exits 1."""
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


def points(name):
    """[(kind, number, where)] of a run in which nothing fails, the file it made, and what it printed."""
    paths = OUT / "paths"
    done = call(COMMANDS[name], DLC_FAULT_PATHS=str(paths))
    if done.returncode:
        sys.exit(f"{name} ends with {done.returncode} where nothing fails: {done.stderr.decode()}")
    found = [line.split() for line in paths.read_text().splitlines()]
    paths.unlink()
    made = list(OUT.glob("made.*"))
    whole = made[0].read_bytes() if made else None
    for path in made:
        path.unlink()
    return found, whole, done.stdout


def fault_at(name, kind, n, where, whole, printed):
    """The exit status with that call failing, what is wrong with how it ended, and what it said."""
    try:
        done = call(COMMANDS[name], DLC_FAULT=f"{kind}:{n}" + ":forked" * (where == "forked"))
    except subprocess.TimeoutExpired:
        return None, ["no end"], ""
    code, text, wrong = done.returncode, done.stderr.decode(errors="replace"), []
    made = list(OUT.glob("made.*"))
    if code not in CLEAN:
        wrong.append(f"exit {code}")
    if code and "dlc" not in text:
        wrong.append("no sentence")
    if not code and name != "run" and done.stdout != printed:
        wrong.append("it printed something else")
    for path in made:
        if path.read_bytes() != whole:
            wrong.append(f"{path.name} is not whole")
        path.unlink()
    if not code and whole and not made:
        wrong.append("nothing was made")
    return code, wrong, text


def sweep(name):
    """How many points of a command do not end clean."""
    (found, whole, printed), bad, codes = points(name), 0, {}
    before = left()
    own = [i for i, point in enumerate(found) if point[2] == "first"]
    step = max(1, len(found) // POINTS) if POINTS else 1
    tried = [point for i, point in enumerate(found) if i % step == 0 or i in own[-4:]]  # what is told at the end, too
    for kind, n, where in tried:
        code, wrong, text = fault_at(name, kind, n, where, whole, printed)
        more = left() - before
        if more:
            wrong.append(f"left: {sorted(more)}")
            for path in more:
                (OUT / path).unlink(missing_ok=True)
        if wrong:
            bad += 1
            print(f"{name}: {kind} {n} {where}: {'; '.join(wrong)}: {' '.join(text.split())[:160]}", flush=True)
        codes[code] = codes.get(code, 0) + 1
    print(f"{name}: {len(tried)} of {len(found)} points: " + ", ".join(f"{n} end with {code}" for code, n in codes.items()), flush=True)
    return bad + (not found)


def main():
    (OUT / "tmp").mkdir(parents=True, exist_ok=True)
    (OUT / "cache").mkdir(exist_ok=True)
    subprocess.run([DLC, "compile", MODEL, "-o", OUT / "model.so", "--quiet"], check=True)
    bad = sum(sweep(name) for name in sys.argv[5:] or COMMANDS)
    print(f"{bad} points do not end clean")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
