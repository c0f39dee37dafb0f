//! The guarantees about processes, attacked through the real binary: leases that end, terminals, limits, odd parents.

mod containers;
mod cron;
mod environment;
mod hangup;
mod keys;
mod lease;
mod limits;
mod multiplexer;
mod namespace;
mod pager;
mod privilege;
mod quotas;
mod remote;
mod sandbox;
mod services;
#[path = "../support/mod.rs"]
mod support;
mod survivors;
mod terminal;

use std::path::Path;
use support::run::{bash, binary};

/// Whether this is root, which the test needs; in CI it must be.
fn is_root() -> bool {
    let root = nix::unistd::Uid::effective().is_root();
    assert!(root || std::env::var_os("CI").is_none(), "this test needs root");
    root
}

/// Whether this program, which the test needs, is installed; in CI it must be.
fn has(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let found = path.split(':').any(|directory| Path::new(directory).join(program).exists());
    assert!(found || std::env::var_os("CI").is_none(), "this test needs {program}");
    found
}
