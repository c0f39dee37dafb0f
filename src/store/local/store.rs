//! The store's contract, fulfilled by the queue of one lock file.

use super::file::LockFile;
use super::info;
use super::names::Names;
use super::once;
use super::place;
use super::queue::{Entry, Word};
use super::record::hex;
use super::waiter::Waiter;
use crate::name::LockName;
use crate::store::contract::{Contender, Failure, Grant, Interruption, Once, Place, Queue, Released, Remark, Store};
use crate::sys::clock;
use crate::sys::directory::Directory;
use crate::sys::watch::Watch;
use crate::timing::{Lease, Moment};
use crate::token::{Lineage, Token};
use hmac_sha256::Hash;
use std::cell::{Cell, OnceCell, RefCell};
use std::future::{pending, poll_fn};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For so long a held lock is not watched.
const SHORT: Duration = Duration::from_millis(50);
/// How often the path is looked at where nothing can watch it.
const LOOK: Duration = Duration::from_secs(3);

/// One contender for one lock of a directory.
pub struct Local {
    directory: PathBuf,
    overlay: bool,
    lock: LockName,
    contender: Contender,
    once: Option<Once>,
    wait: Option<Duration>,
    wait_until: OnceCell<Moment>,
    waiter: RefCell<Option<Waiter>>,
    held: OnceCell<(Entry, Grant)>,
    /// How a lock that was held has been given back.
    released: RefCell<Option<Released>>,
    watch: OnceCell<Option<Watch>>,
    /// The watch failed; look instead.
    blind: Cell<bool>,
}

impl Local {
    /// A contender for `lock` in the directory `dir`, which must exist. `wait_until` is when the caller gives up waiting,
    /// by the boot clock: a process that is stopped then and still in the queue a second later is killed.
    ///
    /// # Errors
    /// A sentence that names the directory and why it cannot be used.
    pub fn open(dir: &Path, lock: LockName, contender: Contender, wait: Option<Duration>) -> Result<Self, Failure> {
        let Directory { path, overlay, .. } = place::open(dir)?;
        Ok(Self {
            directory: path,
            overlay,
            lock,
            contender,
            once: None,
            wait,
            wait_until: OnceCell::new(),
            waiter: RefCell::default(),
            held: OnceCell::new(),
            released: RefCell::default(),
            watch: OnceCell::new(),
            blind: Cell::new(false),
        })
    }

    /// The same, with what is recorded when the run has been done.
    #[must_use]
    pub fn with_once(mut self, once: Option<Once>) -> Self {
        self.once = once;
        self
    }

    fn is_recorded(&self) -> Result<bool, Failure> {
        let Some(once) = &self.once else { return Ok(false) };
        once::is_recorded(&place::open(&self.directory)?, &Names::of(&self.lock).once(), once)
    }

    /// Whether the directory is on an overlay file system: its locks are then those of this container only.
    #[must_use]
    pub fn is_overlay(&self) -> bool {
        self.overlay
    }

    /// The directory, without symbolic links.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The next word of the thread that contends; the word that ends it has ended it.
    async fn word(&self) -> Option<Word> {
        let word = poll_fn(|context| match self.waiter.borrow_mut().as_mut() {
            Some(waiter) => waiter.poll(context).map(Some),
            None => std::task::Poll::Ready(None),
        })
        .await;
        if !matches!(word, Some(Word::Waiting(_)))
            && let Some(waiter) = self.waiter.take()
        {
            waiter.end();
        }
        word
    }

    fn hold(&self, entry: Entry) -> Result<Grant, Failure> {
        let lineage = Lineage::new(&lineage(entry.lineage));
        let (Some(token), Some(lineage)) = (Token::new(entry.number), lineage) else {
            let _ = entry.leave();
            return Err(entry.file.refused("its number is no token"));
        };
        let grant = Grant { token, lineage, lease: None, confirm: false, key: None };
        Ok(self.held.get_or_init(|| (entry, grant)).1.clone())
    }

    /// The lock that is held now.
    fn holding(&self) -> Option<&(Entry, Grant)> {
        self.held.get().filter(|_| self.released.borrow().is_none())
    }

    fn gone(entry: &Entry) -> String {
        format!("the lock file {} was removed or replaced", entry.file.path().display())
    }

    /// Gives back what is held, and remembers what was found.
    /// With `done`, what was done is on disk before anybody else can have the lock.
    fn give_back(&self, entry: &Entry, done: bool) -> Result<Released, Failure> {
        let ours = entry.file.in_place();
        let once = self.once.as_ref().filter(|_| done && ours == Ok(true));
        let recorded = once.map_or(Ok(()), |once| once::record(&entry.file, once));
        entry.leave()?;
        let released = match ours {
            Ok(true) => {
                recorded.map_or_else(|failure| Released::Unrecorded(failure.why().to_owned()), |()| Released::Ours)
            }
            Ok(false) => Released::NotOurs(Self::gone(entry)),
            Err(why) => {
                Released::NotOurs(format!("the lock file {} cannot be seen: {why:?}", entry.file.path().display()))
            }
        };
        self.released.replace(Some(released.clone()));
        Ok(released)
    }

    /// Resolves when the path may lead elsewhere.
    async fn shaken(&self) {
        match self.watch.get() {
            Some(Some(watch)) if !self.blind.get() => self.blind.set(watch.changed().await.is_err()),
            _ => tokio::time::sleep(LOOK).await,
        }
    }
}

impl Store for Local {
    fn lock(&self) -> &LockName {
        &self.lock
    }

    fn url(&self) -> String {
        place::url(&self.directory)
    }

    async fn contend(&self) -> Result<Place, Failure> {
        if self.waiter.borrow().is_none() && self.held.get().is_none() && self.is_recorded()? {
            return Ok(Place::Done);
        }
        if let Some((entry, grant)) = self.held.get() {
            let released = self.released.borrow().is_some();
            let spent = || entry.file.refused("this contender has given its lock back");
            return if released { Err(spent()) } else { Ok(Place::Granted(grant.clone())) };
        }
        if self.waiter.borrow().as_ref().is_some_and(|waiter| waiter.entry.is_some()) {
            return Ok(Place::Waiting);
        }
        if self.waiter.borrow().is_none() {
            let until = || self.wait.map_or(Moment::NEVER, |wait| clock::now() + wait);
            let wait_until = *self.wait_until.get_or_init(until);
            let waiter = Waiter::start(&self.directory, &self.lock, &self.contender, wait_until)?;
            self.waiter.replace(Some(waiter));
        }
        match self.word().await {
            Some(Word::Granted(entry)) => self.hold(entry).map(Place::Granted),
            Some(Word::Waiting(_)) => Ok(Place::Waiting),
            Some(Word::Failed(Failure::Lost(why))) => Err(Failure::Unavailable(why)),
            Some(Word::Failed(failure)) => Err(failure),
            None => Err(Failure::Unavailable("nothing was asked for".into())),
        }
    }

    async fn granted(&self) -> Result<Grant, Failure> {
        loop {
            if let Some((_, grant)) = self.holding() {
                return Ok(grant.clone());
            }
            match self.word().await {
                Some(Word::Granted(entry)) => return self.hold(entry),
                Some(Word::Waiting(_)) => {}
                Some(Word::Failed(failure)) => return Err(failure),
                None => return Err(Failure::Lost("there is no place in the queue".into())),
            }
        }
    }

    async fn renew(&self) -> Result<Lease, Failure> {
        let sent = clock::now();
        match self.holding() {
            Some((entry, _)) if entry.file.in_place()? => Ok(Lease { sent, ttl: Duration::MAX }),
            Some((entry, _)) => Err(Failure::Lost(Self::gone(entry))),
            None => Err(Failure::Lost("the lock is not held".into())),
        }
    }

    async fn remark(&self) -> Remark {
        pending().await
    }

    async fn interrupted(&self) -> Interruption {
        let Some((entry, _)) = self.holding() else { return pending().await };
        // To close a watch costs the kernel some 10 ms, which a short command need not pay: its release looks as well.
        if self.watch.get().is_none() {
            tokio::time::sleep(SHORT).await;
        }
        // The first look comes after the watch is there: nothing can happen unseen between the two.
        self.watch.get_or_init(|| Watch::over(&[entry.file.as_fd(), entry.file.directory.as_fd()]).ok());
        loop {
            if matches!(entry.file.in_place(), Ok(false)) {
                return Interruption::Lost(Self::gone(entry));
            }
            self.shaken().await;
        }
    }

    async fn recall(&self) -> Result<bool, Failure> {
        self.is_recorded()
    }

    async fn record(&self) -> Result<(), Failure> {
        match (self.holding(), &self.once) {
            (_, None) => Ok(()),
            (Some((entry, _)), Some(once)) if entry.file.in_place()? => once::record(&entry.file, once),
            (Some((entry, _)), _) => Err(Failure::Lost(Self::gone(entry))),
            (None, _) => Err(Failure::Lost("the lock is not held".into())),
        }
    }

    async fn release(&self, done: bool) -> Result<Released, Failure> {
        if let Some(released) = self.released.borrow().clone() {
            return Ok(released);
        }
        match self.held.get() {
            Some((entry, _)) => self.give_back(entry, done),
            None => self.withdraw().await.map(|()| Released::NotOurs("the lock was never granted".into())),
        }
    }

    async fn withdraw(&self) -> Result<(), Failure> {
        if let Some((entry, _)) = self.holding() {
            self.give_back(entry, false)?;
        }
        self.waiter.take().map_or(Ok(()), Waiter::withdraw)
    }

    async fn inspect(&self) -> Result<Queue, Failure> {
        match LockFile::open_to_look(&self.directory, &self.lock)? {
            Some(file) => {
                let lineage = file.read().ok().and_then(|record| Lineage::new(&lineage(record.lineage)));
                Ok(Queue { lineage, ..info::queue(&file)? })
            }
            None => Ok(Queue::default()),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.held.get().map(|(entry, _)| entry.file.as_fd())
    }
}

impl Drop for Local {
    /// A place that was waited for ends here. A lock that is held does not: the guard has a copy of the descriptor, and
    /// the command may still be running.
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            let _ = waiter.withdraw();
        }
    }
}

/// The record's random id, and a hash of the machine's: a copied disk image is another lineage.
fn lineage(id: [u8; 16]) -> String {
    let machine = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok())
        .unwrap_or_default();
    let hash = Hash::hash(format!("fenced lineage\0{}", machine.trim()).as_bytes());
    format!("{}-{}", hex(&id), hex(&hash[..8]))
}
