"""What the wrapper occupies while its command runs, and what a holder at rest costs."""

import contextlib
import os
import re
import signal
import time

from sample import Failed, Row, alternating, ended, start, until

COMMAND = ["sleep", "100000"]


def read(path):
    with contextlib.suppress(OSError), open(path) as file:
        return file.read()
    return ""


def threads(pid):
    with contextlib.suppress(OSError):
        return os.listdir(f"/proc/{pid}/task")
    return []


def children(pid):
    return [int(child) for thread in threads(pid) for child in read(f"/proc/{pid}/task/{thread}/children").split()]


def wrappers_and_command(pid):
    """The processes from the wrapper down to the command's parent, and the command once it runs."""
    chain = [pid]
    while below := children(chain[-1]):
        if read(f"/proc/{below[0]}/comm").strip() == COMMAND[0]:
            return chain, below[0]
        chain.append(below[0])
    return None


@contextlib.contextmanager
def holding(wrapper):
    """Runs a wrapper around a command that sleeps, until the block ends."""
    pid = start([*wrapper, *COMMAND])
    try:
        chain, command = until(lambda: wrappers_and_command(pid), f"{wrapper[0]} runs its command")
        yield chain
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        ended(pid)
        raise
    os.kill(command, signal.SIGTERM)
    ended(pid)


def proportional(pid):
    """KiB: memory of its own, and its share of what it shares."""
    found = re.search(r"^Pss:\s+(\d+) kB", read(f"/proc/{pid}/smaps_rollup"), re.M)
    if not found:
        raise Failed(f"no memory figure of process {pid}")
    return int(found[1])


def mebibytes(wrapper):
    with holding(wrapper) as chain:
        # What the wrapper still does once its command runs has to be in.
        time.sleep(0.3)
        return sum(map(proportional, chain)) / 1024


def while_running(ours, theirs, pairs):
    return alternating(ours, theirs, pairs, mebibytes)


def processor(chain):
    """Milliseconds of processor time used so far, all threads."""
    used = 0
    for pid in chain:
        for thread in threads(pid):
            used += int(read(f"/proc/{pid}/task/{thread}/schedstat").split()[0])
    return used / 1e6


def at_rest(wrapper, server, seconds):
    """A holder whose command sleeps: processor time a minute, and what the server is asked at each renewal."""
    with holding(wrapper) as chain:
        time.sleep(1)
        used, asked = processor(chain), server.calls()
        time.sleep(seconds)
        used, asked = processor(chain) - used, server.calls() - asked
    beats = asked["LeaseKeepAlive"]
    each = ", ".join(f"{n / beats:.1f} {method}" for method, n in sorted(asked.items())) if beats else "no beat"
    return [
        Row(f"a holder at rest for {seconds} s, processor time a minute", f"{used * 60 / seconds:.1f} ms", aim="print"),
        Row(f"the same, RPCs a beat ({beats} beats at a ttl of 30 s)", each, aim="print"),
    ]
