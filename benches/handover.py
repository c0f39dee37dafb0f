"""Handing over: contenders that all stand behind one holder, let go at once, each with a stamp as its command."""

import os
import statistics
import subprocess
import tempfile
import time
from collections import Counter

from sample import Failed, Sample, ended, start, until


def stamp(directory):
    """Builds the command: a program without a library, or starting it would weigh more than handing over."""
    source, program = f"{os.path.dirname(os.path.abspath(__file__))}/stamp.c", f"{directory}/stamp"
    alone = ["-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fno-tree-loop-distribute-patterns"]
    subprocess.run(["cc", "-O2", *alone, "-o", program, source], check=True)
    return program


class Sections:
    """The critical sections that a log tells of, in the order in which they began."""

    def __init__(self, log, expected):
        lines = [line.split(" ") for line in log.splitlines()]
        times = {kind: [int(at) for at, what, _ in lines if what == kind] for kind in ("start", "end")}
        kinds = [what for _, what, _ in lines]
        if kinds != ["start", "end"] * expected:
            raise Failed(f"sections overlap or are missing: {len(lines)} stamps for {expected} sections")
        self.tokens = [token for _, what, token in lines if what == "start"]
        self.handovers = Sample((b - a) / 1e6 for a, b in zip(times["end"], times["start"][1:]))
        if min(self.handovers) < 0:
            raise Failed("a section began before the one before it had ended")


class Round:
    """One queue from its first contender to its last."""

    def __init__(self, server, stamp, wrapper, prefix, contenders):
        self.server, self.stamp, self.wrapper = server, stamp, wrapper
        self.prefix, self.contenders = prefix, contenders

    def run(self):
        """The sections, the queue's revisions before the gate opened, and the calls from then on."""
        with tempfile.TemporaryDirectory(prefix="fenced-bench-") as directory:
            log, gate, errors = f"{directory}/log", f"{directory}/gate", f"{directory}/errors"
            os.mkfifo(gate)
            open(log, "w").close()
            pids = [start([*self.wrapper, self.stamp, log, gate], errors)]
            until(lambda: os.stat(log).st_size > 0, f"the first holder is in ({self.wrapper[0]})")
            pids += [start([*self.wrapper, self.stamp, log], errors) for _ in range(self.contenders - 1)]
            until(lambda: len(self.server.queue(self.prefix)) == self.contenders, "all contenders wait", 300)
            settled(self.server)
            queue, before = self.server.queue(self.prefix), self.server.calls()
            before["Range"] += 1
            with open(gate, "w"):
                statuses = Counter(map(ended, pids))
            calls = self.server.calls() - before
            if statuses != Counter({0: self.contenders}):
                with open(errors) as told:
                    raise Failed(f"statuses {dict(statuses)} of {self.wrapper[0]}: {told.read()[:500]}")
            with open(log) as stamps:
                return Sections(stamps.read(), self.contenders), queue, calls


def settled(server):
    """Waits until the contenders have asked all they ask before they wait."""
    while (calls := server.calls()) and (time.sleep(0.3) or server.calls()["Watch"] != calls["Watch"]):
        pass


def contest(ours, theirs, rounds):
    """Two rounds in turn: every hand-over of each, and the ratios of the medians round by round."""
    samples, medians = (Sample(), Sample()), (Sample(), Sample())
    for number in range(rounds):
        for side in ((0, 1) if number % 2 == 0 else (1, 0)):
            sections, _, _ = (ours, theirs)[side].run()
            samples[side].extend(sections.handovers)
            medians[side].append(statistics.median(sections.handovers))
    return (*samples, medians[0].over(medians[1]))


def crowd(round_):
    """Many waiters: RPCs on the server for each hand-over, and their number without those of renewals."""
    sections, queue, calls = round_.run()
    tokens = [int(token) for token in sections.tokens]
    if tokens != queue:
        raise Failed("the waiters were not served in the order of the queue")
    return sections.handovers, Counter(calls)
