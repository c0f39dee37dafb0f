//! The boot clock, by the raw system call: a preloaded fake clock does not reach it, and it counts suspend.

#![expect(unsafe_code, reason = "the raw system call")]

use crate::timing::Moment;

/// Now, by `CLOCK_BOOTTIME`.
///
/// # Panics
/// When the kernel has no boot clock (before Linux 2.6.39).
#[must_use]
pub fn now() -> Moment {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a valid pointer.
    let failed = unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_BOOTTIME, &raw mut spec) };
    assert_eq!(failed, 0, "the kernel has no boot clock");
    Moment(u64::try_from(spec.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(spec.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_boot_clock_moves_forward() {
        let first = super::now();
        assert!(first.0 > 0 && super::now() >= first);
    }
}
