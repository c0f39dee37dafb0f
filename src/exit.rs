//! How a run ended, and the exit status and outcome word that each ending has.

use nix::sys::signal::Signal;

/// The lock was not acquired within `--wait` (sysexits' `EX_TEMPFAIL`, as cron wrappers use it).
pub const BUSY: u8 = 75;
/// The store could not be used; the command was not started (sysexits' `EX_UNAVAILABLE`).
pub const UNAVAILABLE: u8 = 69;
/// The lease was lost, or may have been, before the command ended.
pub const LOST: u8 = 76;
/// A gate refused the token.
pub const REFUSED: u8 = 77;
/// fenced itself: usage, configuration, internal error; the command was not started.
pub const ERROR: u8 = 125;
/// The command was found but cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
pub const NOT_FOUND: u8 = 127;

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The command ran to its end with the lock held throughout.
    Exited(u8),
    /// The command died of a signal with the lock held throughout.
    Signaled(i32),
    /// Somebody else held the lock until the waiting ended.
    Busy(String),
    /// The store could not be used; the command was not started.
    Unavailable(String),
    /// The lease was lost, or may have been, before the command ended.
    Lost(String),
    /// A run with the same `--once` key has succeeded already; the command was not started.
    Skipped(String),
    /// A gate refused the token; the command was not started.
    Refused(String),
    /// A signal ended the waiting; the command was not started.
    Interrupted(i32),
    /// The command could not be executed: [`NOT_EXECUTABLE`] or [`NOT_FOUND`].
    NotExecuted(u8, String),
    /// fenced itself failed; the command was not started.
    Error(String),
}

/// What the process does with itself at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Exit with this status.
    Status(u8),
    /// Die of this signal, so that a parent sees the same as without the wrapper.
    Signal(i32),
}

impl Verdict {
    /// How the process ends. `busy` is what `--busy-exit` chose.
    #[must_use]
    pub fn ending(&self, busy: u8) -> Ending {
        match *self {
            Self::Exited(code) => Ending::Status(code),
            Self::Signaled(signal) | Self::Interrupted(signal) => Ending::Signal(signal),
            Self::Busy(_) => Ending::Status(busy),
            Self::Unavailable(_) => Ending::Status(UNAVAILABLE),
            Self::Lost(_) => Ending::Status(LOST),
            Self::Skipped(_) => Ending::Status(0),
            Self::Refused(_) => Ending::Status(REFUSED),
            Self::NotExecuted(status, _) => Ending::Status(status),
            Self::Error(_) => Ending::Status(ERROR),
        }
    }

    /// The word for `outcome` in the status line.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Exited(_) => "exited",
            Self::Signaled(_) => "signaled",
            Self::Busy(_) => "busy",
            Self::Unavailable(_) => "unavailable",
            Self::Lost(_) => "lost",
            Self::Skipped(_) => "skipped",
            Self::Refused(_) => "refused",
            Self::Interrupted(_) => "interrupted",
            Self::NotExecuted(..) | Self::Error(_) => "error",
        }
    }

    /// The reason, where an ending has one.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Busy(why)
            | Self::Unavailable(why)
            | Self::Lost(why)
            | Self::Skipped(why)
            | Self::Refused(why)
            | Self::NotExecuted(_, why)
            | Self::Error(why) => Some(why),
            Self::Exited(_) | Self::Signaled(_) | Self::Interrupted(_) => None,
        }
    }
}

/// A signal's name without `SIG`, or its number where it has none (the real-time ones).
#[must_use]
pub fn signal_name(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(|_| signal.to_string(), |s| s.as_str().trim_start_matches("SIG").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_the_command_is_its_own() {
        for code in 0..=255 {
            assert_eq!(Verdict::Exited(code).ending(BUSY), Ending::Status(code));
        }
    }

    #[test]
    fn a_command_that_died_of_a_signal_is_followed_into_death() {
        assert_eq!(Verdict::Signaled(15).ending(BUSY), Ending::Signal(15));
        assert_eq!(Verdict::Interrupted(2).ending(BUSY), Ending::Signal(2));
    }

    #[test]
    fn each_ending_of_fenced_has_its_reserved_status() {
        let why = String::new;
        assert_eq!(Verdict::Busy(why()).ending(BUSY), Ending::Status(75));
        assert_eq!(Verdict::Busy(why()).ending(0), Ending::Status(0));
        assert_eq!(Verdict::Unavailable(why()).ending(0), Ending::Status(69));
        assert_eq!(Verdict::Lost(why()).ending(0), Ending::Status(76));
        assert_eq!(Verdict::Refused(why()).ending(0), Ending::Status(77));
        assert_eq!(Verdict::Error(why()).ending(0), Ending::Status(125));
        assert_eq!(Verdict::NotExecuted(NOT_FOUND, why()).ending(0), Ending::Status(127));
    }

    #[test]
    fn signals_have_the_names_people_know() {
        assert_eq!(signal_name(15), "TERM");
        assert_eq!(signal_name(9), "KILL");
        assert_eq!(signal_name(40), "40");
    }
}
