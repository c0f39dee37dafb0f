//! Waiting in the runtime until a descriptor can be read.

#![expect(unsafe_code, reason = "the runtime cannot see that a descriptor stays open while it is registered")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor that owns itself: open from now until it is dropped, and always the same one.
pub trait Owned: AsFd + AsRawFd + 'static {}

impl Owned for std::os::fd::OwnedFd {}
impl Owned for std::sync::Arc<std::os::fd::OwnedFd> {}
impl Owned for crate::sys::timer::Wake {}
impl Owned for nix::sys::signalfd::SignalFd {}

/// Registers a non-blocking descriptor with the runtime.
///
/// # Errors
/// What the kernel refused.
pub fn readable<T: Owned>(inner: T) -> io::Result<AsyncFd<T>> {
    // SAFETY: an `Owned` keeps its one descriptor open until it is dropped, and the registration ends before that.
    Ok(unsafe { AsyncFd::register_with_interest(inner, Interest::READABLE) }?)
}
