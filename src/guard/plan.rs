//! What the guard does when: a pure table over states and events, without clock or I/O.
//!
//! ```text
//! idle ─▶ running ─▶ settling ─▶ stopping ─▶ killing ─▶ done
//!            │  └───▶ waiting ─────┘ ▲          ▲
//!            └───────────────────────┴──────────┘   a lease's end, an order, fenced gone
//! ```

use super::terms::{Deadlines, Report};
use crate::settings::OnExit;
use crate::timing::{LEAST_MARGIN, Moment};
use std::time::Duration;

/// How long what outlives the command may go on before it is told to stop: the `tee` of a `>(tee log)` needs a moment
/// to write the end of what it read.
pub const SETTLE: Duration = Duration::from_millis(100);
/// How long SIGKILL may take, while the lease lasts, before what survives is called unkillable.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the command and its tree are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not started.
    Idle,
    /// The command runs.
    Running,
    /// The command ended, and the rest may end by itself until this moment.
    Settling(Moment),
    /// The command ended, and the rest may go on (`--on-exit wait`).
    Waiting,
    /// The stop signal was sent; SIGKILL follows at this moment.
    Stopping(Moment),
    /// SIGKILL is sent again and again; what survives is reported at this moment, once.
    Killing(Option<Moment>),
    /// Nothing is left to do.
    Done,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The command was forked, to be gone at these moments.
    Forked(Deadlines),
    /// The command could not be forked, or it was too late for it.
    NotForked(i32),
    /// The command was executed, under this pid.
    Executed(i32),
    /// The command could not be executed.
    NotExecuted(i32),
    /// fenced renewed the lease.
    Renewed(Deadlines),
    /// fenced orders the end.
    Stop,
    /// fenced orders the end at once.
    Kill,
    /// fenced forwards a signal.
    Signal(i32),
    /// fenced is gone.
    Abandoned,
    /// The command was stopped (job control).
    Paused(i32),
    /// The command was reaped.
    Ended(i32),
    /// There are no children left.
    Empty,
    /// Time went by.
    Tick,
}

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Report to fenced.
    Tell(Report),
    /// Report which processes outlived the command, if any did.
    TellLingering,
    /// Report which processes survive SIGKILL.
    TellUnkillable,
    /// Send the stop signal and SIGCONT to the whole tree, once.
    Stop,
    /// Forward a signal to the command.
    Forward(i32),
    /// SIGKILL the whole tree, from now on until nothing is left.
    Kill,
}

/// The state of one command's life.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    state: State,
    grace: Duration,
    on_exit: OnExit,
    deadlines: Deadlines,
    /// The command was not reaped: it can be signalled.
    unreaped: bool,
}

type Actions = Vec<Action>;

impl Plan {
    /// Before the start.
    #[must_use]
    pub fn new(grace: Duration, on_exit: OnExit) -> Self {
        let deadlines = Deadlines { stop_by: Moment::NEVER, dead_by: Moment::NEVER };
        Self { state: State::Idle, grace, on_exit, deadlines, unreaped: false }
    }

    /// Where things are.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// When to send the next [`Event::Tick`] at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        match self.state {
            State::Idle | State::Done => None,
            State::Running | State::Waiting => Some(self.stop_by()),
            State::Settling(until) => Some(until.min(self.stop_by())),
            State::Stopping(kill_at) => Some(kill_at),
            State::Killing(tell_at) => tell_at,
        }
        .filter(|&moment| moment != Moment::NEVER)
    }

    /// When the tree must be dead, as long as nothing was done about it yet: what a second watch goes by.
    #[must_use]
    pub fn dead_by(&self) -> Option<Moment> {
        match self.state {
            State::Idle | State::Killing(_) | State::Done => None,
            _ => Some(self.deadlines.dead_by).filter(|&moment| moment != Moment::NEVER),
        }
    }

    /// What an event leads to.
    #[must_use]
    pub fn step(&mut self, now: Moment, event: Event) -> Actions {
        match (self.state, event) {
            (State::Idle, event) => self.before_the_start(event),
            (State::Done, _) | (_, Event::Forked(_) | Event::NotForked(_)) => vec![],
            (_, Event::Executed(pid)) => vec![Action::Tell(Report::Started { pid })],
            (_, Event::NotExecuted(errno)) => self.not_started(errno),
            (_, Event::Empty) => self.done(),
            (_, Event::Ended(status)) => self.ended(now, status),
            (State::Running | State::Waiting | State::Settling(_), event) => self.before_the_stop(now, event),
            (State::Stopping(kill_at), event) => self.after_the_stop(now, kill_at, event),
            (State::Killing(tell_at), event) => self.in_the_kill(now, tell_at, event),
        }
    }

    fn before_the_start(&mut self, event: Event) -> Actions {
        match event {
            Event::Forked(deadlines) => {
                (self.state, self.deadlines, self.unreaped) = (State::Running, deadlines, true);
                vec![]
            }
            Event::NotForked(errno) => self.not_started(errno),
            Event::Stop | Event::Kill => self.done(),
            Event::Abandoned => {
                self.state = State::Done;
                vec![]
            }
            Event::Executed(_)
            | Event::NotExecuted(_)
            | Event::Renewed(_)
            | Event::Signal(_)
            | Event::Paused(_)
            | Event::Ended(_)
            | Event::Empty
            | Event::Tick => vec![],
        }
    }

    fn before_the_stop(&mut self, now: Moment, event: Event) -> Actions {
        match event {
            Event::Renewed(deadlines) => {
                if deadlines.dead_by > self.deadlines.dead_by {
                    self.deadlines = deadlines;
                }
                vec![]
            }
            Event::Signal(signal) => self.forward(signal),
            Event::Paused(signal) => vec![Action::Tell(Report::Paused { signal })],
            Event::Stop | Event::Abandoned => self.stop(now),
            Event::Kill => self.kill(now),
            Event::Tick if now >= self.deadlines.dead_by => {
                [self.kill(now), vec![Action::Tell(Report::Overdue)]].concat()
            }
            Event::Tick if now >= self.stop_by() => [self.stop(now), vec![Action::Tell(Report::Overdue)]].concat(),
            Event::Tick => match self.state {
                State::Settling(until) if now >= until => [vec![Action::TellLingering], self.stop(now)].concat(),
                _ => vec![],
            },
            Event::Forked(_)
            | Event::NotForked(_)
            | Event::Executed(_)
            | Event::NotExecuted(_)
            | Event::Ended(_)
            | Event::Empty => vec![],
        }
    }

    fn after_the_stop(&mut self, now: Moment, kill_at: Moment, event: Event) -> Actions {
        match event {
            Event::Signal(signal) => self.forward(signal),
            Event::Paused(signal) => vec![Action::Tell(Report::Paused { signal })],
            Event::Kill => self.kill(now),
            Event::Tick if now >= kill_at => self.kill(now),
            // A renewal that comes now revives nothing: fenced may have told its user already that the lock was lost.
            Event::Renewed(_)
            | Event::Stop
            | Event::Abandoned
            | Event::Tick
            | Event::Forked(_)
            | Event::NotForked(_)
            | Event::Executed(_)
            | Event::NotExecuted(_)
            | Event::Ended(_)
            | Event::Empty => vec![],
        }
    }

    fn in_the_kill(&mut self, now: Moment, tell_at: Option<Moment>, event: Event) -> Actions {
        match event {
            Event::Tick if tell_at.is_some_and(|at| now >= at) => {
                self.state = State::Killing(None);
                vec![Action::TellUnkillable]
            }
            Event::Tick
            | Event::Renewed(_)
            | Event::Stop
            | Event::Kill
            | Event::Signal(_)
            | Event::Abandoned
            | Event::Paused(_)
            | Event::Forked(_)
            | Event::NotForked(_)
            | Event::Executed(_)
            | Event::NotExecuted(_)
            | Event::Ended(_)
            | Event::Empty => vec![],
        }
    }

    /// The command ended. What else lives is dealt with as `--on-exit` says, unless the end was coming anyway.
    fn ended(&mut self, now: Moment, status: i32) -> Actions {
        if !std::mem::take(&mut self.unreaped) {
            return vec![];
        }
        let ended = Action::Tell(Report::Ended { status });
        match (self.state, self.on_exit) {
            (State::Running, OnExit::Kill) => self.state = State::Settling(now + SETTLE),
            (State::Running, OnExit::Wait) => self.state = State::Waiting,
            (State::Running, OnExit::Leave) => {
                return [vec![ended, Action::TellLingering], self.done()].concat();
            }
            _ => {}
        }
        vec![ended]
    }

    fn forward(&self, signal: i32) -> Actions {
        if self.unreaped { vec![Action::Forward(signal)] } else { vec![] }
    }

    fn stop(&mut self, now: Moment) -> Actions {
        self.state = State::Stopping((now + self.grace).min(self.deadlines.dead_by));
        vec![Action::Stop]
    }

    fn kill(&mut self, now: Moment) -> Actions {
        // While the lease lasts there is time for gigabytes to be freed; after dead_by there is only the margin.
        let tell_at = (self.deadlines.dead_by.min(now + PATIENCE)).max(now) + LEAST_MARGIN;
        self.state = State::Killing(Some(tell_at));
        vec![Action::Kill]
    }

    fn done(&mut self) -> Actions {
        self.state = State::Done;
        vec![Action::Tell(Report::Clear)]
    }

    fn not_started(&mut self, errno: i32) -> Actions {
        self.state = State::Done;
        vec![Action::Tell(Report::NotStarted { errno })]
    }

    fn stop_by(&self) -> Moment {
        self.deadlines.stop_by.min(self.deadlines.dead_by)
    }
}

#[cfg(test)]
mod tests;
