//! Byte-range locks that belong to an open file description: they live as long as any copy of the descriptor does, in
//! whatever process, and end with the last one or by an explicit unlock.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use std::io;
use std::os::fd::AsFd;

/// What a lock excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Writers.
    Read,
    /// Readers and writers.
    Write,
}

/// A range of bytes of a file; the file need not reach that far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: i64,
    /// The number of bytes; 0 means to the end of all files.
    pub len: i64,
}

impl Span {
    /// One byte.
    #[must_use]
    pub const fn byte(at: i64) -> Self {
        Self { start: at, len: 1 }
    }

    /// Every byte from `start` on.
    #[must_use]
    pub const fn from(start: i64) -> Self {
        Self { start, len: 0 }
    }

    fn request(self, kind: i32) -> libc::flock {
        let l_type = libc::c_short::try_from(kind).unwrap_or(libc::c_short::MAX);
        let l_whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or(libc::c_short::MAX);
        libc::flock { l_type, l_whence, l_start: self.start, l_len: self.len, l_pid: 0 }
    }
}

impl Kind {
    fn request(self, span: Span) -> libc::flock {
        span.request(match self {
            Self::Read => libc::F_RDLCK,
            Self::Write => libc::F_WRLCK,
        })
    }
}

/// Takes a lock if it is free now; tells whether it was.
///
/// # Errors
/// As `fcntl(2)`: `EBADF` when the file is not open for the kind, `ENOLCK` when the kernel has no room.
pub fn try_lock(file: impl AsFd, kind: Kind, span: Span) -> io::Result<bool> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&kind.request(span))) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Takes a lock, blocking the thread until it is free.
///
/// # Errors
/// As for [`try_lock`].
pub fn lock(file: impl AsFd, kind: Kind, span: Span) -> io::Result<()> {
    let request = kind.request(span);
    loop {
        match fcntl(&file, FcntlArg::F_OFD_SETLKW(&request)) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Gives up whatever this open file description has locked in the range.
///
/// # Errors
/// As `fcntl(2)`: `ENOLCK` when a lock would have to be split and there is no room.
pub fn unlock(file: impl AsFd, span: Span) -> io::Result<()> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&span.request(libc::F_UNLCK)))?;
    Ok(())
}

/// One lock of others that stands in the way of such a lock of ours, not necessarily the first. Takes nothing, and
/// needs no permission but to open the file.
///
/// # Errors
/// As `fcntl(2)`.
pub fn conflict(file: impl AsFd, kind: Kind, span: Span) -> io::Result<Option<Span>> {
    let mut found = kind.request(span);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
    let free = i32::from(found.l_type) == libc::F_UNLCK;
    Ok((!free).then_some(Span { start: found.l_start, len: found.l_len }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn two_openings() -> (tempfile::NamedTempFile, File, File) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (one, other) = (file.reopen().unwrap(), file.reopen().unwrap());
        (file, one, other)
    }

    #[test]
    fn two_openings_in_one_process_exclude_each_other_and_a_copy_keeps_the_lock() {
        let (_file, one, other) = two_openings();
        assert!(try_lock(&one, Kind::Write, Span::byte(7)).unwrap());
        assert!(!try_lock(&other, Kind::Read, Span { start: 0, len: 10 }).unwrap());
        let copy = one.try_clone().unwrap();
        drop(one);
        assert_eq!(conflict(&other, Kind::Read, Span::from(0)).unwrap(), Some(Span::byte(7)));
        unlock(&copy, Span::from(0)).unwrap();
        assert!(try_lock(&other, Kind::Write, Span::from(0)).unwrap());
    }

    #[test]
    fn readers_share_and_looking_takes_nothing() {
        let (_file, one, other) = two_openings();
        assert!(try_lock(&one, Kind::Read, Span::from(0)).unwrap());
        assert!(try_lock(&other, Kind::Read, Span::from(0)).unwrap());
        assert_eq!(conflict(&one, Kind::Read, Span::from(0)).unwrap(), None);
        unlock(&other, Span::from(0)).unwrap();
        assert!(try_lock(&one, Kind::Write, Span::byte(0)).unwrap());
    }
}
