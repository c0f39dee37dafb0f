//! A terminal as a person has it: an interactive shell on a pseudo-terminal, keys that are typed, a screen that is read.

use super::processes::{self, MARK};
use super::run::{LocalStore, binary};
use super::wait::{SOON, until};
use nix::sys::signal::Signal;
use std::fs::{self, File};
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use tempfile::TempDir;

/// An interactive shell on a terminal of its own, with `$F` for a run on a local store.
pub struct Terminal {
    script: Child,
    keys: ChildStdin,
    output: TempDir,
    seen: usize,
    mark: String,
    store: Option<LocalStore>,
}

pub const PROMPT: &str = "PROMPT$ ";

impl Terminal {
    pub fn new() -> Self {
        let store = LocalStore::new();
        let mut terminal = Self::with(&format!("{} run --store {store} --lock a --", binary()));
        terminal.store = Some(store);
        terminal
    }

    /// An interactive shell with this as `$F`.
    pub fn with(fenced: &str) -> Self {
        let mut terminal = Self::start(&[], "exec env PS1=\"$P\" bash --norc --noprofile -i", fenced);
        terminal.shows(PROMPT);
        terminal
    }

    /// A terminal on which the shell runs a line, which finds `fenced` as `$F`; the whole is started by `starter`.
    pub fn start(starter: &[&str], line: &str, fenced: &str) -> Self {
        let mark = processes::new_mark();
        let output = TempDir::new().unwrap();
        let mut script = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .args(starter)
            .args(["script", "-qfc", line, "/dev/null"])
            .env("P", PROMPT)
            .env("TERM", "dumb")
            .env("F", fenced)
            .env("SHELL", "/bin/bash")
            .env(MARK, &mark)
            .env_remove("FENCED_HELD")
            .env_remove("PROMPT_COMMAND")
            .env_remove("TMUX")
            .stdin(Stdio::piped())
            .stdout(File::create(output.path().join("screen")).unwrap())
            .spawn()
            .unwrap();
        let keys = script.stdin.take().unwrap();
        Self { script, keys, output, seen: 0, mark, store: None }
    }

    /// The terminal goes away, as when a window is closed or a connection is cut.
    pub fn hang_up(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }

    /// What lives of everything that was started on it.
    pub fn left(&self) -> Vec<i32> {
        processes::marked(&self.mark)
    }

    pub fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and waits for its echo.
    pub fn line(&mut self, line: &str) {
        self.keys(&format!("{line}\n"));
        self.shows("\r\n");
    }

    /// The lock's store, where the shell has one of its own.
    pub fn store(&self) -> &LocalStore {
        self.store.as_ref().unwrap()
    }

    /// What lives of the shell's jobs.
    pub fn jobs(&self) -> Vec<i32> {
        let script = i32::try_from(self.script.id()).unwrap();
        let shell = processes::children(script);
        self.left().into_iter().filter(|pid| *pid != script && !shell.contains(pid)).collect()
    }

    /// The terminal's name, `/dev/pts/7`.
    pub fn name(&mut self) -> String {
        self.line("tty");
        self.shows(PROMPT).trim_end().to_owned()
    }

    /// Waits until the screen shows this, and returns what it showed before it since the last time.
    #[track_caller]
    pub fn shows(&mut self, text: &str) -> String {
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
        // The shell hangs up with its terminal, and its jobs with it; those that do not are killed.
        self.hang_up();
        until(SOON, || {
            let left = self.left();
            for &pid in &left {
                processes::signal(pid, Signal::SIGKILL);
            }
            left.is_empty().then_some(())
        });
    }
}
