//! On a terminal: job control is that of the command without the wrapper.

use crate::binary;
use crate::support::etcd::{Cluster, Version};
use crate::support::run::Run;
use crate::support::terminal::{PROMPT, Terminal};
use crate::support::wait::{SOON, eventually, until};

#[test]
fn the_commands_process_group_is_fenceds_and_the_terminals() {
    let mut terminal = Terminal::new();
    let probe = r#"set -- $(ps -o pgid=,tpgid= -p $$; ps -o pgid= -p $(awk "/^PPid/{print \$2}" /proc/$PPID/status)); [ $1 = $2 ] && [ $1 = $3 ] && echo sa""me"#;
    terminal.line(&format!("$F sh -c '{probe}'"));
    terminal.shows("same\r\n");
}

#[test]
fn ctrl_c_reaches_the_command_once_and_its_answer_is_its_own() {
    let mut terminal = Terminal::new();
    terminal.line(
        "$F sh -c 'trap \"n=x\\$n; echo int \\$n\" INT; echo in; while [ -z $n ]; do sleep 0.05; done; sleep 0.2; exit 5'; echo rc=$?",
    );
    terminal.shows("in\r\n");
    terminal.keys("\x03");
    assert_eq!(terminal.shows("rc=5\r\n").trim_start_matches("^C"), "int x\r\n");
    terminal.line("$F sh -c 'echo in; exec sleep 60'");
    terminal.shows("in\r\n");
    terminal.keys("\x03");
    terminal.shows(PROMPT);
    terminal.line("echo rc=$?");
    terminal.shows("rc=130\r\n");
}

#[test]
fn ctrl_z_stops_both_and_fg_continues_both_and_the_command_reads_the_terminal() {
    let mut terminal = Terminal::new();
    for _ in 0..5 {
        terminal.line("$F sh -c 'echo in; read x; echo got $x; exit 3'");
        terminal.shows("in\r\n");
        terminal.keys("\x1a");
        assert!(terminal.shows(PROMPT).contains("Stopped"));
        terminal.line("echo rc=$?");
        terminal.shows("rc=148\r\n");
        terminal.line("fg; echo rc=$?");
        terminal.shows("exit 3'\r\n");
        terminal.line("word");
        terminal.shows("got word\r\nrc=3\r\n");
    }
}

#[test]
fn a_command_that_ignores_ctrl_z_is_not_stopped_and_neither_is_fenced() {
    let mut terminal = Terminal::new();
    terminal.line("$F sh -c 'trap \"\" TSTP; echo in; read x; echo got $x; exit 3'; echo rc=$?");
    terminal.shows("in\r\n");
    terminal.keys("\x1a");
    terminal.shows("^Z");
    terminal.line("word");
    terminal.shows("got word\r\nrc=3\r\n");
}

#[test]
fn a_command_that_stops_itself_gives_the_prompt_back() {
    let mut terminal = Terminal::new();
    for (signal, status) in [("STOP", "rc=147\r\n"), ("TSTP", "rc=148\r\n")] {
        terminal.line(&format!("$F sh -c 'kill -{signal} $$; echo after; exit 4'"));
        assert!(terminal.shows(PROMPT).contains("Stopped"));
        terminal.line("echo rc=$?");
        terminal.shows(status);
        terminal.line("fg; echo rc=$?");
        terminal.shows("after\r\nrc=4\r\n");
    }
}

#[test]
fn a_background_run_that_reads_the_terminal_is_stopped_until_it_is_in_the_foreground() {
    let mut terminal = Terminal::new();
    terminal.line("$F sh -c 'read x; echo got $x; exit 3' &");
    terminal.shows(PROMPT);
    let stopped = until(SOON, || {
        terminal.line("jobs");
        terminal.shows(PROMPT).contains("Stopped").then_some(())
    });
    assert!(stopped.is_some());
    terminal.line("fg; echo rc=$?");
    terminal.shows("exit 3'\r\n");
    terminal.line("word");
    terminal.shows("got word\r\nrc=3\r\n");
}

#[test]
fn a_waiting_run_can_be_stopped_continued_and_interrupted() {
    let mut terminal = Terminal::new();
    terminal.line("$F sh -c 'echo in; exec sleep 60' &");
    terminal.shows("in\r\n");
    terminal.line("$F true");
    terminal.shows("waiting for lock a");
    terminal.keys("\x1a");
    assert!(terminal.shows(PROMPT).contains("Stopped"));
    terminal.line("fg");
    terminal.shows("true\r\n");
    terminal.keys("\x03");
    terminal.shows(PROMPT);
    terminal.line("kill %1; wait; echo free; $F echo then");
    terminal.shows("then\r\n");
}

#[test]
fn a_job_that_is_stopped_past_its_lease_is_ended_and_says_so_without_being_asked() {
    let cluster = Cluster::single(Version::V37);
    let store = format!("etcd://{}", cluster.members[0].address);
    let mut terminal = Terminal::with(&format!("{} run --store {store} --ttl 3s --grace 300ms --lock a --", binary()));
    terminal
        .line("$F sh -c 'trap \"echo told; exit 3\" TERM; setsid sleep 1021 & echo in; while :; do sleep 0.05; done'");
    terminal.shows("in\r\n");
    terminal.keys("\x1a");
    assert!(terminal.shows(PROMPT).contains("Stopped"));
    terminal.shows("told\r\n");
    terminal.shows("fenced: ");
    terminal.shows("\r\n");
    eventually(SOON, || terminal.jobs().is_empty());
    terminal.line("wait %1; echo rc=$?");
    terminal.shows("rc=76\r\n");
    Run::new(&store).lock("a").args(["--wait", "20s"]).command(["true"]).output().exits(0);
}

#[test]
fn a_job_that_is_stopped_on_the_local_store_stays_the_holder_and_goes_on() {
    let mut terminal = Terminal::new();
    terminal.line("$F sh -c 'echo in; read x; echo got $x; exit 3'");
    terminal.shows("in\r\n");
    terminal.keys("\x1a");
    assert!(terminal.shows(PROMPT).contains("Stopped"));
    Run::new(terminal.store()).lock("a").args(["--wait", "300ms"]).command(["true"]).output().exits(75);
    terminal.line("fg; echo rc=$?");
    terminal.shows("exit 3'\r\n");
    terminal.line("word");
    terminal.shows("got word\r\nrc=3\r\n");
}

#[test]
fn a_job_whose_command_is_killed_while_it_is_stopped_ends_as_the_command_did() {
    let mut terminal = Terminal::new();
    terminal.line("$F sh -c 'echo pid=$$.; kill -STOP $$'");
    terminal.shows("pid=");
    let command = terminal.shows(".");
    assert!(terminal.shows(PROMPT).contains("Stopped"));
    terminal.line(&format!("kill -KILL {command}"));
    eventually(SOON, || terminal.jobs().is_empty());
    terminal.line("wait %1; echo rc=$?");
    terminal.shows("rc=137\r\n");
}
