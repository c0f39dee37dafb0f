//! What can be typed: the one definition that parsing, `--help`, the man page and the completions are made from.
//! Values stay as they were typed; `settings` checks them, together with the environment.

#![expect(
    clippy::doc_markdown,
    clippy::struct_excessive_bools,
    reason = "these comments are the help text, and flags are flags"
)]

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run one command, on one machine of many, while holding a leased lock.
#[derive(Debug, Parser)]
#[command(name = "fenced", version, about, disable_help_subcommand = true, arg_required_else_help = false)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command while holding a lock
    #[command(
        override_usage = "fenced run [OPTIONS] --lock NAME [--] COMMAND [ARG]...",
        after_help = "\
The command gets the fencing token in FENCED_TOKEN, and FENCED_LOCK, FENCED_LINEAGE, FENCED_OWNER, FENCED_STORE.
Exit status: the command's own, or 128+n when it died of signal n; 75 the lock was not acquired in time; 69 the store
could not be used; 76 the lease was lost and the command stopped; 77 a gate refused the token; 125 fenced itself failed; 126, 127 the command cannot
be executed, was not found."
    )]
    Run(Box<Run>),
    /// Keep the highest token at the resource, and refuse a lower one
    Gate(Gate),
    /// Put a file or a directory in its place, unless a later token was there
    #[command(after_help = "\
Readers see the old or the new, whole. A directory is published as a symbolic link to a copy. The gate is DEST's own,
.DEST.fence beside it, unless --gate names another. Exit status: 0 published; 77 the token was refused; 75 somebody else
was inside the gate until --wait; 69 it could not be done now; 125 it cannot be done so.")]
    Publish(Publish),
    /// Ask the store whether a token is still the holder's. Advisory: it may be lost the moment after
    #[command(after_help = "\
Exit status: 0 it is the holder's; 77 it is not (any more); 69 the store cannot say. Whatever the answer, only a resource
that checks the token keeps an old holder out: the lock can be lost between the answer and the write.")]
    Check(Check),
    /// Print what to put at a resource so that it checks the token, and the command line that uses it
    Snippet(Snippet),
}

/// `fenced check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The lock [default: FENCED_LOCK]
    #[arg(short, long, value_name = "NAME")]
    pub lock: Option<String>,

    /// The token [default: FENCED_TOKEN]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub token: Option<String>,

    /// What the token may be compared in [default: FENCED_LINEAGE, where the token is FENCED_TOKEN]
    #[arg(long, value_name = "WORD")]
    pub lineage: Option<String>,

    /// Say on stderr what was found
    #[arg(short, long)]
    pub verbose: bool,

    /// The store options.
    #[command(flatten)]
    pub store: Store,
}

/// `fenced gate`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub struct Gate {
    /// What to do.
    #[command(subcommand)]
    pub action: GateAction,
}

/// What can be done with a gate.
#[derive(Debug, Subcommand)]
pub enum GateAction {
    /// Run a command inside a gate, alone, if the token is accepted
    #[command(
        override_usage = "fenced gate file [OPTIONS] STATE [--] COMMAND [ARG]...",
        after_help = "\
Nothing of the command's process tree is left when it lets go of the gate. Exit status: the command's own, or 128+n when
it died of signal n; 77 the token was refused; 75 somebody else was inside until --wait; 69, 76, 125, 126, 127 as for run."
    )]
    File(GateFile),
    /// Make a gate that has accepted nothing yet (77 if it is there already)
    Init(GateChange),
    /// Have the token accepted, or refused (77)
    Advance(GateAdvance),
    /// Say what the gate remembers
    Show(GateShow),
    /// Start afresh: forget everything, or remember this token
    Reset(GateChange),
}

/// `fenced gate file`.
#[derive(Debug, Args)]
pub struct GateFile {
    /// What is shown to the gate.
    #[command(flatten)]
    pub shown: Shown,

    /// Time between the stop signal and SIGKILL [default: 10s] [env: FENCED_GRACE]
    #[arg(short = 'k', long, value_name = "DURATION", visible_alias = "kill-after", allow_hyphen_values = true)]
    pub grace: Option<String>,

    /// The stop signal [default: TERM] [env: FENCED_SIGNAL]
    #[arg(short, long, value_name = "SIGNAL")]
    pub signal: Option<String>,

    /// COMMAND is one string for `/bin/sh -c`
    #[arg(short = 'c', long)]
    pub shell: bool,

    /// Say each step on stderr
    #[arg(short, long)]
    pub verbose: bool,

    /// The gate's file
    #[arg(value_name = "STATE", value_hint = ValueHint::FilePath)]
    pub state: PathBuf,

    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// `fenced gate init` and `reset`.
#[derive(Debug, Args)]
pub struct GateChange {
    /// `file:PATH` or PATH, or `etcd:KEY`
    #[arg(value_name = "GATE")]
    pub gate: String,

    /// Remember this token as accepted, with --lineage [default: none]
    #[arg(long, value_name = "N", requires = "lineage", allow_hyphen_values = true)]
    pub token: Option<String>,

    /// What the token may be compared in
    #[arg(long, value_name = "WORD", requires = "token")]
    pub lineage: Option<String>,

    /// The store options.
    #[command(flatten)]
    pub store: Store,
}

/// `fenced gate advance`.
#[derive(Debug, Args)]
pub struct GateAdvance {
    /// `file:PATH` or PATH, `etcd:KEY`, or `cmd:COMMAND`
    #[arg(value_name = "GATE")]
    pub gate: String,

    /// What is shown to the gate.
    #[command(flatten)]
    pub shown: Shown,

    /// The store options.
    #[command(flatten)]
    pub store: Store,
}

/// `fenced gate show`.
#[derive(Debug, Args)]
pub struct GateShow {
    /// `file:PATH` or PATH, or `etcd:KEY`
    #[arg(value_name = "GATE")]
    pub gate: String,

    /// As one JSON object
    #[arg(long)]
    pub json: bool,

    /// The store options.
    #[command(flatten)]
    pub store: Store,
}

/// The token that is shown to a gate, and how.
#[derive(Debug, Args)]
pub struct Shown {
    /// The token [default: FENCED_TOKEN]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub token: Option<String>,

    /// What the token may be compared in [default: FENCED_LINEAGE]
    #[arg(long, value_name = "WORD")]
    pub lineage: Option<String>,

    /// Make the gate where it is missing, for its first use
    #[arg(long)]
    pub init: bool,

    /// Give up after this time while somebody else is inside (`forever`: never) [default: 1m] [env: FENCED_WAIT]
    #[arg(short, long, value_name = "DURATION", allow_hyphen_values = true)]
    pub wait: Option<String>,
}

/// `fenced publish`.
#[derive(Debug, Args)]
pub struct Publish {
    /// The file or directory to publish; it stays
    #[arg(value_name = "SRC", value_hint = ValueHint::AnyPath)]
    pub source: PathBuf,

    /// Its place
    #[arg(value_name = "DEST", value_hint = ValueHint::AnyPath)]
    pub destination: PathBuf,

    /// The gate's file [default: .DEST.fence beside DEST]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub gate: Option<PathBuf>,

    /// What is shown to the gate.
    #[command(flatten)]
    pub shown: Shown,
}

/// `fenced snippet`.
#[derive(Debug, Args)]
pub struct Snippet {
    /// What is written to
    #[arg(value_name = "RESOURCE")]
    pub resource: Resource,
}

/// What a snippet is for.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[expect(missing_docs, reason = "the names say it, and would stand in the help text")]
pub enum Resource {
    Postgres,
    Mysql,
    Sqlite,
    Redis,
    Etcd,
    S3,
    Http,
}

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

/// Which store, for every subcommand.
#[derive(Debug, Args)]
pub struct Store {
    /// `etcd://HOST:2379,HOST:2379[/PREFIX]`, `etcds://…` for TLS, `etcd:` to take everything from ETCDCTL_*, `file:` or `file:///DIR` [default: file:] [env: FENCED_STORE]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,

    /// Who signed the members' certificates (PEM) [default: the system's authorities] [env: FENCED_CACERT]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cacert: Option<String>,

    /// The client's own certificate (PEM), with --key [env: FENCED_CERT]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cert: Option<String>,

    /// The private key of --cert (PEM, not encrypted) [env: FENCED_KEY_FILE]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: Option<String>,

    /// A user of the etcd cluster, with --password-file or FENCED_PASSWORD [env: FENCED_USER]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// The password, on the first line of this file [env: FENCED_PASSWORD_FILE]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub password_file: Option<String>,
}

/// The whole definition, for the man page and the completions.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// A parse error as one line, without the usage that clap adds and with its first tip only.
#[must_use]
pub fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let own = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more information");
    let (tips, said): (Vec<_>, Vec<_>) = lines
        .take_while(own)
        .filter(|line| !line.starts_with("tip: to pass"))
        .partition(|line| line.starts_with("tip: "));
    let tip = tips.first().map_or(String::new(), |tip| format!(" ({})", tip.trim_start_matches("tip: ")));
    format!("{}{tip}; see fenced --help", said.join(" ").trim_start_matches("error: "))
}
