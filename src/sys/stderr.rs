//! A standard error that never blocks and never fails: a full pipe or a stopped terminal must not stop the renewals.
//! A pipe or terminal is opened again without blocking, and what does not fit is dropped; a plain file is written as it
//! is, since opening it again would lose its offset.

use nix::fcntl::{OFlag, open};
use nix::sys::socket::{MsgFlags, send};
use nix::sys::stat::{Mode, SFlag, fstat};
use std::io::{IsTerminal, stderr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Standard error, opened once.
#[derive(Debug)]
pub struct Stderr {
    way: Way,
}

#[derive(Debug)]
enum Way {
    Reopened(OwnedFd),
    AsItIs,
    Socket,
    Nowhere,
}

impl Stderr {
    /// Looks at what descriptor 2 is.
    #[must_use]
    pub fn open() -> Self {
        let Ok(what) = fstat(stderr()) else { return Self { way: Way::Nowhere } };
        let kind = SFlag::from_bits_truncate(what.st_mode & SFlag::S_IFMT.bits());
        let way = match kind {
            SFlag::S_IFSOCK => Way::Socket,
            SFlag::S_IFIFO => reopened().map_or(Way::Nowhere, Way::Reopened),
            _ if stderr().is_terminal() => reopened().map_or(Way::Nowhere, Way::Reopened),
            _ => Way::AsItIs,
        };
        Self { way }
    }

    /// Whether a person is likely to read along.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        stderr().is_terminal()
    }

    /// Writes one line in one go, or drops it.
    pub fn line(&self, text: &str) {
        let line = format!("{text}\n");
        let _ = match &self.way {
            Way::Reopened(descriptor) => nix::unistd::write(descriptor, line.as_bytes()),
            Way::AsItIs => nix::unistd::write(stderr().as_fd(), line.as_bytes()),
            Way::Socket => send(stderr().as_raw_fd(), line.as_bytes(), MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL),
            Way::Nowhere => Ok(0),
        };
    }
}

fn reopened() -> Option<OwnedFd> {
    let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    open("/proc/self/fd/2", flags, Mode::empty()).ok()
}
