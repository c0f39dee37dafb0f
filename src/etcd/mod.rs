//! Talking to an etcd cluster: its members in turn, and its errors in words.

pub mod credentials;
pub mod failure;
mod handshake;
pub mod members;
