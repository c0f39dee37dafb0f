//! Waiting for something to become true, with a deadline instead of a guess.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Long enough for anything that should happen at once, on a busy machine.
pub const SOON: Duration = Duration::from_secs(20);

/// How often a condition is looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until the condition holds; panics at the caller's line when it does not in time.
#[track_caller]
pub fn eventually(within: Duration, mut condition: impl FnMut() -> bool) {
    let held = until(within, || condition().then_some(())).is_some();
    assert!(held, "did not become true within {within:?}");
}

/// Waits for a value; panics at the caller's line when there is none in time.
#[track_caller]
pub fn obtain<T>(within: Duration, look: impl FnMut() -> Option<T>) -> T {
    let value = until(within, look);
    assert!(value.is_some(), "did not appear within {within:?}");
    value.unwrap()
}

/// Whether the condition held all the time.
pub fn throughout(span: Duration, mut condition: impl FnMut() -> bool) -> bool {
    until(span, || (!condition()).then_some(())).is_none()
}

/// The value as soon as there is one, `None` if there is none in time.
pub fn until<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + within;
    loop {
        let late = Instant::now() >= deadline;
        let value = look();
        if value.is_some() || late {
            return value;
        }
        sleep(PAUSE);
    }
}
