//! `fenced run` on etcd clusters with TLS and users, and every failure in words.

#[path = "../support/mod.rs"]
mod support;

mod expiry;
mod full;
mod scene;
mod secrets;
mod servers;
mod settings;
mod tls;
mod users;
mod words;
