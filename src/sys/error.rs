//! The kernel's errors in words that name what mends them.

use nix::errno::Errno;
use std::io;

/// An error as the end of a clause: lower case, without a number.
#[must_use]
pub fn in_words(error: &io::Error) -> String {
    match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
        Errno::EFBIG => "the limit on the size of files (ulimit -f) is too low".into(),
        Errno::EAGAIN => "the limit on processes (ulimit -u, or the pids limit of the container) may be reached".into(),
        Errno::EMFILE => "too many open files, the limit (ulimit -n) is too low".into(),
        Errno::UnknownErrno => error.to_string(),
        errno => errno.desc().to_lowercase(),
    }
}

/// Whether an error may be gone at another time: room, memory, descriptors.
#[must_use]
pub fn may_pass(error: &io::Error) -> bool {
    matches!(
        Errno::from_raw(error.raw_os_error().unwrap_or(0)),
        Errno::ENOSPC
            | Errno::EDQUOT
            | Errno::EIO
            | Errno::EMFILE
            | Errno::ENFILE
            | Errno::ENOMEM
            | Errno::ENOLCK
            | Errno::ENOENT
            | Errno::EAGAIN
            | Errno::EINTR
            | Errno::ESTALE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_limit_that_mends_it_or_is_what_the_kernel_calls_it() {
        let words = |errno: Errno| in_words(&io::Error::from(errno));
        assert!(
            words(Errno::EAGAIN).contains("ulimit -u, or the pids limit") && words(Errno::EMFILE).contains("ulimit -n")
        );
        assert_eq!(words(Errno::ENOSPC), "no space left on device");
        assert_eq!(in_words(&io::Error::other("not open for writing")), "not open for writing");
    }
}
