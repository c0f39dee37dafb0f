//! Fencing at the resource, by the binary: gates, what runs inside them, publications, and `run --fence`.

#[path = "../support/mod.rs"]
mod support;

mod check;
mod fence;
mod inside;
mod killed;
mod publications;
mod rule;
mod scene;
