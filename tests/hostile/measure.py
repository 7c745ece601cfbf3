#!/usr/bin/env python3
"""measure.py SECONDS MIB COMMAND...: runs a command under both limits and prints its exit status, seconds, MiB (of the largest
process it was) and the last line it wrote."""
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time


def measure_here(command, seconds, mib):
    """Exit status (None at the time limit), seconds, MiB of a child of this process."""
    def limit():
        if mib:
            resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
    start = time.time()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True, preexec_fn=limit)
    status = None
    while time.time() - start < seconds:
        pid, state, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            status = os.waitstatus_to_exitcode(state)
            break
        time.sleep(0.005)
    else:
        os.killpg(process.pid, signal.SIGKILL)
        pid, state, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return status, time.time() - start, usage.ru_maxrss / 1024


def measure(command, seconds, mib=None):
    """(exit status or None at the time limit, seconds, MiB, standard error). mib bounds the address space.
    A process's most memory is at least that of who forked it, so this file as a small process of its own does that."""
    with tempfile.TemporaryFile() as err:
        arguments = [sys.executable, "-I", "-S", __file__, "--here", seconds, mib or 0, *command]
        small = subprocess.run([str(a) for a in arguments], stdout=subprocess.PIPE, stderr=err, text=True, check=True)
        err.seek(0)
        status, took, most = small.stdout.split()
        return None if status == "None" else int(status), float(took), float(most), err.read().decode(errors="replace")


if __name__ == "__main__":
    if sys.argv[1] == "--here":
        print(*measure_here(sys.argv[4:], float(sys.argv[2]), int(sys.argv[3])))
    else:
        status, seconds, mib, text = measure(sys.argv[3:], float(sys.argv[1]), int(sys.argv[2]) or None)
        print(f"{status} {seconds:.2f} s {mib:.0f} MiB {' '.join(text.split())[:300]}")
