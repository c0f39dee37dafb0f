//! Joining the queue: a lease with an id of our own choosing, then one transaction that is safe under blind retry.

use super::keys::Value;
use super::store::{EtcdStore, failure};
use crate::etcd::failure::{Sent, Trouble};
use crate::store::contract::{Failure, Place};
use crate::sys::clock;
use crate::timing::Lease;
use etcd_client::{
    Client, Compare, CompareOp, GetOptions, LeaseGrantOptions, PutOptions, SortOrder, SortTarget, Txn, TxnOp,
    TxnOpResponse, TxnResponse,
};
use std::time::Duration;

/// How often a new lease may be lost before its first use.
const FRESH_LEASES: u32 = 3;

/// What the enqueue transaction found or did.
enum Enqueued {
    /// Nobody is before us: our key is the oldest.
    Holder,
    /// We stand behind this key.
    Behind(Vec<u8>),
    /// Our key is there under a lease that is not ours.
    Taken,
}

impl EtcdStore {
    /// See [`Store::contend`](crate::store::contract::Store::contend).
    pub(super) async fn join(&self) -> Result<Place, Failure> {
        for _ in 0..FRESH_LEASES {
            let joined = match self.ensure_lease().await {
                Ok(()) => self.enqueue().await,
                Err(trouble) => Err(trouble),
            };
            match joined {
                Ok(Enqueued::Holder) => return self.grant().map(Place::Granted).map_err(|t| failure(&t)),
                Ok(Enqueued::Behind(key)) => {
                    self.before.replace(Some(key));
                    return Ok(Place::Waiting);
                }
                // A transaction's word that the lease is unknown is certain: it went through the log.
                Ok(Enqueued::Taken) | Err(Trouble::LeaseUnknown) => self.forget(),
                Err(trouble) => return Err(failure(&trouble)),
            }
        }
        Err(Failure::Unavailable("the store lost each new lease before its first use".into()))
    }

    /// Asks for our lease, unless it was granted already.
    async fn ensure_lease(&self) -> Result<(), Trouble> {
        if self.standing.get().proven.is_some() {
            return Ok(());
        }
        if self.standing.get().lease == 0 {
            self.note(|s| s.lease = fastrand::i64(1..=i64::MAX));
        }
        let before = self.standing.get().asked;
        let asked = self.members.call(self.round(), async |client| self.ask_lease(client).await).await;
        let (lease, assumed) = asked.inspect_err(|trouble| {
            // A request that never left leaves nothing behind that leaving the queue would have to end.
            if matches!(trouble, Trouble::Unavailable { sent: Sent::Never, .. }) {
                self.note(|s| s.asked = before);
            }
        })?;
        self.proved(lease);
        self.note(|s| s.assumed = assumed);
        Ok(())
    }

    async fn ask_lease(&self, mut client: Client) -> Result<(Lease, bool), Trouble> {
        let seconds = whole_seconds(self.contention.ttl);
        let sent = clock::now();
        self.note(|s| s.asked = s.asked.or(Some(sent)));
        let standing = self.standing.get();
        let chosen = LeaseGrantOptions::new().with_id(standing.lease);
        let granted = client.lease_grant(seconds, Some(chosen)).await.map_err(Trouble::from);
        match granted {
            Ok(answer) => match u64::try_from(answer.ttl()) {
                Ok(ttl @ 1..) => Ok((Lease { sent, ttl: Duration::from_secs(ttl) }, false)),
                _ => Err(Trouble::unavailable("it granted a lease of no time")),
            },
            // An earlier try of ours: it may have been the first, and its ttl is not told.
            Err(Trouble::LeaseExists) => {
                let ttl = Duration::from_secs(seconds.unsigned_abs());
                Ok((Lease { sent: standing.asked.unwrap_or(sent), ttl }, true))
            }
            Err(other) => Err(other),
        }
    }

    async fn enqueue(&self) -> Result<Enqueued, Trouble> {
        let answer =
            self.members.call(self.round(), async |mut client| Ok(client.txn(self.enqueue_txn()).await?)).await?;
        self.understand(&answer).ok_or_else(|| Trouble::unavailable("the store's answer cannot be understood"))
    }

    /// Under blind retry `succeeded` alone decides nothing: the inner transaction tells what an earlier try had done.
    fn enqueue_txn(&self) -> Txn {
        let (own, queue) = (self.own(), self.keys.queue.as_str());
        let put = || {
            let bound = PutOptions::new().with_lease(self.standing.get().lease);
            TxnOp::put(own.as_str(), Value::encode(&self.contention.contender), Some(bound))
        };
        let first = |order| {
            let one = GetOptions::new().with_prefix().with_sort(SortTarget::Create, order).with_limit(1);
            TxnOp::get(queue, Some(one))
        };
        let not_there_yet = Compare::create_revision(own.as_str(), CompareOp::Equal, 0);
        let behind = Txn::new()
            .when([not_there_yet])
            .and_then([first(SortOrder::Descend), put()])
            .or_else([TxnOp::get(own.as_str(), None), first(SortOrder::Ascend)]);
        // A comparison over an empty range holds, and no key that exists was created at 0.
        let nobody_there = Compare::create_revision(queue, CompareOp::Equal, 0).with_prefix();
        Txn::new().when([nobody_there]).and_then([put()]).or_else([TxnOp::txn(behind)])
    }

    /// `None` when the answer is not of the form that was asked for.
    fn understand(&self, answer: &TxnResponse) -> Option<Enqueued> {
        let header = answer.header()?;
        let now = header.revision();
        self.note(|s| {
            s.cluster = header.cluster_id();
            s.seen = now;
        });
        if answer.succeeded() {
            self.note(|s| s.revision = now);
            return Some(Enqueued::Holder);
        }
        let Some(TxnOpResponse::Txn(inner)) = answer.op_responses().pop() else { return None };
        match (inner.succeeded(), inner.op_responses().as_slice()) {
            (true, [TxnOpResponse::Get(newest), _]) => {
                self.note(|s| s.revision = now);
                Some(Enqueued::Behind(newest.kvs().first()?.key().to_vec()))
            }
            (false, [TxnOpResponse::Get(ours), TxnOpResponse::Get(oldest)]) => {
                let (ours, oldest) = (ours.kvs().first()?, oldest.kvs().first()?);
                if ours.lease() != self.standing.get().lease {
                    return Some(Enqueued::Taken);
                }
                self.note(|s| s.revision = ours.create_revision());
                Some(if oldest.key() == ours.key() {
                    Enqueued::Holder
                } else {
                    // The oldest stands for the predecessor until the first look finds that one.
                    Enqueued::Behind(oldest.key().to_vec())
                })
            }
            _ => None,
        }
    }
}

fn whole_seconds(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis().div_ceil(1000)).unwrap_or(i64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_asked_for_in_whole_seconds_rounded_up() {
        for (ms, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (2500, 3), (300_000, 300)] {
            assert_eq!(whole_seconds(Duration::from_millis(ms)), seconds, "{ms}");
        }
    }
}
