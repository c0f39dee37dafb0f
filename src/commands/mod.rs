//! One file a subcommand: wires the rooms below together.

pub mod check;
mod ending;
mod fences;
pub mod gate;
mod holding;
mod looking;
pub mod publish;
pub mod run;
pub mod snippet;
