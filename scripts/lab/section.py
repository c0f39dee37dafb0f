"""One critical section, run as the command under a lock: it says when it is in, works, and says when it is out.

The work is done in slices, each of which writes the resource. Redis's lock is taken and given back by the section itself.
usage: section.py KEY=VALUE...
"""

import os
import socket
import sys
import time

from resource_file import Resource, boot_clock

SLICE = 0.01
REFUSED = 77


def token_by_hand(etcdctl, endpoint):
    """What etcd's lock leaves to its users: the create_revision of the key that stands for the grant."""
    import subprocess

    command = [etcdctl, "--endpoints", endpoint, "get", os.environ["ETCD_LOCK_KEY"], "-w", "fields"]
    for line in subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        if line.startswith('"CreateRevision"'):
            return int(line.split()[-1])
    sys.exit("section: the lock is gone before the section began")


def take(options):
    """The lock, where the section takes it itself, and the token or 0."""
    if options["lock"] == "redis":
        from redis import Lock

        lock = Lock(int(options["port"]), options["name"], int(options["ttl_ms"]), options["counted"] == "1")
        return lock, lock.acquire()
    if options["lock"] == "etcdctl":
        return None, token_by_hand(options["etcdctl"], options["endpoint"])
    return None, int(os.environ.get("FENCED_TOKEN", 0))


def work(options, resource, token):
    """How it ended, and the longest time in nanoseconds that a slice took beyond its own."""
    late, before = 0, boot_clock()
    for slice_ in range(int(options["slices"]) + 1):
        if slice_:
            time.sleep(SLICE)
            late, before = max(late, boot_clock() - before - int(SLICE * 1e9)), boot_clock()
        if not resource.write(options["who"], token, f"{options['who']}/{slice_}"):
            return "refused", late
    return "done", late


def main():
    options = dict(argument.split("=", 1) for argument in sys.argv[1:])
    resource = Resource(options["resource"], options["gated"] == "1")
    lock, token = take(options)
    began = boot_clock()
    with socket.socket(socket.AF_UNIX) as driver:
        driver.connect(options["driver"])
        driver.sendall(f"{token} {began}\n".encode())
        if not driver.recv(1):
            sys.exit("section: nobody counts")
        outcome, late = work(options, resource, token)
        driver.sendall(f"{outcome} {boot_clock()} {late}\n".encode())
    if lock:
        lock.release()
    sys.exit(REFUSED if outcome == "refused" else 0)


main()
