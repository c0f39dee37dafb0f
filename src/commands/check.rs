//! `fenced check`: whether a token is still the holder's, as far as a look can tell.

use super::looking;
use crate::cli;
use crate::exit::{self, Ending};
use crate::report::Reporter;
use crate::settings::Chatter;
use crate::settings::look::{self, Check};
use crate::store::contract::{Failure, Queue};
use std::env;

/// What every answer ends with.
const ADVISORY: &str = "(advisory: only a resource that checks the token keeps an old holder out)";

/// Runs `fenced check` and says how the process shall end.
#[must_use]
pub fn run(typed: cli::Check) -> Ending {
    let reporter = Reporter::new(if typed.verbose { Chatter::Verbose } else { Chatter::Normal });
    let check = match look::check(typed, &|name| env::var_os(name)) {
        Ok(check) => check,
        Err(why) => {
            reporter.error(&why);
            return Ending::Status(exit::ERROR);
        }
    };
    let queue = match looking::queue(&check.store, &check.lock) {
        Ok(queue) => queue,
        Err(Failure::Lost(why) | Failure::Unavailable(why) | Failure::Refused(why) | Failure::Stale(why)) => {
            reporter.error(&format!("store: {why}"));
            return Ending::Status(exit::UNAVAILABLE);
        }
    };
    let (lock, token) = (&check.lock, check.token);
    if let Some(why) = objection(&check, &queue) {
        reporter.error(&format!("lock {lock}: token {token} is not the holder's: {why} {ADVISORY}"));
        return Ending::Status(exit::REFUSED);
    }
    reporter.step(&format!("lock {lock}: token {token} is the holder's {ADVISORY}"));
    Ending::Status(0)
}

/// Why the token is not the holder's, if it is not.
fn objection(check: &Check, queue: &Queue) -> Option<String> {
    let Some(holder) = &queue.holder else { return Some("nobody holds the lock".into()) };
    if let (Some(shown), Some(known)) = (&check.lineage, &queue.lineage)
        && shown != known
    {
        return Some(format!("its lineage is {shown}, the lock's is {known}"));
    }
    if holder.token == Some(check.token.get()) {
        return None;
    }
    let token = holder.token.map_or_else(|| "unknown".into(), |token| token.to_string());
    Some(format!("token {token}, {holder}"))
}
