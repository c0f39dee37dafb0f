//! What `fenced snippet` prints, and every command line of docs/fencing.md, executed as it stands against the real things.

#[path = "../support/mod.rs"]
mod support;

mod bench;
mod etcd;
mod http;
mod mysql;
mod postgres;
mod redis;
mod rule;
mod s3;
mod server;
mod service;
mod sqlite;
mod text;
