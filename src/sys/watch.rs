//! Tells when a file may have lost its name: inotify on the open file itself, not on a path.

use crate::sys::ready;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use tokio::io::unix::AsyncFd;

/// A watch over open files. Needs a tokio runtime.
#[derive(Debug)]
pub struct Watch(AsyncFd<OwnedFd>);

impl Watch {
    /// Watches these open files (or directories) for being removed, replaced, renamed or changed in owner or mode.
    ///
    /// # Errors
    /// As `inotify_init1(2)` and `inotify_add_watch(2)`: the user's limits, or no `/proc`.
    pub fn over<F: AsFd>(files: &[F]) -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let events = AddWatchFlags::IN_ATTRIB | AddWatchFlags::IN_DELETE_SELF | AddWatchFlags::IN_MOVE_SELF;
        for file in files {
            let open = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
            inotify.add_watch(open.as_str(), events)?;
        }
        Ok(Self(ready::readable(OwnedFd::from(inotify))?))
    }

    /// Resolves when something has happened since the last time. Safe to drop and call again.
    ///
    /// # Errors
    /// When the watch itself failed.
    pub async fn changed(&self) -> io::Result<()> {
        let mut events = [0; 4096];
        loop {
            let mut ready = self.0.readable().await?;
            match nix::unistd::read(self.0.get_ref(), &mut events) {
                Ok(_) => return Ok(()),
                Err(Errno::EAGAIN) => ready.clear_ready(),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
