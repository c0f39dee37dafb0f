//! One file a subcommand: wires the rooms below together.

pub mod gate;
pub mod publish;
pub mod run;
