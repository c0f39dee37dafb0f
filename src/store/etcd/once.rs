//! Recording that a run has been done, in the transaction that gives the lock back, under a lease that keeps the record.

use super::store::{EtcdStore, failure};
use crate::etcd::failure::Trouble;
use crate::store::contract::{Failure, Once};
use etcd_client::{Client, Compare, CompareOp, LeaseGrantOptions, PutOptions, Txn, TxnOp};

impl EtcdStore {
    /// `PREFIX/once/LOCK/KEY`: a key belongs to its lock.
    fn once_key(&self, once: &Once) -> String {
        format!("{}/once/{}/{}", self.prefix, self.lock.encoded(), once.key.encoded())
    }

    pub(super) async fn is_recorded(&self) -> Result<bool, Failure> {
        let Some(once) = &self.contention.once else { return Ok(false) };
        let key = self.once_key(once);
        let look = async |mut client: Client| Ok(client.get(key.as_str(), None).await?.count() > 0);
        self.members.call(self.round(), look).await.map_err(|trouble| failure(&trouble))
    }

    /// Grants the lease that keeps the record. The record follows in a transaction, or the lease is given back.
    pub(super) async fn prepare_record(&self) -> Result<Option<TxnOp>, Trouble> {
        let Some(once) = &self.contention.once else { return Ok(None) };
        if self.standing.get().keeping == 0 {
            self.note(|s| s.keeping = fastrand::i64(1..=i64::MAX));
        }
        let lease = self.standing.get().keeping;
        let seconds = i64::try_from(once.keep.as_secs().max(1)).unwrap_or(i64::MAX);
        let grant = async |mut client: Client| {
            let chosen = LeaseGrantOptions::new().with_id(lease);
            match client.lease_grant(seconds, Some(chosen)).await.map(drop).map_err(Trouble::from) {
                Err(Trouble::LeaseExists) => Ok(()),
                granted => granted,
            }
        };
        self.members.call(self.round(), grant).await?;
        let value = serde_json::to_vec(&self.contention.contender).unwrap_or_default();
        Ok(Some(TxnOp::put(self.once_key(once), value, Some(PutOptions::new().with_lease(lease)))))
    }

    /// The record was not made: its lease is of no use.
    pub(super) async fn drop_record(&self) {
        let lease = self.standing.get().keeping;
        self.note(|s| s.keeping = 0);
        if lease != 0 {
            let revoke = async |mut client: Client| Ok(client.lease_revoke(lease).await.map(drop)?);
            self.members.call(self.round(), revoke).await.ok();
        }
    }

    /// Our key as it was when the lock became ours, under our lease.
    pub(super) fn ours(&self) -> [Compare; 2] {
        let (own, standing) = (self.own(), self.standing.get());
        [
            Compare::create_revision(own.as_str(), CompareOp::Equal, standing.revision),
            Compare::lease(own.as_str(), CompareOp::Equal, standing.lease),
        ]
    }

    pub(super) async fn record_now(&self) -> Result<(), Failure> {
        let put = self.prepare_record().await.map_err(|trouble| failure(&trouble))?;
        let Some(put) = put else { return Ok(()) };
        let txn = Txn::new().when(self.ours()).and_then([put]);
        let record = async |mut client: Client| Ok(client.txn(txn.clone()).await?.succeeded());
        if self.members.call(self.round(), record).await.map_err(|trouble| failure(&trouble))? {
            return Ok(());
        }
        self.drop_record().await;
        Err(Failure::Lost("the store does not have the lock's key any more".into()))
    }
}
