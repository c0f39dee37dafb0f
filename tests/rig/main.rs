//! The rig: real clusters, real runs and real faults, histories of what happened, and checks of what must be true of them.

#[path = "../support/mod.rs"]
mod support;

mod check;
mod controls;
mod fleet;
mod history;
mod job;
mod named;
mod nemesis;
mod resource;
mod schedule;
mod soak;
mod worker;
mod world;
