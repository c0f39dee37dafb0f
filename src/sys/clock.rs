//! The boot clock, by the raw system call: a preloaded fake clock does not reach it, and it counts suspend.

#![expect(unsafe_code, reason = "the raw system call")]

use crate::timing::Moment;

/// Now, by `CLOCK_BOOTTIME`.
///
/// # Panics
/// When there is no boot clock: see [`is_there`].
#[must_use]
pub fn now() -> Moment {
    read().expect("the kernel has a boot clock")
}

/// Whether there is a boot clock: not before Linux 2.6.39, nor where a seccomp filter forbids `clock_gettime`.
#[must_use]
pub fn is_there() -> bool {
    read().is_some()
}

fn read() -> Option<Moment> {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to a valid pointer.
    let failed = unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_BOOTTIME, &raw mut spec) };
    let nanos = u64::try_from(spec.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(spec.tv_nsec).unwrap_or(0);
    (failed == 0).then_some(Moment(nanos))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_boot_clock_moves_forward() {
        let first = super::now();
        assert!(first.0 > 0 && super::now() >= first);
    }
}
