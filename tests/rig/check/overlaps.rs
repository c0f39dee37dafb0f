//! The mutex: while anything of one command lives, no command with another token begins.

use super::Terms;
use crate::history::{Class, History, Run};

/// Two commands that lived at one time, by the signs of life that they gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    pub lock: String,
    /// With the lower token.
    pub first: u64,
    pub second: u64,
    /// From the first sign of life of one that came after the other's start, to its last.
    pub ns: u64,
    pub excuse: Option<&'static str>,
}

/// How long a command may go on where the store took the lock away before its time: until the watch says so, and the kill
/// is done. Stalls of the machine come on top.
const TAKEN: u64 = 500_000_000;

/// What is wrong, and what is excused.
pub fn overlaps(history: &History, lock: &str, terms: Terms) -> (Vec<String>, Vec<Overlap>) {
    let mut lived: Vec<_> =
        history.of_lock(lock).filter_map(|run| Some((run.started?, run.last_sign()?, run))).collect();
    lived.sort_by_key(|((at, _), _, _)| *at);
    let mut found = Vec::new();
    for (n, ((_, token), last, run)) in lived.iter().enumerate() {
        for ((began, next), next_last, other) in &lived[n + 1..] {
            // The one whose token is lower should have been over; nobody else can know of the other.
            let (first, second) = if next < token { (*other, *run) } else { (*run, *other) };
            if *began >= *last {
                break;
            }
            let to = (*last).min(*next_last);
            // What was stopped did not live meanwhile.
            let from = first.signs.iter().filter(|at| **at >= *began).min().map_or(*began, |at| (*at).min(to));
            let ns = to - from;
            let excuse = excuse(history, first, *began, from, to, terms);
            found.push(Overlap { lock: lock.to_owned(), first: first.id, second: second.id, ns, excuse });
        }
    }
    let wrong = found.iter().filter(|overlap| overlap.excuse.is_none()).map(told).collect();
    found.retain(|overlap| overlap.excuse.is_some());
    (wrong, found)
}

fn excuse(history: &History, first: &Run, began: u64, from: u64, to: u64, terms: Terms) -> Option<&'static str> {
    let ns = to - from;
    let ttl = u64::try_from(terms.ttl.as_nanos()).unwrap_or(u64::MAX);
    let since = first.started.map_or(first.asked, |(at, _)| at);
    let stalled = history.longest_stall(since, to);
    let brief = ns <= TAKEN + 2 * stalled;
    if brief && first.suffered(Class::Frozen, to) && !first.local {
        return Some("all of it was stopped");
    }
    if first.suffered(Class::Beheaded, to) && !first.local {
        return Some("fenced and its guard were killed at one blow");
    }
    if brief && history.store_faults(Class::MemberFrozen, since.saturating_sub(ttl), to) {
        return Some("a member was stopped and went on");
    }
    if brief && history.store_faults(Class::Revoked, since, to) {
        return Some("the lock was taken away in the store");
    }
    // The margin is for a machine that stands still for less than that.
    if !first.local && stalled > 400_000_000 && to - began <= 2 * stalled {
        return Some("the machine stood still for longer than the margin");
    }
    None
}

fn told(overlap: &Overlap) -> String {
    let Overlap { lock, first, second, ns, .. } = overlap;
    format!("{lock}: run {second} began while run {first} lived, for {} ms", ns / 1_000_000)
}
