//! The queue of one lock: how a contender gets its number and its byte, and how it waits until nobody older lives.
//!
//! Everything here blocks and runs in a thread of its own; a slow disk never holds up signals or deadlines.

use super::file::LockFile;
use super::info;
use crate::name::LockName;
use crate::store::contract::{Contender, Failure};
use crate::sys::ofd::{Kind, Span};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Contender n's byte is `FIRST + n`.
pub const FIRST: i64 = 4096;
/// Locked while a number is taken.
const MUTEX: Span = Span::byte(0);
/// Everybody's bytes, not the mutex.
pub const PLACES: Span = Span::from(FIRST);

/// Contender `number`'s own byte.
pub const fn place(number: i64) -> Span {
    Span::byte(FIRST + number)
}

/// The bytes of everybody older than contender `number`.
pub const fn before(number: i64) -> Span {
    Span { start: FIRST, len: number }
}

/// A place in the queue: the number, which is the token, and the file in which its byte is locked.
#[derive(Clone, Debug)]
pub struct Entry {
    pub file: Arc<LockFile>,
    pub number: i64,
    /// Random, from the record.
    pub lineage: [u8; 16],
}

impl Entry {
    /// Gives up the place, whether waited for or held.
    pub fn leave(&self) -> Result<(), Failure> {
        info::remove(self);
        self.file.unlock(PLACES)
    }
}

/// What is told on the way.
#[derive(Debug)]
pub enum Word {
    /// The place is taken, somebody older lives.
    Waiting(Entry),
    /// Nobody older lives.
    Granted(Entry),
    /// Nothing is taken.
    Failed(Failure),
}

/// One contention for a lock.
#[derive(Debug)]
pub struct Contention {
    pub directory: PathBuf,
    pub lock: LockName,
    pub contender: Contender,
    /// Set by who gives up. It is looked at after every lock that was taken, so that none outlives it: who sets it gives
    /// up the place as well, in case it had been taken before.
    pub withdrawn: Arc<AtomicBool>,
}

impl Contention {
    /// Contends until the lock is granted, telling how far it is; then ends, and the thread with it.
    pub fn run(&self, tell: &dyn Fn(Word)) {
        let entry = match self.enter() {
            Ok(entry) => entry,
            Err(failure) => return tell(Word::Failed(failure)),
        };
        match self.wait(&entry, tell) {
            Ok(()) => tell(Word::Granted(entry)),
            Err(failure) => {
                let _ = entry.leave();
                tell(Word::Failed(failure));
            }
        }
    }

    /// Takes a number and its byte.
    fn enter(&self) -> Result<Entry, Failure> {
        loop {
            let file = Arc::new(LockFile::open_or_make(&self.directory, &self.lock)?);
            if let Some(entry) = self.take(&file)? {
                info::write(&entry, &self.lock, &self.contender);
                return Ok(entry);
            }
        }
    }

    /// `None` when the file is not the lock's any more.
    fn take(&self, file: &Arc<LockFile>) -> Result<Option<Entry>, Failure> {
        file.lock(Kind::Write, MUTEX)?;
        self.still_wanted()?;
        if !file.in_place()? {
            return Ok(None);
        }
        let record = file.read()?.next().map_err(|why| file.refused(&why))?;
        if file.conflict(Kind::Read, Span::from(FIRST + record.number))?.is_some() {
            return Err(file.refused("it is older than a contender that still lives, as if restored from a copy"));
        }
        file.write(&record)?;
        // The byte before the mutex goes: who has the next number must find this one taken.
        file.lock(Kind::Write, place(record.number))?;
        file.unlock(MUTEX)?;
        self.still_wanted()?;
        Ok(Some(Entry { file: Arc::clone(file), number: record.number, lineage: record.lineage }))
    }

    /// Waits until nobody older lives. The lock on all their bytes together is the only proof; to wait for the nearest
    /// first spares the kernel from waking the whole queue at each hand-over.
    fn wait(&self, entry: &Entry, tell: &dyn Fn(Word)) -> Result<(), Failure> {
        let file = &entry.file;
        let mut told = false;
        while !file.try_lock(Kind::Read, before(entry.number))? {
            if !told {
                tell(Word::Waiting(entry.clone()));
                told = true;
            }
            // After it was told, or a withdrawal in between would leave the place taken for as long as this blocks.
            self.still_wanted()?;
            if let Some(nearest) = nearest_before(entry)? {
                file.lock(Kind::Read, nearest)?;
            }
        }
        self.still_wanted()?;
        if file.in_place()? {
            return Ok(());
        }
        let path = file.path();
        Err(Failure::Lost(format!("the lock file {} was removed or replaced while waiting", path.display())))
    }

    fn still_wanted(&self) -> Result<(), Failure> {
        let gone = self.withdrawn.load(Ordering::SeqCst);
        if gone { Err(Failure::Lost("withdrawn".into())) } else { Ok(()) }
    }
}

/// The youngest of those who are older: mostly the one with the number before.
fn nearest_before(entry: &Entry) -> Result<Option<Span>, Failure> {
    let end = FIRST + entry.number;
    let last = Span::byte(end - 1);
    if entry.file.conflict(Kind::Read, last)?.is_some() {
        return Ok(Some(last));
    }
    let mut nearest = None;
    let mut from = FIRST;
    while from < end {
        let Some(found) = entry.file.conflict(Kind::Read, Span { start: from, len: end - from })? else { break };
        // A stranger may have locked more than one byte: what counts is the first of them in our range.
        let at = found.start.max(from);
        nearest = Some(Span::byte(at));
        from = at + 1;
    }
    Ok(nearest)
}
