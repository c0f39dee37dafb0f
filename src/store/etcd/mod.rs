//! The lock on etcd: a queue of keys, each bound to its contender's lease, in the layout of etcd's own lock recipe.

mod enqueue;
mod keys;
mod once;
mod release;
mod remark;
mod renew;
mod store;
mod wait;
mod watch;

pub use store::{Cluster, Contention, EtcdStore};
