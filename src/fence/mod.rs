//! Fencing at the resource: what keeps the highest token that was accepted, and refuses a lower one.

pub mod command;
pub mod etcd;
pub mod file;
pub mod inside;
pub mod publish;
mod record;
pub mod register;
#[cfg(test)]
mod tests;
