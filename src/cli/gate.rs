//! What can be typed after `fenced gate` and `fenced publish`.

use super::Store;
use clap::{Args, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

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
