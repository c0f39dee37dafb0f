"""Stopping some of the processes that a section consists of, for a while."""

import functools
import itertools
import os
import signal
import time

#: Seconds that a loaded machine may take to stop a process.
STOPS_WITHIN = 2
HIERARCHIES = [
    # Version 1 keeps even SIGKILL waiting until the thaw, as the pause of a whole machine does; version 2 does not.
    ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"),
    ("/sys/fs/cgroup", "cgroup.freeze", "1", "0"),
]


class Stopping:
    """SIGSTOP, from the outside in; SIGCONT from the inside out, so that the command is the first to go on."""

    def __init__(self, processes, patience):
        self.processes, self.patience = processes, patience
        self.handles = [os.pidfd_open(pid) for pid in processes]

    def stop(self):
        """Whether all of them were seen to have stopped."""
        signalled = [send(handle, signal.SIGSTOP) for handle in self.handles]
        deadline = time.monotonic() + self.patience
        while not all(state(pid) in "Tt" for pid in self.processes):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
        return all(signalled)

    def go_on(self):
        for handle in reversed(self.handles):
            send(handle, signal.SIGCONT)

    def clear(self):
        for handle in self.handles:
            os.close(handle)


class Freezing:
    """The kernel's freezer: all of them in one control group, frozen and thawed as one."""

    serial = itertools.count()

    def __init__(self, processes, patience):
        base, self.file, self.frozen, self.thawed = freezer()
        self.group = f"{base}/fenced-lab-{os.getpid()}-{next(self.serial)}"
        self.processes, self.patience = processes, patience

    def put(self, file, text):
        with open(f"{self.group}/{file}", "w") as opened:
            opened.write(text)

    def stop(self):
        os.mkdir(self.group)
        for pid in self.processes:
            self.put("cgroup.procs", str(pid))
        self.put(self.file, self.frozen)
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            if self.is_frozen():
                return True
            time.sleep(0.001)
        return False

    def is_frozen(self):
        if self.file == "freezer.state":
            with open(f"{self.group}/{self.file}") as opened:
                return opened.read().strip() == self.frozen
        with open(f"{self.group}/cgroup.events") as opened:
            return "frozen 1" in opened.read()

    def go_on(self):
        self.put(self.file, self.thawed)

    def clear(self):
        """Removes the group once nothing is left in it."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                return os.rmdir(self.group)
            except OSError:
                time.sleep(0.05)
        return None


@functools.cache
def freezer():
    """The hierarchy in which this user can freeze, or None."""
    for hierarchy in HIERARCHIES:
        base, file = hierarchy[:2]
        probe = f"{base}/fenced-lab-{os.getpid()}"
        try:
            os.mkdir(probe)
            found = os.access(f"{probe}/{file}", os.W_OK) and os.access(f"{probe}/cgroup.procs", os.W_OK)
            os.rmdir(probe)
            if found:
                return hierarchy
        except OSError:
            continue
    return None


def send(handle, number):
    """Whether the process behind this pidfd was still there to be signalled."""
    try:
        signal.pidfd_send_signal(handle, number)
        return True
    except ProcessLookupError:
        return False


def stat(pid):
    """The state and the parent of a process; of one that is gone, `X` and 0."""
    try:
        with open(f"/proc/{pid}/stat") as opened:
            fields = opened.read().rpartition(")")[2].split()
            return fields[0], int(fields[1])
    except OSError:
        return "X", 0


def state(pid):
    return stat(pid)[0]


def parent(pid):
    return stat(pid)[1]
