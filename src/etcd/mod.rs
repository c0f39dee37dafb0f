//! Talking to an etcd cluster: its members in turn, and its errors in words.

pub mod failure;
pub mod members;
