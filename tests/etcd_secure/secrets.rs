//! Where a password must not be found: command lines, environments, what is said, what is stored.

use crate::scene::{Users, as_user};
use crate::support::etcd::{CI, PASSWORD, Version};
use crate::support::run::{Run, Running};
use crate::support::wait::SOON;
use std::fs;

/// Each of its processes, with what others may read of it.
fn command_lines(running: &Running) -> String {
    let lines = running.tree().into_iter().map(|pid| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).collect::<Vec<_>>().join("\n")
}

fn keeps_it_to_itself(users: &Users, run: Run) {
    let status = users.file("status", "");
    let run = run.lock("a").args(["-v", "--note", "n", "--status-file"]).args([&status]);
    let running = run.script("env; echo in; read line").stdin(std::process::Stdio::piped()).spawn();
    running.prints("in\n");
    assert_eq!(running.tree().len(), 3, "{:?}", running.tree());
    let lines = command_lines(&running);
    assert!(lines.contains("--lock a"), "{lines}");
    let stored: Vec<_> = users.queue().iter().map(|pair| String::from_utf8_lossy(pair.value()).into_owned()).collect();
    assert_eq!(stored.len(), 1);
    running.signal(nix::sys::signal::Signal::SIGTERM);
    let ended = running.wait(SOON);
    assert_eq!(ended.code().or(ended.signal().map(|n| n + 128)), Some(143), "{}", ended.stderr);
    let status = fs::read_to_string(status).unwrap();
    assert!(status.contains(r#""outcome":"signaled""#), "{status}");
    for (place, text) in [
        ("a command line", &lines),
        ("the command's environment", &ended.stdout),
        ("what was said", &ended.stderr),
        ("the status line", &status),
        ("the store", &stored[0]),
    ] {
        assert!(!text.contains(PASSWORD), "in {place}: {text}");
    }
}

#[test]
fn a_password_is_found_nowhere_but_where_it_was_put() {
    let users = Users::single(Version::V37, Vec::new());
    let run = || Run::new(&users.cluster.url());
    keeps_it_to_itself(&users, as_user(run(), CI, &users.file("password", PASSWORD)));
    keeps_it_to_itself(&users, run().args(["--user", CI]).env("FENCED_PASSWORD", PASSWORD));
}

#[test]
fn a_password_is_not_said_when_it_is_wrong() {
    let users = Users::single(Version::V37, Vec::new());
    let status = users.file("status", "");
    let run = Run::new(&users.cluster.url()).lock("a").args(["-v", "--user", CI, "--status-file"]).args([&status]);
    let ended = run.env("FENCED_PASSWORD", "hunter2-wrong").command(["true"]).output().exits(69);
    assert!(!ended.stderr.contains("hunter2") && !fs::read_to_string(status).unwrap().contains("hunter2"), "{ended:?}");
}

#[test]
fn a_password_on_the_command_line_is_refused_and_not_repeated() {
    let users = Users::single(Version::V37, Vec::new());
    let run = Run::new(&users.cluster.url()).lock("a").args(["--user", &format!("{CI}:{PASSWORD}")]);
    crate::scene::says(run, 125, &["--user", "--password-file"]);
}
