"""What fenced costs beside its peers: whole processes, alternating in one run, on one etcd on loopback.

Prints the table of BENCHMARKS.md. `make bench` builds what is needed and runs it.
"""

import argparse
import contextlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import handover
import kill
import memory
from sample import Failed, Row, alternating, compared
from server import etcd

QUEUE = "/fenced/v1/q/bench/"


def options():
    parser = argparse.ArgumentParser(prog="benches", description=__doc__.partition("\n")[0])
    parser.add_argument("--fenced", required=True, type=os.path.abspath, help="the binary")
    parser.add_argument("--floor", required=True, type=os.path.abspath, help="the example bench-floor")
    parser.add_argument("--etcd", required=True, type=os.path.abspath, help="where etcd and etcdctl are")
    parser.add_argument("--pairs", type=int, default=300, help="pairs of uncontended runs (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of hand-overs, and pairs for memory (%(default)s)")
    parser.add_argument("--waiters", type=int, default=1000, help="the longest queue (%(default)s)")
    parser.add_argument("--rest", type=int, default=60, help="seconds of a holder at rest (%(default)s)")
    parser.add_argument("--kills", type=int, default=40, help="trees killed after a lost lock (%(default)s)")
    parser.add_argument("--only", default="", help="words, one of which a figure's name must begin with, by commas")
    return parser.parse_args()


class Bench:
    """The figures, each as a function that yields rows."""

    def __init__(self, asked, server, directory):
        self.asked, self.server = asked, server
        self.true, self.stamp = shutil.which("true"), handover.stamp(directory)
        self.local = [asked.fenced, "run", "--store", f"file://{directory}", "--lock", "bench", "--"]
        self.flock = [shutil.which("flock"), f"{directory}/flock"]
        self.floor = [asked.floor, server.address]
        self.etcdctl = [f"{asked.etcd}/etcdctl", "--endpoints", server.address, "lock", "bench", "--"]

    def run(self, *more):
        return [self.asked.fenced, "run", "--store", f"etcd://{self.server.address}", "--lock", "bench", *more, "--"]

    def uncontended(self):
        pairs, true = self.asked.pairs, [self.true]
        ours, theirs = alternating(self.run() + true, self.etcdctl + true, pairs)
        yield compared("uncontended on etcd, ms, over `etcdctl lock`", ours, theirs, "0.45", "0.35")
        ours, theirs = alternating(self.run() + true, self.floor + true, pairs)
        yield compared("uncontended on etcd, ms, over the floor", ours, theirs, "1.3", "1.15")
        ours, theirs = alternating(self.local + true, self.flock + true, pairs)
        yield compared("uncontended on `file:`, ms, over `flock`", ours, theirs, "3", "2")

    def memory(self):
        ours, theirs = memory.while_running(self.run(), self.etcdctl, self.asked.rounds)
        yield compared("memory while the command runs, MiB, over `etcdctl lock`", ours, theirs, "0.35", "0.25")

    def handover(self):
        for contenders, rounds in ((2, 10), (20, 2), (100, 1)):
            rounds *= self.asked.rounds
            ours = handover.Round(self.server, self.stamp, self.run("--wait", "forever"), QUEUE, contenders)
            theirs = handover.Round(self.server, self.stamp, self.etcdctl, "bench/", contenders)
            ours, theirs, ratios = handover.contest(ours, theirs, rounds)
            figure = f"hand-over, {contenders} contenders, ms, over `etcdctl lock`"
            yield Row(figure, ours.show(), theirs.show(), ratios.show(), "0.9", "0.7")

    def crowd(self):
        # A ttl so long that no renewal falls into the measurement.
        wrapper = self.run("--wait", "forever", "--ttl", "300s")
        for waiters in sorted({max(2, self.asked.waiters // 10), self.asked.waiters}):
            round_ = handover.Round(self.server, self.stamp, wrapper, QUEUE, waiters + 1)
            handovers, calls = handover.crowd(round_)
            beats = calls.pop("LeaseKeepAlive", 0)
            each = ", ".join(f"{n / waiters:.2f} {method}" for method, n in sorted(calls.items()))
            yield Row(
                f"RPCs a hand-over, {waiters} waiters, served in order",
                f"**{calls.total() / waiters:.2f}** ({each}; {beats} renewals)",
                must="does not grow",
                aim="8",
            )
            yield Row(f"hand-over, {waiters} waiters, ms", handovers.show(), aim="print")

    def rest(self):
        yield from memory.at_rest(self.run(), self.server, self.asked.rest)

    def kill(self):
        yield from kill.rows(self.asked.fenced, self.asked.kills)

    def rows(self):
        words = tuple(self.asked.only.split(","))
        for figure in (self.uncontended, self.memory, self.handover, self.crowd, self.rest, self.kill):
            if figure.__name__.startswith(words):
                yield from figure()


def first_line(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()


def machine(asked):
    with open("/proc/cpuinfo") as cpu:
        model = re.search(r"^model name\s*: (.*)$", cpu.read(), re.M)
    with contextlib.suppress(OSError), open("/etc/os-release") as release:
        system = re.search(r'^PRETTY_NAME="?(.*?)"?$', release.read(), re.M)[1]
    yield f"{os.cpu_count()} cores, {model[1] if model else platform.machine()}, Linux {platform.release()}, {system}"
    versions = (
        [asked.fenced, "--version"],
        [f"{asked.etcd}/etcd", "--version"],
        [f"{asked.etcd}/etcdctl", "version"],
        ["flock", "--version"],
    )
    yield ", ".join(map(first_line, versions))
    yield "load " + " ".join(f"{load:.2f}" for load in os.getloadavg())


def main():
    asked = options()
    for line in machine(asked):
        print(f"- {line}", flush=True)
    print("\n| figure | fenced | peer | ratio | must | aim |\n|---|---|---|---|---|---|", flush=True)
    with etcd(f"{asked.etcd}/etcd") as server, tempfile.TemporaryDirectory(prefix="fenced-bench-") as directory:
        for row in Bench(asked, server, directory).rows():
            cells = (row.figure, row.ours, row.peer, row.ratio, row.must, row.aim)
            print(f"| {' | '.join(cells)} |", flush=True)
    print("\nload at the end " + " ".join(f"{load:.2f}" for load in os.getloadavg()))


try:
    main()
except Failed as why:
    sys.exit(f"bench: {why}")
