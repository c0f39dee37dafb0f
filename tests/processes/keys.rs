//! What the terminal sends reaches the command exactly once: keys, sizes, the shell's continue.

use crate::support::terminal::{PROMPT, Terminal};
use std::process::Command;

/// Counts a signal until it reads a line, each time on the screen.
const COUNTER: &str = "import os, signal, sys
n = 0
def got(*_):
    global n
    n += 1
    os.write(1, b\"got %d\\n\" % n)
signal.signal(getattr(signal, sys.argv[1]), got)
os.write(1, b\"in\\n\")
sys.stdin.readline()
os.write(1, b\"all %d of them\\n\" % n)";

/// Sends a signal by what the terminal does, ten times, and lets the command say how often it came.
fn arrives_once(signal: &str, mut send: impl FnMut(&mut Terminal, &str, usize)) {
    let mut terminal = Terminal::new();
    let name = terminal.name();
    terminal.line(&format!("C='{}'", COUNTER.replace('\n', "'$'\\n''")));
    terminal.shows(PROMPT);
    terminal.line(&format!("$F python3 -c \"$C\" {signal}"));
    terminal.shows("in\r\n");
    for n in 1..=10 {
        send(&mut terminal, &name, n);
        terminal.shows(&format!("got {n}\r\n"));
    }
    terminal.keys("\n");
    terminal.shows("all ");
    assert_eq!(terminal.shows(" of them"), "10", "{signal}");
}

#[test]
fn ctrl_c_and_ctrl_backslash_reach_the_command_exactly_once() {
    arrives_once("SIGINT", |terminal, _, _| terminal.keys("\x03"));
    arrives_once("SIGQUIT", |terminal, _, _| terminal.keys("\x1c"));
}

#[test]
fn a_change_of_the_windows_size_reaches_the_command_exactly_once() {
    arrives_once("SIGWINCH", |_, name, n| {
        let columns = (80 + n).to_string();
        assert!(Command::new("stty").args(["-F", name, "cols", &columns]).status().unwrap().success());
    });
}

#[test]
fn the_shells_continue_reaches_the_command_exactly_once() {
    arrives_once("SIGCONT", |terminal, _, _| {
        terminal.keys("\x1a");
        assert!(terminal.shows(PROMPT).contains("Stopped"));
        terminal.line("fg");
    });
}

#[test]
fn ctrl_backslash_ends_the_command_and_fenced_by_the_same_signal() {
    let mut terminal = Terminal::new();
    terminal.line("$F sh -c 'echo in; exec sleep 60'; echo rc=$?");
    terminal.shows("in\r\n");
    terminal.keys("\x1c");
    terminal.shows("rc=131\r\n");
    assert_eq!(terminal.jobs(), [0; 0]);
}
