"""A lock of the Redis kind, as it is usually written: SET NX PX, and a script that compares before it deletes."""

import os
import socket
import time

RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
# The same grant with a counter beside it, whose value serves as token.
ACQUIRE = (
    "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end return 0"
)
RETRY = 0.01


class Redis:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.answers = self.socket.makefile("rb")

    def ask(self, *words):
        words = [str(word).encode() for word in words]
        request = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.socket.sendall(request)
        return self.answer()

    def answer(self):
        line = self.answers.readline()
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.answers.read(size + 2)[:-2].decode()
        raise OSError(f"redis said {line!r}")


class Lock:
    def __init__(self, port, name, ttl_ms, counted):
        self.redis, self.name, self.ttl_ms, self.counted = Redis(port), name, ttl_ms, counted
        self.value = os.urandom(16).hex()

    def acquire(self):
        """The token, or 0 where there is none."""
        while True:
            if self.counted:
                token = self.redis.ask("EVAL", ACQUIRE, 2, self.name, f"{self.name}:token", self.value, self.ttl_ms)
                if token:
                    return token
            elif self.redis.ask("SET", self.name, self.value, "NX", "PX", self.ttl_ms):
                return 0
            time.sleep(RETRY)

    def release(self):
        """Whether the lock was still ours."""
        return self.redis.ask("EVAL", RELEASE, 1, self.name, self.value) == 1
