//! fenced's side of the guard: fork it, order it, hear from it, and take over from it.

use super::terms::{Deadlines, Report, Spec, Start};
use super::tree::{self, Chase, Tree};
use super::wire::{self, Order};
use super::{serve, spawn};
use crate::sys::clock::now;
use crate::sys::socket::{self, Received};
use crate::sys::{proc, ready, timer};
use crate::timing::Moment;
use nix::errno::Errno;
use nix::sys::socket::{Shutdown, shutdown};
use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// How long a take-over goes on at least, however late it is: the guard has to be gone before its tree comes to us.
const TAKE_OVER: Duration = Duration::from_millis(200);
/// How long a guard with nothing to do may take to end.
const SEEING_OFF: Duration = Duration::from_millis(200);
/// Between two looks at the dying.
const PAUSE: Duration = Duration::from_micros(300);

/// The guard, as fenced sees it.
#[derive(Debug)]
pub struct Guard {
    pid: i32,
    socket: Arc<OwnedFd>,
    readable: OnceLock<AsyncFd<Arc<OwnedFd>>>,
    /// The children that this process had before, as after `sidecar & exec fenced …`.
    before: Vec<(i32, u64)>,
    /// It has a command, or something of one, and has not said that it is done.
    busy: Cell<bool>,
    /// For the next report; made with the first.
    buffer: RefCell<Vec<u8>>,
}

impl Guard {
    /// Forks the guard. Call it before any thread, runtime or large heap exists.
    ///
    /// # Errors
    /// What the kernel refused: a subreaper, a socket pair, a process.
    pub fn fork(spec: Spec) -> io::Result<Self> {
        nix::sys::prctl::set_child_subreaper(true)?;
        let before = tree::children();
        let (ours, theirs) = socket::pair()?;
        // The guard sees fenced's end by the last copy of `ours` closing, so it must not keep one.
        let (pid, ours) = spawn::guard(ours, move || serve::serve(&theirs, spec))?;
        Ok(Self {
            pid: pid.as_raw(),
            socket: Arc::new(ours),
            readable: OnceLock::new(),
            before,
            busy: Cell::new(false),
            buffer: RefCell::default(),
        })
    }

    /// The guard's process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it has a command, or something of one, and has not said that it is done.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.busy.get()
    }

    /// Orders the guard to start the command.
    ///
    /// # Errors
    /// When the guard cannot be told: it is gone (`EPIPE`), the variables are too long (`E2BIG`), or one of them cannot be
    /// one (`EINVAL`).
    pub fn start(&self, start: &Start<'_>) -> io::Result<()> {
        let names = start.set.iter().map(|(name, _)| name);
        if names.clone().any(|name| name.is_empty() || name.as_bytes().contains(&b'=') || has_nul(name))
            || start.set.iter().any(|(_, value)| has_nul(value))
        {
            return Err(Errno::EINVAL.into());
        }
        let (set, remove) = (start.set.clone(), start.remove.clone());
        let order = Order::Start { set, remove, deadlines: start.deadlines }.encode();
        if order.len() > wire::LONGEST_ORDER {
            return Err(Errno::E2BIG.into());
        }
        self.busy.set(true);
        match socket::send(self.socket.as_fd(), &order, start.descriptor) {
            Err(Errno::EMSGSIZE) => Err(Errno::E2BIG.into()),
            told => told.map_err(io::Error::from),
        }
    }

    /// Moves the deadlines after a renewal.
    pub fn renewed(&self, deadlines: Deadlines) {
        // What a guard that does not read misses leaves it with the earlier deadlines.
        let _ = self.send(&Order::Renewed(deadlines));
    }

    /// Forwards a signal to the command (or its group, when it has one of its own).
    pub fn signal(&self, signal: i32) {
        let _ = self.send(&Order::Signal(signal));
    }

    /// Orders the end: stop signal now, SIGKILL at min(now + grace, `dead_by`).
    pub fn stop(&self) {
        self.insist(&Order::Stop);
    }

    /// Orders the end at once: SIGKILL to the whole tree.
    pub fn kill(&self) {
        self.insist(&Order::Kill);
    }

    fn send(&self, order: &Order) -> nix::Result<()> {
        socket::send(self.socket.as_fd(), &order.encode(), None)
    }

    /// Sends an order that must not get lost: wakes a guard that was stopped, and ends one that has not read for so long
    /// that the socket is full. The command dies with it, and [`Report::Gone`] says so.
    fn insist(&self, order: &Order) {
        let sent = self.send(order);
        if self.is_ours() {
            proc::signal(self.pid, if sent == Err(Errno::EAGAIN) { libc::SIGKILL } else { libc::SIGCONT });
        }
    }

    /// Whether the guard's number still belongs to it: an unreaped child's does.
    fn is_ours(&self) -> bool {
        proc::Stat::of(self.pid).is_some_and(|stat| stat.parent == proc::pid())
    }

    /// Wakes the guard if it was stopped: to be called on SIGCHLD, which says so. Reaps nothing.
    pub fn wake(&self) {
        if proc::Stat::of(self.pid).is_some_and(|stat| stat.is_stopped_child_of(proc::pid())) {
            proc::signal(self.pid, libc::SIGCONT);
        }
    }

    /// The next report; [`Report::Gone`] when the guard has died. Safe to drop and call again. Needs a tokio runtime.
    pub async fn report(&self) -> Report {
        let Some(readable) = self.readable() else { return Report::Gone };
        loop {
            match self.received() {
                Received::Message(length, _) => {
                    if let Some(report) = wire::decode(&self.buffer.borrow()[..length]) {
                        if matches!(report, Report::Clear | Report::NotStarted { .. }) {
                            self.busy.set(false);
                        }
                        return report;
                    }
                }
                Received::TooLong | Received::Stripped => {}
                Received::Closed => return Report::Gone,
                Received::Nothing => match readable.readable().await {
                    Ok(mut ready) => ready.clear_ready(),
                    Err(_) => return Report::Gone,
                },
            }
        }
    }

    fn received(&self) -> Received {
        let mut buffer = self.buffer.borrow_mut();
        buffer.resize(wire::LONGEST_REPORT, 0);
        socket::receive(self.socket.as_fd(), &mut buffer)
    }

    fn readable(&self) -> Option<&AsyncFd<Arc<OwnedFd>>> {
        if self.readable.get().is_none() {
            let readable = ready::readable(Arc::clone(&self.socket)).ok()?;
            let _ = self.readable.set(readable);
        }
        self.readable.get()
    }

    /// When the guard is gone, or does not answer: ends it, and kills what came to this process since the start, until
    /// nothing is left or `until`, but for a fifth of a second at least. Returns what could not be killed, as `name (pid)`.
    pub fn take_over(&self, until: Moment) -> Vec<String> {
        let until = until.max(now() + TAKE_OVER);
        let mut tree = Tree::new(self.before.clone());
        let mut chase = Chase::begin(now());
        loop {
            chase.pass(&mut tree);
            if tree.reap() {
                return Vec::new();
            }
            if now() >= until {
                return tree.names(wire::MOST_NAMES);
            }
            timer::wait(&[], Some(PAUSE));
        }
    }
}

impl Drop for Guard {
    /// A guard with nothing to do ends with its socket; it is seen off, so that nothing of fenced outlives fenced.
    fn drop(&mut self) {
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
        if !self.busy.get()
            && let Some(handle) = proc::handle(self.pid)
        {
            timer::wait(&[handle.as_fd()], Some(SEEING_OFF));
            let _ = proc::reap(self.pid);
        }
    }
}

fn has_nul(text: &OsStr) -> bool {
    text.as_bytes().contains(&0)
}
