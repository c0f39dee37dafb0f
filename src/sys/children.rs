//! Children that are not ours to manage: process 1 and a subreaper get strangers, and must not leave them as zombies.

use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};

/// So many at a time: a storm of the dying must not hold up the renewals.
const MOST: usize = 256;

/// Reaps dead children but `guard`, whose end has a meaning. Where more may be left it raises SIGCHLD again.
pub fn reap_strangers(guard: i32) {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    for _ in 0..MOST {
        let Ok(status) = waitid(Id::All, look) else { return };
        match status.pid() {
            Some(pid) if pid.as_raw() != guard && status != WaitStatus::StillAlive => {
                let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
            }
            _ => return,
        }
    }
    let _ = raise(Signal::SIGCHLD);
}
