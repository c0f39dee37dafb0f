//! What fenced tells its user: one line on stderr each, `fenced: what: why`, and nothing on stdout.

use crate::exit::signal_name;
use crate::settings::Chatter;
use crate::sys::stderr::Stderr;
use crate::timing::show;
use std::fmt;
use std::time::Duration;

/// Something that a user may want to know while a run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The lock is ours.
    Granted(String),
    /// Somebody else has the lock.
    Waiting,
    /// The store did not do what it was asked while nothing was at stake yet.
    Retrying(String),
    /// The command runs.
    Started(i32),
    /// A renewal failed; the command will be stopped in this time unless one succeeds.
    Jeopardy(String, Duration),
    /// A renewal succeeded again.
    Recovered,
    /// A signal was passed on to the command.
    Forwarded(i32),
    /// The stop signal goes to the command's whole tree.
    Stopping(String),
    /// SIGKILL goes to the command's whole tree.
    Killing(String),
    /// Processes that outlived the command are being ended.
    Ending(Vec<String>),
    /// Processes that outlived the command are left to run without the lock.
    Leaving(Vec<String>),
    /// Processes that survived SIGKILL.
    Unkillable(Vec<String>),
    /// The store did not confirm the release.
    ReleaseUnanswered(String),
    /// The run succeeded, but the key of `--once` could not be recorded.
    Unrecorded(String),
    /// The lock was given back.
    Released,
}

impl Notice {
    /// From which amount of chatter on this is said.
    #[must_use]
    pub fn level(&self) -> Chatter {
        match self {
            Self::Granted(_)
            | Self::Waiting
            | Self::Retrying(_)
            | Self::Started(_)
            | Self::Forwarded(_)
            | Self::Released => Chatter::Verbose,
            Self::Jeopardy(..)
            | Self::Recovered
            | Self::Stopping(_)
            | Self::Killing(_)
            | Self::Ending(_)
            | Self::Leaving(_)
            | Self::Unkillable(_)
            | Self::ReleaseUnanswered(_)
            | Self::Unrecorded(_) => Chatter::Normal,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted(token) => write!(f, "granted: token {token}"),
            Self::Waiting => write!(f, "waiting: somebody else is before us"),
            Self::Retrying(why) => write!(f, "store: {why}, trying again"),
            Self::Started(pid) => write!(f, "command started: pid {pid}"),
            Self::Jeopardy(why, left) => {
                write!(f, "renewal failed: {why}; the command will be stopped in {:.1} s", left.as_secs_f64())
            }
            Self::Recovered => write!(f, "renewal succeeded: the lease is safe again"),
            Self::Forwarded(signal) => write!(f, "signal {} passed on to the command", signal_name(*signal)),
            Self::Stopping(why) => write!(f, "stopping the command: {why}"),
            Self::Killing(why) => write!(f, "killing the command: {why}"),
            Self::Ending(who) => write!(
                f,
                "background processes outlived the command and are being ended (--on-exit wait would wait): {}",
                who.join(", ")
            ),
            Self::Leaving(who) => {
                write!(f, "background processes go on without the lock (--on-exit leave): {}", who.join(", "))
            }
            Self::Unkillable(who) => {
                write!(f, "processes that cannot be killed, the lock is not released: {}", who.join(", "))
            }
            Self::ReleaseUnanswered(why) => {
                write!(f, "release unanswered: {why}; the lock ends with its lease")
            }
            Self::Unrecorded(why) => {
                write!(f, "the key of --once could not be recorded, the run may be repeated: {why}")
            }
            Self::Released => write!(f, "released"),
        }
    }
}

/// Where notices and errors go.
#[derive(Debug)]
pub struct Reporter {
    stderr: Stderr,
    chatter: Chatter,
}

impl Reporter {
    /// A reporter that says as much as `chatter` allows.
    #[must_use]
    pub fn new(chatter: Chatter) -> Self {
        Self { stderr: Stderr::open(), chatter }
    }

    /// Says a notice, if it is not below what was asked for.
    pub fn tell(&self, notice: &Notice) {
        self.line(notice.level(), &notice.to_string());
    }

    /// Says an error or a warning.
    pub fn error(&self, text: &str) {
        self.line(Chatter::Normal, text);
    }

    /// Says a step, with `--verbose`.
    pub fn step(&self, text: &str) {
        self.line(Chatter::Verbose, text);
    }

    /// Whether a person is likely to read along, and wants to.
    #[must_use]
    pub fn has_reader(&self) -> bool {
        self.chatter >= Chatter::Normal && self.stderr.is_terminal()
    }

    fn line(&self, level: Chatter, text: &str) {
        if level <= self.chatter && self.chatter != Chatter::Quiet {
            self.stderr.line(&format!("fenced: {}", one_line(text)));
        }
    }
}

/// Whatever a name, a server or a file brought along: control characters do not reach the terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// How long something took or takes, in words.
#[must_use]
pub fn span(span: Duration) -> String {
    show(Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
}
