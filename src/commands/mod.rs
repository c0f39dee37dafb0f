//! One file a subcommand: wires the rooms below together.

pub mod run;
