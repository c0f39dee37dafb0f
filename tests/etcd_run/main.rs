//! `fenced run` on real etcd servers: what a command and its rivals see when leases, processes, members and networks go.

#[path = "../support/mod.rs"]
mod support;

mod deaths;
mod grants;
mod losses;
mod members;
mod outages;
mod queue;
mod scene;
mod unreachable;
