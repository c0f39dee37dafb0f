//! Renewing: a keepalive, then a linearizable read, one after the other, in one term. Anything less proves nothing.

use super::keys::still_ours;
use super::store::{EtcdStore, failure};
use crate::etcd::failure::Trouble;
use crate::etcd::members::Limits;
use crate::store::contract::Failure;
use crate::sys::clock;
use crate::timing::{Lease, Moment};
use etcd_client::{Client, GetOptions, GetResponse, KeyValue, SortOrder, SortTarget};
use std::time::Duration;

/// A keepalive's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alive {
    /// Before the keepalive was sent.
    pub sent: Moment,
    /// As granted, in seconds.
    pub ttl: i64,
    /// The answering member's term.
    pub term: u64,
}

/// What a linearizable read showed of our place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// The answering member's term.
    pub term: u64,
    /// The store's revision that was read.
    pub revision: i64,
    /// Our key is there, with our `create_revision` and our lease; else why not.
    pub ours: Result<(), String>,
    /// The newest key that is older than ours, where that was asked for.
    pub before: Option<Vec<u8>>,
}

/// How much a look has to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Our own key.
    Own,
    /// Our own key and the one before it.
    Place,
}

/// The lease that a keepalive and a read sent after its answer prove, if they do.
///
/// A leader that was frozen and thawed answers a keepalive by its old lease table, and then, as a follower, a correct
/// read. The keepalive's term is at most the renewing leader's, the read's at least the confirming leader's: when they
/// are equal it was one leadership, and any later one gives the full ttl anew.
pub(super) fn proves(alive: Option<Alive>, read_term: u64) -> Option<Lease> {
    let alive = alive.filter(|a| a.term == read_term && a.term > 0)?;
    let ttl = u64::try_from(alive.ttl).ok().filter(|&ttl| ttl > 0)?;
    Some(Lease { sent: alive.sent, ttl: Duration::from_secs(ttl) })
}

impl EtcdStore {
    /// See [`Store::renew`](crate::store::contract::Store::renew).
    pub(super) async fn beat(&self) -> Result<Lease, Failure> {
        let (lease, _) = self.prove(self.attempt(), Scope::Own).await?;
        Ok(lease)
    }

    /// Renews and proves that our key is ours. `Lost` rests on a read, never on what a keepalive said.
    pub(super) async fn prove(&self, limits: Limits, scope: Scope) -> Result<(Lease, Look), Failure> {
        let proof = self.members.call(limits, async |client| Box::pin(self.prove_with(client, scope)).await).await;
        let (lease, look) = proof.map_err(|trouble| failure(&trouble))?;
        look.ours.clone().map_err(Failure::Lost)?;
        let lease = lease.ok_or_else(|| Failure::Unavailable("the renewal proved nothing".into()))?;
        self.proved(lease);
        self.note(|s| s.seen = s.seen.max(look.revision));
        Ok((lease, look))
    }

    /// Twice where terms differ or the lease is not known: an election may just have ended.
    async fn prove_with(&self, client: Client, scope: Scope) -> Result<(Option<Lease>, Look), Trouble> {
        let mut doubt = "";
        for _ in 0..2 {
            let alive = match keep_alive(client.clone(), self.standing.get().lease).await {
                Ok(alive) => Some(alive),
                Err(Trouble::LeaseUnknown) => None,
                Err(other) => return Err(other),
            };
            let look = self.look_with(client.clone(), scope).await?;
            let lease = proves(alive, look.term);
            if look.ours.is_err() || lease.is_some() {
                return Ok((lease, look));
            }
            doubt = match alive {
                Some(_) => "its cluster changed leaders during the renewal",
                None => "it does not know the lease, though the lock's key is there",
            };
        }
        Err(Trouble::unavailable(doubt))
    }

    /// A lease was granted, or renewed and proven.
    pub(super) fn proved(&self, lease: Lease) {
        self.note(|s| {
            s.proven = Some(lease);
            s.assumed = false;
        });
        let beat = self.window().beat;
        let jitter = beat.since(lease.sent).mul_f64(0.1 * fastrand::f64());
        self.note(|s| s.due = beat - jitter);
    }

    /// One linearizable read of our place, without a renewal.
    pub(super) async fn look(&self, scope: Scope) -> Result<Look, Failure> {
        let look = self.members.call(self.round(), async |client| self.look_with(client, scope).await).await;
        let look = look.map_err(|trouble| failure(&trouble))?;
        look.ours.clone().map_err(Failure::Lost)?;
        self.note(|s| s.seen = s.seen.max(look.revision));
        Ok(look)
    }

    async fn look_with(&self, mut client: Client, scope: Scope) -> Result<Look, Trouble> {
        let own = self.own();
        let answer = match scope {
            Scope::Own => client.get(own.as_str(), None).await?,
            Scope::Place => client.get(self.keys.queue.as_str(), Some(self.place())).await?,
        };
        let header = answer.header().ok_or_else(|| Trouble::unavailable("its answer has no header"))?;
        let standing = self.standing.get();
        let (ours, before) = read_place(&answer, &own);
        Ok(Look {
            term: header.raft_term(),
            revision: header.revision(),
            ours: still_ours(ours, standing.revision, standing.lease),
            before,
        })
    }

    /// Our own key and the newest that is older, over the whole queue. One range and not a transaction of two: etcd 3.5.1
    /// dies when a client drops a transaction that only reads.
    pub(super) fn place(&self) -> GetOptions {
        GetOptions::new()
            .with_prefix()
            .with_max_create_revision(self.standing.get().revision)
            .with_sort(SortTarget::Create, SortOrder::Descend)
            .with_limit(2)
    }
}

/// What a read of [`EtcdStore::place`], or of our own key alone, showed: our own key, and the key before it.
pub(super) fn read_place<'a>(answer: &'a GetResponse, own: &str) -> (Option<&'a KeyValue>, Option<Vec<u8>>) {
    match answer.kvs() {
        [ours, older @ ..] if ours.key() == own.as_bytes() => (Some(ours), older.first().map(|key| key.key().to_vec())),
        _ => (None, None),
    }
}

/// A keepalive on a stream of its own. The client hides the header of the first answer, so it is asked twice.
async fn keep_alive(mut client: Client, lease: i64) -> Result<Alive, Trouble> {
    let sent = clock::now();
    let (mut keeper, mut answers) = client.lease_keep_alive(lease).await?;
    keeper.keep_alive().await?;
    let answer = answers.message().await?.ok_or_else(|| Trouble::unavailable("it ended the renewal unanswered"))?;
    let term = answer.header().map_or(0, etcd_client::ResponseHeader::raft_term);
    if answer.ttl() <= 0 {
        return Err(Trouble::LeaseUnknown);
    }
    Ok(Alive { sent, ttl: answer.ttl(), term })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALIVE: Alive = Alive { sent: Moment(5), ttl: 30, term: 7 };

    #[test]
    fn a_keepalive_and_a_read_of_one_term_prove_the_lease_from_the_moment_it_was_sent() {
        assert_eq!(proves(Some(ALIVE), 7), Some(Lease { sent: Moment(5), ttl: Duration::from_secs(30) }));
    }

    #[test]
    fn answers_of_two_terms_prove_nothing_whichever_is_newer() {
        assert_eq!(proves(Some(ALIVE), 8), None);
        assert_eq!(proves(Some(ALIVE), 6), None);
    }

    #[test]
    fn a_read_without_a_keepalive_proves_nothing() {
        assert_eq!(proves(None, 7), None);
    }

    #[test]
    fn a_lease_of_no_time_and_a_term_that_is_missing_prove_nothing() {
        assert_eq!(proves(Some(Alive { ttl: 0, ..ALIVE }), 7), None);
        assert_eq!(proves(Some(Alive { ttl: -1, ..ALIVE }), 7), None);
        assert_eq!(proves(Some(Alive { term: 0, ..ALIVE }), 0), None);
    }
}
