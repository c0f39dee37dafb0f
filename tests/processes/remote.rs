//! ssh inside of fenced, and fenced at the other end of ssh.

use crate::has;
use crate::support::processes;
use crate::support::run::{LocalStore, Run, Running, binary};
use crate::support::terminal::Terminal;
use crate::support::tools::{Sshd, Tools};
use crate::support::wait::{SOON, eventually};
use nix::sys::signal::Signal;
use std::fs;
use std::process::{Command, Stdio};

fn sshd() -> Option<Sshd> {
    has("ssh").then(Tools::new).flatten().map(Tools::sshd)
}

/// Runs a line of shell at the other end, with these options of ssh's, without a terminal here.
fn there(sshd: &Sshd, options: &[&str], line: &str) -> Running {
    let words = sshd.client();
    let mut command = Command::new(&words[0]);
    command.args(options).args(&words[1..]).arg(line).stdin(Stdio::piped()).env_remove("FENCED_HELD");
    Running::start(command, processes::new_mark())
}

fn fenced(store: &LocalStore, command: &str) -> String {
    format!("{} run --store {store} --lock a -- {command}", binary())
}

fn free(store: &LocalStore) {
    Run::new(store).lock("a").args(["--wait", "5s"]).command(["true"]).output().exits(0);
}

#[test]
fn a_remote_command_on_a_terminal_gets_its_keys_and_gives_its_status() {
    let Some(sshd) = sshd() else { return };
    let mut terminal = Terminal::new();
    let script = "trap \"echo int; exit 7\" INT; echo in; while :; do sleep 0.05; done";
    terminal.line(&format!("$F {} -tt '{script}'; echo rc=$?", sshd.client().join(" ")));
    terminal.shows("in\r\n");
    terminal.keys("\x03");
    terminal.shows("int\r\n");
    terminal.shows("rc=7\r\n");
    assert_eq!(terminal.jobs(), [0; 0]);
}

#[test]
fn a_connection_that_is_cut_hangs_up_the_run_on_its_terminal_at_the_other_end() {
    let Some(sshd) = sshd() else { return };
    let store = LocalStore::new();
    let mut run = there(&sshd, &["-tt"], &fenced(&store, "sh -c 'setsid sleep 1036 & echo in; sleep 1037'"));
    run.prints("in");
    // ssh, fenced, guard, shell and both sleeps.
    eventually(SOON, || run.tree().len() >= 6);
    run.signal(Signal::SIGKILL);
    run.gone(SOON);
    free(&store);
}

#[test]
fn a_connection_that_is_cut_without_a_terminal_ends_the_input_and_breaks_the_output() {
    let Some(sshd) = sshd() else { return };
    let store = LocalStore::new();
    let read = store.path().join("read");
    let script = format!("sh -c 'echo in; cat; echo end >{}; while :; do echo more; sleep 0.05; done'", read.display());
    let mut run = there(&sshd, &[], &fenced(&store, &script));
    run.prints("in");
    Run::new(&store).lock("a").args(["-n"]).command(["true"]).output().exits(75);
    run.signal(Signal::SIGKILL);
    run.gone(SOON);
    eventually(SOON, || read.exists());
    assert_eq!(fs::read_to_string(read).unwrap(), "end\n");
    free(&store);
}

#[test]
fn status_and_death_at_the_other_end_are_the_commands() {
    let Some(sshd) = sshd() else { return };
    let store = LocalStore::new();
    for (script, status) in [("exit 9", 9), ("kill -TERM $$", 143)] {
        // ssh says 255 of a death by signal; a shell around it says 128 and the signal.
        let line = format!("{}; exit $?", fenced(&store, &format!("sh -c '{script}'")));
        there(&sshd, &[], &line).wait(SOON).exits(status);
    }
}
