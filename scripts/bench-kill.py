#!/usr/bin/env python3
"""How long a lost lock's process tree takes to be gone, through the whole program.

From the removal of a held lock file to the last process of the tree being reaped: processes that ignore the stop signal,
leave their session and fork twice. At rest, and beside 32 spinning processes (the watching is starved then as well, so
that figure is an upper bound; the least margin of a lease is 500 ms).

usage: bench-kill.py FENCED [RUNS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

STUBBORN = """trap '' TERM
for i in 1 2 3 4 5; do
    setsid sh -c 'trap "" TERM; (setsid sleep 1001 &); (sleep 1002 &); sleep 1003' &
done
echo in
while :; do sleep 1; done"""


def children(pid):
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as listed:
                found += [int(child) for child in listed.read().split()]
    except OSError:
        pass
    return found


def below(pid):
    found, queue = [], [pid]
    while queue:
        queue += (own := children(queue.pop()))
        found += own
    return found


def one(fenced):
    """Milliseconds until nothing is left, and of how many processes."""
    with tempfile.TemporaryDirectory() as store:
        command = [fenced, "run", "--store", f"file://{store}", "--lock", "a", "--", "sh", "-c", STUBBORN]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        run.stdout.readline()
        deadline = time.monotonic() + 10
        while len(tree := below(children(run.pid)[0])) < 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        # The lock file is watched from 50 ms after the grant on.
        time.sleep(0.2)
        began = time.monotonic()
        os.unlink(f"{store}/a.lock")
        while any(os.path.exists(f"/proc/{pid}") for pid in tree):
            pass
        took = (time.monotonic() - began) * 1000
        if run.wait() != 76:
            sys.exit(f"bench-kill: status {run.returncode} instead of 76")
        return took, len(tree)


def measure(what, fenced, runs):
    results = sorted(one(fenced) for _ in range(runs))
    times = [took for took, _ in results]
    print(
        f"tree of {max(size for _, size in results)} killed after a lost lock, {what}, {runs} runs: "
        f"median {statistics.median(times):.1f} ms, min {times[0]:.1f}, max {times[-1]:.1f}"
    )


def main():
    fenced, runs = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40
    measure("at rest", fenced, runs)
    spinners = [subprocess.Popen(["timeout", "300", "sh", "-c", "while :; do :; done"]) for _ in range(32)]
    try:
        measure("beside 32 spinning processes", fenced, max(5, runs // 4))
    finally:
        for spinner in spinners:
            spinner.terminate()
            spinner.wait()


main()
