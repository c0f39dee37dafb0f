//! Random bytes that nobody else has.

#![expect(unsafe_code, reason = "a system call without a safe wrapper")]

use std::fs::File;
use std::io::{self, Read};

/// Fills a short buffer (at most 256 bytes): from the kernel, or from `/dev/urandom` where the call is forbidden.
///
/// # Errors
/// When there is neither.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    // SAFETY: the kernel writes at most as many bytes as the buffer has.
    let length = unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) };
    if usize::try_from(length) == Ok(bytes.len()) {
        return Ok(());
    }
    File::open("/dev/urandom")?.read_exact(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_fillings_differ_in_all_of_their_parts() {
        let (mut first, mut second) = ([0; 256], [0; 256]);
        super::fill(&mut first).unwrap();
        super::fill(&mut second).unwrap();
        assert!(first.chunks(16).zip(second.chunks(16)).all(|(first, second)| first != second));
    }
}
