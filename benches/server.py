"""One etcd on loopback, with a fresh directory and fsync as by default, asked through its JSON gateway and /metrics."""

import base64
import contextlib
import json
import re
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections import Counter

STARTED = re.compile(r'^grpc_server_started_total\{.*grpc_method="(\w+)".*\} (\S+)$', re.M)


class Etcd:
    """A running server. Its counters tell what was asked of it; our own questions do not count."""

    def __init__(self, port, directory):
        self.address = f"127.0.0.1:{port}"
        self.directory = directory

    def http(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"http://{self.address}{path}", data, timeout=30) as answer:
            return answer.read().decode()

    def queue(self, prefix):
        """The contenders' create revisions under a prefix, oldest first."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        asked = {
            "key": base64.b64encode(prefix.encode()).decode(),
            "range_end": base64.b64encode(end.encode()).decode(),
            "sort_target": "CREATE",
            "sort_order": "ASCEND",
            "keys_only": True,
        }
        found = json.loads(self.http("/v3/kv/range", asked)).get("kvs", [])
        return [int(entry["create_revision"]) for entry in found]

    def calls(self):
        """How often each method was started on the server since it runs."""
        return Counter({method: int(float(n)) for method, n in STARTED.findall(self.http("/metrics"))})


def free_ports(count):
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [s.getsockname()[1] for s in sockets]


@contextlib.contextmanager
def etcd(binary):
    """Runs a server for as long as the block lasts."""
    client, peer = free_ports(2)
    with tempfile.TemporaryDirectory(prefix="fenced-bench-") as directory:
        command = [binary, "--name", "bench", "--data-dir", f"{directory}/data", "--logger", "zap", "--log-level", "error"]
        for flag, port in (("client", client), ("peer", peer)):
            url = f"http://127.0.0.1:{port}"
            advertise = "--advertise-client-urls" if flag == "client" else "--initial-advertise-peer-urls"
            command += [f"--listen-{flag}-urls", url, advertise, url]
        command += ["--initial-cluster", f"bench=http://127.0.0.1:{peer}"]
        with open(f"{directory}/log", "w") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            running = Etcd(client, directory)
            wait(running, server)
            yield running
        finally:
            server.kill()
            server.wait()


def wait(running, server):
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError):
            if '"health":"true"' in running.http("/health"):
                return
        if server.poll() is not None or time.monotonic() > deadline:
            with open(f"{running.directory}/log") as log:
                raise SystemExit(f"etcd does not start:\n{log.read()}")
        time.sleep(0.05)
