//! Descriptors that the user names: a status file, a status descriptor.

#![expect(unsafe_code, reason = "a descriptor's number comes from the command line")]

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Creates or empties a file for writing. A FIFO that nobody reads is an error, not a hang.
///
/// # Errors
/// What the kernel refused.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
}

/// A copy of the descriptor `number`, which the caller's parent opened for writing. Beyond the standard three the
/// original is meant for fenced alone and is not handed on to the command.
///
/// # Errors
/// When there is no such descriptor, or it cannot be written to.
pub fn adopt(number: i32) -> io::Result<File> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: borrowed for these calls only; that it may not be open is what they find out.
    let original = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = OFlag::from_bits_truncate(fcntl(original, FcntlArg::F_GETFL)?);
    if flags & OFlag::O_ACCMODE == OFlag::O_RDONLY {
        return Err(io::Error::other("not open for writing"));
    }
    let copy = fcntl(original, FcntlArg::F_DUPFD_CLOEXEC(3))?;
    if number > 2 {
        fcntl(original, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(copy) }))
}
