//! A gate that is a command: it gets the token in its environment and answers by its status. It runs under a guard of its
//! own, so that nothing of it is left when its answer counts.

use super::register::Mark;
use crate::guard::handle::Guard;
use crate::guard::terms::{Deadlines, Report, Spec, Start};
use crate::settings::OnExit;
use crate::store::contract::Failure;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// Between the stop signal and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// A command that is ready to be asked once.
#[derive(Debug)]
pub struct Gate {
    command: String,
    guard: Guard,
}

impl Gate {
    /// Forks the guard that will run `command` by `/bin/sh -c`. To be called before any thread, runtime or large heap
    /// exists.
    ///
    /// # Errors
    /// As [`Guard::fork`].
    pub fn prepare(command: &str) -> io::Result<Self> {
        // What it prints is for people: fenced's own stdout belongs to the command that the gate protects.
        let script = format!("exec >&2 </dev/null\n{command}");
        let words = ["/bin/sh", "-c", script.as_str()].map(|word| CString::new(word).map_err(io::Error::from));
        let argv = words.into_iter().collect::<Result<_, _>>()?;
        let spec = Spec { argv, stop_signal: libc::SIGTERM, grace: GRACE, on_exit: OnExit::Kill };
        Ok(Self { command: command.to_owned(), guard: Guard::fork(spec)? })
    }

    /// Asks whether a writer may write. When this is dropped before it has answered, the command is ended.
    ///
    /// # Errors
    /// `Stale` when the command ends with anything but 0.
    pub async fn admit(&self, mark: &Mark, deadlines: Deadlines) -> Result<(), Failure> {
        let start = Start { set: exports(mark), remove: Vec::new(), deadlines, descriptor: None };
        let failed = |why: String| Failure::Unavailable(format!("gate cmd:{}: {why}", self.command));
        self.guard.start(&start).map_err(|error| failed(error.to_string()))?;
        let mut ended = None;
        loop {
            match self.guard.report().await {
                Report::Ended { status } => ended = Some(ExitStatus::from_raw(status)),
                Report::Clear => break,
                Report::NotStarted { errno } => return Err(failed(io::Error::from_raw_os_error(errno).to_string())),
                Report::Gone => return Err(failed("its guard process died".into())),
                Report::Overdue => return Err(failed("it did not answer in time".into())),
                _ => {}
            }
        }
        match ended {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Failure::Stale(format!("gate cmd:{}: refused, {status}", self.command))),
            None => Err(failed("it gave no answer".into())),
        }
    }
}

fn exports(mark: &Mark) -> Vec<(OsString, OsString)> {
    let mut set = vec![
        ("FENCED_TOKEN".into(), mark.token.to_string().into()),
        ("FENCED_LINEAGE".into(), mark.lineage.to_string().into()),
    ];
    set.extend(mark.lock.as_ref().map(|lock| ("FENCED_LOCK".into(), lock.as_str().into())));
    set
}
