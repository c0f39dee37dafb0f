//! What is said at the end of a run: one line for people, and the status line for programs.

use crate::exit::{Ending, Verdict, signal_name};
use crate::hold::driver::Outcome;
use crate::report::{Reporter, span};
use crate::settings::{Run, StatusTo};
use crate::sys::descriptors;
use crate::sys::error::in_words;
use serde_json::{Value, json};
use std::fs::File;
use std::time::Duration;

/// How a run ended, and the store's URL, once that was known.
pub(super) struct Ended {
    pub outcome: Outcome,
    pub store: Option<String>,
}

impl Ended {
    /// An ending before anything was asked of a store.
    pub fn never_asked(verdict: Verdict) -> Self {
        let outcome = Outcome { verdict, explained: false, grant: None, waited: Duration::ZERO, held: Duration::ZERO };
        Self { outcome, store: None }
    }
}

/// The one line about an ending that is not the command's own.
pub(super) fn explain(settings: &Run, ended: &Ended, reporter: &Reporter) {
    let Ended { outcome, store } = ended;
    let lock = &settings.lock;
    match &outcome.verdict {
        Verdict::Exited(_) | Verdict::Signaled(_) => {}
        Verdict::Interrupted(signal) => {
            reporter.step(&format!("lock {lock}: signal {} ended the waiting", signal_name(*signal)));
        }
        Verdict::Busy(why) => {
            let line = format!("lock {lock}: {why}; gave up after {}", span(outcome.waited));
            if settings.busy_exit == 0 { reporter.step(&line) } else { reporter.error(&line) }
        }
        Verdict::Unavailable(why) => match store.as_deref() {
            Some(url) => reporter.error(&format!("store {url}: {why}")),
            None => reporter.error(&format!("store: {why}")),
        },
        Verdict::Lost(_) if outcome.explained => {}
        Verdict::Lost(why) => reporter.error(&format!("lock {lock}: lost: {why}")),
        Verdict::NotExecuted(_, why) => {
            reporter.error(&format!("{}: {why}", settings.command[0].to_string_lossy()));
        }
        Verdict::Skipped(why) => reporter.step(&format!("lock {lock}: skipped: {why}")),
        Verdict::Refused(why) | Verdict::Error(why) => reporter.error(why),
    }
}

/// Opens where the status line goes.
pub(super) fn open_status(to: &StatusTo) -> Result<File, String> {
    match to {
        StatusTo::File(path) => {
            descriptors::create(path).map_err(|why| format!("--status-file {}: {}", path.display(), in_words(&why)))
        }
        StatusTo::Descriptor(number) => {
            descriptors::adopt(*number).map_err(|why| format!("--status-fd {number}: {}", in_words(&why)))
        }
    }
}

/// The status line.
pub(super) fn status_line(lock: &str, ended: &Ended, ending: Ending) -> Value {
    let Ended { outcome, store } = ended;
    let (code, signal) = match ending {
        Ending::Status(code) => (Some(code), None),
        Ending::Signal(signal) => (None, Some(signal_name(signal))),
    };
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    json!({
        "outcome": outcome.verdict.outcome(),
        "exit_code": code,
        "signal": signal,
        "lock": lock,
        "token": outcome.grant.as_ref().map(|grant| grant.token.get()),
        "lineage": outcome.grant.as_ref().map(|grant| grant.lineage.as_str()),
        "store": store,
        "waited_ms": millis(outcome.waited),
        "held_ms": millis(outcome.held),
        "reason": outcome.verdict.reason(),
    })
}
