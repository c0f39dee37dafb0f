//! Where locks are kept: the contract, and who fulfils it.

pub mod contract;
pub mod etcd;
pub mod local;
