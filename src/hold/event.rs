//! What can happen to a run, and what can be done about it.

use crate::exit::Verdict;
use crate::guard::terms::{Deadlines, Report};
use crate::report::Notice;
use crate::settings::OnExit;
use crate::store::contract::{Failure, Grant, Interruption, Place, Released};
use crate::timing::Lease;
use std::time::Duration;

/// What the store may take for its first answer, however short the wait: a slow answer is not a held lock.
pub const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// What the preparation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The command may start.
    Go,
    /// The run was done already.
    Done,
}

/// What gates may take, unless the lease allows less: somebody may still be inside one.
pub const GATES: Duration = Duration::from_secs(60);

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not begun, or in the random delay before asking.
    Delayed,
    /// Joining the queue, or waiting to try that again.
    Joining,
    /// In the queue.
    Waiting,
    /// Granted; what comes before the command is being done: gates are shown the token.
    Preparing,
    /// Granted; renewing before the command may start.
    Confirming,
    /// The guard has the order to start.
    Starting,
    /// The command runs.
    Running,
    /// The command ended; what it left behind has not.
    Clearing,
    /// The stop signal is out and SIGKILL will follow; the run is lost.
    Stopping,
    /// SIGKILL is out; the run is lost.
    Killing,
    /// Nothing is left of the command; giving the lock back.
    Releasing,
    /// The command never started; leaving the queue, or giving the grant back.
    Withdrawing,
    /// Over.
    Done,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Time passed; also the first event of all.
    Tick,
    /// The answer to [`Action::Contend`].
    Contended(Result<Place, Failure>),
    /// The answer to [`Action::Await`].
    Granted(Result<Grant, Failure>),
    /// The answer to [`Action::Prepare`].
    Prepared(Result<Readiness, Failure>),
    /// The answer to [`Action::Renew`].
    Renewed(Result<Lease, Failure>),
    /// The answer to [`Action::Release`].
    Released(Result<Released, Failure>),
    /// The answer to [`Action::Withdraw`].
    Withdrawn(Result<(), Failure>),
    /// The store noticed something by itself.
    Interrupted(Interruption),
    /// The guard told something.
    Guard(Report),
    /// The answer to [`Action::TakeOver`]: what could not be killed.
    TakenOver(Vec<String>),
    /// A signal that is meant for the command, or for fenced while there is none.
    Signal(i32),
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// Join the queue.
    Contend,
    /// Wait for the grant.
    Await,
    /// Tell a person who holds the lock.
    Hint,
    /// Do what comes between the grant and the command: look whether the run was done already, show the gates the token.
    Prepare,
    /// Renew once.
    Renew,
    /// Give the lock back; true: with the command done, so that a run that is to succeed once is recorded.
    Release(bool),
    /// Leave the queue, or give the grant back.
    Withdraw,
    /// Have the guard start the command, with these deadlines.
    Start(Deadlines),
    /// Move the guard's deadlines.
    Extend(Deadlines),
    /// Have the guard stop the tree: the stop signal, the grace, SIGKILL.
    Stop,
    /// Have the guard kill the tree.
    Kill,
    /// Kill the guard if it lives, and the tree without it.
    TakeOver,
    /// Have the guard pass a signal on.
    Forward(i32),
    /// The command was stopped by this signal: stop as well, so that the shell gives its prompt back.
    Pause(i32),
    /// Tell the user.
    Tell(Notice),
    /// The end.
    Finish(Verdict),
}

/// What a run was set to.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The delay before asking (already drawn).
    pub delay: Duration,
    /// How long to wait for the lock; `None` is for ever.
    pub wait: Option<Duration>,
    /// Time between the stop signal and SIGKILL.
    pub grace: Duration,
    /// What becomes of background processes.
    pub on_exit: OnExit,
    /// Whether there is something to do between the grant and the command.
    pub prepares: bool,
    /// Seed of the random backoffs.
    pub seed: u64,
}

/// What to do, in this order.
pub type Actions = Vec<Action>;
