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


def measure(command, seconds, mib=None, **more):
    """(exit status or None at the time limit, seconds, MiB, standard error). mib bounds the address space."""
    def limit():
        if mib:
            resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
    with tempfile.TemporaryFile() as err:
        start = time.time()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err, start_new_session=True, preexec_fn=limit, **more)
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
        err.seek(0)
        return status, time.time() - start, usage.ru_maxrss / 1024, err.read().decode(errors="replace")


if __name__ == "__main__":
    status, seconds, mib, text = measure(sys.argv[3:], float(sys.argv[1]), int(sys.argv[2]) or None)
    print(f"{status} {seconds:.2f} s {mib:.0f} MiB {' '.join(text.split())[:300]}")
