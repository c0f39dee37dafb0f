"""Two workers under no lock, a Redis lock, etcd's own and fenced: how often both are inside, what the resource sees.

Starts its own Redis and etcd, and leaves the logs of every row in LOGS, one line a section and one line a write.
usage: python3 scripts/lab FENCED SERVERS LOGS RELIABILITY.md [ROW...]
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import rows
import servers
import table
import verdict
import worker
from locks import Places
from pause import freezer


def etcd_home(base):
    for version in ("3.4", "3.5"):
        if os.access(f"{base}/{version}/etcd", os.X_OK):
            return f"{base}/{version}"
    raise SystemExit(f"lab: there is no etcd below {base}: make setup-test")


def version(command, environment=None):
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return re.search(r"\d+\.\d+\.\d+", said).group()


def logged(result, logs, directory):
    """Keeps a row's section log, the resource's log and what the programs said."""
    shutil.copy(f"{directory}/errors", f"{logs}/{result.row.name}.errors")
    with open(f"{logs}/{result.row.name}.log", "w") as log:
        log.write("# worker.section token start end (boot clock, ns) outcome status stopped\n")
        for one in sorted(result.sections, key=lambda section: section.start):
            print(one.who, one.token, one.start, one.end, one.outcome, one.status, int(one.paused), file=log)
        log.write("# writes: worker.section token accepted at (boot clock, ns)\n")
        for write in result.writes:
            print(write.who, write.token, int(write.accepted), write.at, file=log)


def written(directory):
    with open(f"{directory}/writes") as log:
        for line in log:
            who, token, outcome, at = line.split()
            yield verdict.Write(who, int(token), outcome == "accepted", int(at))


def run_lane(lane, number, places, logs, ending, results):
    for serial, row in enumerate(lane):
        directory = f"{places.directory}/{number}-{serial}"
        workers = worker.run(row, places, directory, ending)
        if ending.is_set():
            return
        result = table.Result(
            row,
            [section for one in workers for section in one.sections],
            list(written(directory)),
            [note for one in workers for note in one.notes],
            [trouble for one in workers for trouble in one.troubles],
            max(one.longest_stall for one in workers) / 1e6,
        )
        logged(result, logs, directory)
        results[number, serial] = result
        print(f"| {' | '.join(table.cells(result))} |", file=sys.stderr, flush=True)


def run_lanes(lanes, places, logs):
    """All results, in the order of the rows; on Ctrl-C none, with everything ended."""
    ending, results = threading.Event(), {}
    threads = [
        threading.Thread(target=run_lane, args=(lane, number, places, logs, ending, results))
        for number, lane in enumerate(lanes)
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
    finally:
        ending.set()
        for thread in threads:
            thread.join()
    return [results[key] for key in sorted(results)]


def with_servers(base, fenced, directory, use):
    """Calls `use` with the places, while the servers run."""
    home, started = etcd_home(base), []
    try:
        redis, port = servers.redis(f"{base}/redis", f"{directory}/redis")
        started.append(redis)
        etcd, address = servers.etcd(home, f"{directory}/etcd")
        started.append(etcd)
        return use(Places(fenced, f"{home}/etcdctl", port, address, directory))
    finally:
        for server in started:
            server.stop()


def interrupt(_number, _frame):
    raise KeyboardInterrupt


def main():
    fenced, base, logs, document = map(os.path.abspath, sys.argv[1:5])
    wanted = sys.argv[5:]
    verdict.self_test()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    lanes = [
        [row for row in lane if not wanted or any(row.name.startswith(want) for want in wanted)]
        for lane in rows.lanes(bool(freezer()))
    ]
    shutil.rmtree(logs, ignore_errors=True)
    os.makedirs(logs)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fenced-lab-") as directory:
        results = with_servers(base, fenced, directory, lambda places: run_lanes(lanes, places, logs))
    report = table.report(
        results,
        etcd=version([f"{etcd_home(base)}/etcd", "--version"], servers.etcd_environment()),
        redis=version([f"{base}/redis/redis-server", "--version"], servers.redis_environment(f"{base}/redis")),
        minutes=(time.monotonic() - began) / 60,
    )
    print(report)
    if not wanted:
        table.write(document, report)
    complaints = [complaint for result in results for complaint in table.complaints(result)]
    for complaint in complaints:
        print(f"lab: {complaint}", file=sys.stderr)
    sys.exit(1 if complaints else 0)


try:
    main()
except KeyboardInterrupt:
    sys.exit("lab: interrupted, nothing was written")
