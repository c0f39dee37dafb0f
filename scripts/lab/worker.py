"""A worker: one section after the other under one lock, with the pauses that its row asks for; what became of each."""

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from locks import LOCKS, environment
from pause import STOPS_WITHIN, Freezing, Stopping, parent, send
from resource_file import Resource, boot_clock
from verdict import Section

HERE = os.path.dirname(os.path.abspath(__file__))
#: Between two sections of one worker.
GAP = 0.1
#: For one section, waiting included.
PATIENCE = 120


#: What can be stopped without stopping the command.
LETS_COMMAND_RUN = ("fenced", "guard", "fenced+guard", "etcdctl")


class Stopped(Exception):
    """The lab is to end."""


class Worker:
    def __init__(self, row, index, places, directory, ending):
        self.row, self.index, self.places, self.directory, self.ending = row, index, places, directory, ending
        self.resource = Resource(directory, row.gated)
        self.sections, self.notes, self.troubles, self.longest_stall = [], [], [], 0
        self.driver = f"{directory}/driver{index}"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.driver)
        self.listener.listen(1)
        self.errors = open(f"{directory}/errors", "ab")

    def run(self):
        try:
            for number in range(self.row.sections):
                self.one(number)
                time.sleep(GAP)
        except Stopped:
            pass
        except Exception as error:
            self.troubles.append(f"worker {self.index}: {error!r}")

    def command(self, who, work_ms):
        before, told = LOCKS[self.row.lock](self.places, self.row, os.path.basename(self.directory))
        told += [f"driver={self.driver}", f"resource={self.directory}", f"who={who}"]
        told += [f"slices={work_ms // 10}", f"gated={int(self.row.gated)}"]
        return [*before, sys.executable, "-EsSB", f"{HERE}/section.py", *told]

    def one(self, number):
        who = f"{self.index}.{number}"
        # The two workers take turns at being stopped.
        turn = self.index * (self.row.every // 2) % max(self.row.every, 1)
        paused = bool(self.row.every) and number % self.row.every == turn
        command = self.command(who, self.row.paused_work_ms if paused else self.row.work_ms)
        # In a session of its own: without a terminal, whatever the lab was started from.
        program = subprocess.Popen(
            command,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            start_new_session=True,
        )
        tried = Try(self, who, program, paused)
        try:
            tried.go()
        finally:
            tried.clear()

    def stalled(self, nanoseconds):
        self.longest_stall = max(self.longest_stall, nanoseconds)


class Try:
    """One section under way."""

    def __init__(self, worker, who, program, paused):
        self.worker, self.who, self.program, self.paused = worker, who, program, paused
        self.deadline = time.monotonic() + PATIENCE
        self.section = self.pause = self.handle = self.gone = None
        self.received = b""

    def go(self):
        if not self.accept():
            self.worker.notes.append(f"{self.who} never began, status {self.program.returncode}")
            return
        token, start = (int(word) for word in self.line().split())
        resumes = self.stop(start) if self.paused else None
        if resumes is None or self.worker.row.paused in LETS_COMMAND_RUN:
            self.let_in()
        self.wait_for(resumes)
        if resumes is not None:
            self.go_on(token, resumes)
        last = self.line().split()
        outcome, end, late = (last[0], int(last[1]), int(last[2])) if last else ("stopped", self.gone, 0)
        self.section.close()
        status = self.ended()
        if not self.paused:
            self.worker.stalled(late)
            if outcome == "stopped":
                self.worker.notes.append(f"{self.who} was ended though nothing was stopped, status {status}")
        self.worker.sections.append(Section(self.who, token, start, end, outcome, status, self.paused))

    def accept(self):
        while not ready(self.worker.listener, 0.1):
            if self.program.poll() is not None:
                return False
            self.check()
        self.section, _ = self.worker.listener.accept()
        credentials = self.section.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        self.pid = struct.unpack("3i", credentials)[0]
        self.handle = os.pidfd_open(self.pid)
        return True

    def listen(self, seconds=0.1):
        """Hears what the section says within this time, and notes when it is gone."""
        if self.gone is None and ready(self.section, seconds):
            more = receive(self.section)
            self.received += more
            if not more:
                # A process that was killed has its end of the socket closed by the kernel.
                self.gone = boot_clock()
        self.check()

    def line(self):
        """The next line of the section, empty when it is gone."""
        while b"\n" not in self.received and self.gone is None:
            self.listen()
        line, _, self.received = self.received.partition(b"\n")
        return line.decode()

    def let_in(self):
        try:
            self.section.send(b".")
        except OSError:
            pass

    def processes(self):
        """What is to be stopped, from the outside in."""
        program, guard = self.program.pid, parent(self.pid)
        chain = [program, guard, self.pid]
        if guard == program or program == self.pid:
            chain = list(dict.fromkeys([program, self.pid]))
        elif parent(guard) != program:
            raise OSError(f"process {self.pid} does not belong to {program}")
        return {
            "command": [self.pid],
            "fenced": [program],
            "etcdctl": [program],
            "guard": [guard],
            "fenced+guard": [program, guard],
            "all": chain,
            "frozen": chain,
        }[self.worker.row.paused]

    def stop(self, start):
        """Stops what the row asks for, and returns when it is to go on."""
        kind = Freezing if self.worker.row.paused == "frozen" else Stopping
        self.pause = kind(self.processes(), 0.05 if self.worker.row.paused == "guard" else STOPS_WITHIN)
        # A guard that is stopped is woken by fenced, perhaps before anybody sees it stopped.
        if not self.pause.stop() and self.worker.row.paused != "guard":
            self.worker.notes.append(f"{self.who} was not stopped in time")
        now = boot_clock()
        self.worker.stalled(now - start)
        return now + self.worker.row.pause_ms * 1_000_000

    def wait_for(self, moment):
        while moment is not None and (left := moment - boot_clock()) > 0:
            if self.gone is None:
                self.listen(min(left / 1e9, 0.1))
            else:
                self.check()
                time.sleep(min(left / 1e9, 0.1))

    def go_on(self, token, due):
        self.worker.stalled(boot_clock() - due)
        if self.worker.row.late_write:
            self.worker.resource.write(self.who, token, f"{self.who}/late")
        self.let_in()
        self.pause.go_on()

    def ended(self):
        while (status := self.program.poll()) is None:
            self.check()
            time.sleep(0.002)
        return status

    def check(self):
        if self.worker.ending.is_set():
            raise Stopped
        if time.monotonic() > self.deadline:
            raise TimeoutError(f"section {self.who} took more than {PATIENCE} s")

    def clear(self):
        """Leaves nothing behind, however it ended."""
        if self.program.poll() is None:
            if self.pause:
                self.pause.go_on()
            self.program.terminate()
            if self.handle is not None:
                send(self.handle, signal.SIGKILL)
            try:
                self.program.wait(3)
            except subprocess.TimeoutExpired:
                self.program.kill()
                self.program.wait()
        if self.section:
            self.section.close()
        if self.handle is not None:
            os.close(self.handle)
        if self.pause:
            self.pause.clear()


def ready(waited_for, seconds):
    return bool(select.select([waited_for], [], [], seconds)[0])


def receive(section):
    try:
        return section.recv(200)
    except ConnectionResetError:
        return b""


def run(row, places, directory, ending):
    """Both workers of a row."""
    os.mkdir(directory)
    workers = [Worker(row, index, places, directory, ending) for index in range(2)]
    threads = [threading.Thread(target=worker.run) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return workers
