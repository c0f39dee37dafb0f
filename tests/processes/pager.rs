//! `fenced run … | less`: the pager reads the keys, and the prompt comes back.

use crate::has;
use crate::support::terminal::{PROMPT, Terminal};
use crate::support::wait::{SOON, eventually};

const LESS: &str = "TERM=vt100 less; echo ${PIPESTATUS[*]}";

#[test]
fn a_pager_that_is_left_early_ends_the_command_by_its_broken_pipe() {
    if !has("less") {
        return;
    }
    let mut terminal = Terminal::new();
    terminal.line(&format!("$F sh -c 'exec seq 100000000' | {LESS}"));
    terminal.shows("\r\n23");
    terminal.keys("q");
    // 128 + SIGPIPE, as of `seq` alone.
    terminal.shows("141 0\r\n");
    terminal.shows(PROMPT);
    eventually(SOON, || terminal.jobs().is_empty());
}

#[test]
fn a_pager_goes_on_after_the_command_has_ended_and_reads_its_keys() {
    if !has("less") {
        return;
    }
    let mut terminal = Terminal::new();
    terminal.line(&format!("$F sh -c 'seq 60; exit 3' | {LESS}"));
    terminal.shows("\r\n23");
    // Only less is left.
    eventually(SOON, || terminal.jobs().len() == 1);
    terminal.keys("G");
    terminal.shows("\r\n60");
    terminal.keys("q");
    terminal.shows("3 0\r\n");
    terminal.shows(PROMPT);
    assert_eq!(terminal.jobs(), [0; 0]);
}
