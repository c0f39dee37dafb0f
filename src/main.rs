//! Parses the command line, dispatches, and ends the process as the subcommand says.

use clap::Parser;
use clap::error::ErrorKind;
use fenced::cli::{self, Cli, Command};
use fenced::commands;
use fenced::exit::{self, Ending};
use fenced::report::Reporter;
use fenced::settings::Chatter;
use fenced::sys::signals;
use std::panic;

fn main() {
    // One line instead of a backtrace; the run that it broke ends with a status of its own.
    panic::set_hook(Box::new(|fault| Reporter::new(Chatter::Normal).error(&format!("internal error: {fault}"))));
    let ending = match Cli::try_parse() {
        Ok(Cli { command: Command::Run(typed) }) => commands::run::run(*typed),
        Ok(Cli { command: Command::Gate(typed) }) => commands::gate::run(typed),
        Ok(Cli { command: Command::Check(typed) }) => commands::check::run(typed),
        Ok(Cli { command: Command::Publish(typed) }) => commands::publish::run(typed),
        Ok(Cli { command: Command::Snippet(typed) }) => commands::snippet::run(&typed),
        Err(told) if matches!(told.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Ending::Status(u8::from(told.print().is_err()))
        }
        Err(error) => {
            Reporter::new(Chatter::Normal).error(&cli::one_line(&error));
            Ending::Status(exit::ERROR)
        }
    };
    match ending {
        Ending::Status(status) => std::process::exit(i32::from(status)),
        Ending::Signal(signal) => signals::die_of(signal),
    }
}
