//! The thread that contends, seen from the runtime: it is started once, heard as often as somebody listens, and ended
//! before the command starts.

use super::file::failure;
use super::queue::{Contention, Entry, Word};
use crate::name::LockName;
use crate::store::contract::{Contender, Failure};
use crate::sys::clock;
use crate::sys::timer::KillTimer;
use crate::timing::Moment;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long past its own deadline a waiter that is stopped may keep its place.
const PATIENCE: Duration = Duration::from_secs(1);
/// Of the thread: it holds a directory entry and a record.
const STACK: usize = 128 * 1024;

/// A contention that is under way.
pub struct Waiter {
    words: mpsc::UnboundedReceiver<Word>,
    thread: JoinHandle<()>,
    withdrawn: Arc<AtomicBool>,
    /// Where our byte is locked, once that was told.
    pub entry: Option<Entry>,
    _alarm: Option<KillTimer>,
}

impl Waiter {
    /// Starts to contend. A process that is stopped past `wait_until` and a second is killed by the kernel, until this
    /// value is dropped: it would keep those behind it from their turn.
    ///
    /// # Errors
    /// `Unavailable` when there can be no thread.
    pub fn start(
        directory: &Path,
        lock: &LockName,
        contender: &Contender,
        wait_until: Moment,
    ) -> Result<Self, Failure> {
        let withdrawn = Arc::new(AtomicBool::new(false));
        let contention = Contention {
            directory: directory.to_owned(),
            lock: lock.clone(),
            contender: contender.clone(),
            withdrawn: Arc::clone(&withdrawn),
        };
        let (teller, words) = mpsc::unbounded_channel();
        // Best effort: a kernel without the timer has waiters that can be stopped.
        let alarm = (wait_until != Moment::NEVER).then(|| armed(wait_until.max(clock::now()) + PATIENCE)).flatten();
        let thread = thread::Builder::new()
            .name(lock.encoded())
            .stack_size(STACK)
            // Nobody listens any more after a withdrawal.
            .spawn(move || contention.run(&|word| drop(teller.send(word))))
            .map_err(|error| failure("the thread that waits cannot be started", &error))?;
        Ok(Self { words, thread, withdrawn, entry: None, _alarm: alarm })
    }

    /// The next word of the thread.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Word> {
        self.words.poll_recv(context).map(|word| match word {
            Some(Word::Waiting(entry)) => {
                self.entry = Some(entry.clone());
                Word::Waiting(entry)
            }
            Some(word) => word,
            None => Word::Failed(Failure::Unavailable("the thread that waits has ended".into())),
        })
    }

    /// Waits for the end of a thread that has told its last word.
    pub fn end(self) {
        let _ = self.thread.join();
    }

    /// Leaves the queue. The thread may be blocked in the kernel for as long as somebody older lives; what it locks then
    /// it gives back, and a close would not unlock what it waits in.
    ///
    /// # Errors
    /// As for an unlock.
    pub fn withdraw(mut self) -> Result<(), Failure> {
        self.withdrawn.store(true, Ordering::SeqCst);
        let mut left = self.entry.take().map_or(Ok(()), |entry| entry.leave());
        while let Ok(word) = self.words.try_recv() {
            if let Word::Waiting(entry) | Word::Granted(entry) = word {
                left = left.and(entry.leave());
            }
        }
        left
    }
}

/// Kills this process at a moment, even if it is stopped then.
fn armed(moment: Moment) -> Option<KillTimer> {
    KillTimer::new().ok().inspect(|alarm| alarm.set(Some(moment)))
}
