//! The tests' own instruments measure what they claim to.

mod support;

use nix::sys::signal::Signal;
use std::process::Command;
use std::time::Duration;
use support::processes::{self, is_alive, is_stopped, marked, new_mark};
use support::run::{LocalStore, Run, Running};
use support::wait::{SOON, eventually, throughout};

fn script(text: &str) -> Running {
    let mut command = Command::new("sh");
    command.args(["-c", text]);
    Running::start(command, new_mark())
}

#[test]
fn a_process_that_left_its_session_and_its_parent_is_found_by_its_mark() {
    let mut run = script("(setsid sleep 600 &) ; echo started");
    run.prints("started");
    eventually(SOON, || run.ended().is_some());
    assert_eq!(run.tree().len(), 1, "{:?}", run.tree());
    for pid in run.tree() {
        processes::signal(pid, Signal::SIGKILL);
    }
    run.gone(SOON);
}

#[test]
fn dropping_a_run_leaves_nothing_of_it() {
    let run = script("setsid sleep 600 & sleep 600");
    eventually(SOON, || run.tree().len() == 3);
    let tree = run.tree();
    drop(run);
    assert!(tree.into_iter().all(|pid| !is_alive(pid)));
}

#[test]
fn a_stopped_process_is_seen_as_stopped_and_alive() {
    let run = script("sleep 600 & wait");
    run.signal(Signal::SIGSTOP);
    eventually(SOON, || is_stopped(run.pid()));
    assert!(is_alive(run.pid()));
    run.signal(Signal::SIGCONT);
    eventually(SOON, || !is_stopped(run.pid()));
}

#[test]
fn marks_do_not_meet() {
    let (run, other) = (script("exec sleep 600"), script("exec sleep 600"));
    eventually(SOON, || run.tree() == [run.pid()] && other.tree() == [other.pid()]);
    assert!(marked(&new_mark()).is_empty());
}

#[test]
fn the_output_and_status_of_a_run_are_its_own() {
    let ended = script("echo out; echo err >&2; exit 3").wait(SOON).exits(3);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("out\n", "err\n"));
    assert_eq!(script("kill -TERM $$").wait(SOON).signal(), Some(15));
}

#[test]
fn a_condition_that_fails_once_was_not_true_throughout() {
    let mut looks = 0;
    assert!(!throughout(Duration::from_secs(5), || {
        looks += 1;
        looks < 3
    }));
    assert!(throughout(Duration::from_millis(20), || true));
}

#[test]
fn the_builder_puts_options_before_the_command_and_hides_the_caller_s_variables() {
    let store = LocalStore::new();
    let built =
        Run::new(&store).lock("a").args(["--no-wait"]).command(["echo", "--lock"]).env("FENCED_WAIT", "5s").into_std();
    let words: Vec<_> = built.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let url = format!("file://{}", store.path().display());
    assert_eq!(words, ["run", "--store", &url, "--lock", "a", "--no-wait", "--", "echo", "--lock"]);
    let set =
        |name: &str| built.get_envs().find(|(key, _)| *key == name).map(|(_, value)| value.map(ToOwned::to_owned));
    assert_eq!(set("FENCED_WAIT"), Some(Some("5s".into())));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("FENCED_TEST_ETCD")) {
        assert_eq!(set(&name.to_string_lossy()), Some(None));
    }
}
