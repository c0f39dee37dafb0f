//! When a lease must be renewed, when the command must stop, and whether the settings leave room for both.
//!
//! ```text
//! sent ──── beat ──── beat ──── … ──── stop_by ─── grace ─── dead_by ─── margin ─── expiry
//!           renew     renew            stop signal           SIGKILL                 the store may grant the next
//! ```

use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment of the boot clock, in nanoseconds since boot; it counts suspend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Moment(pub u64);

impl Moment {
    /// Later than any moment there will be (584 years after boot).
    pub const NEVER: Self = Self(u64::MAX);

    /// How long after `earlier` this moment is; zero if it is not after.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// The shortest renewal attempt: an answer over a bad link, or a member that is busy.
pub const SHORTEST_ATTEMPT: Duration = Duration::from_millis(300);
/// The longest renewal attempt before the next member is tried.
pub const LONGEST_ATTEMPT: Duration = Duration::from_secs(2);
/// The least margin between SIGKILL and the end of the lease.
pub const LEAST_MARGIN: Duration = Duration::from_millis(500);
/// The longest ttl on etcd: only up to there leases are checkpointed, and beyond it a renewal can claim more than there is.
pub const LONGEST_TTL: Duration = Duration::from_secs(300);
/// The grace that is used when none was given, unless a quarter of the ttl is less.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(10);

/// A lease as the store granted or renewed it: `ttl` counted from `sent`, the boot clock before the request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Before the request that this lease rests on was sent; never the moment of the answer.
    pub sent: Moment,
    /// As the store granted it, not as it was asked for.
    pub ttl: Duration,
}

/// The moments that follow from one lease and one grace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// When the first renewal is due.
    pub beat: Moment,
    /// The stop signal is sent here at the latest.
    pub stop_by: Moment,
    /// SIGKILL is sent here; what follows is for everything to be reaped.
    pub dead_by: Moment,
    /// The store may grant the lock to somebody else from here on.
    pub expiry: Moment,
    /// What one renewal attempt may take before the next member is tried.
    pub attempt: Duration,
}

impl Window {
    /// The window of a store without leases: nothing ever ends by itself.
    pub const UNBOUNDED: Self = Self {
        beat: Moment::NEVER,
        stop_by: Moment::NEVER,
        dead_by: Moment::NEVER,
        expiry: Moment::NEVER,
        attempt: LONGEST_ATTEMPT,
    };

    /// The moments of a lease. With settings that [`check`] accepted they are in order.
    #[must_use]
    pub fn of(lease: Lease, grace: Duration) -> Self {
        let expiry = lease.sent + lease.ttl;
        let dead_by = expiry - margin(lease.ttl);
        let stop_by = dead_by - grace;
        let room = stop_by.since(lease.sent);
        let beat = beat(lease.ttl, room);
        let attempt = (room.saturating_sub(beat) / 4).clamp(SHORTEST_ATTEMPT, LONGEST_ATTEMPT);
        Self { beat: lease.sent + beat, stop_by, dead_by, expiry, attempt }
    }
}

/// The time between SIGKILL and the end of the lease: clock rate, scheduling, and the time that dying takes.
#[must_use]
pub fn margin(ttl: Duration) -> Duration {
    LEAST_MARGIN.max(ttl / 50)
}

/// The grace where none was given: `min(10 s, ttl / 4)`.
#[must_use]
pub fn default_grace(ttl: Duration) -> Duration {
    DEFAULT_GRACE.min(ttl / 4)
}

/// Whether two attempts of [`SHORTEST_ATTEMPT`] fit between the beat and the stop signal.
fn fits(ttl: Duration, grace: Duration) -> bool {
    let Some(room) = ttl.checked_sub(margin(ttl)).and_then(|left| left.checked_sub(grace)) else {
        return false;
    };
    room.saturating_sub(beat(ttl, room)) >= SHORTEST_ATTEMPT * 2
}

/// When the first renewal is due, where `room` is the time from the last one to the stop signal.
fn beat(ttl: Duration, room: Duration) -> Duration {
    (ttl / 3).min(room / 3)
}

/// Checks that a lease of `ttl` leaves room to renew and to stop, `grace` included.
///
/// # Errors
/// A sentence that names the flags and a value that would do.
pub fn check(ttl: Duration, grace: Duration) -> Result<(), String> {
    if ttl > LONGEST_TTL {
        return Err(format!("--ttl {} is over the longest lease on etcd, use --ttl 5m or less", show(ttl)));
    }
    if fits(ttl, grace) {
        return Ok(());
    }
    let longer = (1..=LONGEST_TTL.as_secs()).map(Duration::from_secs).find(|&t| t >= ttl && fits(t, grace));
    let longest_grace =
        (1..=ttl.as_millis() / 100).rev().map(|n| Duration::from_millis(100) * u32::try_from(n).unwrap_or(u32::MAX));
    let shorter = longest_grace.into_iter().find(|&g| fits(ttl, g));
    let cure = match (longer, shorter) {
        (Some(ttl), Some(grace)) => format!("use --ttl {} or more, or --grace {} or less", show(ttl), show(grace)),
        (Some(ttl), None) => format!("use --ttl {} or more", show(ttl)),
        (None, Some(grace)) => format!("use --grace {} or less", show(grace)),
        (None, None) => format!("use --ttl {} or more", show(LONGEST_TTL)),
    };
    Err(format!(
        "--ttl {} leaves no time to renew before the stop signal with --grace {}, {cure}",
        show(ttl),
        show(grace)
    ))
}

/// A duration as a user would type it.
#[must_use]
pub fn show(span: Duration) -> String {
    humantime::format_duration(span).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn window(ttl: Duration, grace: Duration) -> Window {
        Window::of(Lease { sent: Moment(1_000_000_000_000), ttl }, grace)
    }

    fn after_sent(moment: Moment) -> Duration {
        moment.since(Moment(1_000_000_000_000))
    }

    #[test]
    fn the_default_lease_beats_three_times_before_it_stops() {
        let w = window(30 * SECOND, default_grace(30 * SECOND));
        assert_eq!(after_sent(w.expiry), 30 * SECOND);
        assert_eq!(after_sent(w.dead_by), Duration::from_millis(29_400));
        assert_eq!(after_sent(w.stop_by), Duration::from_millis(21_900));
        assert_eq!(after_sent(w.beat), Duration::from_millis(7_300));
        assert_eq!(w.attempt, LONGEST_ATTEMPT);
    }

    #[test]
    fn the_smallest_lease_of_etcd_just_fits_with_a_grace_of_300_ms() {
        let grace = Duration::from_millis(300);
        assert_eq!(check(2 * SECOND, grace), Ok(()));
        let w = window(2 * SECOND, grace);
        assert!(w.beat + w.attempt * 2 <= w.stop_by);
        assert_eq!(after_sent(w.dead_by), Duration::from_millis(1_500));
    }

    #[test]
    fn whatever_is_accepted_has_its_moments_in_order_and_room_for_two_attempts() {
        for ttl_ms in (0..310_000u64).step_by(373) {
            for grace_ms in (0..310_000u64).step_by(1_117) {
                let (ttl, grace) = (Duration::from_millis(ttl_ms), Duration::from_millis(grace_ms));
                if check(ttl, grace).is_err() {
                    continue;
                }
                let w = window(ttl, grace);
                assert!(w.beat + SHORTEST_ATTEMPT * 2 <= w.stop_by, "{ttl:?} {grace:?} {w:?}");
                assert!(w.stop_by <= w.dead_by && w.dead_by + LEAST_MARGIN <= w.expiry, "{ttl:?} {grace:?} {w:?}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_a_value_that_would_do() {
        let told = check(2 * SECOND, SECOND).unwrap_err();
        assert!(told.contains("--ttl 3s or more"), "{told}");
        assert!(told.contains("--grace 600ms or less"), "{told}");
        assert_eq!(check(3 * SECOND, SECOND), Ok(()));
        assert_eq!(check(2 * SECOND, Duration::from_millis(600)), Ok(()));
    }

    #[test]
    fn a_lease_over_the_ceiling_is_refused() {
        assert!(check(301 * SECOND, SECOND).unwrap_err().contains("5m or less"));
        assert_eq!(check(300 * SECOND, 10 * SECOND), Ok(()));
    }

    #[test]
    fn zero_and_the_longest_durations_are_refused_without_a_panic() {
        for (ttl, grace) in [
            (Duration::ZERO, Duration::ZERO),
            (SECOND, Duration::MAX),
            (300 * SECOND, Duration::MAX),
            (Duration::MAX, Duration::MAX),
        ] {
            assert!(check(ttl, grace).is_err());
        }
    }

    #[test]
    fn moments_saturate_instead_of_wrapping() {
        assert_eq!(Moment::NEVER + SECOND, Moment::NEVER);
        assert_eq!(Moment(5) - SECOND, Moment(0));
        assert_eq!(Moment(5).since(Moment(9)), Duration::ZERO);
    }
}
