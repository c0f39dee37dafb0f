//! Timers on the boot clock, by the raw system calls: a preloaded fake clock does not reach them.

#![expect(unsafe_code, reason = "system calls that have no safe wrapper")]

use crate::timing::Moment;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

const NANOS: u64 = 1_000_000_000;

/// A descriptor that becomes readable at a moment, also when the machine was suspended in between.
#[derive(Debug)]
pub struct Wake(OwnedFd);

impl Wake {
    /// A timer that is not set.
    ///
    /// # Errors
    /// Where the kernel has no timers on the boot clock (before Linux 3.15), or no descriptor is left.
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: no pointers; a descriptor that was returned is new and owned by nobody else.
        unsafe {
            let fd = libc::syscall(libc::SYS_timerfd_create, libc::CLOCK_BOOTTIME, flags);
            let fd = i32::try_from(fd).unwrap_or(-1);
            if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(OwnedFd::from_raw_fd(fd))) }
        }
    }

    /// Sets the moment, or none; what was due before is forgotten.
    pub fn set(&self, at: Option<Moment>) {
        let spec = once(at);
        let none = ptr::null_mut::<libc::itimerspec>();
        // SAFETY: the kernel reads one itimerspec from a valid pointer.
        unsafe {
            let fd = self.0.as_raw_fd();
            libc::syscall(libc::SYS_timerfd_settime, fd, libc::TFD_TIMER_ABSTIME, &raw const spec, none);
        }
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Wake {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A timer that kills this process with SIGKILL at a moment, even when it is stopped.
#[derive(Debug)]
pub struct KillTimer(libc::c_int);

impl KillTimer {
    /// An alarm that is not set.
    ///
    /// # Errors
    /// Where the kernel has no timers on the boot clock, or none is left.
    pub fn new() -> io::Result<Self> {
        let mut id: libc::c_int = 0;
        // SAFETY: zeroed is a valid sigevent; the kernel reads it and writes one integer.
        let failed = unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_SIGNAL;
            event.sigev_signo = libc::SIGKILL;
            libc::syscall(libc::SYS_timer_create, libc::CLOCK_BOOTTIME, &raw mut event, &raw mut id)
        };
        if failed == 0 { Ok(Self(id)) } else { Err(io::Error::last_os_error()) }
    }

    /// Sets the moment, or none.
    pub fn set(&self, at: Option<Moment>) {
        let spec = once(at);
        let none = ptr::null_mut::<libc::itimerspec>();
        // SAFETY: the kernel reads one itimerspec from a valid pointer.
        unsafe { libc::syscall(libc::SYS_timer_settime, self.0, libc::TIMER_ABSTIME, &raw const spec, none) };
    }
}

impl Drop for KillTimer {
    fn drop(&mut self) {
        // SAFETY: no pointers; the id is ours.
        unsafe { libc::syscall(libc::SYS_timer_delete, self.0) };
    }
}

/// Absolute, without repetition; a zero disarms.
fn once(at: Option<Moment>) -> libc::itimerspec {
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let it_value = match at {
        Some(Moment(at)) if at != Moment::NEVER.0 => timespec(at.max(1)),
        _ => zero,
    };
    libc::itimerspec { it_interval: zero, it_value }
}

fn timespec(nanos: u64) -> libc::timespec {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    spec.tv_sec = (nanos / NANOS).try_into().unwrap_or(libc::time_t::MAX);
    spec.tv_nsec = (nanos % NANOS).try_into().unwrap_or(0);
    spec
}

/// Sleeps until one of at most eight descriptors is readable or closed, or the time is over. It counts no suspend.
pub fn wait(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) {
    let mut polled = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; 8];
    for (slot, fd) in polled.iter_mut().zip(fds) {
        slot.fd = fd.as_raw_fd();
    }
    let spec = timeout.map(|span| timespec(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)));
    let spec = spec.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: eight pollfds, of which negative ones are skipped; the timeout is null or one timespec; no mask.
    unsafe {
        let count = polled.len();
        libc::syscall(libc::SYS_ppoll, polled.as_mut_ptr(), count, spec, ptr::null::<libc::sigset_t>(), 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock::now;

    #[test]
    fn a_wake_is_readable_from_its_moment_on_and_not_after_it_was_unset() {
        let wake = Wake::new().unwrap();
        let at = now() + Duration::from_millis(20);
        wake.set(Some(at));
        wait(&[wake.as_fd()], Some(Duration::from_secs(10)));
        let woken = now();
        assert!(woken >= at && woken.since(at) < Duration::from_secs(9));
        wake.set(None);
        let before = now();
        wait(&[wake.as_fd()], Some(Duration::from_millis(20)));
        assert!(now().since(before) >= Duration::from_millis(20));
    }

    #[test]
    fn a_moment_that_has_passed_fires_at_once_and_never_does_not() {
        let wake = Wake::new().unwrap();
        wake.set(Some(Moment(0)));
        let before = now();
        wait(&[wake.as_fd()], Some(Duration::from_secs(10)));
        assert!(now().since(before) < Duration::from_secs(9));
        assert_eq!(once(Some(Moment::NEVER)).it_value.tv_sec, 0);
    }
}
