"""The rows of the lab: which lock, how long it holds, what is stopped and for how long, and what must come out."""

from typing import NamedTuple

FULL, SHORT = 40, 10
WORK = 300


class Row(NamedTuple):
    step: str
    lock: str
    #: What is stopped in some sections: names of processes, "all", "frozen", or nothing.
    paused: str = ""
    #: Milliseconds; 0 where there is none.
    ttl_ms: int = 0
    work_ms: int = WORK
    pause_ms: int = 0
    #: The work of the sections in which something is stopped: longer than the lease where the command itself goes on,
    #: or it would be through before anything can go wrong.
    paused_work_ms: int = WORK
    #: Every how many sections of a worker something is stopped.
    every: int = 0
    #: Sections of each worker.
    sections: int = FULL
    #: Whether the resource refuses old tokens.
    gated: bool = False
    #: Whether a write of each stopped section arrives only when the pause ends.
    late_write: bool = False
    #: "safe": no conflict. "fenced": no stale write. "faulty": a live control, which must show what it is there for.
    must: str = ""

    @property
    def has_tokens(self):
        return self.lock not in ("none", "redis")

    @property
    def name(self):
        words = [self.step, self.lock, self.paused, "open" if self.late_write and not self.gated else ""]
        return "-".join(word.replace(", ", "-").replace(" ", "-") for word in words if word)


def redis():
    lease = {"ttl_ms": 1000, "pause_ms": 1200, "every": 5, "paused": "command"}
    return [
        Row("A", "none", must="faulty"),
        Row("B", "redis", ttl_ms=10_000, must="safe"),
        Row("C", "redis", ttl_ms=200, must="faulty"),
        Row("D", "redis", **lease, must="faulty"),
        Row("E", "redis", **lease, gated=True, late_write=True),
        Row("E", "redis, counted", **lease, gated=True, late_write=True, must="fenced"),
    ]


def on_etcd(lock, ways):
    """What the two users of etcd share, by what each way of stopping must show. The shortest lease is 2 s, and etcd may
    take half a second more to end it."""
    short = {"ttl_ms": 2000, "sections": SHORT}
    paused = {**short, "pause_ms": 3000, "every": 2}
    rows = [
        Row("B", lock, ttl_ms=10_000, must="safe"),
        Row("C", lock, **short, work_ms=2500, must="safe"),
    ]
    for way, must in ways.items():
        work = 900 if way in ("command", "all", "frozen") else 3000
        rows.append(Row("D", lock, way, **paused, paused_work_ms=work, must=must))
    everything = {**paused, "paused_work_ms": 900, "late_write": True, "paused": "all"}
    return rows + [Row("E", lock, **everything, gated=True, must="fenced")], everything


def etcdctl():
    return on_etcd("etcdctl lock", {"command": "safe", "etcdctl": "faulty", "all": "faulty"})[0]


def fenced_etcd(ways):
    # With everything stopped no lock can promise anything: what remains is printed.
    must = {way: "" if way in ("all", "frozen") else "safe" for way in ways}
    rows, everything = on_etcd("fenced, etcd", must)
    return rows + [Row("E", "fenced, etcd", **everything, must="faulty")]


def fenced_local(ways):
    lock = "fenced, file"
    paused = {"pause_ms": 1200, "every": 5}
    rows = [Row("B", lock, must="safe")]
    for way in ways:
        work = WORK if way in ("command", "all", "frozen") else 1500
        rows.append(Row("D", lock, way, **paused, paused_work_ms=work, must="safe"))
    return rows + [Row("E", lock, "all", **paused, gated=True, late_write=True, must="fenced")]


def lanes(can_freeze):
    """Rows that run one after the other; the lanes run beside each other, on different locks."""
    ways = ["command", "fenced", "guard", "fenced+guard", "all"] + ["frozen"] * can_freeze
    return [redis(), etcdctl(), fenced_etcd(ways), fenced_local(ways)]
