//! `fenced publish`: a file or a directory in its place, behind a gate.

use super::gate::{deadline, end, enter_or_make, mark};
use crate::cli;
use crate::exit::{self, Ending};
use crate::fence::publish::Destination;
use crate::report::Reporter;
use crate::settings::{Chatter, gate};
use crate::store::contract::Failure;
use std::env;

/// Runs `fenced publish` and says how the process shall end.
#[must_use]
pub fn run(typed: cli::Publish) -> Ending {
    let reporter = Reporter::new(Chatter::Normal);
    let shown = match gate::shown(typed.shown, &|name| env::var_os(name)) {
        Ok(shown) => shown,
        Err(why) => {
            reporter.error(&why);
            return Ending::Status(exit::ERROR);
        }
    };
    let publish = || -> Result<bool, Failure> {
        let destination = Destination::open(&typed.destination)?;
        let path = typed.gate.clone().unwrap_or_else(|| destination.gate());
        let Some(gate) = enter_or_make(&path, &shown, deadline(&shown))? else { return Ok(false) };
        destination.publish(&typed.source, &gate, &mark(&shown))?;
        Ok(true)
    };
    end(publish(), &shown, &reporter)
}
