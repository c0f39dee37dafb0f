//! What can be typed after `fenced run`.

use super::Store;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// `fenced run`.
#[derive(Debug, Args)]
pub struct Run {
    /// What must not overlap: `billing:nightly`, `deploy/prod` (UTF-8, 1-255 bytes, no control characters)
    #[arg(short, long, value_name = "NAME")]
    pub lock: String,

    /// Lease length: how long after a crash until the next one may start; unused by `file:` [default: 30s] [env: FENCED_TTL]
    #[arg(short, long, value_name = "DURATION", allow_hyphen_values = true)]
    pub ttl: Option<String>,

    /// Give up after this time (`forever`: never; `0`: as -n); the store has 5s for its first answer in any case [default: 1m] [env: FENCED_WAIT]
    #[arg(short, long, value_name = "DURATION", conflicts_with = "no_wait", allow_hyphen_values = true)]
    pub wait: Option<String>,

    /// Give up at once if the lock is held
    #[arg(short, long, visible_alias = "nonblock")]
    pub no_wait: bool,

    /// Exit status when giving up on a held lock; 0 makes a skipped run a success [default: 75]
    #[arg(short = 'E', long, value_name = "N", visible_alias = "conflict-exit-code")]
    pub busy_exit: Option<u8>,

    /// Time between the stop signal and SIGKILL; must fit inside the ttl [default: min(10s, ttl/4); 10s on `file:`] [env: FENCED_GRACE]
    #[arg(short = 'k', long, value_name = "DURATION", visible_alias = "kill-after", allow_hyphen_values = true)]
    pub grace: Option<String>,

    /// The stop signal [default: TERM] [env: FENCED_SIGNAL]
    #[arg(short, long, value_name = "SIGNAL")]
    pub signal: Option<String>,

    /// Background processes that outlive the command: `kill` them, `wait` for them, or `leave` them (unsafe) [default: kill] [env: FENCED_ON_EXIT]
    #[arg(long, value_name = "MODE", value_parser = ["kill", "wait", "leave"], hide_possible_values = true)]
    pub on_exit: Option<String>,

    /// Random delay before asking for the lock, before the waiting clock starts [default: 0] [env: FENCED_JITTER]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub jitter: Option<String>,

    /// Show this gate the new token before the command starts, so that the holder before is shut out; can be repeated: `file:PATH`, `etcd:KEY` in the lock's own cluster, `cmd:COMMAND`
    #[arg(long, value_name = "GATE")]
    pub fence: Vec<String>,

    /// Skip the run (exit 0) if one with this key has succeeded already; {date} {hour} {week} {month} become those of the start: `nightly-{date}`
    #[arg(long, value_name = "KEY")]
    pub once: Option<String>,

    /// When the key is recorded: with the release, if the command exited 0 (`success`), or before the command starts (`start`: at most once, even if it fails) [default: success]
    #[arg(long, value_name = "WHEN", value_parser = ["success", "start"], hide_possible_values = true, requires = "once")]
    pub once_at: Option<String>,

    /// How long the key is remembered [default: 30d]
    #[arg(long, value_name = "DURATION", requires = "once", allow_hyphen_values = true)]
    pub once_keep: Option<String>,

    /// The time zone of the key's date and hour, `Europe/Berlin` [default: UTC]
    #[arg(long, value_name = "ZONE", requires = "once")]
    pub once_tz: Option<String>,

    /// COMMAND is one string for `/bin/sh -c`
    #[arg(short = 'c', long)]
    pub shell: bool,

    /// Write one JSON line about the end of the run to this file; it is opened before the lock is asked for
    #[arg(long, value_name = "FILE", conflicts_with = "status_fd")]
    pub status_file: Option<PathBuf>,

    /// The same to an open file descriptor
    #[arg(long, value_name = "N")]
    pub status_fd: Option<i32>,

    /// Shown to whoever looks at the lock: a CI job's URL, a reason
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,

    /// Say nothing on stderr
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Say each step on stderr
    #[arg(short, long)]
    pub verbose: bool,

    /// The store options.
    #[command(flatten)]
    pub store: Store,

    /// The command and its arguments; the first word that is not an option begins it
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}
