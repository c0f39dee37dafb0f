//! As process 1 of a pid namespace, as in a container.

use crate::support::run::{LocalStore, Running};
use crate::support::wait::SOON;
use crate::{bash, is_root};

fn unshared(store: &LocalStore, flags: &str, script: &str) -> Running {
    bash(store, &format!("exec unshare {flags} \"$F\" run --store \"$S\" --lock a -- sh -c '{script}'"))
}

#[test]
fn process_1_ends_with_the_commands_status_or_128_and_its_signal() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    unshared(&store, "-pf --kill-child --mount-proc", "exit 7").wait(SOON).exits(7);
    unshared(&store, "-pf --kill-child --mount-proc", "kill -TERM $$").wait(SOON).exits(143);
    unshared(&store, "-pf --kill-child --mount-proc", "kill -KILL $$").wait(SOON).exits(137);
}

#[test]
fn process_1_reaps_strangers() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    let wrapped = "\"$F\" run --store \"$S\" --lock a -- sh -c \"until [ -e $D/end ] && ! grep -q \\\") Z\\\" /proc/[0-9]*/stat; do sleep 0.02; done; exit 8\"";
    // What another process of the namespace leaves behind comes to process 1.
    let script = format!(
        "D=$(mktemp -d); export D; (exec unshare -pf --kill-child --mount-proc sh -c 'sh -c \"for n in 1 2 3; do (sleep 0.1 &) ; done; sleep 0.4; : >$D/end\" & exec {wrapped}'); rc=$?; rm -r $D; exit $rc"
    );
    bash(&store, &script).wait(SOON).exits(8);
}

#[test]
fn a_pid_namespace_without_its_own_proc_is_refused() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    let ended = unshared(&store, "-pf --kill-child", "exit 7").wait(SOON).exits(125);
    assert!(ended.stderr.contains("/proc is not that of this pid namespace"), "{}", ended.stderr);
}
