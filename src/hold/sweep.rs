//! A service manager that stops a whole group of processes signals fenced, guard and command each (systemd's
//! `KillMode=control-group`); passed on as well, the signal would reach the command twice. So what came from one waits
//! a moment for its twin at the guard, and is not passed on when that comes.

use crate::timing::Moment;
use std::time::Duration;

/// How long a twin is waited for.
const TWIN: Duration = Duration::from_millis(100);

/// A signal and its sender.
pub type Sent = (i32, i32);

/// The signals whose twin has not come.
#[derive(Debug, Default)]
pub struct Sweeps {
    at_fenced: Vec<(Sent, Moment)>,
    at_guard: Vec<(Sent, Moment)>,
}

impl Sweeps {
    /// fenced got a signal that it would pass on.
    pub fn came_to_fenced(&mut self, now: Moment, sent: Sent) {
        if !take(&mut self.at_guard, now, sent) {
            self.at_fenced.push((sent, now + TWIN));
        }
    }

    /// The guard got a signal.
    pub fn came_to_guard(&mut self, now: Moment, sent: Sent) {
        if !take(&mut self.at_fenced, now, sent) {
            self.at_guard.retain(|&(_, until)| now < until);
            self.at_guard.push((sent, now + TWIN));
        }
    }

    /// When the next signal is to be passed on.
    #[must_use]
    pub fn due(&self) -> Moment {
        self.at_fenced.first().map_or(Moment::NEVER, |&(_, until)| until)
    }

    /// The next signal to pass on, in the order in which they came.
    pub fn next(&mut self, now: Moment) -> Option<i32> {
        let &((signal, _), _) = self.at_fenced.first().filter(|&&(_, until)| until <= now)?;
        self.at_fenced.remove(0);
        Some(signal)
    }
}

fn take(from: &mut Vec<(Sent, Moment)>, now: Moment, sent: Sent) -> bool {
    let twin = from.iter().position(|&(other, until)| other == sent && now < until);
    twin.map(|at| from.remove(at)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Moment = Moment(1_000_000_000);
    const TERM: Sent = (15, 1);

    #[test]
    fn a_signal_that_came_to_both_is_not_passed_on_whichever_came_first() {
        let mut sweeps = Sweeps::default();
        sweeps.came_to_fenced(AT, TERM);
        sweeps.came_to_guard(AT + TWIN / 2, TERM);
        sweeps.came_to_guard(AT + TWIN, TERM);
        sweeps.came_to_fenced(AT + TWIN, TERM);
        assert_eq!((sweeps.due(), sweeps.next(Moment::NEVER)), (Moment::NEVER, None));
    }

    #[test]
    fn a_signal_to_fenced_alone_is_passed_on_after_the_wait_and_in_its_order() {
        let mut sweeps = Sweeps::default();
        sweeps.came_to_fenced(AT, (2, 1));
        sweeps.came_to_fenced(AT + Duration::from_millis(1), TERM);
        assert_eq!((sweeps.due(), sweeps.next(AT)), (AT + TWIN, None));
        assert_eq!((sweeps.next(AT + TWIN * 2), sweeps.next(AT + TWIN * 2)), (Some(2), Some(15)));
        assert_eq!(sweeps.next(Moment::NEVER), None);
    }

    #[test]
    fn another_signal_another_sender_and_one_of_long_ago_are_no_twins() {
        let mut sweeps = Sweeps::default();
        sweeps.came_to_guard(AT, TERM);
        sweeps.came_to_fenced(AT + TWIN, TERM);
        sweeps.came_to_guard(AT + TWIN, (15, 2));
        sweeps.came_to_guard(AT + TWIN, (2, 1));
        assert_eq!(sweeps.next(AT + TWIN * 2), Some(15));
    }
}
