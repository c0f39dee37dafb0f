//! Giving the lock back: delete only what is still ours, wait for the answer, and then end the lease.

use super::keys::still_ours;
use super::store::{EtcdStore, failure};
use crate::etcd::failure::Trouble;
use crate::etcd::members::Limits;
use crate::store::contract::{Failure, Released};
use crate::sys::clock;
use crate::timing::Moment;
use etcd_client::{Client, Txn, TxnOp, TxnOpResponse};
use std::time::Duration;

/// How long a release may take to be answered: longer than an election.
const RELEASE: Duration = Duration::from_secs(5);
/// How long the lease's end may take to be answered.
const REVOKE: Duration = Duration::from_secs(2);
/// How much longer a store is asked that was silent already: the lease ends soon by itself.
const SILENT: Duration = Duration::from_secs(1);

impl EtcdStore {
    /// See [`Store::release`](crate::store::contract::Store::release). The transaction decides; the lease is ended only
    /// after its answer: when both are sent at once the lease may end first, and a clean end looks like a loss.
    pub(super) async fn give_back(&self, done: bool) -> Result<Released, Failure> {
        if self.standing.get().released {
            self.revoke().await.ok();
            return Ok(Released::Ours);
        }
        if self.standing.get().revision == 0 {
            return Ok(Released::NotOurs("the lock was not held".into()));
        }
        let limits = self.patience(RELEASE);
        let (record, unrecorded) = match if done { self.prepare_record().await } else { Ok(None) } {
            Ok(record) => (record, None),
            Err(trouble) => (None, Some(trouble.why().to_owned())),
        };
        let delete = async |client| Box::pin(self.delete_ours(client, record.clone())).await;
        let answer = self.members.insist(limits, delete).await;
        match &answer {
            Ok(Released::Ours) => self.note(|s| s.released = true),
            Ok(_) => self.drop_record().await,
            // Who did not answer this will not answer the next question either.
            Err(trouble @ Trouble::Unavailable { .. }) => return Err(failure(trouble)),
            Err(_) => {}
        }
        self.revoke().await.ok();
        match (answer, unrecorded) {
            (Ok(Released::Ours), Some(why)) => Ok(Released::Unrecorded(why)),
            (answer, _) => answer.map_err(|trouble| failure(&trouble)),
        }
    }

    /// `all` for a store that answers, [`SILENT`] for one that does not.
    fn patience(&self, all: Duration) -> Limits {
        let all = if self.members.are_silent() { SILENT } else { all };
        Limits { each: (all / 2).min(self.round().each), all }
    }

    /// With what is to be recorded, if anything is.
    async fn delete_ours(&self, mut client: Client, record: Option<TxnOp>) -> Result<Released, Trouble> {
        let standing = self.standing.get();
        if standing.released {
            return self.end_lease(client).await;
        }
        let own = self.own();
        let delete = TxnOp::delete(own.as_str(), None);
        let done: Vec<_> = [delete].into_iter().chain(record).collect();
        let txn = Txn::new().when(self.ours()).and_then(done).or_else([TxnOp::get(own, None)]);
        // From here on the request may be on its way, also when the caller drops us.
        let first = standing.releasing.unwrap_or_else(clock::now);
        self.note(|s| s.releasing = Some(first));
        let answer = match client.txn(txn).await.map_err(Trouble::from) {
            Ok(answer) => answer,
            Err(trouble) => {
                self.note(|s| s.releasing = standing.releasing.or(trouble.ambiguous().then_some(first)));
                return if trouble.is_full() { Box::pin(self.release_when_full(client)).await } else { Err(trouble) };
            }
        };
        if answer.succeeded() {
            return Ok(Released::Ours);
        }
        let found = answer.op_responses();
        let Some(TxnOpResponse::Get(found)) = found.first() else {
            return Err(Trouble::unavailable("its answer cannot be understood"));
        };
        self.note(|s| s.releasing = standing.releasing);
        let key = found.kvs().first();
        if key.is_none()
            && let Some(sent) = standing.releasing
            && Box::pin(self.was_released(client, sent)).await?
        {
            return Ok(Released::Ours);
        }
        let lost = still_ours(key, standing.revision, standing.lease).err();
        lost.map(Released::NotOurs).ok_or_else(|| Trouble::unavailable("its answers contradict each other"))
    }

    /// A full database takes no transaction on some versions (3.5.1), not even one that deletes; a lease may always be
    /// ended. What is ours now, with the tree dead, was held throughout, so that decides.
    async fn release_when_full(&self, mut client: Client) -> Result<Released, Trouble> {
        let standing = self.standing.get();
        let found = client.get(self.own(), None).await?;
        let key = found.kvs().first();
        if key.is_none()
            && let Some(sent) = standing.releasing
            && Box::pin(self.was_released(client.clone(), sent)).await?
        {
            return Ok(Released::Ours);
        }
        if let Err(lost) = still_ours(key, standing.revision, standing.lease) {
            return Ok(Released::NotOurs(lost));
        }
        self.note(|s| s.released = true);
        self.end_lease(client).await
    }

    async fn end_lease(&self, mut client: Client) -> Result<Released, Trouble> {
        match client.lease_revoke(self.standing.get().lease).await.map_err(Trouble::from) {
            Ok(_) | Err(Trouble::LeaseUnknown) => Ok(Released::Ours),
            Err(trouble) => Err(trouble),
        }
    }

    /// Whether it was a release of ours, first sent at `sent` and never answered, that took the key. It leaves the lease;
    /// where the lease is gone as well, it must have ended by its time, and the release have been sent before that.
    async fn was_released(&self, mut client: Client, sent: Moment) -> Result<bool, Trouble> {
        let left = client.lease_time_to_live(self.standing.get().lease, None).await?;
        let expiry = self.window().expiry;
        Ok(left.ttl() > 0 || (sent < expiry && clock::now() >= expiry))
    }

    /// See [`Store::withdraw`](crate::store::contract::Store::withdraw). Ending the lease is all: a request of ours that
    /// arrives late finds no lease to put a key under.
    pub(super) async fn leave(&self) -> Result<(), Failure> {
        self.revoke().await.map_err(|trouble| failure(&trouble))?;
        self.forget();
        Ok(())
    }

    async fn revoke(&self) -> Result<(), Trouble> {
        let standing = self.standing.get();
        if standing.asked.is_none() {
            return Ok(());
        }
        let revoked = self
            .members
            .insist(self.patience(REVOKE), async |mut client| {
                Ok(client.lease_revoke(standing.lease).await.map(drop)?)
            })
            .await;
        match revoked {
            Err(Trouble::LeaseUnknown) => Ok(()),
            other => other,
        }
    }
}
