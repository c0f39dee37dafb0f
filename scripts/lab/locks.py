"""The locks that are compared: what stands before the section's command line, and what the section is told."""

import os
from typing import NamedTuple

WAIT = "2m"
MARGIN_GRACE = "300ms"


class Places(NamedTuple):
    """Where everything is."""

    fenced: str
    etcdctl: str
    redis_port: int
    #: `host:port`
    etcd: str
    #: A directory of our own.
    directory: str


def none(_places, _row, _name):
    return [], ["lock=none"]


def redis(places, row, name):
    counted = int(row.lock == "redis, counted")
    told = ["lock=redis", f"port={places.redis_port}", f"name={name}", f"ttl_ms={row.ttl_ms}", f"counted={counted}"]
    return [], told


def etcdctl(places, row, name):
    before = [places.etcdctl, "--endpoints", places.etcd, "lock", "--ttl", str(row.ttl_ms // 1000), name, "--"]
    return before, ["lock=etcdctl", f"etcdctl={places.etcdctl}", f"endpoint={places.etcd}"]


def fenced_etcd(places, row, name):
    before = fenced(places, f"etcd://{places.etcd}", name)
    return [*before, "--ttl", f"{row.ttl_ms}ms", "--grace", MARGIN_GRACE, "--"], ["lock=fenced"]


def fenced_local(places, _row, name):
    store = f"{places.directory}/store"
    os.makedirs(store, mode=0o700, exist_ok=True)
    return [*fenced(places, f"file://{store}", name), "--"], ["lock=fenced"]


def fenced(places, store, name):
    return [places.fenced, "run", "--store", store, "--lock", name, "--wait", WAIT]


LOCKS = {
    "none": none,
    "redis": redis,
    "redis, counted": redis,
    "etcdctl lock": etcdctl,
    "fenced, etcd": fenced_etcd,
    "fenced, file": fenced_local,
}


def environment():
    """Ours, without what would configure a lock program from outside."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FENCED_", "ETCD"))}
    return {**kept, "ETCDCTL_API": "3"}
