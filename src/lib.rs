//! `fenced`: run one command, on one machine of many, while holding a leased lock. See ARCHITECTURE.md.

pub mod cli;
pub mod commands;
pub mod etcd;
pub mod exit;
pub mod fence;
pub mod guard;
pub mod hold;
pub mod name;
pub mod report;
pub mod settings;
pub mod store;
pub mod sys;
pub mod timing;
pub mod token;
