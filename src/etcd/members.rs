//! The members of a cluster, asked in turn: one client for each, a preferred member that sticks until it fails, an own
//! deadline on every call, and each member's own reason when none answered.

use super::credentials::Credentials;
use super::failure::{CLOSED, RESET, Sent, Trouble, has_no_users};
use crate::timing::{SHORTEST_ATTEMPT, show};
use etcd_client::Client;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// The pause between two rounds over all members.
const PAUSE: Duration = Duration::from_millis(150);

/// How many logins are tried for one question.
const LOGINS: u32 = 5;

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
    credentials: Credentials,
    /// What a user must be allowed to read and write: `the prefix /fenced/v1/`.
    territory: String,
    preferred: Cell<usize>,
    /// Changes whenever another member is preferred or a connection was given up: streams then start anew.
    moved: watch::Sender<u64>,
    heard: watch::Sender<Heard>,
}

/// What the members have told of themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// One of them has answered something.
    pub answer: bool,
    /// The cluster has no users, so ours was left out.
    pub no_users: bool,
}

struct Member {
    address: String,
    client: RefCell<Option<Client>>,
    /// Why it failed last; nothing since it last answered.
    reason: RefCell<Option<String>>,
    /// It has answered at least once.
    known: Cell<bool>,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("address", &self.address).field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl Members {
    /// The members at these addresses, `host:port` each; the first is preferred until it fails. `territory` is
    /// what a user must be allowed to read and write: `the prefix /fenced/v1/`.
    #[must_use]
    pub fn new(addresses: &[String], credentials: Credentials, territory: String) -> Self {
        let member = |address: &String| Member {
            address: address.clone(),
            client: RefCell::default(),
            reason: RefCell::default(),
            known: Cell::default(),
        };
        Self {
            list: addresses.iter().map(member).collect(),
            credentials,
            territory,
            preferred: Cell::new(0),
            moved: watch::Sender::new(0),
            heard: watch::Sender::default(),
        }
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

    /// What the members have told of themselves so far, and whatever they will.
    #[must_use]
    pub fn heard(&self) -> watch::Receiver<Heard> {
        self.heard.subscribe()
    }

    /// The address of the member that is asked first.
    #[must_use]
    pub fn preferred(&self) -> &str {
        &self.list[self.preferred.get()].address
    }

    /// The user that the members are asked as, if any.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.credentials.user()
    }

    /// Asks the preferred member, then the others, each at most once, until one gives an answer that stands.
    ///
    /// # Errors
    /// What a member said about the request; `Refused` when every member refused; else `Unavailable` with the reason of
    /// every member that failed.
    pub async fn call<T>(&self, limits: Limits, op: impl AsyncFn(Client) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let until = Instant::now() + limits.all;
        let first = self.preferred.get();
        let (mut sent, mut refusals) = (Sent::Never, 0);
        for turn in 0..self.list.len() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let index = (first + turn) % self.list.len();
            match self.ask(index, limits.each.min(left), &op).await {
                Err(Trouble::Unavailable { sent: this, .. }) if this == Sent::Perhaps => sent = this,
                Err(Trouble::Unavailable { .. }) => {}
                Err(Trouble::Refused(_)) => refusals += 1,
                done => return done,
            }
        }
        let refused = refusals == self.list.len();
        let why = self.reasons(refused);
        Err(if refused { Trouble::Refused(why) } else { Trouble::Unavailable { why, sent } })
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
        let question = Box::pin(self.question(index, op));
        let outcome = timeout(limit, question).await;
        std::mem::forget(asking);
        let outcome = outcome.unwrap_or_else(|_| Err(Trouble::unavailable(no_answer(limit))));
        match &outcome {
            Err(Trouble::Unavailable { why, .. } | Trouble::Refused(why)) => self.failed(index, why),
            _ => self.answered(index),
        }
        outcome
    }

    /// Asks one member, and again after a new login where the old one is not good any more: nothing was done then. Users
    /// that are being changed can spoil a login before it is used, so some are tried.
    async fn question<T>(&self, index: usize, op: impl AsyncFn(Client) -> Result<T, Trouble>) -> Result<T, Trouble> {
        for last in (1..=LOGINS).map(|login| login == LOGINS) {
            let outcome = op(self.client(index).await?).await;
            match outcome {
                Err(Trouble::LoggedOut(why)) if self.user().is_none() => return Err(Trouble::Refused(why)),
                Err(Trouble::LoggedOut(why)) if last => return Err(Trouble::unavailable(why)),
                Err(Trouble::LoggedOut(_)) => self.list[index].client.replace(None),
                Err(Trouble::Denied) => return Err(Trouble::Refused(self.denied())),
                done => return done,
            };
        }
        Err(Trouble::unavailable("it was not asked"))
    }

    /// The client of a member. With a user, making one logs in; else it connects with its first request.
    async fn client(&self, index: usize) -> Result<Client, Trouble> {
        let member = &self.list[index];
        let known = member.client.borrow().clone();
        if let Some(client) = known {
            return Ok(client);
        }
        let (url, options) = self.credentials.connection(&member.address, true);
        let client = match Client::connect([url], Some(options)).await {
            Err(error) if has_no_users(&error) => {
                self.heard.send_if_modified(|heard| !std::mem::replace(&mut heard.no_users, true));
                let (url, options) = self.credentials.connection(&member.address, false);
                Client::connect([url], Some(options)).await?
            }
            connected => connected?,
        };
        member.client.replace(Some(client.clone()));
        Ok(client)
    }

    fn denied(&self) -> String {
        let user = self.user().map_or("the client certificate's user".to_owned(), |name| format!("user {name}"));
        let territory = &self.territory;
        format!("{user} has no permission: a role with readwrite on {territory} is needed, see --user")
    }

    fn answered(&self, index: usize) {
        self.list[index].reason.replace(None);
        self.list[index].known.set(true);
        self.heard.send_if_modified(|heard| !std::mem::replace(&mut heard.answer, true));
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

    /// Each failed member's reason; one that they all share is said once.
    fn reasons(&self, refused: bool) -> String {
        let reason = |member: &Member| {
            let reason = member.reason.borrow().clone()?;
            let hint = if member.known.get() { "" } else { self.hint(&reason) };
            Some((member.address.clone(), format!("{reason}{hint}")))
        };
        let failed: Vec<_> = self.list.iter().filter_map(reason).collect();
        match failed.first() {
            Some((_, first)) if refused && failed.iter().all(|(_, why)| why == first) => return first.clone(),
            _ => {}
        }
        let each: Vec<_> = failed.iter().map(|(address, why)| format!("{address}: {why}")).collect();
        let verb = if refused { "can be used" } else { "answered" };
        format!("no member {verb} ({})", each.join("; "))
    }

    /// What it can mean when a member that never answered ends the connection.
    fn hint(&self, reason: &str) -> &'static str {
        match (reason, self.credentials.speaks_tls()) {
            (CLOSED | RESET, false) => ", it may want TLS (etcds://)",
            (CLOSED | RESET, true) => ", it may speak plain HTTP (etcd://) or want a client certificate (--cert)",
            _ => "",
        }
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
