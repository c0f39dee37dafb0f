//! A scenario builder for the real binary: `Run::new(&store).lock("a").args(["--no-wait"]).command(["true"]).output()`.

use super::processes::{self, MARK};
use super::wait::{SOON, eventually, obtain, until};
use nix::sys::signal::Signal;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A local store in a directory of its own, removed at the end.
pub struct LocalStore(TempDir);

impl LocalStore {
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self(directory)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// As `--store` takes it.
impl Display for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file://{}", self.path().display())
    }
}

/// One `fenced run`, or another subcommand, to be. stdin is empty and the environment has no variable of fenced's unless one is given here.
pub struct Run {
    subcommand: Vec<OsString>,
    options: Vec<OsString>,
    command: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    stdin: Option<Stdio>,
    mark: String,
}

impl Run {
    /// A run on this store: a [`LocalStore`], or anything that shows itself as a URL.
    pub fn new(store: &impl Display) -> Self {
        Self::bare().args(["--store", &store.to_string()])
    }

    /// A run without a `--store`.
    pub fn bare() -> Self {
        Self::of(["run"])
    }

    /// Another subcommand than `run`.
    pub fn of(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        Self {
            subcommand: words.into_iter().map(|word| word.as_ref().to_owned()).collect(),
            options: Vec::new(),
            command: Vec::new(),
            environment: Vec::new(),
            directory: None,
            stdin: None,
            mark: processes::new_mark(),
        }
    }

    pub fn lock(self, name: impl AsRef<OsStr>) -> Self {
        self.args([OsStr::new("--lock"), name.as_ref()])
    }

    /// Options, added before the command.
    pub fn args(mut self, options: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.options.extend(options.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// The command, put behind a `--`.
    pub fn command(mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        self
    }

    /// The command `sh -c SCRIPT`.
    pub fn script(self, script: &str) -> Self {
        self.command(["sh", "-c", script])
    }

    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    pub fn current_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    pub fn stdin(mut self, from: impl Into<Stdio>) -> Self {
        self.stdin = Some(from.into());
        self
    }

    /// The `std::process::Command` that it comes to, for what this builder has no word for.
    pub fn into_std(self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("fenced"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"FENCED_")) {
            command.env_remove(name);
        }
        command.args(self.subcommand).args(self.options);
        if !self.command.is_empty() {
            command.arg("--").args(self.command);
        }
        command.env(MARK, self.mark).envs(self.environment).stdin(self.stdin.unwrap_or_else(Stdio::null));
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        command
    }

    /// Starts it; its output goes to files that can be read while it runs.
    pub fn spawn(self) -> Running {
        let mark = self.mark.clone();
        Running::start(self.into_std(), mark)
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn output(self) -> Ended {
        self.spawn().wait(SOON)
    }
}

/// The binary's path.
pub fn binary() -> String {
    assert_cmd::cargo::cargo_bin!("fenced").display().to_string()
}

/// A bash script that finds the binary in `$F` and the store in `$S`, and no variable of fenced's.
pub fn bash(store: &LocalStore, script: &str) -> Running {
    let mut command = Command::new("bash");
    command.args(["-c", script]).env("F", binary()).env("S", store.to_string()).stdin(Stdio::null());
    for name in ["FENCED_STORE", "FENCED_HELD", "FENCED_TOKEN"] {
        command.env_remove(name);
    }
    Running::start(command, processes::new_mark())
}

/// A run that was started. Dropping it kills all that it started and that still lives.
pub struct Running {
    child: Child,
    mark: String,
    output: TempDir,
}

impl Running {
    /// Starts any command with a mark and captured output.
    pub fn start(mut command: Command, mark: String) -> Self {
        let output = TempDir::new().unwrap();
        command.env(MARK, &mark);
        command.stdout(File::create(output.path().join("stdout")).unwrap());
        command.stderr(File::create(output.path().join("stderr")).unwrap());
        let child = command.spawn().unwrap();
        Self { child, mark, output }
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// The guard's pid: fenced's only child.
    #[track_caller]
    pub fn guard(&self) -> i32 {
        obtain(SOON, || processes::children(self.pid()).first().copied())
    }

    /// The command's pid, once it has been started: the guard's first child.
    #[track_caller]
    pub fn command(&self) -> i32 {
        let guard = self.guard();
        obtain(SOON, || processes::children(guard).first().copied())
    }

    /// All of its processes that live, fenced and the guard among them. A command that cleared its environment is not.
    pub fn tree(&self) -> Vec<i32> {
        processes::marked(&self.mark)
    }

    /// Waits until nothing of the tree is left.
    #[track_caller]
    pub fn gone(&mut self, within: Duration) {
        eventually(within, || {
            let _ = self.child.try_wait();
            self.tree().is_empty()
        });
    }

    pub fn signal(&self, signal: Signal) {
        processes::signal(self.pid(), signal);
    }

    /// What it wrote to stdout so far.
    pub fn stdout(&self) -> String {
        self.written("stdout")
    }

    /// What it wrote to stderr so far.
    pub fn stderr(&self) -> String {
        self.written("stderr")
    }

    /// Waits until stdout has this text.
    #[track_caller]
    pub fn prints(&self, text: &str) {
        let seen = until(SOON, || self.stdout().contains(text).then_some(()));
        assert!(seen.is_some(), "no {text:?} in stdout: {:?}, stderr: {:?}", self.stdout(), self.stderr());
    }

    /// Waits until stderr has this text.
    #[track_caller]
    pub fn says(&self, text: &str) {
        let seen = until(SOON, || self.stderr().contains(text).then_some(()));
        assert!(seen.is_some(), "no {text:?} in stderr: {:?}", self.stderr());
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// The mark of everything that it started.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Waits for its end, and lets live what it left behind.
    #[track_caller]
    pub fn wait_and_leave(mut self, within: Duration) -> Ended {
        let status = until(within, || self.ended());
        assert!(status.is_some(), "still running after {within:?}, stderr: {:?}", self.stderr());
        let ended = Ended { status: status.unwrap(), stdout: self.stdout(), stderr: self.stderr() };
        self.mark = "left alone".into();
        ended
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(mut self, within: Duration) -> Ended {
        let status = until(within, || self.ended());
        assert!(status.is_some(), "still running after {within:?}, stderr: {:?}", self.stderr());
        Ended { status: status.unwrap(), stdout: self.stdout(), stderr: self.stderr() }
    }

    fn written(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.output.path().join(name)).unwrap()).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let killed = until(SOON, || {
            let left = processes::marked(&self.mark);
            for &pid in &left {
                processes::signal(pid, Signal::SIGKILL);
            }
            let _ = self.child.try_wait();
            left.is_empty().then_some(())
        });
        if killed.is_none() {
            eprintln!("processes marked {} could not be killed", self.mark);
        }
    }
}

/// How a run ended and what it wrote.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// The exit status, `None` for a death by signal.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The signal it died of.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Asserts the exit status and shows what was said if it is another.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{self:?}");
        self
    }
}
