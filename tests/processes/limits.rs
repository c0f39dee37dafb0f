//! Where something is short: processes, descriptors, disks, readers. Refused in words or done, never a panic.

use crate::support::etcd::{Cluster, Version};
use crate::support::run::{Ended, LocalStore, Run};
use crate::support::wait::{SOON, eventually};
use crate::{bash, is_root};
use std::fs;
use std::os::unix::fs::chown;

/// One line in words, or nothing.
#[track_caller]
fn is_in_words(ended: &Ended) {
    assert!(!ended.stderr.contains("panicked") && !ended.stderr.contains("backtrace"), "{ended:?}");
    assert!(!ended.stderr.contains("os error"), "{ended:?}");
    assert!(ended.stderr.lines().count() <= 1, "{ended:?}");
}

#[test]
fn few_descriptors_are_enough_or_the_refusal_is_in_words() {
    let store = LocalStore::new();
    for limit in [20, 12, 10, 9, 8, 7, 6, 5, 4] {
        let script = format!(
            "ulimit -n {limit}; RUST_BACKTRACE=1 exec \"$F\" run --store \"$S\" --lock a -n -- sh -c 'echo in; exit 3'"
        );
        let ended = bash(&store, &script).wait(SOON);
        is_in_words(&ended);
        match ended.code() {
            Some(3) => assert_eq!(ended.stdout, "in\n"),
            Some(69 | 125) if limit < 20 => assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{ended:?}"),
            _ => panic!("{limit}: {ended:?}"),
        }
    }
}

#[test]
fn a_limit_on_processes_that_leaves_no_room_is_refused_in_words() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    chown(store.path(), Some(65533), Some(65533)).unwrap();
    for limit in 0..6 {
        let script = format!(
            "exec setpriv --reuid 65533 --regid 65533 --clear-groups env RUST_BACKTRACE=1 prlimit --nproc={limit} -- \"$F\" run --store \"$S\" --lock a -n -- true"
        );
        let ended = bash(&store, &script).wait(SOON);
        is_in_words(&ended);
        match ended.code() {
            Some(0) => {}
            Some(69 | 125) if limit < 4 => assert!(ended.stderr.contains("ulimit -u"), "{ended:?}"),
            _ => panic!("{limit}: {ended:?}"),
        }
    }
}

#[test]
fn a_command_that_cannot_be_forked_is_125_and_the_lock_is_given_back() {
    if !is_root() {
        return;
    }
    let cluster = Cluster::single(Version::V37);
    let store = format!("etcd://{}", cluster.members[0].address);
    // fenced and its guard are two already; no store of this kind needs a thread.
    let script = format!(
        "exec setpriv --reuid 65532 --regid 65532 --clear-groups env RUST_BACKTRACE=1 prlimit --nproc=2 -- \"$F\" run --store {store} --lock a -- true"
    );
    let ended = bash(&LocalStore::new(), &script).wait(SOON).exits(125);
    is_in_words(&ended);
    assert!(ended.stderr.contains("could not be started") && ended.stderr.contains("ulimit -u"), "{ended:?}");
    Run::new(&store).lock("a").args(["-n"]).command(["true"]).output().exits(0);
}

#[test]
fn the_local_stores_descriptor_is_out_of_the_commands_way_and_absent_with_on_exit_leave() {
    let store = LocalStore::new();
    let locks = |options: &[&str]| {
        let probe = "for f in /proc/$$/fd/*; do case $(readlink $f) in *.lock) echo ${f##*/};; esac; done";
        Run::new(&store).lock("a").args(options).script(probe).output().exits(0).stdout
    };
    let number: u32 = locks(&[]).trim().parse().unwrap();
    assert!(number >= 100);
    let number: u32 = locks(&["--on-exit", "wait"]).trim().parse().unwrap();
    assert!(number >= 100);
    assert_eq!(locks(&["--on-exit", "leave"]), "");
}

#[test]
fn what_makes_the_guard_urgent_is_not_the_commands() {
    let store = LocalStore::new();
    let probe =
        "chrt -p $$ | sed 's/.*: //'; cat /proc/$$/oom_score_adj /proc/$$/timerslack_ns; nice; ulimit -n; ulimit -Hn";
    for prelude in ["ulimit -Sn 700", "renice -n 4 -p $$ >/dev/null", "echo 300 >/proc/$$/oom_score_adj"] {
        let bare = bash(&store, &format!("{prelude}; exec sh -c '{}'", probe.replace('\'', "'\\''"))).wait(SOON);
        let wrapped =
            format!("{prelude}; exec \"$F\" run --store \"$S\" --lock a -- sh -c '{}'", probe.replace('\'', "'\\''"));
        let wrapped = bash(&store, &wrapped).wait(SOON);
        assert!(bare.stdout.contains("SCHED_OTHER"), "{bare:?}");
        assert_eq!(wrapped.stdout, bare.stdout, "{prelude}");
    }
}

#[test]
fn a_full_disk_under_stderr_or_the_status_file_changes_nothing_about_the_run() {
    let store = LocalStore::new();
    let ended = bash(
        &store,
        "exec \"$F\" run -v --store \"$S\" --lock a --status-file /dev/full -- sh -c 'echo in; exit 4' 2>/dev/full",
    );
    let ended = ended.wait(SOON).exits(4);
    assert_eq!(ended.stdout, "in\n");
    let ended = Run::new(&store).lock("a").args(["--status-file", "/dev/full"]).script("exit 4").output().exits(4);
    is_in_words(&ended);
    assert!(ended.stderr.contains("status"), "{ended:?}");
}

#[test]
fn a_status_descriptor_without_a_reader_changes_nothing_about_the_run() {
    let store = LocalStore::new();
    let script =
        "mkfifo p; exec 8<>p 7>p 8>&-; exec \"$F\" run --store \"$S\" --lock a --status-fd 7 -- sh -c 'exit 4'";
    let directory = tempfile::tempdir().unwrap();
    let script = format!("cd {}; {script}", directory.path().display());
    let ended = bash(&store, &script).wait(SOON).exits(4);
    is_in_words(&ended);
    assert!(ended.stderr.contains("status"), "{ended:?}");
}

#[test]
fn closed_descriptors_are_not_taken_by_others_while_a_run_waits() {
    let store = LocalStore::new();
    for closed in ["0<&-", "1>&-", "2>&-", "0<&- 1>&-", "0<&- 2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"] {
        let holder = Run::new(&store).lock("a").script("echo in; exec sleep 60").spawn();
        holder.prints("in");
        let seen = store.path().join("seen");
        fs::write(&seen, "").unwrap();
        let probe = format!("for f in 0 1 2; do test -e /proc/$$/fd/$f || echo $f >>{}; done; exit 5", seen.display());
        let script = format!("exec {closed}; exec \"$F\" run --store \"$S\" --lock a -- sh -c '{probe}'");
        let run = bash(&store, &script);
        eventually(SOON, || waits(run.pid()));
        drop(holder);
        assert_eq!(run.wait(SOON).code(), Some(5), "{closed}");
        let stayed = fs::read_to_string(&seen).unwrap();
        assert!(["0", "1", "2"].iter().all(|fd| closed.contains(fd) == stayed.contains(fd)), "{closed}: {stayed}");
    }
}

/// Whether this is a fenced that waits for the local lock: one of its threads sleeps in the kernel's file locks.
fn waits(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().any(|thread| {
        let call = fs::read_to_string(thread.path().join("syscall")).unwrap_or_default();
        call.starts_with(&format!("{} ", nix::libc::SYS_fcntl))
    })
}
