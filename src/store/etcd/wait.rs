//! Waiting until no key is left that is older than ours.
//!
//! The proof is one linearizable read that shows our key as it was and none older. It needs no transaction: what is
//! created later is younger, so once nothing older is there, nothing older comes, and the lock is ours until our key goes.

use super::renew::{Look, Scope};
use super::store::{EtcdStore, failure};
use super::watch::{Pace, Watching};
use crate::store::contract::{Failure, Grant};
use crate::sys::clock;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep};

/// Why a waiter woke up. None of it proves anything.
enum Wake {
    /// Something happened to one of the watched keys, or a renewal is due.
    Look,
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
            loop {
                let next = self.look_or_renew().await?.before;
                if next.is_none() {
                    return self.grant().map_err(|trouble| failure(&trouble));
                }
                let another = next != before;
                self.before.replace(next);
                if another {
                    break;
                }
                if let Wake::Unwatched = self.wake(watching.as_mut(), &mut moves).await {
                    sleep(pace.after(since).min(self.until_due())).await;
                    break;
                }
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
            events = watching.events() => if events.is_ok() { Wake::Look } else { Wake::Unwatched },
            _ = moves.changed() => Wake::Unwatched,
            () = sleep(self.until_due()) => Wake::Look,
        }
    }
}
