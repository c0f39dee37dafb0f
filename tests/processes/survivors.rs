//! What is killed, what cannot be, and who holds the lock meanwhile.

use crate::support::processes::{self, is_alive};
use crate::support::run::{LocalStore, Run, Running};
use crate::support::wait::{SOON, eventually, throughout};
use crate::{binary, is_root};
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Command, Stdio};
use std::time::Duration;

const NOBODY: u32 = 65534;

/// A store that nobody owns and everybody reads.
fn nobodys_store() -> LocalStore {
    let store = LocalStore::new();
    chown(store.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(store.path(), fs::Permissions::from_mode(0o755)).unwrap();
    store
}

/// A run as nobody, under `wrapper`.
fn as_nobody(wrapper: &[&str], store: &LocalStore, options: &[&str], script: &str) -> Running {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).args(wrapper);
    command.args([&binary(), "run", "--store", &store.to_string(), "--lock", "a"]).args(options);
    command.args(["--", "sh", "-c", script]).env_remove("FENCED_HELD").stdin(Stdio::null());
    Running::start(command, processes::new_mark())
}

#[test]
fn a_fork_storm_of_an_ordinary_user_is_ended_when_fenced_is_killed() {
    if !is_root() {
        return;
    }
    let store = nobodys_store();
    let forks =
        "echo in; f() { while :; do (trap '' TERM; sleep 0.01; f) & (sleep 0.02) & wait $!; done; }; f 2>/dev/null";
    let mut run = as_nobody(&["prlimit", "--nproc=200", "--"], &store, &["--grace", "100ms"], forks);
    run.prints("in");
    eventually(SOON, || run.tree().len() > 20);
    run.signal(Signal::SIGKILL);
    run.gone(SOON);
    as_nobody(&[], &store, &["--wait", "5s"], "exit 3").wait(SOON).exits(3);
}

#[test]
fn a_process_that_cannot_be_killed_is_named_and_keeps_the_lock_until_it_ends() {
    if !is_root() {
        return;
    }
    let store = nobodys_store();
    // It becomes root in all of its user ids, so that nobody may not signal it.
    let setuid = store.path().join("setuid");
    fs::copy("/usr/bin/setpriv", &setuid).unwrap();
    chown(&setuid, Some(0), Some(0)).unwrap();
    fs::set_permissions(&setuid, fs::Permissions::from_mode(0o4755)).unwrap();
    let script = format!("{} --reuid 0 sleep 1009 & echo $!; sleep 0.2; exit 3", setuid.display());
    let run = as_nobody(&[], &store, &["--grace", "100ms"], &script);
    let (guard, mark) = (run.guard(), run.mark().to_owned());
    let ended = run.wait_and_leave(SOON).exits(76);
    let pid: i32 = ended.stdout.trim().parse().unwrap();
    assert!(ended.stderr.contains("cannot be killed") && ended.stderr.contains(&format!("({pid})")), "{ended:?}");
    assert!(is_alive(guard) && is_alive(pid), "the test needs a directory without nosuid: {ended:?}");
    let before = ticks(guard);
    as_nobody(&[], &store, &["--wait", "1s"], "exit 4").wait(SOON).exits(75);
    assert!(ticks(guard) - before <= 20, "the guard spins: {} ticks in a second", ticks(guard) - before);
    processes::signal(pid, Signal::SIGKILL);
    as_nobody(&[], &store, &[], "exit 5").wait(SOON).exits(5);
    eventually(SOON, || !is_alive(guard) && processes::marked(&mark).is_empty());
}

/// Processor time used, in hundredths of a second.
fn ticks(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(2).map(|n| n.parse::<u64>().unwrap()).sum()
}

#[test]
fn signals_to_the_guard_itself_change_nothing() {
    let store = LocalStore::new();
    let run = Run::new(&store).lock("a").script("trap 'exit 9' INT HUP TERM TSTP; echo in; sleep 0.7; exit 6").spawn();
    run.prints("in");
    let guard = run.guard();
    for signal in ["INT", "HUP", "TERM", "TSTP", "QUIT", "TTIN", "TTOU", "USR1", "USR2", "ALRM", "PIPE"] {
        processes::signal(guard, format!("SIG{signal}").parse().unwrap());
    }
    assert!(throughout(Duration::from_millis(200), || is_alive(guard) && !processes::is_stopped(guard)));
    assert_eq!(run.wait(SOON).exits(6).stderr, "");
}

#[test]
fn a_guard_that_was_given_nothing_to_start_goes_with_fenced() {
    let store = LocalStore::new();
    let holder = Run::new(&store).lock("a").script("echo in; exec sleep 60").spawn();
    holder.prints("in");
    let mut waiter = Run::new(&store).lock("a").args(["-v"]).command(["true"]).spawn();
    waiter.says("waiting");
    let guard = waiter.guard();
    waiter.signal(Signal::SIGKILL);
    eventually(SOON, || !is_alive(guard));
    waiter.gone(SOON);
}

#[test]
fn with_both_killed_at_one_blow_no_rival_starts_while_anything_of_the_tree_lives() {
    let store = LocalStore::new();
    for _ in 0..20 {
        let script = "setsid sh -c 'trap \"\" TERM HUP; echo in; sleep 0.3' & exec sleep 60";
        let mut run = Run::new(&store).lock("a").script(script).spawn();
        run.prints("in");
        let rival = Run::new(&store).lock("a").args(["--wait", "20s", "-v"]).script("echo in; exec sleep 60").spawn();
        rival.says("waiting");
        let (guard, fenced) = (run.guard(), run.pid());
        processes::signal(fenced, Signal::SIGKILL);
        processes::signal(guard, Signal::SIGKILL);
        eventually(SOON, || {
            let rival_is_in = rival.stdout().contains("in");
            // Read afterwards: what lives now has lived when the rival was in.
            assert!(!rival_is_in || run.tree().is_empty(), "the rival is in, and these live: {:?}", run.tree());
            rival_is_in
        });
        run.gone(SOON);
    }
}
