//! The guard: nothing of the command's tree outlives the lock, whoever is killed or stopped.

mod support;

use nix::sys::signal::Signal;
use std::time::Duration;
use support::processes::{self, is_alive};
use support::run::{LocalStore, Run, Running};
use support::wait::{SOON, eventually, throughout};

/// A tree that ignores the stop signal, leaves its session and its parents.
const STUBBORN: &str = "trap '' TERM INT HUP; \
    setsid sh -c 'trap \"\" TERM; (setsid sleep 1001 &) ; sleep 1002 & sleep 1003' & \
    sleep 1004 & echo in; while :; do sleep 1; done";

fn stubborn(store: &LocalStore, options: &[&str]) -> Running {
    let run = Run::new(store).lock("a").args(options).script(STUBBORN).spawn();
    run.prints("in");
    eventually(SOON, || run.tree().len() >= 8);
    run
}

fn free(store: &LocalStore) {
    // A dying process can still have its descriptors when /proc has forgotten its environment.
    Run::new(store).lock("a").args(["--wait", "5s"]).command(["true"]).output().exits(0);
}

#[test]
fn when_fenced_is_killed_the_guard_ends_the_whole_tree_and_then_the_lock_is_free() {
    let store = LocalStore::new();
    let mut run = stubborn(&store, &["--grace", "300ms"]);
    let (guard, fenced) = (run.guard(), run.pid());
    processes::signal(fenced, Signal::SIGKILL);
    eventually(SOON, || !is_alive(guard));
    assert!(run.tree().is_empty(), "the guard ended before its tree");
    run.gone(SOON);
    free(&store);
}

#[test]
fn when_fenced_is_killed_the_lock_stays_held_until_the_tree_is_gone() {
    let store = LocalStore::new();
    let mut run = stubborn(&store, &["--grace", "1s"]);
    processes::signal(run.pid(), Signal::SIGKILL);
    let mark = run.mark().to_owned();
    let next = Run::new(&store).lock("a").script("echo next").spawn();
    next.prints("next");
    assert_eq!(processes::marked(&mark), [0; 0], "the next one started while the old tree lived");
    run.gone(SOON);
}

#[test]
fn when_the_guard_is_killed_fenced_ends_the_whole_tree_and_the_run_is_lost() {
    let store = LocalStore::new();
    let run = stubborn(&store, &[]);
    let tree = run.tree();
    processes::signal(run.guard(), Signal::SIGKILL);
    let ended = run.wait(SOON).exits(76);
    assert!(ended.stderr.contains("the guard process died"), "{}", ended.stderr);
    assert!(tree.iter().all(|&pid| !is_alive(pid)));
    free(&store);
}

#[test]
fn children_that_fenced_had_before_are_not_its_to_kill() {
    let store = LocalStore::new();
    let binary = assert_cmd::cargo::cargo_bin!("fenced").display().to_string();
    let script = format!(
        "sleep 1005 & echo sidecar $!; exec {binary} run --store {store} --lock a -- sh -c 'echo in; sleep 1006'"
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).env_remove("FENCED_HELD");
    let run = Running::start(command, processes::new_mark());
    run.prints("in");
    let sidecar = run.stdout().lines().next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    let guard = processes::children(run.pid()).into_iter().find(|&pid| pid != sidecar).unwrap();
    processes::signal(guard, Signal::SIGKILL);
    eventually(SOON, || run.tree() == [sidecar]);
    assert!(is_alive(sidecar));
}

#[test]
fn a_tree_that_ignores_the_stop_signal_is_killed_after_the_grace_and_the_lock_released() {
    let store = LocalStore::new();
    let run = Run::new(&store)
        .lock("a")
        .args(["--grace", "200ms"])
        .script("trap '' TERM; (trap '' TERM; setsid sleep 1007) & sleep 0.1; exit 3")
        .spawn();
    let ended = run.wait(SOON).exits(3);
    assert!(ended.stderr.contains("background processes") && ended.stderr.contains("sleep ("), "{}", ended.stderr);
    free(&store);
}

#[test]
fn background_processes_are_waited_for_with_on_exit_wait() {
    let store = LocalStore::new();
    let run = Run::new(&store)
        .lock("a")
        .args(["--on-exit", "wait"])
        .script("(sleep 0.5; echo late) & echo early; exit 4")
        .spawn();
    let ended = run.wait(SOON).exits(4);
    assert_eq!(ended.stdout, "early\nlate\n");
    assert_eq!(ended.stderr, "");
}

#[test]
fn background_processes_are_left_with_on_exit_leave_and_the_lock_is_free() {
    let store = LocalStore::new();
    let run = Run::new(&store).lock("a").args(["--on-exit", "leave"]).script("sleep 1008 & echo $!; exit 5").spawn();
    let mark = run.mark().to_owned();
    let ended = run.wait_and_leave(SOON).exits(5);
    assert!(ended.stderr.contains("without the lock"), "{}", ended.stderr);
    let left: i32 = ended.stdout.trim().parse().unwrap();
    assert!(is_alive(left));
    free(&store);
    processes::signal(left, Signal::SIGKILL);
    eventually(SOON, || processes::marked(&mark).is_empty());
}

#[test]
fn a_fork_storm_is_ended_too() {
    let store = LocalStore::new();
    let script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); (sleep 30 &) ; [ $i = 50 ] && echo in; done; sleep 60";
    let mut run = Run::new(&store).lock("a").args(["--grace", "100ms"]).script(script).spawn();
    run.prints("in");
    processes::signal(run.pid(), Signal::SIGKILL);
    run.gone(SOON);
    free(&store);
}

#[test]
fn a_stopped_holder_stays_the_holder_on_the_local_store() {
    let store = LocalStore::new();
    let run = stubborn(&store, &[]);
    processes::signal(run.pid(), Signal::SIGSTOP);
    processes::signal(run.guard(), Signal::SIGSTOP);
    assert!(throughout(Duration::from_millis(300), || is_alive(run.command())));
    Run::new(&store).lock("a").args(["--wait", "300ms"]).command(["true"]).output().exits(75);
    processes::signal(run.guard(), Signal::SIGCONT);
    processes::signal(run.pid(), Signal::SIGCONT);
}

#[test]
fn with_fenced_and_guard_killed_at_one_blow_the_command_dies_and_what_survives_keeps_the_lock() {
    let store = LocalStore::new();
    let run = stubborn(&store, &[]);
    let command = run.command();
    let (guard, fenced) = (run.guard(), run.pid());
    processes::signal(guard, Signal::SIGSTOP);
    processes::signal(fenced, Signal::SIGSTOP);
    processes::signal(guard, Signal::SIGKILL);
    processes::signal(fenced, Signal::SIGKILL);
    eventually(SOON, || !is_alive(command));
    Run::new(&store).lock("a").args(["--wait", "300ms"]).command(["true"]).output().exits(75);
    drop(run);
    free(&store);
}
