//! In a container: as process 1, with a root that cannot be written, without what a whole system has.

use crate::support::etcd::{Cluster, Version};
use crate::support::processes;
use crate::support::run::{LocalStore, Run, Running};
use crate::support::terminal::{PROMPT, Terminal};
use crate::support::wait::{SOON, eventually, obtain};
use crate::{bash, binary, is_root};
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::chown;

const CONTAINER: &str = "unshare --mount --pid --fork --kill-child --mount-proc";

/// A shell line in a mount namespace of its own.
fn apart(store: &LocalStore, line: &str) -> Running {
    bash(store, &format!("exec unshare --mount sh -c '{line}'"))
}

/// A run in a container, and fenced's pid as seen from outside.
fn container(store: &LocalStore, script: &str) -> (Running, i32) {
    let run =
        bash(store, &format!("exec {CONTAINER} {}", script.replace("FENCED", "\"$F\" run --store \"$S\" --lock a --")));
    let fenced = obtain(SOON, || processes::children(run.pid()).first().copied());
    (run, fenced)
}

#[test]
fn a_stop_of_the_container_reaches_the_command_once_and_its_answer_is_its_own() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    let script = "FENCED sh -c 'trap \"n=x\\$n; echo term \\$n\" TERM; echo in; until [ $n ]; do sleep 0.05; done; \
                  for i in 1 2 3 4 5 6; do sleep 0.05; done; exit 5'";
    let (run, fenced) = container(&store, script);
    run.prints("in");
    processes::signal(fenced, Signal::SIGTERM);
    assert_eq!(run.wait(SOON).exits(5).stdout, "in\nterm x\n");
    let (run, fenced) = container(&store, "FENCED sh -c 'echo in; exec sleep 60'");
    run.prints("in");
    processes::signal(fenced, Signal::SIGTERM);
    run.wait(SOON).exits(143);
}

#[test]
fn a_container_that_is_stopped_while_its_process_1_waits_for_the_lock_ends_at_once() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    let holder = Run::new(&store).lock("a").script("echo in; exec sleep 60").spawn();
    holder.prints("in");
    let (run, fenced) = container(&store, "\"$F\" run -v --store \"$S\" --lock a -- echo never");
    run.says("waiting");
    processes::signal(fenced, Signal::SIGTERM);
    assert_eq!(run.wait(SOON).exits(143).stdout, "");
}

#[test]
fn ctrl_c_on_the_terminal_of_a_container_ends_the_command_of_process_1() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    let mut terminal = Terminal::with(&format!("{CONTAINER} {} run --store {store} --lock a --", binary()));
    terminal.line("$F sh -c 'echo in; exec sleep 60'; echo rc=$?");
    terminal.shows("in\r\n");
    terminal.keys("\x03");
    terminal.shows("rc=130\r\n");
    terminal.shows(PROMPT);
    assert_eq!(terminal.jobs(), [0; 0]);
}

#[test]
fn process_1_reaps_a_crowd_of_strangers_that_end_at_once_while_it_waits() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    let holder = Run::new(&store).lock("a").script("echo in; exec sleep 60").spawn();
    holder.prints("in");
    let crowd = "n=0; while [ $n -lt 300 ]; do n=$((n+1)); sleep 1031 & done";
    fs::write(store.path().join("start"), format!("sh -c '{crowd}'; exec \"$F\" run -v --store \"$S\" --lock a true"))
        .unwrap();
    let (run, fenced) = container(&store, &format!("sh {}", store.path().join("start").display()));
    run.says("waiting");
    let strangers = || {
        let children = processes::children(fenced).into_iter();
        children.filter(|&pid| processes::name(pid).as_deref() != Some("fenced")).collect::<Vec<_>>()
    };
    let crowd = strangers();
    assert_eq!(crowd.len(), 300);
    // So that all of them are one signal.
    processes::signal(fenced, Signal::SIGSTOP);
    eventually(SOON, || processes::is_stopped(fenced));
    for &pid in &crowd {
        processes::signal(pid, Signal::SIGKILL);
    }
    eventually(SOON, || !crowd.iter().any(|&pid| processes::is_alive(pid)));
    processes::signal(fenced, Signal::SIGCONT);
    eventually(SOON, || strangers().is_empty());
    drop(holder);
    run.wait(SOON).exits(0);
}

#[test]
fn a_root_that_cannot_be_written_is_refused_for_the_local_store_and_no_matter_on_etcd() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    let read_only = |line: &str| {
        let line = format!("mount -o remount,bind,ro / && {line}");
        apart(&store, &line).wait(SOON)
    };
    let ended = read_only("exec \"$F\" run --store \"$S\" --lock a true").exits(69);
    assert!(ended.stderr.contains("read-only file system") && ended.stderr.lines().count() == 1, "{ended:?}");
    let cluster = Cluster::single(Version::V37);
    let etcd = format!("exec \"$F\" run --store etcd://{} --lock a", cluster.members[0].address);
    let ended = read_only(&format!("{etcd} -- sh -c \"echo in; exit 3\"")).exits(3);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("in\n", ""));
    let ended = read_only(&format!("{etcd} --status-file /status true")).exits(125);
    assert_eq!(ended.stderr, "fenced: --status-file /status: read-only file system\n");
}

#[test]
fn without_devices_runs_go_on_also_with_closed_descriptors() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    for closed in ["", "0<&-", "0<&- 1>&-"] {
        let line =
            "mount -t tmpfs none /dev && exec \"$F\" run --store \"$S\" --lock a -- sh -c \"echo in >$D; exit 3\"";
        let told = store.path().join("told");
        let line = line.replace("$D", &told.display().to_string());
        let ended = apart(&store, &format!("{line} {closed}")).wait(SOON).exits(3);
        assert_eq!((fs::read_to_string(told).unwrap().as_str(), ended.stderr.as_str()), ("in\n", ""), "{closed}");
    }
}

#[test]
fn a_user_without_a_password_entry_has_no_default_directory_and_may_name_one() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    chown(store.path(), Some(12345), Some(12345)).unwrap();
    let run = |url: &str| {
        let line = "exec setpriv --reuid 12345 --regid 12345 --clear-groups";
        bash(&store, &format!("{line} \"$F\" run --store {url} --lock a -- sh -c 'exit 3'")).wait(SOON)
    };
    run("\"$S\"").exits(3);
    let ended = run("file:").exits(69);
    let why = "fenced: store: there is no default lock directory (user 12345 has no password entry): give --store file:///DIRECTORY\n";
    assert_eq!(ended.stderr, why);
    let nobody_known =
        "mount --bind /dev/null /etc/passwd && exec \"$F\" run --store \"$S\" --lock b -- sh -c \"exit 3\"";
    chown(store.path(), Some(0), Some(0)).unwrap();
    apart(&store, nobody_known).wait(SOON).exits(3);
}
