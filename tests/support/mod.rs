//! What the integration tests share: running the real binary, real servers and a proxy that gets in their way, waiting
//! for things, and looking at processes.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]

pub mod etcd;
pub mod pki;
pub mod processes;
pub mod proxy;
pub mod run;
pub mod terminal;
pub mod tools;
pub mod wait;
