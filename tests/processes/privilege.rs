//! sudo inside of fenced, where it runs its command on a terminal of its own (`use_pty`), and fenced inside of sudo.

use crate::support::processes;
use crate::support::run::{LocalStore, Run, Running, binary};
use crate::support::terminal::{PROMPT, Terminal};
use crate::support::tools::Tools;
use crate::support::wait::SOON;
use nix::sys::signal::Signal;
use std::process::{Command, Stdio};

/// The words after the starter's.
fn within(tools: &Tools, words: &[&str]) -> Running {
    let starter = tools.starter();
    let mut command = Command::new(&starter[0]);
    command.args(&starter[1..]).args(words).env_remove("FENCED_HELD").stdin(Stdio::null());
    Running::start(command, processes::new_mark())
}

fn free(store: &LocalStore) {
    Run::new(store).lock("a").args(["--wait", "5s"]).command(["true"]).output().exits(0);
}

fn shell(tools: &Tools, store: &LocalStore) -> Terminal {
    let starter = tools.starter();
    let starter: Vec<&str> = starter.iter().map(String::as_str).collect();
    let fenced = format!("{} run --store {store} --lock a --", binary());
    let mut terminal = Terminal::start(&starter, "exec env PS1=\"$P\" bash --norc --noprofile -i", &fenced);
    terminal.shows(PROMPT);
    terminal
}

#[test]
fn sudo_inside_gives_its_commands_status_and_its_whole_tree_ends_with_the_run() {
    let Some(tools) = Tools::new() else { return };
    let store = LocalStore::new();
    let url = store.to_string();
    let run = |script: &str| {
        within(
            &tools,
            &[
                &binary(),
                "run",
                "--store",
                &url,
                "--lock",
                "a",
                "--grace",
                "300ms",
                "--",
                "sudo",
                "-nE",
                "sh",
                "-c",
                script,
            ],
        )
    };
    let ended = run("id -u; exit 7").wait(SOON).exits(7);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("0\n", ""));
    let mut cut = run("(trap '' TERM HUP; setsid sleep 1038) & trap '' TERM HUP; echo in; while :; do sleep 1; done");
    cut.prints("in");
    cut.signal(Signal::SIGKILL);
    cut.gone(SOON);
    free(&store);
}

#[test]
fn sudo_inside_on_a_terminal_passes_keys_on_and_stops_and_continues_as_a_job() {
    let Some(tools) = Tools::new() else { return };
    let store = LocalStore::new();
    let mut terminal = shell(&tools, &store);
    let script = "n=0; trap \"n=\\$((n+1)); echo int \\$n.\" INT; echo in; until [ $n = 2 ]; do read x; echo got $x.; done; exit 7";
    terminal.line(&format!("$F sudo -nE bash -c '{script}'; echo rc=$?"));
    terminal.shows("in\r\n");
    terminal.keys("\x03");
    terminal.shows("int 1.\r\n");
    terminal.keys("\x1a");
    assert!(terminal.shows(PROMPT).contains("Stopped"));
    terminal.line("fg; echo rc=$?");
    terminal.line("word");
    terminal.shows("got word.\r\n");
    terminal.keys("\x03");
    terminal.shows("int 2.\r\n");
    terminal.keys("\n");
    terminal.shows("rc=7\r\n");
    assert_eq!(terminal.jobs(), [0; 0]);
}

#[test]
fn fenced_inside_of_sudo_is_told_to_stop_and_ends_as_its_command() {
    let Some(tools) = Tools::new() else { return };
    let store = LocalStore::new();
    let url = store.to_string();
    let words = ["sudo", "-nE", &binary(), "run", "--store", &url, "--lock", "a", "--", "sh", "-c"];
    let script = "trap 'echo told; exit 5' TERM; echo in; while :; do sleep 0.05; done";
    let run = within(&tools, &[&words[..], &[script]].concat());
    run.prints("in");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.wait(SOON).exits(5).stdout, "in\ntold\n");
    free(&store);
}
