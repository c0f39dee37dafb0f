"""How long a lost lock's process tree takes to be gone, through the whole program.

From the removal of a held lock file to the last process of the tree being reaped: processes that ignore the stop signal,
leave their session and fork twice. At rest, and beside 32 spinning processes (the watching is starved then as well, so
that figure is an upper bound; the least margin of a lease is 500 ms).
"""

import os
import subprocess
import tempfile
import time

from memory import children
from sample import ENVIRONMENT, Failed, Row, Sample, until

STUBBORN = """trap '' TERM
for i in 1 2 3 4 5; do
    setsid sh -c 'trap "" TERM; (setsid sleep 1001 &); (sleep 1002 &); sleep 1003' &
done
echo in
while :; do sleep 1; done"""
SPINNERS = 32


def below(pid):
    found, queue = [], [pid]
    while queue:
        queue += (own := children(queue.pop()))
        found += own
    return found


def milliseconds(fenced):
    """From the loss to the moment at which nothing is left."""
    with tempfile.TemporaryDirectory(prefix="fenced-bench-") as store:
        command = [fenced, "run", "--store", f"file://{store}", "--lock", "a", "--", "sh", "-c", STUBBORN]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": ENVIRONMENT}
        with subprocess.Popen(command, **pipes) as run:
            run.stdout.readline()
            guard = children(run.pid)[0]
            tree = until(lambda: len(found := below(guard)) >= 20 and found, "the tree has grown")
            # The lock file is watched from 50 ms after the grant on.
            time.sleep(0.2)
            began = time.monotonic()
            os.unlink(f"{store}/a.lock")
            while any(os.path.exists(f"/proc/{pid}") for pid in tree):
                pass
            took = (time.monotonic() - began) * 1000
        if run.returncode != 76:
            raise Failed(f"status {run.returncode} instead of 76 of a run that lost its lock")
        return took


def row(fenced, runs, where):
    taken = Sample(milliseconds(fenced) for _ in range(runs))
    return Row(f"the tree of a lost lock is dead, {where}, ms", taken.show(1), aim="print")


def rows(fenced, runs):
    yield row(fenced, runs, "at rest")
    spinners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(SPINNERS)]
    try:
        yield row(fenced, max(1, runs // 4), f"beside {SPINNERS} spinning processes")
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
