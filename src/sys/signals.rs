//! Signals to fenced: blocked before any thread exists, read with their sender, and the way to die of one.

#![expect(unsafe_code, reason = "dispositions of signals that nix has no name for (the real-time ones)")]

use crate::sys::ready;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;
use tokio::io::unix::AsyncFd;

/// A signal that was sent to fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its number.
    pub signal: i32,
    /// The kernel made it itself (a key, a hang-up): a foreground process group got it as a whole.
    pub by_kernel: bool,
    /// Who sent it; 0 for the kernel and for processes of another pid namespace.
    pub sender: i32,
}

/// The kernel raises these in the process that did wrong; blocking them would only hide the fault.
const FAULTS: [Signal; 7] =
    [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGTRAP, Signal::SIGABRT, Signal::SIGSYS];

fn handled() -> SigSet {
    let mut set = SigSet::all();
    for fault in FAULTS {
        set.remove(fault);
    }
    set
}

/// Blocks every signal that can be handled, so that none is lost between here and [`Signals::new`]. Before any thread.
///
/// # Errors
/// Never in practice.
pub fn block() -> io::Result<()> {
    Ok(pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&handled()), None)?)
}

/// The signals that arrive, one by one.
#[derive(Debug)]
pub struct Signals {
    source: AsyncFd<SignalFd>,
}

impl Signals {
    /// Needs a tokio runtime, and [`block`] before it.
    ///
    /// # Errors
    /// What the kernel refused (too many open files).
    pub fn new() -> io::Result<Self> {
        let source = SignalFd::with_flags(&handled(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { source: ready::readable(source)? })
    }

    /// The next signal. Safe to drop and call again.
    pub async fn next(&self) -> Received {
        loop {
            let Ok(mut ready) = self.source.readable().await else { return std::future::pending().await };
            match self.source.get_ref().read_signal() {
                Ok(Some(info)) => {
                    let received = Received {
                        signal: i32::try_from(info.ssi_signo).unwrap_or(0),
                        by_kernel: info.ssi_code > 0,
                        sender: i32::try_from(info.ssi_pid).unwrap_or(0),
                    };
                    if !is_echo(received, std::process::id()) {
                        return received;
                    }
                }
                _ => ready.clear_ready(),
            }
        }
    }
}

/// Whether a write of fenced's own raised it, to a peer that is gone or past a file size limit. The kernel raises these
/// in the writer's name; passed on, a connection that the store closed would kill the command.
fn is_echo(received: Received, own: u32) -> bool {
    matches!(received.signal, libc::SIGPIPE | libc::SIGXFSZ) && u32::try_from(received.sender) == Ok(own)
}

/// Stops this process by a signal of job control, so that its shell sees what it would without the wrapper; returns when
/// it is continued. The signal is one of those that [`block`] blocks, or SIGSTOP.
pub fn stop_self(signal: i32) {
    let Ok(signal) = Signal::try_from(signal) else { return };
    let _ = nix::sys::signal::raise(signal);
    let _ = SigSet::from(signal).thread_unblock();
    let _ = SigSet::from(signal).thread_block();
}

/// Ends this process by a signal, without a core file, so that a parent sees what it would without the wrapper.
/// Process 1 cannot die of a signal: it exits with 128+n.
pub fn die_of(signal: i32) -> ! {
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    // SAFETY: resets a disposition, unblocks and raises; the structures are valid and outlive the calls.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
    std::process::exit(128 + signal)
}
