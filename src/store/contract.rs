//! What a store owes to the run that uses it: one contention for one lock, from joining the queue to the release.
//!
//! A store value is one contender. The caller runs one of `contend`, `granted`, `renew`, `release` and `withdraw` at a
//! time, and `interrupted` beside them while it holds, `remark` beside them always; it may drop any of these futures at any await and call again.

use crate::name::LockName;
use crate::sys::directory::Unusable;
use crate::timing::Lease;
use crate::token::{Lineage, Token};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Why a store did not do what it was asked, named for what the caller does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The store said that our place or our lock is gone: a holder stops now, a waiter contends again.
    Lost(String),
    /// No answer, or none that can be trusted: retry until the deadline.
    Unavailable(String),
    /// Asking again will not help: bad credentials, a damaged lock file.
    Refused(String),
    /// A gate does not accept the token: a later one was there, or what it remembers cannot be trusted.
    Stale(String),
}

impl Failure {
    /// The clause for people.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Lost(why) | Self::Unavailable(why) | Self::Refused(why) | Self::Stale(why) => why,
        }
    }
}

impl From<Unusable> for Failure {
    fn from(unusable: Unusable) -> Self {
        if unusable.may_pass { Self::Unavailable(unusable.why) } else { Self::Refused(unusable.why) }
    }
}

/// Where joining the queue led.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nobody was before us.
    Granted(Grant),
    /// Somebody is; `granted` tells when that changes.
    Waiting,
    /// There is nothing to contend for: the key of [`Once`] is recorded already.
    Done,
}

/// The lock is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Greater than every token granted before it for this lock.
    pub token: Token,
    /// What the token may be compared in.
    pub lineage: Lineage,
    /// The lease that the grant rests on; `None` where the store has no leases (the kernel is the lease).
    pub lease: Option<Lease>,
    /// The lease is an assumption (a retried grant carries no ttl): renew once before the command starts.
    pub confirm: bool,
    /// The key in the store that stands for the grant, where a resource in the same store can be guarded by it.
    pub key: Option<String>,
}

/// Something that the store noticed by itself while the lock was held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The lock is gone for certain; another holder may already be running.
    Lost(String),
    /// Somebody asked the holder to stop its command and release.
    Evicted(String),
}

/// Something that the user of a store should know; it changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// A setting that does not do what it seems to.
    Warning(String),
    /// For those who want each step.
    Detail(String),
}

/// A key that is recorded when a run has been done, so that it is not done again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Once {
    /// The key, which belongs to the lock.
    pub key: LockName,
    /// How long it is remembered.
    pub keep: Duration,
}

/// What a release found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Released {
    /// The lock was ours until now (or an earlier, unanswered try of ours released it).
    Ours,
    /// The lock was ours until now, but the key of [`Once`] could not be recorded.
    Unrecorded(String),
    /// The lock was not ours any more.
    NotOurs(String),
}

/// One contender as people see it. Never used to decide anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Contender {
    /// The token, once there is one (a waiter's is the one it would be granted with).
    pub token: Option<i64>,
    /// The machine's host name.
    pub host: String,
    /// fenced's process id there.
    pub pid: u32,
    /// The user's name, or its number.
    pub user: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// When it joined the queue, RFC 3339 in UTC by the contender's own wall clock.
    pub since: String,
    /// Free text from `--note`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.is_empty() {
            return write!(f, "held by a contender that says nothing about itself");
        }
        write!(f, "held by {}, pid {}, user {}, since {}", self.host, self.pid, self.user, self.since)?;
        self.note.as_ref().map_or(Ok(()), |note| write!(f, " ({note})"))
    }
}

/// Who holds a lock and who waits for it, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// The holder, if there is one.
    pub holder: Option<Contender>,
    /// The waiters in the order in which they will be served.
    pub waiters: Vec<Contender>,
    /// What their tokens may be compared in, where that could be told.
    pub lineage: Option<Lineage>,
}

/// One contention for one lock in one store.
#[expect(async_fn_in_trait, reason = "the runtime has one thread, nothing here needs to be Send")]
pub trait Store {
    /// The lock's name.
    fn lock(&self) -> &LockName;

    /// The store as a URL that `--store` takes, the same for every contender that names it by the same members or directory.
    fn url(&self) -> String;

    /// Joins the queue, or finds the place again that an earlier call of ours may have taken: safe under blind retry.
    /// From then on the place is kept alive while `granted` is polled.
    ///
    /// # Errors
    /// See [`Failure`]; `Lost` never.
    async fn contend(&self) -> Result<Place, Failure>;

    /// Resolves when the lock is ours. Being woken is never the proof: the grant rests on the store's own answer.
    ///
    /// # Errors
    /// `Lost` when our place in the queue is gone (call `contend` again), otherwise see [`Failure`].
    async fn granted(&self) -> Result<Grant, Failure>;

    /// One attempt to renew; proves that the lock is ours, not merely that a lease lives. Bounded in time by the
    /// attempt that follows from the last lease and the grace; after a failure the next call tries another way (the next member).
    ///
    /// # Errors
    /// `Lost` only on the store's word that the lock is not ours; no answer is `Unavailable`.
    async fn renew(&self) -> Result<Lease, Failure>;

    /// While the lock is held: resolves when the store says by itself that it is gone or that we are asked to leave.
    /// Trouble with watching is not an event: then it only tries again.
    async fn interrupted(&self) -> Interruption;

    /// Beside all else: resolves when there is something to remark, each remark once.
    async fn remark(&self) -> Remark;

    /// While the lock is held: whether the key of [`Once`] is recorded. False where there is none.
    ///
    /// # Errors
    /// See [`Failure`].
    async fn recall(&self) -> Result<bool, Failure>;

    /// While the lock is held, and only if it still is: records the key of [`Once`], if there is one.
    ///
    /// # Errors
    /// See [`Failure`].
    async fn record(&self) -> Result<(), Failure>;

    /// Gives the lock back, only if it is still ours; idempotent, bounded in time. Call it when nothing of the command
    /// is left. `done` records the key of [`Once`] in the same step.
    ///
    /// # Errors
    /// `Unavailable` when the store did not answer: the lock ends with its lease.
    async fn release(&self, done: bool) -> Result<Released, Failure>;

    /// Leaves the queue, or gives back a grant that was not used, leaving nothing behind; bounded in time.
    ///
    /// # Errors
    /// `Unavailable` when the store did not answer: the place ends with its lease.
    async fn withdraw(&self) -> Result<(), Failure>;

    /// Who holds the lock and who waits: for people, never to decide anything.
    ///
    /// # Errors
    /// See [`Failure`].
    async fn inspect(&self) -> Result<Queue, Failure>;

    /// A descriptor that keeps the lock as long as any process has it open, if this store has one: the guard gets it.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}
