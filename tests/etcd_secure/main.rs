//! `fenced run` on etcd clusters with TLS and users, and every failure in words.

#[path = "../support/mod.rs"]
mod support;

mod servers;
