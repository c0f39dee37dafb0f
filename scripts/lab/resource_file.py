"""The protected resource: one file, written under a lock of its own, that may refuse a token lower than it has seen.

Every attempt to write stands in its log, in the order in which the resource saw them.
"""

import fcntl
import os
import time


def boot_clock():
    """Nanoseconds that count suspend, comparable between processes."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Resource:
    def __init__(self, directory, gated):
        self.gated = gated
        self.state = os.open(f"{directory}/state", os.O_RDWR | os.O_CREAT, 0o600)
        self.log = os.open(f"{directory}/writes", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, who, token, value):
        """Whether the write was accepted. A token of 0 is none, and cannot be refused."""
        fcntl.flock(self.state, fcntl.LOCK_EX)
        try:
            highest = int(os.pread(self.state, 100, 0).split()[0] if os.fstat(self.state).st_size else 0)
            accepted = not (self.gated and token and token < highest)
            if accepted:
                os.pwrite(self.state, b"%-20d %-20s\n" % (max(token, highest), value.encode()), 0)
            outcome = "accepted" if accepted else "refused"
            os.write(self.log, f"{who} {token} {outcome} {boot_clock()}\n".encode())
            return accepted
        finally:
            fcntl.flock(self.state, fcntl.LOCK_UN)
