//! The members of a cluster, asked in turn: one client for each, a preferred member that sticks until it fails, an own
//! deadline on every call, and each member's own reason when none answered.

use super::failure::{Sent, Trouble};
use crate::timing::{SHORTEST_ATTEMPT, show};
use etcd_client::{Client, ConnectOptions};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// The pause between two rounds over all members.
const PAUSE: Duration = Duration::from_millis(150);

/// How long a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What one member may take before the next is tried.
    pub each: Duration,
    /// What the whole call may take.
    pub all: Duration,
}

/// The members of one cluster. Clients are made when they are first needed; nothing here connects by itself.
#[derive(Debug)]
pub struct Members {
    list: Vec<Member>,
    preferred: Cell<usize>,
    /// Changes whenever another member is preferred or a connection was given up: streams then start anew.
    moved: watch::Sender<u64>,
}

struct Member {
    address: String,
    client: RefCell<Option<Client>>,
    /// Why it failed last; nothing since it last answered.
    reason: RefCell<Option<String>>,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("address", &self.address).field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl Members {
    /// The members at these addresses, `host:port` each; the first is preferred until it fails.
    #[must_use]
    pub fn new(addresses: &[String]) -> Self {
        let member = |address: &String| Member {
            address: address.clone(),
            client: RefCell::default(),
            reason: RefCell::default(),
        };
        Self { list: addresses.iter().map(member).collect(), preferred: Cell::new(0), moved: watch::Sender::new(0) }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.list.len()).unwrap_or(u32::MAX)
    }

    /// Whether no member has answered since it failed last.
    #[must_use]
    pub fn are_silent(&self) -> bool {
        self.list.iter().all(|member| member.reason.borrow().is_some())
    }

    /// Tells when streams should be opened anew, since the calls go elsewhere now.
    #[must_use]
    pub fn moves(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    /// Asks the preferred member, then the others, each at most once, until one gives an answer that stands.
    ///
    /// # Errors
    /// What a member said for certain, or `Unavailable` with the reason of every member that failed.
    pub async fn call<T>(&self, limits: Limits, op: impl AsyncFn(Client) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let until = Instant::now() + limits.all;
        let first = self.preferred.get();
        let mut sent = Sent::Never;
        for turn in 0..self.list.len() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let index = (first + turn) % self.list.len();
            match self.ask(index, limits.each.min(left), &op).await {
                Err(Trouble::Unavailable { sent: this, .. }) if this == Sent::Perhaps => sent = this,
                Err(Trouble::Unavailable { .. }) => {}
                done => return done,
            }
        }
        Err(Trouble::Unavailable { why: self.reasons(), sent })
    }

    /// As [`Members::call`], in as many rounds as fit into `limits.all`.
    ///
    /// # Errors
    /// As [`Members::call`].
    pub async fn insist<T>(
        &self,
        limits: Limits,
        op: impl AsyncFn(Client) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let until = Instant::now() + limits.all;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let outcome = self.call(Limits { all: left, ..limits }, &op).await;
            if !matches!(outcome, Err(Trouble::Unavailable { .. })) || Instant::now() + PAUSE >= until {
                return outcome;
            }
            sleep(PAUSE).await;
        }
    }

    async fn ask<T>(
        &self,
        index: usize,
        limit: Duration,
        op: impl AsyncFn(Client) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let asking = Asking { members: self, index, since: Instant::now() };
        let question = Box::pin(async { op(self.client(index).await?).await });
        let outcome = timeout(limit, question).await;
        std::mem::forget(asking);
        let outcome = outcome.unwrap_or_else(|_| Err(Trouble::unavailable(no_answer(limit))));
        match &outcome {
            Err(Trouble::Unavailable { why, .. }) => self.failed(index, why),
            _ => self.answered(index),
        }
        outcome
    }

    /// The client of a member. Making one sends nothing: it connects with its first request.
    async fn client(&self, index: usize) -> Result<Client, Trouble> {
        let known = self.list[index].client.borrow().clone();
        if let Some(client) = known {
            return Ok(client);
        }
        let options = ConnectOptions::new().with_require_leader(true);
        let client = Client::connect([&self.list[index].address], Some(options)).await?;
        self.list[index].client.replace(Some(client.clone()));
        Ok(client)
    }

    fn answered(&self, index: usize) {
        self.list[index].reason.replace(None);
        if self.preferred.replace(index) != index {
            self.moved.send_modify(|n| *n += 1);
        }
    }

    /// The connection of a member that failed is given up, so that a stalled one cannot outlive the member's return.
    fn failed(&self, index: usize, why: &str) {
        self.list[index].reason.replace(Some(why.to_owned()));
        self.list[index].client.replace(None);
        if self.preferred.get() == index {
            self.preferred.set((index + 1) % self.list.len());
            self.moved.send_modify(|n| *n += 1);
        }
    }

    fn reasons(&self) -> String {
        let each = self.list.iter().filter_map(|m| Some(format!("{}: {}", m.address, m.reason.borrow().as_ref()?)));
        format!("no member answered ({})", each.collect::<Vec<_>>().join("; "))
    }
}

fn no_answer(limit: Duration) -> String {
    // To the next tenth of a second: what is left of a limit after the members before is no round number.
    let rounded = Duration::from_millis(u64::try_from(limit.as_millis().div_ceil(100) * 100).unwrap_or(u64::MAX));
    format!("no answer within {}", show(rounded))
}

/// A question that is under way. When the caller drops it after it had a fair time, the member counts as failed:
/// a caller that is less patient than [`Limits`] would otherwise ask a member that hangs for ever.
struct Asking<'a> {
    members: &'a Members,
    index: usize,
    since: Instant,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let taken = self.since.elapsed();
        if taken >= SHORTEST_ATTEMPT {
            self.members.failed(self.index, &no_answer(taken));
        }
    }
}
