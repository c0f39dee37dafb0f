//! The kernel's side: clocks, signals, processes, durable files, a standard error that never blocks.
//! Unsafe code lives here and in `guard/spawn`, nowhere else.

pub mod alarm;
pub mod children;
pub mod clock;
pub mod descriptors;
pub mod directory;
pub mod durable;
pub mod error;
pub mod executable;
pub mod inherited;
pub mod ofd;
pub mod proc;
pub mod random;
pub mod ready;
pub mod signals;
pub mod socket;
pub mod stderr;
pub mod timer;
pub mod urgency;
pub mod user;
pub mod watch;
