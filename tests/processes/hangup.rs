//! The terminal goes away: the command hears of it as it would without the wrapper, and nothing stays behind.

use crate::support::run::{LocalStore, Run, binary};
use crate::support::terminal::Terminal;
use crate::support::wait::{SOON, eventually};
use std::fs;

/// fenced as the first process of a terminal, as under `ssh -t host fenced …`, in a window or in a tmux pane.
fn leader(store: &LocalStore, script: &str) -> Terminal {
    Terminal::start(&[], &format!("exec $F {script}"), &fenced(store))
}

fn fenced(store: &LocalStore) -> String {
    format!("{} run --store {store} --lock a --", binary())
}

fn free(store: &LocalStore) {
    Run::new(store).lock("a").args(["--wait", "5s"]).command(["true"]).output().exits(0);
}

#[test]
fn a_terminal_that_goes_away_hangs_up_a_command_whose_fenced_leads_the_session() {
    let store = LocalStore::new();
    let mut terminal = leader(&store, "sh -c 'setsid sleep 1012 & echo in; sleep 1013'");
    terminal.shows("in\r\n");
    terminal.hang_up();
    eventually(SOON, || terminal.left().is_empty());
    free(&store);
}

#[test]
fn the_hang_up_reaches_the_command_once_and_its_last_words_are_written() {
    // Who leads the session hears of it from the kernel, and its foreground group when the leader dies of that.
    for line in ["exec $F", "$F; true"] {
        let store = LocalStore::new();
        let heard = store.path().join("heard");
        let script = format!(
            "sh -c 'trap \"echo hup >>{0}\" HUP; echo in; until [ -e {0} ]; do sleep 0.05; done; sleep 0.3; echo end >>{0}'",
            heard.display()
        );
        let line = line.replacen("$F", &format!("$F {script}"), 1);
        let mut terminal = Terminal::start(&[], &line, &fenced(&store));
        terminal.shows("in\r\n");
        terminal.hang_up();
        eventually(SOON, || terminal.left().is_empty());
        assert_eq!(fs::read_to_string(&heard).unwrap(), "hup\nend\n", "{line}");
        free(&store);
    }
}

#[test]
fn a_terminal_that_goes_away_ends_the_jobs_of_its_shell() {
    let mut terminal = Terminal::new();
    terminal.line("$F sh -c 'setsid sleep 1014 & echo in; sleep 1015'");
    terminal.shows("in\r\n");
    terminal.hang_up();
    eventually(SOON, || terminal.left().is_empty());
    free(terminal.store());
}

#[test]
fn a_waiting_run_leaves_the_queue_when_its_terminal_goes_away() {
    let store = LocalStore::new();
    let holder = Run::new(&store).lock("a").script("echo in; exec sleep 60").spawn();
    holder.prints("in");
    let mut terminal = leader(&store, "echo never");
    terminal.shows("waiting for lock a");
    terminal.hang_up();
    eventually(SOON, || terminal.left().is_empty());
    drop(holder);
    free(&store);
}
