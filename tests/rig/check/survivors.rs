//! Nothing of a command lives when fenced has ended; when fenced was killed, not for longer than its guard may take.

use super::Terms;
use crate::history::{Class, History, Run};
use std::time::Duration;

/// What a busy machine may add to what the guard promises.
const BUSY: Duration = Duration::from_millis(500);

pub fn survivors(history: &History, terms: Terms) -> Vec<String> {
    history.runs.values().filter_map(|run| survived(history, run, terms)).collect()
}

fn survived(history: &History, run: &Run, terms: Terms) -> Option<String> {
    let (finish, last) = (run.finished.as_ref()?, run.last_sign()?);
    if run.suffered(Class::Beheaded, u64::MAX) {
        return None;
    }
    // Told its end by itself, or the kernel told it: then the guard has the grace, and whatever was stopped meanwhile.
    let own_end = finish.line.is_some();
    let allowed = if own_end { Duration::ZERO } else { terms.grace + BUSY };
    let stopped = run.faults.iter().any(|(_, _, text)| text.contains("SIGSTOP"));
    let allowed = if stopped && !own_end { allowed + terms.ttl } else { allowed };
    let allowed = u64::try_from(allowed.as_nanos()).unwrap_or(u64::MAX);
    let stalled = if own_end { 0 } else { 2 * history.longest_stall(finish.at, last) };
    let after = last.saturating_sub(finish.at);
    (after > allowed + stalled)
        .then(|| format!("run {}: its command lived {} ms longer than fenced", run.id, after / 1_000_000))
}
