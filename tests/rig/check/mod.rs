//! What must be true of a history. Pure functions, each of which returns what is wrong, one sentence each.

mod overlaps;
mod queue;
mod statuses;
mod survivors;
#[cfg(test)]
mod tests;
mod tokens;
mod turns;
mod writes;

pub use overlaps::{Overlap, overlaps};
pub use queue::queue;
pub use statuses::statuses;
pub use survivors::survivors;
pub use tokens::tokens;
pub use turns::turns;
pub use writes::writes;

use crate::history::History;
use crate::resource::{self, Record};
use crate::world::Shared;
use std::fmt;
use std::time::Duration;

/// What the runs of a history were told, as far as it matters to the checks.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub ttl: Duration,
    pub grace: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(4), grace: Duration::from_millis(400) }
    }
}

/// What all checks together found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Broken promises.
    pub wrong: Vec<String>,
    /// Two commands at once, where something was done that no lock withstands.
    pub excused: Vec<Overlap>,
    pub runs: usize,
    pub granted: usize,
    pub accepted: usize,
    pub refused: usize,
    pub faults: usize,
    /// For how long the machine stood still, at most.
    pub stall_ms: u64,
    /// How the runs ended, by outcome.
    pub outcomes: std::collections::BTreeMap<String, usize>,
}

/// All checks over a history and the resources that its runs wrote to.
pub fn all(history: &History, shared: &Shared, terms: Terms) -> Findings {
    let mut found = count(history);
    for lock in history.locks() {
        let records = resource::accepted(&shared.resource(&lock));
        found.accepted += records.len();
        found.add(writes(history, &lock, &records));
        let (wrong, excused) = overlaps(history, &lock, terms);
        found.add(wrong);
        found.excused.extend(excused);
        found.add(tokens(history, &lock));
        found.add(queue(history, &lock));
    }
    found.add(statuses(history));
    found.add(survivors(history, terms));
    found
}

fn count(history: &History) -> Findings {
    let stall_ms = history.longest_stall(0, u64::MAX) / 1_000_000;
    let mut found = Findings { runs: history.runs.len(), stall_ms, ..Findings::default() };
    for event in &history.events {
        match event.what {
            crate::history::What::Wrote { accepted: false, .. } => found.refused += 1,
            crate::history::What::Fault { .. } => found.faults += 1,
            _ => {}
        }
    }
    for run in history.runs.values() {
        found.granted += usize::from(run.granted.is_some() || run.started.is_some());
        let outcome = run.finished.as_ref().and_then(|finish| finish.line.as_ref()).map(|line| line.outcome.as_str());
        *found.outcomes.entry(outcome.unwrap_or("killed").to_owned()).or_default() += 1;
    }
    found
}

impl Findings {
    fn add(&mut self, wrong: Vec<String>) {
        self.wrong.extend(wrong);
    }

    /// The figures of another world are added to these.
    pub fn sum(&mut self, other: Self) {
        self.add(other.wrong);
        self.excused.extend(other.excused);
        self.runs += other.runs;
        self.granted += other.granted;
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.faults += other.faults;
        self.stall_ms = self.stall_ms.max(other.stall_ms);
        for (outcome, count) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
    }

    /// Panics with all that is wrong.
    #[track_caller]
    pub fn expect_clean(&self) {
        assert!(self.wrong.is_empty(), "{self}\n{}", self.wrong.join("\n"));
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, granted, faults, accepted, refused, outcomes, excused, stall_ms, .. } = self;
        let outcomes: Vec<_> = outcomes.iter().map(|(word, count)| format!("{word} {count}")).collect();
        let longest = excused.iter().map(|overlap| overlap.ns).max().unwrap_or(0) / 1_000_000;
        write!(
            f,
            "{runs} runs, {granted} acquisitions, {faults} faults; {}; writes: {accepted} accepted, {refused} refused; \
             overlaps that no lock prevents: {}, the longest {longest} ms; the machine stood still for {stall_ms} ms at most; \
             wrong: {}",
            outcomes.join(", "),
            excused.len(),
            self.wrong.len()
        )
    }
}

/// A record of the resource, for what is told about it.
fn show(record: &Record) -> String {
    format!("run {} wrote {} with token {}", record.run, record.value, record.token)
}
