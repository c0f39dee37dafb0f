//! In a sandbox: system calls that a filter forbids, a /proc that hides other users' processes.

use crate::support::etcd::{Cluster, Version};
use crate::support::processes;
use crate::support::run::{LocalStore, Running, binary};
use crate::support::wait::SOON;
use crate::{bash, is_root};
use nix::libc;
use std::fs;
use std::os::unix::fs::chown;
use std::process::{Command, Stdio};

/// Forbids system calls by their numbers with an error number, and executes the words after these two.
const FILTER: &str = r#"
import ctypes, os, struct, sys
errno, numbers, words = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
step = lambda code, yes, no, value: struct.pack("HBBI", code, yes, no, value)
code = step(0x20, 0, 0, 0)
for number in numbers:
    code += step(0x15, 0, 1, int(number)) + step(0x06, 0, 0, 0x50000 | errno)
code += step(0x06, 0, 0, 0x7FFF0000)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None)
program = Program(len(code) // 8, code)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execvp(words[0], words)
"#;

/// What is best effort, each for itself and all at once.
const BEST_EFFORT: [&[libc::c_long]; 6] = [
    &[libc::SYS_sched_setscheduler],
    &[libc::SYS_timer_create],
    &[libc::SYS_timerfd_create],
    &[libc::SYS_pidfd_open, libc::SYS_pidfd_send_signal],
    &[libc::SYS_inotify_init1, libc::SYS_getrandom],
    &[
        libc::SYS_sched_setscheduler,
        libc::SYS_timer_create,
        libc::SYS_timerfd_create,
        libc::SYS_pidfd_open,
        libc::SYS_pidfd_send_signal,
        libc::SYS_inotify_init1,
        libc::SYS_getrandom,
    ],
];

fn without(calls: &[libc::c_long], errno: i32, words: &[&str]) -> Running {
    let numbers: Vec<String> = calls.iter().map(ToString::to_string).collect();
    let mut command = Command::new("python3");
    command.args(["-c", FILTER, &errno.to_string(), &numbers.join(","), &binary(), "run", "--lock", "a"]).args(words);
    command.env_remove("FENCED_HELD").stdin(Stdio::null());
    Running::start(command, processes::new_mark())
}

#[test]
fn a_filter_that_forbids_what_is_best_effort_changes_nothing_about_a_run() {
    for calls in BEST_EFFORT {
        for errno in [libc::EPERM, libc::ENOSYS] {
            let store = LocalStore::new();
            let go = store.path().join("go");
            let script = format!(
                "(setsid sleep 1032 &) ; grep -c ^Seccomp:.*2 /proc/self/status; until [ -e {} ]; do sleep 0.02; done; exit 3",
                go.display()
            );
            let words = ["--store", &store.to_string(), "--grace", "1s", "--", "sh", "-c", &script];
            let mut run = without(calls, errno, &words);
            run.prints("1\n");
            fs::write(go, "").unwrap();
            run.gone(SOON);
            let ended = run.wait(SOON).exits(3);
            assert!(ended.stdout == "1\n" && ended.stderr.contains("background processes"), "{calls:?} {ended:?}");
            assert_eq!(ended.stderr.lines().count(), 1, "{calls:?} {ended:?}");
        }
    }
}

#[test]
fn a_filter_that_forbids_what_is_best_effort_does_not_let_a_tree_outlive_its_lease() {
    let cluster = Cluster::single(Version::V37);
    let store = format!("etcd://{}", cluster.members[0].address);
    let script = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 1033' &) ; echo in; while :; do sleep 0.05; done";
    let words = ["--store", &store, "--ttl", "3s", "--grace", "300ms", "--", "sh", "-c", script];
    let mut run = without(BEST_EFFORT[5], libc::EPERM, &words);
    run.prints("in");
    cluster.members[0].stop();
    let since = std::time::Instant::now();
    run.gone(SOON);
    // Three seconds of lease, and however long a busy machine takes to look.
    assert!(since.elapsed().as_secs() < 10, "{:?}", since.elapsed());
    run.wait(SOON).exits(76);
}

#[test]
fn a_filter_that_forbids_the_clock_or_signalfd_is_refused_in_one_line() {
    for (call, why) in [(libc::SYS_clock_gettime, "clock_gettime"), (libc::SYS_signalfd4, "signals: ")] {
        let store = LocalStore::new();
        let words = ["--store", &store.to_string(), "--", "echo", "in"];
        let ended = without(&[call], libc::EPERM, &words).wait(SOON).exits(125);
        assert!(ended.stdout.is_empty() && ended.stderr.contains(why), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
}

#[test]
fn a_proc_that_hides_the_processes_of_others_is_enough_for_an_ordinary_user() {
    if !is_root() {
        return;
    }
    for option in ["hidepid=2", "hidepid=4", "subset=pid"] {
        let store = LocalStore::new();
        chown(store.path(), Some(65531), Some(65531)).unwrap();
        let script = format!(
            "exec unshare --mount --pid --fork --kill-child sh -c '\
             mount -t proc -o {option} proc /proc && exec setpriv --reuid 65531 --regid 65531 --clear-groups \
             \"$F\" run --store \"$S\" --lock a --grace 1s -- sh -c \"(setsid sleep 1034 &) ; exit 3\"'"
        );
        let run = bash(&store, &script);
        let ended = run.wait(SOON).exits(3);
        assert!(
            ended.stderr.contains("background processes") && ended.stderr.contains("sleep ("),
            "{option} {ended:?}"
        );
    }
}
