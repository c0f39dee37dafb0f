//! The lock on the embedded local store: one directory, one file a lock, the kernel's byte-range locks as the queue.
//!
//! Contender n holds a write lock on byte 4096+n of the lock's file, and holds the lock when it can read-lock
//! [4096, 4096+n): nobody older lives. The kernel gives the bytes back when the last copy of a descriptor is closed, so
//! there is no lease, nothing to clean after a crash, and a death in the middle of the queue costs nobody anything.

mod file;
mod info;
mod names;
mod once;
mod place;
#[cfg(test)]
mod properties;
mod queue;
mod record;
mod store;
#[cfg(test)]
mod tests;
mod waiter;

pub use place::{default_directory, make_default};
pub use store::Local;
