//! The store value: what is known of our own place, and the contract's methods, each of which is told in its own file.

use super::keys::{self, Keys};
use super::remark::Remarked;
use crate::etcd::credentials::Credentials;
use crate::etcd::failure::Trouble;
use crate::etcd::members::{Limits, Members};
use crate::name::LockName;
use crate::store::contract::{Contender, Failure, Grant, Interruption, Once, Place, Queue, Released, Remark, Store};
use crate::sys::clock;
use crate::timing::{Lease, Moment, Window};
use crate::token::Token;
use etcd_client::{GetOptions, SortOrder, SortTarget};
use std::cell::{Cell, RefCell};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The least that a call may take when no lease hangs on it: connecting over a bad link needs several round trips.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the lock is kept, and what is shown there.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// `host:port` each; the first is asked first.
    pub members: Vec<String>,
    /// Below which all keys are, without a slash at its end.
    pub prefix: String,
    /// Whether the members are spoken to by TLS.
    pub tls: bool,
    /// Certificates and the user.
    pub credentials: Credentials,
}

/// How a contender asks for the lock.
#[derive(Clone, Debug)]
pub struct Contention {
    /// What others see of it.
    pub contender: Contender,
    /// What is asked for, in whole seconds rounded up.
    pub ttl: Duration,
    /// Only bounds a renewal attempt.
    pub grace: Duration,
    /// Whether to ask the store for more than the lock needs: remarks on its version.
    pub curious: bool,
    /// What is recorded when the run has been done.
    pub once: Option<Once>,
}

/// One contention for one lock on an etcd cluster. Made without any I/O; needs a tokio runtime with timers.
#[derive(Debug)]
pub struct EtcdStore {
    pub(super) members: Members,
    pub(super) keys: Keys,
    pub(super) contention: Contention,
    /// What was remarked already.
    pub(super) remarked: Cell<Remarked>,
    url: String,
    pub(super) prefix: String,
    pub(super) lock: LockName,
    pub(super) standing: Cell<Standing>,
    /// The key that stood before ours when we last looked.
    pub(super) before: RefCell<Option<Vec<u8>>>,
}

/// What is known of our own place. Copied out and put back, so that no borrow is ever held across an await.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// The lease's id, of our own choosing so that a retried grant is safe; 0 before there is one.
    pub lease: i64,
    /// Before the first request for that lease was sent.
    pub asked: Option<Moment>,
    /// What the store last proved: granted, or renewed and then read in one term.
    pub proven: Option<Lease>,
    /// The ttl of `proven` is what was asked for; the store's own word is still missing.
    pub assumed: bool,
    /// When a waiter renews next.
    pub due: Moment,
    /// The `create_revision` of our key: the token. 0 before there is one.
    pub revision: i64,
    /// The store's revision when our key was last seen to be ours: a watch from the next one misses nothing.
    pub seen: i64,
    /// The cluster that answered.
    pub cluster: u64,
    /// When the first release was sent whose answer is not known.
    pub releasing: Option<Moment>,
    /// The lock was given back.
    pub released: bool,
    /// The lease that a key of `--once` is kept by, of our own choosing; 0 before there is one.
    pub keeping: i64,
}

impl EtcdStore {
    /// A contention for `lock` among the contenders of this cluster.
    ///
    /// # Errors
    /// `Refused` when there is no member.
    pub fn new(cluster: Cluster, lock: LockName, contention: Contention) -> Result<Self, Failure> {
        let Cluster { members, prefix, tls, credentials } = cluster;
        if members.is_empty() {
            return Err(Failure::Refused("--store names no etcd member".into()));
        }
        let keys = Keys::new(&prefix, &lock);
        let asked = Members::new(&members, credentials, format!("the prefix {prefix}/"));
        let mut addresses = members;
        addresses.sort();
        addresses.dedup();
        let scheme = if tls { "etcds" } else { "etcd" };
        Ok(Self {
            url: format!("{scheme}://{}{prefix}", addresses.join(",")),
            members: asked,
            keys,
            contention,
            prefix,
            lock,
            remarked: Cell::default(),
            standing: Cell::default(),
            before: RefCell::default(),
        })
    }

    /// Changes what is known of our place.
    pub(super) fn note(&self, change: impl FnOnce(&mut Standing)) {
        let mut standing = self.standing.get();
        change(&mut standing);
        self.standing.set(standing);
    }

    /// Our place is gone: the next contention begins with a new lease.
    pub(super) fn forget(&self) {
        self.standing.set(Standing::default());
        self.before.replace(None);
    }

    /// Our own key.
    pub(super) fn own(&self) -> String {
        self.keys.of(self.standing.get().lease)
    }

    /// The moments of the lease that was proven last, or of the one to ask for.
    pub(super) fn window(&self) -> Window {
        let asked_for = || Lease { sent: clock::now(), ttl: self.contention.ttl };
        Window::of(self.standing.get().proven.unwrap_or_else(asked_for), self.contention.grace)
    }

    /// For a renewal by a holder: one attempt in all, so that the caller's next one finds time left.
    pub(super) fn attempt(&self) -> Limits {
        let attempt = self.window().attempt;
        Limits { each: attempt, all: attempt }
    }

    /// For what no running command hangs on: each member gets its time.
    pub(super) fn round(&self) -> Limits {
        let each = self.window().attempt.max(PATIENCE);
        Limits { each, all: each * self.members.count() }
    }

    /// The lock is ours, by the store's own answer.
    pub(super) fn grant(&self) -> Result<Grant, Trouble> {
        let standing = self.standing.get();
        let token = Token::new(standing.revision);
        let lineage = keys::lineage(standing.cluster, &self.prefix);
        let (Some(token), Some(lineage)) = (token, lineage) else {
            return Err(Trouble::unavailable("the store's answer has no revision"));
        };
        // A lease past its beat may have no time left to start a command in: the caller renews first.
        let confirm = standing.assumed || clock::now() >= self.window().beat;
        Ok(Grant { token, lineage, lease: standing.proven, confirm, key: Some(self.own()) })
    }
}

/// What the caller does about it.
pub(super) fn failure(trouble: &Trouble) -> Failure {
    match trouble {
        Trouble::Refused(why) => Failure::Refused(why.clone()),
        other => Failure::Unavailable(other.why().to_owned()),
    }
}

impl Store for EtcdStore {
    fn lock(&self) -> &LockName {
        &self.lock
    }

    fn url(&self) -> String {
        self.url.clone()
    }

    async fn contend(&self) -> Result<Place, Failure> {
        if self.standing.get().asked.is_none() && self.is_recorded().await? {
            return Ok(Place::Done);
        }
        self.join().await
    }

    async fn granted(&self) -> Result<Grant, Failure> {
        self.wait().await
    }

    async fn renew(&self) -> Result<Lease, Failure> {
        self.beat().await
    }

    async fn interrupted(&self) -> Interruption {
        self.watch_own().await
    }

    async fn remark(&self) -> Remark {
        self.next_remark().await
    }

    async fn recall(&self) -> Result<bool, Failure> {
        self.is_recorded().await
    }

    async fn record(&self) -> Result<(), Failure> {
        self.record_now().await
    }

    async fn release(&self, done: bool) -> Result<Released, Failure> {
        self.give_back(done).await
    }

    async fn withdraw(&self) -> Result<(), Failure> {
        self.leave().await
    }

    async fn inspect(&self) -> Result<Queue, Failure> {
        let oldest_first = GetOptions::new().with_prefix().with_sort(SortTarget::Create, SortOrder::Ascend);
        let answer = self
            .members
            .call(self.round(), async |mut client| {
                Ok(client.get(self.keys.queue.as_str(), Some(oldest_first.clone())).await?)
            })
            .await;
        let found = answer.map_err(|trouble| failure(&trouble))?;
        let lineage = found.header().and_then(|header| keys::lineage(header.cluster_id(), &self.prefix));
        Ok(keys::queue(found.kvs(), lineage))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
