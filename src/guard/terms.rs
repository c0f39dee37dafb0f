//! What fenced and its guard have to agree on: the task, the deadlines, the order to start, and what is reported.

use crate::settings::OnExit;
use crate::timing::Moment;
use std::ffi::{CString, OsString};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// What the guard must know when it is forked.
#[derive(Debug)]
pub struct Spec {
    /// The command and its arguments.
    pub argv: Vec<CString>,
    /// The stop signal, usually SIGTERM.
    pub stop_signal: i32,
    /// The time between the stop signal and SIGKILL, when nothing else shortens it.
    pub grace: Duration,
    /// What becomes of background processes that outlive the command.
    pub on_exit: OnExit,
}

/// The absolute moments that the guard acts on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// The stop signal is sent at the latest here.
    pub stop_by: Moment,
    /// SIGKILL is sent here.
    pub dead_by: Moment,
}

/// The order to start the command.
#[derive(Debug)]
pub struct Start<'a> {
    /// Variables that are set for the command, over the inherited ones.
    pub set: Vec<(OsString, OsString)>,
    /// Inherited variables that the command does not get.
    pub remove: Vec<OsString>,
    /// When the command must be gone, until the next renewal.
    pub deadlines: Deadlines,
    /// The local store's descriptor, kept by the guard and inherited by the command unless `--on-exit leave`.
    pub descriptor: Option<BorrowedFd<'a>>,
}

/// What the guard tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The command runs.
    Started {
        /// Its process id.
        pid: i32,
    },
    /// The command could not be started: the error number of the failing fork or exec; `ETIME` when it was too late.
    NotStarted {
        /// As in `errno(3)`.
        errno: i32,
    },
    /// The command was stopped by this signal (job control).
    Paused {
        /// SIGTSTP, SIGSTOP, SIGTTIN or SIGTTOU.
        signal: i32,
    },
    /// The guard itself was sent a signal. It does nothing about it, but the command may have got the same.
    Signaled {
        /// Its number.
        signal: i32,
        /// Who sent it; 0 for processes of another pid namespace.
        sender: i32,
    },
    /// The command was reaped; its tree may still live.
    Ended {
        /// As `waitpid(2)` gave it.
        status: i32,
    },
    /// Processes that outlived the command and are being ended (`--on-exit kill`) or left (`leave`), as `name (pid)`.
    Lingering(Vec<String>),
    /// The guard reached `stop_by` by itself and sent the stop signal.
    Overdue,
    /// These processes survived SIGKILL for longer than the margin.
    Unkillable(Vec<String>),
    /// The certificate: `waitpid` said ECHILD, nothing is left (or with `leave`: nothing that the guard is to wait for).
    Clear,
    /// The guard is gone; fenced must take over.
    Gone,
}
