//! On a terminal: job control is that of the command without the wrapper.

use crate::binary;
use crate::support::run::LocalStore;
use crate::support::wait::{SOON, until};
use std::fs::{self, File};
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use tempfile::TempDir;

/// An interactive shell on a terminal of its own, with `$F` for a run on a local store.
struct Terminal {
    script: Child,
    keys: ChildStdin,
    output: TempDir,
    seen: usize,
    _store: LocalStore,
}

const PROMPT: &str = "PROMPT$ ";

impl Terminal {
    fn new() -> Self {
        let store = LocalStore::new();
        let output = TempDir::new().unwrap();
        let mut script = Command::new("setpriv")
            .args([
                "--pdeathsig",
                "KILL",
                "script",
                "-qfc",
                "exec env PS1=\"$P\" bash --norc --noprofile -i",
                "/dev/null",
            ])
            .env("P", PROMPT)
            .env("TERM", "dumb")
            .env("F", format!("{} run --store {store} --lock a --", binary()))
            .env_remove("FENCED_HELD")
            .env_remove("PROMPT_COMMAND")
            .stdin(Stdio::piped())
            .stdout(File::create(output.path().join("screen")).unwrap())
            .spawn()
            .unwrap();
        let keys = script.stdin.take().unwrap();
        let mut terminal = Self { script, keys, output, seen: 0, _store: store };
        terminal.shows(PROMPT);
        terminal
    }

    fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and waits for its echo.
    fn line(&mut self, line: &str) {
        self.keys(&format!("{line}\n"));
        self.shows("\r\n");
    }

    /// Waits until the screen shows this, and returns what it showed before it since the last time.
    #[track_caller]
    fn shows(&mut self, text: &str) -> String {
        let screen = || String::from_utf8_lossy(&fs::read(self.output.path().join("screen")).unwrap()).into_owned();
        let found = until(SOON, || screen().get(self.seen..)?.find(text).map(|at| self.seen + at));
        let Some(at) = found else { panic!("no {text:?} on the screen: {:?}", screen().get(self.seen..)) };
        let shown = screen()[self.seen..at].to_owned();
        self.seen = at + text.len();
        shown
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The shell hangs up with its terminal, and its jobs with it.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

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
