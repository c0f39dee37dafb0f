//! First come, first served: who stood in the queue before another even asked, and kept its place, enters before it.

use crate::history::{History, Run};

pub fn queue(history: &History, lock: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let runs: Vec<_> = history.of_lock(lock).filter(|run| run.started.is_some()).collect();
    for first in runs.iter().filter(|run| kept_its_place(run)) {
        let (Some(waiting), Some((entered, _))) = (first.waiting, first.started) else { continue };
        for second in runs.iter().filter(|second| second.asked > waiting) {
            if second.started.is_some_and(|(at, _)| at < entered) {
                wrong.push(format!(
                    "{lock}: run {} waited already when run {} asked, which entered first",
                    first.id, second.id
                ));
            }
        }
    }
    wrong
}

/// A waiter whose place was lost in an outage says so, and queues again.
fn kept_its_place(run: &Run) -> bool {
    run.waiting.is_some_and(|waiting| run.retrying.iter().all(|at| *at < waiting))
}
