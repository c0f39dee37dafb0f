//! One file a subcommand: wires the rooms below together.

mod ending;
mod fences;
pub mod gate;
mod holding;
pub mod publish;
pub mod run;
