"""The lab's section of RELIABILITY.md, and whether what came out is what must come out."""

import os
import platform
import re
from typing import NamedTuple

import rows
import verdict
from pause import freezer

BEGIN, END = "<!-- lab -->", "<!-- /lab -->"
HEAD = """# Reliability

What came out of attempts to break fenced on purpose: measured figures only, each section made by the command it names.
"""
TEXT = """## The lab

`make lab` wrote this section: {machine}; etcd {etcd} (one member), Redis {redis}; {minutes:.1f} minutes.

Two workers enter {full} critical sections each ({short} where the ttl is 2 s), {work} ms of work. A *conflict* is a
section that starts while another is inside: from right after its grant until it is through, or its process is gone.

- **A** no lock. **B** a correct lock. **C** a ttl shorter than the work. **D** a pause longer than the ttl. **E** the
  same, and the resource refuses a token lower than it has seen; one write of each stopped section is on its way during
  the pause and arrives at its end. The published lab, with a Redis lock, counted A 41/80, B 0/80, C 79/80, D 31/80, and
  in E 15 writes refused.
- *stopped*: what gets SIGSTOP at the start of every fifth section (every second one where the ttl is 2 s), and SIGCONT
  after the pause; fenced wakes a guard that is stopped. These sections work longer where the command itself is not
  stopped. *all*: lock program, guard and command, from the outside in, and continued with the command first. *frozen*:
  the same by the freezer{freezer}.
- *ended*: sections that were killed before they were through. They are not repeated.
- *stale*: sections of which a write was accepted after a later section had written (each writes every 10 ms, and at
  once after the pause). *refused*: sections of which the resource refused a write.
- *stall*: by how much the lab itself was late at most, in a slice of work that nothing was to stop, or with a pause.
  Where it comes near the 500 ms by which fenced is early, the row says as much about the machine as about the lock.
- Redis: SET NX PX and a script that compares before it deletes; *counted*: with a counter in the script that sets the
  key, as token. `etcdctl lock`: the token is the `create_revision` of its key, looked up by the section. fenced on etcd
  has a grace of 300 ms. *gate off* is a control: the resource accepts everything, and it is seen.
"""
FREEZERS = {
    None: ", which is not to be had here",
    "freezer.state": " of control groups version 1: it holds back even SIGKILL, as the pause of a whole machine does",
    "cgroup.freeze": " of control groups version 2, which lets SIGKILL through",
}
COLUMNS = ["step", "lock", "stopped", "ttl", "work", "pause", "conflicts", "ended", "stale", "refused", "stall"]


class Result(NamedTuple):
    row: object
    sections: list
    writes: list
    #: What a loaded machine does to a row, and what is wrong with the row.
    notes: list
    troubles: list
    stall_ms: float

    @property
    def tried(self):
        return 2 * self.row.sections


def seconds(milliseconds):
    return f"{milliseconds / 1000:g} s" if milliseconds else "–"


def cells(result):
    row, sections = result.row, result.sections
    stopped = sum(section.paused for section in sections)
    works = dict.fromkeys([row.work_ms, row.paused_work_ms] if row.every else [row.work_ms])
    if not row.has_tokens:
        refused = "no token"
    else:
        refused = str(len(verdict.refused(result.writes))) if row.gated else "–"
    return [
        row.step,
        f"{row.lock}, gate off" if row.late_write and not row.gated else row.lock,
        f"{row.paused}, {stopped} times" if row.paused else "–",
        seconds(row.ttl_ms),
        ", ".join(seconds(work) for work in works),
        seconds(row.pause_ms),
        f"{len(verdict.conflicts(sections))}/{result.tried}",
        str(sum(section.outcome == "stopped" for section in sections)),
        str(len(verdict.stale(sections, result.writes))),
        refused if row.step == "E" else "–",
        f"{result.stall_ms:.0f} ms",
    ]


def complaints(result):
    """What must not be, in words."""
    row, sections = result.row, result.sections
    found = list(result.troubles)
    overlaps, stale = verdict.conflicts(sections), verdict.stale(sections, result.writes)
    if len(sections) < 0.9 * result.tried:
        found.append(f"{len(sections)} sections of {result.tried}")
    if row.must == "safe" and (overlaps or stale):
        found.append(f"{len(overlaps)} conflicts ({' '.join(overlaps)}), {len(stale)} stale")
    if row.must == "fenced" and stale:
        found.append(f"stale writes were accepted of {' '.join(stale)}")
    if row.must == "faulty" and not (stale if row.step == "E" else overlaps):
        found.append("the control shows no fault: the lab does not see what it is to see")
    if row.has_tokens and (back := verdict.tokens_back(sections)):
        found.append(f"tokens do not rise at {' '.join(back)}")
    if row.lock.startswith("fenced") and (wrong := verdict.called_success(sections)):
        found.append(f"stopped and called a success: {' '.join(wrong)}")
    return [f"{row.name}: {complaint}" for complaint in found]


def markdown(results):
    lines = [COLUMNS, ["---"] * len(COLUMNS), *sorted(map(cells, results), key=lambda line: line[0])]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def report(results, **facts):
    """The whole section."""
    kind = freezer() and freezer()[1]
    text = TEXT.format(
        machine=machine(), full=rows.FULL, short=rows.SHORT, work=rows.WORK, freezer=FREEZERS[kind], **facts
    )
    notes = [f"{result.row.name} {note}" for result in results for note in result.notes]
    told = f"\nOf this run: {'; '.join(notes)}." if notes else ""
    return f"{text}\n{markdown(results)}\n{told}".rstrip()


def machine():
    with open("/proc/cpuinfo") as opened:
        model = re.search(r"^model name\s*: (.*)$", opened.read(), re.MULTILINE)
    name = f", {model.group(1)}" if model else ""
    return f"Linux {platform.release()}, {os.cpu_count()} processors{name}"


def write(path, section):
    """Puts the section between its markers, or at the end, and leaves the rest of the file as it is."""
    text = HEAD
    if os.path.exists(path):
        with open(path) as opened:
            text = opened.read()
    marked = f"{BEGIN}\n{section}\n{END}"
    begin, end = text.find(BEGIN), text.find(END)
    if 0 <= begin < end:
        text = text[:begin] + marked + text[end + len(END) :]
    else:
        text = f"{text.rstrip()}\n\n{marked}\n"
    with open(f"{path}.new", "w") as opened:
        opened.write(text)
    os.replace(f"{path}.new", path)
