//! The guarantees about processes, attacked through the real binary: leases that end, terminals, limits, odd parents.

mod environment;
mod lease;
mod limits;
mod namespace;
mod services;
#[path = "../support/mod.rs"]
mod support;
mod survivors;
mod terminal;

use support::run::{bash, binary};

/// Whether this is root, which the test needs; in CI it must be.
fn is_root() -> bool {
    let root = nix::unistd::Uid::effective().is_root();
    assert!(root || std::env::var_os("CI").is_none(), "this test needs root");
    root
}
