"""What the logs say, by pure functions: conflicts, stale writes, refusals, the order of the tokens; with a self-test."""

from typing import NamedTuple


class Section(NamedTuple):
    """One try of a critical section. Times are boot-clock nanoseconds."""

    who: str
    token: int
    #: Right after the lock was granted, before the first write.
    start: int
    #: When it was through, or else when its process was gone.
    end: int
    #: done, refused (by the resource) or stopped (killed before it was through).
    outcome: str
    #: The exit status of the program that held the lock.
    status: int
    paused: bool


class Write(NamedTuple):
    who: str
    token: int
    accepted: bool
    at: int


def conflicts(sections):
    """Those that started while another was inside."""
    found, inside_until = [], None
    for section in sorted(sections, key=lambda section: section.start):
        if inside_until is not None and section.start < inside_until:
            found.append(section.who)
        inside_until = max(section.end, inside_until or 0)
    return found


def stale(sections, writes):
    """Those of which a write was accepted after one of a section that started later.

    Judged by the starts and not by the tokens, so that a wrong token would be seen.
    """
    starts = {section.who: section.start for section in sections}
    found, newest = [], 0
    for write in writes:
        if write.accepted:
            if starts[write.who] < newest and write.who not in found:
                found.append(write.who)
            newest = max(newest, starts[write.who])
    return found


def refused(writes):
    """Those of which the resource refused a write."""
    return sorted({write.who for write in writes if not write.accepted})


def tokens_back(sections):
    """Those whose token is not greater than that of all that started before."""
    found, highest = [], 0
    for section in sorted(sections, key=lambda section: section.start):
        if section.token and section.token <= highest:
            found.append(section.who)
        highest = max(highest, section.token)
    return found


def called_success(sections):
    """Those that were stopped, and whose lock program ended with 0 all the same."""
    return [section.who for section in sections if section.outcome == "stopped" and section.status == 0]


def self_test():
    """Each function on logs made by hand, with the fault and without it."""

    def at(who, token, start, end, outcome="done", status=0):
        return Section(who, token, start, end, outcome, status, False)

    apart = [at("a", 1, 10, 20), at("b", 2, 20, 30), at("c", 3, 31, 40)]
    assert conflicts(apart) == [] and conflicts([]) == []
    assert conflicts([at("a", 1, 10, 21), at("b", 2, 20, 30)]) == ["b"]
    # The order of the log does not matter, nor that the one still inside is not the one before.
    assert conflicts([at("c", 3, 40, 50), at("b", 2, 20, 30), at("a", 1, 10, 45)]) == ["b", "c"]
    assert conflicts([at("a", 1, 10, 20), at("b", 2, 10, 20)]) == ["b"]

    def wrote(*order):
        return [Write(who, 0, accepted, at) for at, (who, accepted) in enumerate(order)]

    assert stale(apart, wrote(("a", True), ("a", True), ("b", True), ("c", True))) == []
    assert stale(apart, wrote(("a", True), ("b", True), ("a", False))) == []
    assert stale(apart, wrote(("b", True), ("a", True), ("a", True), ("c", True), ("b", True))) == ["a", "b"]
    # What was refused does not make the others stale.
    assert stale(apart, wrote(("b", False), ("a", True))) == []
    assert refused(wrote(("b", False), ("a", True), ("b", False))) == ["b"]

    assert tokens_back(apart) == [] and tokens_back([at("a", 0, 10, 20), at("b", 0, 20, 30)]) == []
    assert tokens_back([at("a", 2, 10, 20), at("b", 2, 20, 30)]) == ["b"]
    assert tokens_back([at("b", 1, 20, 30), at("a", 2, 10, 20)]) == ["b"]

    assert called_success([at("a", 1, 1, 2, "stopped", 76), at("b", 1, 1, 2)]) == []
    assert called_success([at("a", 1, 1, 2, "stopped", 0)]) == ["a"]
