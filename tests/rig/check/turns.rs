//! Once all is well again, every waiter has its turn, and a lock that nobody holds is free.

use crate::history::{History, What};
use std::time::Duration;

/// Who asked last for each lock, after everything was healed, must have got it within this time of asking.
pub fn turns(history: &History, within: Duration) -> Vec<String> {
    let healed = history.events.iter().rev().find(|event| event.what == What::Healed).map_or(0, |event| event.at);
    let within = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
    let mut wrong = Vec::new();
    for lock in history.locks() {
        let Some(run) = history.of_lock(&lock).filter(|run| run.asked >= healed).max_by_key(|run| run.asked) else {
            wrong.push(format!("{lock}: nobody asked after the end of the faults, so nothing is known"));
            continue;
        };
        let end = run.started.map(|(at, _)| at).or_else(|| Some(run.finished.as_ref()?.at)).unwrap_or(u64::MAX);
        let stalled = history.stalled(run.asked, end);
        let limit = run.asked + within + stalled;
        match run.started {
            Some((at, _)) if at <= limit => {}
            // A machine that stood still for the whole of its wait says nothing about the lock.
            None if stalled > within => {}
            Some((at, _)) => {
                let late = (at - run.asked) / 1_000_000;
                wrong.push(format!("{lock}: run {} waited {late} ms though all was well", run.id));
            }
            None => wrong.push(format!("{lock}: run {} never had its turn though all was well", run.id)),
        }
    }
    wrong
}
