//! Waiting for the key before ours to go, and claiming the lock when nothing older is left.

use super::keys::{State, still_ours};
use super::renew::{Look, Scope, read_place};
use super::store::{EtcdStore, failure};
use super::watch::{Pace, Watching};
use crate::etcd::failure::Trouble;
use crate::store::contract::{Failure, Grant};
use crate::sys::clock;
use etcd_client::{Client, Compare, CompareOp, PutOptions, Txn, TxnOp, TxnOpResponse};
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep};

/// What a claim came to.
pub(super) enum Claim {
    /// Nothing older was left.
    Granted(Grant),
    /// We still stand behind the key in [`EtcdStore::before`].
    Behind,
}

/// Why a waiter woke up. None of it proves anything.
enum Wake {
    /// Something happened to one of the watched keys.
    Event,
    /// A renewal is due.
    Beat,
    /// There is no watch (any more).
    Unwatched,
}

impl EtcdStore {
    /// See [`Store::granted`](crate::store::contract::Store::granted).
    pub(super) async fn wait(&self) -> Result<Grant, Failure> {
        let outcome = self.wait_in_line().await;
        if matches!(outcome, Err(Failure::Lost(_))) {
            self.forget();
        }
        outcome
    }

    async fn wait_in_line(&self) -> Result<Grant, Failure> {
        if self.standing.get().revision == 0 {
            return Err(Failure::Lost("no place in the queue was taken yet".into()));
        }
        let mut pace = Pace::default();
        let mut moves = self.members.moves();
        loop {
            // The watch first, from now; then the look: what happens between the two is an event, not a gap.
            let since = Instant::now();
            let before = self.before.borrow().clone();
            let mut watching = self.watch_place(before.clone()).await;
            moves.borrow_and_update();
            let wake = loop {
                let next = self.look_or_renew().await?.before;
                let free = next.is_none();
                let another = next != before;
                self.before.replace(next);
                if free {
                    break Wake::Event;
                }
                if another {
                    break Wake::Beat;
                }
                match self.wake(watching.as_mut(), &mut moves).await {
                    Wake::Beat => {}
                    woken => break woken,
                }
            };
            match wake {
                Wake::Event => {
                    if let Claim::Granted(grant) = self.claim().await? {
                        return Ok(grant);
                    }
                }
                Wake::Beat => {}
                Wake::Unwatched => sleep(pace.after(since).min(self.until_due())).await,
            }
        }
    }

    /// Watches the key before ours and our own, from now. Without a watch the beats still find what happened.
    async fn watch_place(&self, before: Option<Vec<u8>>) -> Option<Watching> {
        let keys: Vec<_> = before.into_iter().chain([self.own().into_bytes()]).collect();
        self.members.call(self.attempt(), async |client| Watching::open(client, &keys, 0).await).await.ok()
    }

    async fn look_or_renew(&self) -> Result<Look, Failure> {
        if self.until_due().is_zero() {
            let (_, look) = self.prove(self.round(), Scope::Place).await?;
            return Ok(look);
        }
        self.look(Scope::Place).await
    }

    fn until_due(&self) -> Duration {
        self.standing.get().due.since(clock::now())
    }

    async fn wake(&self, watching: Option<&mut Watching>, moves: &mut Receiver<u64>) -> Wake {
        let Some(watching) = watching else { return Wake::Unwatched };
        tokio::select! {
            events = watching.events() => if events.is_ok() { Wake::Event } else { Wake::Unwatched },
            _ = moves.changed() => Wake::Unwatched,
            () = sleep(self.until_due()) => Wake::Beat,
        }
    }

    /// Makes the lock ours if every key in the queue is ours or younger, and ours is still what it was: one
    /// transaction proves it all.
    pub(super) async fn claim(&self) -> Result<Claim, Failure> {
        let claimed = self.members.call(self.round(), async |client| self.claim_with(client).await).await;
        match claimed.map_err(|trouble| failure(&trouble))? {
            Ok(None) => self.grant().map(Claim::Granted).map_err(|trouble| failure(&trouble)),
            Ok(before) => {
                self.before.replace(before);
                Ok(Claim::Behind)
            }
            Err(lost) => Err(Failure::Lost(lost)),
        }
    }

    /// The key that is still before ours, if one is; the inner error tells why our place is gone.
    async fn claim_with(&self, mut client: Client) -> Result<Result<Option<Vec<u8>>, String>, Trouble> {
        let unclear = || Trouble::unavailable("its answer cannot be understood");
        let standing = self.standing.get();
        let own = self.own();
        let nothing_older =
            Compare::create_revision(self.keys.queue.as_str(), CompareOp::Greater, standing.revision - 1).with_prefix();
        let ours = Compare::create_revision(own.as_str(), CompareOp::Equal, standing.revision);
        let our_lease = Compare::lease(own.as_str(), CompareOp::Equal, standing.lease);
        // Without naming the lease again the put would make the key immortal.
        let bound = PutOptions::new().with_lease(standing.lease);
        let txn = Txn::new()
            .when([nothing_older, ours, our_lease])
            .and_then([TxnOp::put(own.as_str(), self.value(State::Holder), Some(bound))])
            .or_else([TxnOp::get(self.keys.queue.as_str(), Some(self.place()))]);
        let answer = client.txn(txn).await?;
        let header = answer.header().ok_or_else(unclear)?;
        self.note(|s| s.cluster = header.cluster_id());
        if answer.succeeded() {
            self.note(|s| s.seen = s.seen.max(header.revision()));
            return Ok(Ok(None));
        }
        let found = answer.op_responses();
        let Some(TxnOpResponse::Get(found)) = found.first() else { return Err(unclear()) };
        let (key, before) = read_place(found, &own);
        if let Err(lost) = still_ours(key, standing.revision, standing.lease) {
            return Ok(Err(lost));
        }
        // Ours, and nothing older any more: it left between the comparison and now, or never was.
        before.map(|key| Ok(Some(key))).ok_or_else(|| Trouble::unavailable("its answers contradict each other"))
    }
}
