//! What was typed and what the environment says, checked once: nothing later reads either again.
//! The command line wins over the environment; every refusal names the flag or the variable that mends it.

mod access;
pub mod gate;
mod given;
pub mod look;
pub mod once;
mod url;
mod values;

pub use access::{Access, Password, User};
pub use given::Environment;
pub use url::StoreUrl;

use crate::name::LockName;
use crate::{cli, exit, timing};
use access::Chosen;
use given::pick;
use nix::sys::signal::Signal;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;
use values::{background, command, duration, positive, stop_signal, waiting};

/// The default of `--ttl`.
pub const DEFAULT_TTL: Duration = Duration::from_secs(30);
/// The default of `--wait`.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(60);
/// The key prefix on etcd where the URL has none.
pub const DEFAULT_PREFIX: &str = "/fenced/v1";
/// The port of an etcd member where the URL has none.
pub const DEFAULT_PORT: u16 = 2379;

/// What becomes of background processes that are still alive when the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnExit {
    /// Stop signal, grace, SIGKILL, then release.
    #[default]
    Kill,
    /// Hold and renew until they end.
    Wait,
    /// Release now and let them run; unsafe.
    Leave,
}

/// How much fenced says on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Chatter {
    /// Nothing.
    Quiet,
    /// What went wrong or is about to.
    #[default]
    Normal,
    /// Each step.
    Verbose,
}

/// Where the status line goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusTo {
    /// `--status-file`.
    File(PathBuf),
    /// `--status-fd`.
    Descriptor(i32),
}

/// The settings of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The lock.
    pub lock: LockName,
    /// The store.
    pub store: StoreUrl,
    /// How to get at it.
    pub access: Access,
    /// Nobody chose a store: the embedded one is used, and fenced says so.
    pub unconfigured: bool,
    /// Lease length.
    pub ttl: Duration,
    /// How long to wait for the lock; `None` is for ever.
    pub wait: Option<Duration>,
    /// Exit status when the lock stayed held.
    pub busy_exit: u8,
    /// Time between the stop signal and SIGKILL.
    pub grace: Duration,
    /// The stop signal's number.
    pub stop_signal: i32,
    /// What becomes of background processes.
    pub on_exit: OnExit,
    /// The longest random delay before asking.
    pub jitter: Duration,
    /// Whether the run is to succeed once only.
    pub once: Option<once::Once>,
    /// What is shown the token before the command starts.
    pub gates: Vec<gate::GateName>,
    /// Where the status line goes, if anywhere.
    pub status: Option<StatusTo>,
    /// Free text for people.
    pub note: Option<String>,
    /// How much to say.
    pub chatter: Chatter,
    /// The command and its arguments, at least one word.
    pub command: Vec<OsString>,
    /// The locks held around this run, a line `<store URL> <encoded lock>` each (`FENCED_HELD`).
    pub held: String,
}

impl cli::Run {
    /// Where the status line was asked to go.
    #[must_use]
    pub fn status(&self) -> Option<StatusTo> {
        self.status_file.clone().map(StatusTo::File).or(self.status_fd.map(StatusTo::Descriptor))
    }
}

/// Checks what was typed for `fenced run`.
///
/// # Errors
/// One clause that names the flag or variable to mend.
pub fn run(typed: cli::Run, environment: Environment) -> Result<Run, String> {
    let status = typed.status();
    let once = once::once(&typed, jiff::Timestamp::now())?;
    let lock = LockName::parse(&typed.lock).map_err(|why| format!("--lock: {why}"))?;
    let Chosen { store, unconfigured, access } = access::choose(typed.store, environment)?;
    let ttl = pick("--ttl", typed.ttl, "FENCED_TTL", environment)?.map_or(Ok(DEFAULT_TTL), |g| g.as_a(positive))?;
    let wait = if typed.no_wait {
        Some(Duration::ZERO)
    } else {
        pick("--wait", typed.wait, "FENCED_WAIT", environment)?.map_or(Ok(Some(DEFAULT_WAIT)), |g| g.as_a(waiting))?
    };
    let grace = pick("--grace", typed.grace, "FENCED_GRACE", environment)?;
    let grace = grace.map(|g| g.as_a(duration)).transpose()?;
    let grace = match store {
        StoreUrl::Etcd { .. } => {
            let grace = grace.unwrap_or_else(|| timing::default_grace(ttl));
            timing::check(ttl, grace)?;
            grace
        }
        StoreUrl::File { .. } => grace.unwrap_or(timing::DEFAULT_GRACE),
    };
    let gates = gate::fences(&typed.fence, &store)?;
    let signal = pick("--signal", typed.signal, "FENCED_SIGNAL", environment)?;
    let on_exit = pick("--on-exit", typed.on_exit, "FENCED_ON_EXIT", environment)?;
    let jitter = pick("--jitter", typed.jitter, "FENCED_JITTER", environment)?;
    Ok(Run {
        lock,
        store,
        access,
        unconfigured,
        ttl,
        wait,
        busy_exit: typed.busy_exit.unwrap_or(exit::BUSY),
        grace,
        stop_signal: signal.map_or(Ok(Signal::SIGTERM as i32), |g| g.as_a(stop_signal))?,
        on_exit: on_exit.map_or(Ok(OnExit::Kill), |g| g.as_a(background))?,
        jitter: jitter.map_or(Ok(Duration::ZERO), |g| g.as_a(duration))?,
        once,
        gates,
        status,
        note: typed.note,
        chatter: match (typed.quiet, typed.verbose) {
            (true, _) => Chatter::Quiet,
            (_, true) => Chatter::Verbose,
            _ => Chatter::Normal,
        },
        command: command(typed.command, typed.shell)?,
        held: held(environment),
    })
}

/// Checks what was typed for `fenced gate file`: a run inside the gate, and what is shown to it.
///
/// # Errors
/// One clause that names the flag or variable to mend.
pub fn inside(typed: cli::GateFile, environment: Environment) -> Result<(Run, gate::Shown), String> {
    let shown = gate::shown(typed.shown, environment)?;
    let name = LockName::parse(&format!("gate {}", typed.state.display())).or_else(|_| LockName::parse("gate"))?;
    let grace = pick("--grace", typed.grace, "FENCED_GRACE", environment)?;
    let signal = pick("--signal", typed.signal, "FENCED_SIGNAL", environment)?;
    let run = Run {
        lock: name,
        store: StoreUrl::File { directory: None },
        access: Access::default(),
        unconfigured: false,
        ttl: DEFAULT_TTL,
        wait: shown.wait,
        busy_exit: exit::BUSY,
        grace: grace.map_or(Ok(timing::DEFAULT_GRACE), |g| g.as_a(duration))?,
        stop_signal: signal.map_or(Ok(Signal::SIGTERM as i32), |g| g.as_a(stop_signal))?,
        on_exit: OnExit::Kill,
        jitter: Duration::ZERO,
        once: None,
        gates: Vec::new(),
        status: None,
        note: None,
        chatter: if typed.verbose { Chatter::Verbose } else { Chatter::Normal },
        command: command(typed.command, typed.shell)?,
        held: held(environment),
    };
    Ok((run, shown))
}

fn held(environment: Environment) -> String {
    environment("FENCED_HELD").map(|held| held.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The line that `FENCED_HELD` has for a lock.
#[must_use]
pub fn held_line(store: &str, lock: &LockName) -> String {
    format!("{store} {}", lock.encoded())
}

/// Whether a command's words can be handed to the kernel at all.
///
/// # Errors
/// When one of them holds a zero byte (which the command line cannot carry, but a library caller can).
pub fn c_strings(words: &[OsString]) -> Result<Vec<std::ffi::CString>, String> {
    let c_string = |word: &OsString| {
        std::ffi::CString::new(<OsStr as OsStrExt>::as_bytes(word))
            .map_err(|_| "the command holds a zero byte".to_owned())
    };
    words.iter().map(c_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn parse(words: &[&str], variables: &[(&str, &str)]) -> Result<Run, String> {
        let words = ["fenced", "run"].iter().chain(words);
        let typed = cli::Cli::try_parse_from(words).map_err(|error| cli::one_line(&error))?;
        let cli::Command::Run(typed) = typed.command else { panic!("not a run") };
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        run(*typed, &find)
    }

    fn etcd(words: &[&str]) -> Result<Run, String> {
        parse(&[&["--store", "etcd://h", "--lock", "a"], words, &["true"]].concat(), &[])
    }

    fn local(words: &[&str]) -> Result<Run, String> {
        parse(&[&["--lock", "a"], words, &["true"]].concat(), &[])
    }

    fn refused(outcome: Result<Run, String>, words: &[&str]) {
        let why = outcome.expect_err("accepted");
        for word in words {
            assert!(why.contains(word), "{why:?} does not say {word:?}");
        }
        assert!(!why.contains('\n') && !why.ends_with('.'), "{why:?}");
    }

    #[test]
    fn the_defaults_are_those_of_the_manual() {
        let run = etcd(&[]).unwrap();
        assert_eq!((run.ttl, run.wait, run.grace), (DEFAULT_TTL, Some(DEFAULT_WAIT), Duration::from_millis(7_500)));
        assert_eq!((run.stop_signal, run.on_exit, run.busy_exit), (15, OnExit::Kill, 75));
        let run = local(&[]).unwrap();
        assert_eq!(run.grace, Duration::from_secs(10), "on file: the grace is free of the ttl");
        assert!(run.unconfigured);
    }

    #[test]
    fn the_command_line_wins_over_the_environment() {
        let variables =
            [("FENCED_TTL", "20s"), ("FENCED_WAIT", "5s"), ("FENCED_STORE", "file:///x"), ("FENCED_GRACE", "")];
        let run = parse(&["--lock", "a", "--ttl", "40s", "true"], &variables).unwrap();
        assert_eq!((run.ttl, run.wait), (Duration::from_secs(40), Some(Duration::from_secs(5))));
        assert_eq!(run.store, StoreUrl::File { directory: Some("/x".into()) });
        assert!(!run.unconfigured);
        let run = parse(&["--lock", "a", "-n", "true"], &variables).unwrap();
        assert_eq!(run.wait, Some(Duration::ZERO), "a flag overrides a variable it conflicts with");
    }

    #[test]
    fn a_refusal_names_the_variable_that_the_value_came_from() {
        refused(parse(&["--lock", "a", "true"], &[("FENCED_TTL", "30")]), &["FENCED_TTL", "30s"]);
        refused(parse(&["--lock", "a", "true"], &[("FENCED_STORE", "nfs:x")]), &["FENCED_STORE", "nfs"]);
    }

    #[test]
    fn what_is_exported_to_a_command_is_not_read_as_an_option() {
        let run = parse(&["--lock", "a", "true"], &[("FENCED_LOCK", "b"), ("FENCED_TOKEN", "7")]).unwrap();
        assert_eq!(run.lock.as_str(), "a");
    }

    #[test]
    fn durations_without_unit_sign_or_sense_are_refused_by_the_flags_name() {
        for flag in ["--ttl", "--wait", "--grace", "--jitter"] {
            for bad in ["30", "", "x", "-5s", "1.5.2s", "99999999999999999999h", "5 parsecs"] {
                refused(local(&[&format!("{flag}={bad}")]), &[flag]);
            }
        }
        refused(local(&["--ttl", "0"]), &["--ttl", "zero"]);
        assert_eq!(local(&["--wait", "0"]).unwrap().wait, Some(Duration::ZERO));
        assert_eq!(local(&["--wait", "forever"]).unwrap().wait, None);
        assert_eq!(local(&["--grace", "1m 30s"]).unwrap().grace, Duration::from_secs(90));
    }

    #[test]
    fn a_lease_that_cannot_fit_is_refused_on_etcd_and_free_on_file() {
        refused(etcd(&["--ttl", "301s"]), &["--ttl", "5m or less"]);
        refused(etcd(&["--ttl", "1s"]), &["--ttl 2s or more"]);
        refused(etcd(&["--grace", "29s"]), &["--grace", "or less"]);
        assert!(local(&["--ttl", "301s", "--grace", "1h"]).is_ok());
        assert!(etcd(&["--ttl", "2s", "--grace", "300ms"]).is_ok());
    }

    #[test]
    fn names_are_checked() {
        refused(parse(&["--lock", "", "true"], &[]), &["--lock", "empty"]);
        refused(parse(&["--lock", "a\nb", "true"], &[]), &["--lock", "control"]);
        refused(parse(&["--lock", &"x".repeat(256), "true"], &[]), &["--lock", "255"]);
        refused(parse(&["true"], &[]), &["--lock"]);
    }

    #[test]
    fn a_command_must_be_there() {
        refused(parse(&["--lock", "a"], &[]), &["COMMAND"]);
        refused(parse(&["--lock", "a", "--"], &[]), &["COMMAND"]);
        refused(parse(&["--lock", "a", "--", ""], &[]), &["command is empty"]);
        refused(parse(&["--lock", "a", "-c", "echo", "x"], &[]), &["--shell", "one string"]);
        assert_eq!(local(&["-c"]).unwrap().command, ["/bin/sh", "-c", "true"]);
    }

    #[test]
    fn the_commands_own_flags_are_left_alone() {
        let run = parse(&["--lock", "a", "grep", "-n", "--lock", "b", "-v", "--", "-q"], &[]).unwrap();
        assert_eq!(run.command, ["grep", "-n", "--lock", "b", "-v", "--", "-q"]);
        assert_eq!((run.wait, run.chatter), (Some(DEFAULT_WAIT), Chatter::Normal));
        let run = parse(&["--lock", "a", "--", "--version"], &[]).unwrap();
        assert_eq!(run.command, ["--version"]);
    }

    #[test]
    fn a_mistyped_flag_is_refused_and_not_taken_for_the_command() {
        refused(parse(&["--lock", "a", "--tll", "5s", "true"], &[]), &["--tll"]);
        refused(parse(&["--lock", "a", "-n", "--wait", "5s", "true"], &[]), &["--wait"]);
        refused(parse(&["--lock", "a", "-E", "256", "true"], &[]), &["256"]);
    }

    #[test]
    fn stop_signals_have_many_spellings_and_must_end_a_process() {
        for spelling in ["INT", "SIGINT", "int", "2"] {
            assert_eq!(local(&["--signal", spelling]).unwrap().stop_signal, 2);
        }
        for bad in ["", "0", "-1", "99", "STOP", "SIGCONT", "NOPE"] {
            refused(local(&[&format!("--signal={bad}")]), &["--signal"]);
        }
    }

    #[test]
    fn a_refused_store_names_the_flag() {
        refused(local(&["--store", "zookeeper://h"]), &["--store", "zookeeper"]);
        refused(local(&["--store="]).map_err(|why| format!("--store {why}")), &["--store"]);
    }
}
