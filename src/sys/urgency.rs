//! What lets the guard run when it must. All of it best effort, and none of it for the command: after its fork only.

#![expect(unsafe_code, reason = "the raw system call, since not every C library has the wrapper")]

use nix::sys::prctl::set_timerslack;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Asks for the lowest real-time priority, exact timers, descriptors and the mercy of the OOM killer, for this process
/// only. Returns whether the priority was given.
#[must_use]
pub fn take() -> bool {
    let _ = set_timerslack(1);
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    let lowest = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads one sched_param from a valid pointer.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const lowest) == 0 }
}
