//! What fenced got from whoever started it: captured before std's runtime changes it, given back to the command.
//!
//! std ignores SIGPIPE and opens `/dev/null` on closed descriptors 0-2 before `main`, and aborts where there is none; an
//! `.init_array` function runs before that.

#![expect(unsafe_code, reason = "signal dispositions and descriptors between fork and exec")]

use std::ffi::{CStr, CString, c_char};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering::Relaxed};

const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;

/// One bit for each signal that was ignored, SIGHUP lowest.
static IGNORED: AtomicU64 = AtomicU64::new(0);
/// One bit for each signal that was blocked, as the kernel keeps it.
static BLOCKED: AtomicU64 = AtomicU64::new(0);
/// One bit for each of the descriptors 0-2 that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// fenced's process id: a fork keeps it.
static PID: AtomicI32 = AtomicI32::new(0);

unsafe extern "C" {
    static environ: *const *const c_char;
}

#[used]
#[unsafe(link_section = ".init_array")]
static CAPTURE: extern "C" fn() = capture;

extern "C" fn capture() {
    let mut ignored = 0;
    for signal in SIGNALS {
        // SAFETY: asks for a disposition, sets none; zeroed is a valid sigaction to be overwritten.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN {
                ignored |= bit(signal);
            }
        }
    }
    IGNORED.store(ignored, Relaxed);
    BLOCKED.store(mask(None), Relaxed);
    let mut closed = 0;
    for fd in 0..3 {
        // SAFETY: asks for a descriptor's flags; a closed one is an error.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            closed |= 1 << fd;
            // SAFETY: the paths end in a NUL; the lowest free number is the closed one, which nobody owns.
            unsafe {
                if libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) == -1 {
                    libc::open(c"/".as_ptr(), libc::O_RDONLY);
                }
            }
        }
    }
    CLOSED.store(closed, Relaxed);
    // SAFETY: asks for a number.
    PID.store(unsafe { libc::getpid() }, Relaxed);
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Sets the signal mask when there is one to set, and returns what it was. By the raw call: the C library hides two
/// signals of its own.
fn mask(new: Option<u64>) -> u64 {
    let mut old = 0u64;
    let new = new.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: both pointers are null or to eight bytes, which is the size that is passed.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, new, &raw mut old, 8) };
    old
}

/// Whether fenced was started with this signal ignored, as `nohup` does with SIGHUP.
#[must_use]
pub fn ignored(signal: i32) -> bool {
    SIGNALS.contains(&signal) && IGNORED.load(Relaxed) & bit(signal) != 0
}

/// Whether fenced was started with this one of the descriptors 0-2 closed.
#[must_use]
pub fn closed(fd: i32) -> bool {
    (0..3).contains(&fd) && CLOSED.load(Relaxed) & (1 << fd) != 0
}

/// The process id that fenced was started under, in its guard too.
#[must_use]
pub fn pid() -> i32 {
    PID.load(Relaxed)
}

/// The environment that fenced was started with, as it is, in its order. For a process with one thread.
#[must_use]
pub fn variables() -> Vec<CString> {
    let mut variables = Vec::new();
    // SAFETY: `environ` is null or a list of strings that ends in a null, and there is one thread, so nobody changes it.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            variables.push(CStr::from_ptr(*at).to_owned());
            at = at.add(1);
        }
    }
    variables
}

/// Gives dispositions, mask and closed descriptors back. For the command, between fork and exec: calls nothing but
/// the kernel.
pub fn give_back() {
    for signal in SIGNALS {
        let action = if ignored(signal) { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: no handler is installed; signals that cannot be set are refused by the call.
        unsafe { libc::signal(signal, action) };
    }
    mask(Some(BLOCKED.load(Relaxed)));
    for fd in (0..3).filter(|&fd| closed(fd)) {
        // SAFETY: only this process's copy of what std opened there is closed, and exec follows.
        unsafe { libc::close(fd) };
    }
}

/// Puts `/dev/null` on standard input and output, once the command has its copies: a reader of the command's output
/// then sees its end when the command ends, and not when fenced does.
pub fn let_go_of_stdio() {
    // A root without /dev/null still has itself; a closed descriptor would be taken by the next file that is opened.
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").or_else(|_| std::fs::File::open("/"));
    let Ok(null) = null else { return };
    for fd in 0..2 {
        // SAFETY: nothing in this process owns the descriptors 0 and 1; std only borrows them.
        unsafe { libc::dup2(null.as_raw_fd(), fd) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_captured_is_from_before_the_runtime_ignored_sigpipe() {
        // SAFETY: asks for a disposition only.
        let now = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGPIPE, ptr::null(), &raw mut action);
            action.sa_sigaction
        };
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        let ignored_now = u64::from_str_radix(line.trim(), 16).unwrap();
        assert_eq!(now, libc::SIG_IGN);
        assert_ne!(ignored_now & bit(libc::SIGPIPE), 0);
        // The C library keeps 32 and 33 to itself and touches them only once there are threads.
        let others = !(bit(libc::SIGPIPE) | bit(32) | bit(33));
        assert_eq!(ignored_now & others, IGNORED.load(Relaxed) & others);
    }

    #[test]
    fn numbers_that_are_no_signal_or_standard_descriptor_are_neither_ignored_nor_closed() {
        assert!(!ignored(0) && !ignored(65) && !ignored(-1));
        assert!(!closed(3) && !closed(-1));
    }
}
