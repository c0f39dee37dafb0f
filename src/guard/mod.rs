//! The guard: the process that starts the command, and sees to it that nothing of it outlives the lease.

mod environment;
pub mod handle;
pub mod plan;
mod serve;
mod spawn;
pub mod terms;
pub mod tree;
mod wire;
