//! What can be typed: the one definition that parsing, `--help`, the man page and the completions are made from.
//! Values stay as they were typed; `settings` checks them, together with the environment.

#![expect(
    clippy::doc_markdown,
    clippy::struct_excessive_bools,
    reason = "these comments are the help text, and flags are flags"
)]

mod check;
mod gate;
mod run;
mod snippet;
mod store;

pub use check::Check;
pub use gate::{Gate, GateAction, GateAdvance, GateChange, GateFile, GateShow, Publish, Shown};
pub use run::Run;
pub use snippet::{Resource, Snippet};
pub use store::Store;

use clap::{CommandFactory, Parser, Subcommand};

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
could not be used; 76 the lease was lost and the command stopped; 77 a gate refused the token; 125 fenced itself failed;
126, 127 the command cannot be executed, was not found."
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
