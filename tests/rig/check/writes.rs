//! The resource: accepted writes have tokens that never fall, none is lost, and none is made up.

use super::show;
use crate::history::{History, What};
use crate::resource::Record;
use std::collections::{BTreeMap, BTreeSet};

pub fn writes(history: &History, lock: &str, records: &[Record]) -> Vec<String> {
    let mut wrong = Vec::new();
    for pair in records.windows(2) {
        let [before, after] = pair else { continue };
        if after.token < before.token {
            wrong.push(format!("{lock}: a stale write was accepted: {} after token {}", show(after), before.token));
        }
        // A job reads a value and writes the next one; a token that is made known leaves the value as it is.
        if after.value != before.value + u64::from(after.written) {
            wrong.push(format!("{lock}: a write was lost: {} over value {}", show(after), before.value));
        }
    }
    let there: BTreeSet<(u64, u64)> =
        records.iter().filter(|record| record.written).map(|record| (record.run, record.value)).collect();
    let mut tried: BTreeMap<(u64, u64), Option<bool>> = BTreeMap::new();
    for event in &history.events {
        match event.what {
            What::Trying { value } => drop(tried.insert((event.run, value), None)),
            What::Wrote { value, accepted } => drop(tried.insert((event.run, value), Some(accepted))),
            _ => {}
        }
    }
    let own: BTreeSet<u64> = history.of_lock(lock).map(|run| run.id).collect();
    for ((run, value), outcome) in tried.iter().filter(|((run, _), _)| own.contains(run)) {
        if *outcome == Some(true) && !there.contains(&(*run, *value)) {
            wrong.push(format!("{lock}: run {run} was told that {value} is written, and it is not"));
        }
    }
    for record in records.iter().filter(|record| record.written && !tried.contains_key(&(record.run, record.value))) {
        wrong.push(format!("{lock}: nobody tried what stands there: {}", show(record)));
    }
    wrong
}
