//! tmux inside of fenced, and fenced inside of tmux.

use crate::has;
use crate::support::processes;
use crate::support::run::{LocalStore, Run, Running, binary};
use crate::support::terminal::{PROMPT, Terminal};
use crate::support::wait::{SOON, eventually};
use std::process::{Command, Stdio};

/// A server of its own in the store's directory, without anybody's configuration.
fn tmux(store: &LocalStore) -> Vec<String> {
    let socket = store.path().join("tmux").display().to_string();
    ["tmux", "-S", &socket, "-f", "/dev/null"].map(str::to_owned).to_vec()
}

fn free(store: &LocalStore) {
    Run::new(store).lock("a").args(["--wait", "5s"]).command(["true"]).output().exits(0);
}

#[test]
fn a_tmux_server_that_the_command_leaves_behind_is_ended_and_named() {
    if !has("tmux") {
        return;
    }
    let store = LocalStore::new();
    let words = [tmux(&store), ["new-session", "-d", "sleep 1016"].map(str::to_owned).to_vec()].concat();
    let mut run = Run::new(&store).lock("a").env("TERM", "vt100").command(words).spawn();
    eventually(SOON, || run.ended().is_some());
    assert_eq!(run.tree(), [0; 0]);
    let ended = run.wait(SOON).exits(0);
    assert!(ended.stderr.contains("background processes") && ended.stderr.contains("tmux"), "{ended:?}");
    free(&store);
}

#[test]
fn leaving_a_tmux_that_runs_inside_of_a_run_gives_the_prompt_back_and_ends_its_server() {
    if !has("tmux") {
        return;
    }
    let mut terminal = Terminal::new();
    let tmux = tmux(terminal.store());
    let words = tmux.join(" ");
    terminal.line(&format!("TERM=vt100 $F {words} new-session 'echo within; exec sleep 1017'; echo rc=$?"));
    terminal.shows("within");
    let detached = Command::new(&tmux[0]).args(&tmux[1..]).arg("detach-client").status().unwrap();
    assert!(detached.success());
    terminal.shows("[detached");
    terminal.shows("being ended");
    terminal.shows("rc=0\r\n");
    terminal.shows(PROMPT);
    assert_eq!(terminal.jobs(), [0; 0]);
}

#[test]
fn a_run_in_a_tmux_pane_that_is_killed_is_gone_with_its_tree_and_its_lock() {
    if !has("tmux") {
        return;
    }
    for shell in ["", "sh -c 'true; "] {
        let store = LocalStore::new();
        let tmux = tmux(&store);
        let quote = if shell.is_empty() { "" } else { "'" };
        let said = store.path().join("said");
        let probe = store.path().join("probe");
        std::fs::write(&probe, format!("setsid sleep 1018 & echo in >{}; sleep 1019", said.display())).unwrap();
        let inner = format!("{shell}{} run --store {store} --lock a -- sh {}{quote}", binary(), probe.display());
        let mut command = Command::new(&tmux[0]);
        command.args(&tmux[1..]).args(["new-session", "-d", &inner, ";", "new-window", "sleep 1020"]);
        command.env("TERM", "vt100").env("SHELL", "/bin/bash").env_remove("FENCED_HELD").stdin(Stdio::null());
        let mut run = Running::start(command, processes::new_mark());
        eventually(SOON, || said.exists() && run.ended().is_some());
        let fenced = run.tree().len();
        assert!(fenced >= 6, "{fenced}");
        Run::new(&store).lock("a").args(["-n"]).command(["true"]).output().exits(75);
        let killed = Command::new(&tmux[0]).args(&tmux[1..]).args(["kill-pane", "-t", ":0.0"]).status().unwrap();
        assert!(killed.success());
        // The server and the other window stay.
        eventually(SOON, || run.tree().len() == 2);
        free(&store);
    }
}
