"""Starting and timing whole processes, and figures with their minimum, median and maximum."""

import os
import statistics
import time
from dataclasses import dataclass

# What the caller has set must not steer either side.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("FENCED_", "ETCDCTL_"))}
ENVIRONMENT["ETCDCTL_API"] = "3"


class Failed(Exception):
    """A process of the benchmark did not do what it should: its figures would be worth nothing."""


@dataclass
class Row:
    """A line of the table."""

    figure: str
    ours: str
    peer: str = "–"
    ratio: str = "–"
    must: str = "–"
    aim: str = "–"


class Sample(list):
    """Measured values of one kind."""

    def show(self, digits=2):
        low, middle, high = min(self), statistics.median(self), max(self)
        return f"{low:.{digits}f} / **{middle:.{digits}f}** / {high:.{digits}f}"

    def over(self, other):
        """The ratios pair by pair, which hold when the machine's speed drifts."""
        return Sample(ours / theirs for ours, theirs in zip(self, other, strict=True))


def compared(figure, ours, theirs, must, aim, digits=2):
    return Row(figure, ours.show(digits), theirs.show(digits), ours.over(theirs).show(), must, aim)


def start(command, errors="/dev/null"):
    """Starts a process with nothing to read and nowhere to print to, and returns its pid."""
    append = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, errors, append, 0o600),
    ]
    return os.posix_spawn(command[0], command, ENVIRONMENT, file_actions=actions)


def ended(pid):
    """Waits for a process and returns its status, as a shell would show it."""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return 128 - status if status < 0 else status


def milliseconds(command):
    """The wall time of one run that must succeed."""
    began = time.perf_counter_ns()
    status = ended(start(command))
    took = (time.perf_counter_ns() - began) / 1e6
    if status != 0:
        raise Failed(f"status {status} of {' '.join(command)}")
    return took


def alternating(ours, theirs, pairs, measure=milliseconds):
    """Both measured in turn, so that both see the same machine; which goes first changes from pair to pair."""
    samples = (Sample(), Sample())
    measure(ours), measure(theirs)
    for pair in range(pairs):
        for side in ((0, 1) if pair % 2 == 0 else (1, 0)):
            samples[side].append(measure((ours, theirs)[side]))
    return samples


def until(ready, what, patience=60):
    """Polls until something is the case."""
    deadline = time.monotonic() + patience
    while not (answer := ready()):
        if time.monotonic() > deadline:
            raise Failed(f"waited {patience} s in vain until {what}")
        time.sleep(0.005)
    return answer
