"""A Redis and an etcd of our own, on free ports of loopback; each dies with this program."""

import ctypes
import os
import signal
import socket
import subprocess
import time

from redis import Redis

PR_SET_PDEATHSIG = 1
PATIENCE = 30


def free_ports(count):
    """Distinct ports: held open together, so that none is given twice."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """A started server. Start it from the main thread: it dies with the thread that started it."""

    def __init__(self, command, directory, environment, answers):
        os.mkdir(directory)
        self.log = f"{directory}/log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        try:
            self.wait(answers)
        except BaseException:
            self.stop()
            raise

    def wait(self, answers):
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if answers():
                    return
            except (OSError, subprocess.SubprocessError):
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                with open(self.log, errors="replace") as log:
                    raise SystemExit(f"lab: {self.process.args[0]} does not answer:\n{log.read()[-2000:]}")
            time.sleep(0.05)

    def stop(self):
        self.process.kill()
        self.process.wait()


def redis(home, directory):
    """The server and its port."""
    (port,) = free_ports(1)
    command = [f"{home}/redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
    return Server(command, directory, redis_environment(home), lambda: Redis(port).ask("PING") == "PONG"), port


def redis_environment(home):
    return {**os.environ, "LD_LIBRARY_PATH": f"{home}/lib"}


def etcd(home, directory):
    """The server, with etcd's own settings for heartbeats and elections, and its `host:port`."""
    client, peer = (f"127.0.0.1:{port}" for port in free_ports(2))
    command = [f"{home}/etcd", "--name", "lab", "--data-dir", f"{directory}/data"]
    command += ["--listen-client-urls", f"http://{client}", "--advertise-client-urls", f"http://{client}"]
    command += ["--listen-peer-urls", f"http://{peer}", "--initial-advertise-peer-urls", f"http://{peer}"]
    command += ["--initial-cluster", f"lab=http://{peer}"]
    environment = etcd_environment()
    health = [f"{home}/etcdctl", "--endpoints", client, "endpoint", "health"]

    def answers():
        return subprocess.run(health, env=environment, capture_output=True, timeout=10, check=False).returncode == 0

    return Server(command, directory, environment, answers), client


def etcd_environment():
    """Ours without what would configure a server; with what lets etcd start on processors it does not support."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ETCD")}
    return {**kept, "ETCD_UNSUPPORTED_ARCH": machine, "ETCDCTL_API": "3"}
