//! What a run does next: one total table over (phase, event), without clock or I/O.
//!
//! The driver tells what happened and when; the answer is what to do. There are no timers to cancel: the driver sleeps
//! until [`Machine::deadline`] and sends a [`Event::Tick`]. One store call is under way at a time; an action that starts
//! another one drops it.

use super::event::{Action, Actions, Event, Phase, Setup};
use crate::exit::Verdict;
use crate::guard::terms::Deadlines;
use crate::store::contract::Grant;
use crate::timing::{Moment, Window};
use std::time::Duration;

/// How long the guard may take to say anything after a kill was due, before fenced kills it and takes over.
pub const GUARD_PATIENCE: Duration = Duration::from_millis(450);

/// The state of one run.
#[derive(Debug)]
pub struct Machine {
    pub(super) setup: Setup,
    pub(super) phase: Phase,
    pub(super) random: fastrand::Rng,
    /// When the phase's next step of its own is due: the first try, a retry, the next renewal.
    pub(super) next: Moment,
    /// A store call is under way.
    pub(super) asked: bool,
    /// When the store call under way was started.
    pub(super) asked_at: Moment,
    /// Tries in a row that failed.
    pub(super) failures: u32,
    /// Why the last try failed, until one succeeds.
    pub(super) trouble: Option<String>,
    /// The store has answered once since the start.
    pub(super) answered: bool,
    pub(super) began: Moment,
    pub(super) hint: Moment,
    /// Until when the gates may take.
    pub(super) gates_until: Moment,
    pub(super) grant: Option<Grant>,
    pub(super) window: Window,
    /// When SIGKILL is due, once the tree is being ended.
    pub(super) kill_at: Moment,
    /// When nothing of the command was left.
    pub(super) cleared: Moment,
    pub(super) verdict: Option<Verdict>,
}

impl Machine {
    /// A run that has not begun. Send it a first [`Event::Tick`].
    #[must_use]
    pub fn new(setup: Setup, now: Moment) -> Self {
        Self {
            setup,
            phase: Phase::Delayed,
            random: fastrand::Rng::with_seed(setup.seed),
            next: now + setup.delay,
            asked: false,
            asked_at: now,
            failures: 0,
            trouble: None,
            answered: false,
            began: now,
            hint: Moment::NEVER,
            gates_until: Moment::NEVER,
            grant: None,
            window: Window::UNBOUNDED,
            kill_at: Moment::NEVER,
            cleared: Moment::NEVER,
            verdict: None,
        }
    }

    /// Where the run is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The grant, once there was one.
    #[must_use]
    pub fn grant(&self) -> Option<&Grant> {
        self.grant.as_ref()
    }

    /// When the waiting clock started: after the random delay.
    #[must_use]
    pub fn began(&self) -> Moment {
        self.began
    }

    /// Until when the lock may be waited for.
    #[must_use]
    pub fn wait_until(&self) -> Moment {
        self.setup.wait.map_or(Moment::NEVER, |wait| self.began + wait)
    }

    /// Whether the lock is held, as far as is known: then the store is watched for interruptions.
    #[must_use]
    pub fn holds(&self) -> bool {
        use Phase::{Clearing, Confirming, Preparing, Running, Starting, Stopping};
        matches!(self.phase, Preparing | Confirming | Starting | Running | Clearing | Stopping)
    }

    /// When to send the next [`Event::Tick`], if nothing else happens before.
    #[must_use]
    pub fn deadline(&self) -> Moment {
        let next = if self.asked { Moment::NEVER } else { self.next };
        match self.phase {
            Phase::Delayed => self.next,
            Phase::Joining => next.min(self.patience()),
            Phase::Waiting => self.hint.min(self.wait_until()),
            Phase::Preparing => self.gates_until.min(self.window.stop_by),
            Phase::Confirming | Phase::Starting | Phase::Running | Phase::Clearing => next.min(self.window.stop_by),
            Phase::Stopping | Phase::Killing => self.kill_at + GUARD_PATIENCE,
            Phase::Releasing | Phase::Withdrawing | Phase::Done => Moment::NEVER,
        }
    }

    /// Decides what to do about an event at `now`, which never goes back.
    pub fn step(&mut self, now: Moment, event: Event) -> Actions {
        match self.phase {
            Phase::Delayed => self.delayed(now, &event),
            Phase::Joining => self.joining(now, event),
            Phase::Waiting => self.waiting(now, event),
            Phase::Preparing => self.preparing(now, event),
            Phase::Confirming => self.confirming(now, event),
            Phase::Starting => self.starting(now, event),
            Phase::Running => self.running(now, event),
            Phase::Clearing => self.clearing(now, event),
            Phase::Stopping => self.stopping(now, event),
            Phase::Killing => self.killing(now, event),
            Phase::Releasing => self.releasing(event),
            Phase::Withdrawing => self.withdrawing(event),
            Phase::Done => nop(),
        }
    }

    pub(super) fn ask(&mut self, now: Moment, action: Action) -> Actions {
        self.asked = true;
        self.asked_at = now;
        vec![action]
    }

    pub(super) fn succeeded(&mut self) {
        self.asked = false;
        self.failures = 0;
        self.trouble = None;
    }

    pub(super) fn deadlines(&self) -> Deadlines {
        Deadlines { stop_by: self.window.stop_by, dead_by: self.window.dead_by }
    }

    pub(super) fn release(&mut self, now: Moment) -> Actions {
        self.phase = Phase::Releasing;
        self.cleared = now;
        vec![Action::Release(self.verdict == Some(Verdict::Exited(0)))]
    }

    pub(super) fn withdraw(&mut self, verdict: Verdict) -> Actions {
        self.phase = Phase::Withdrawing;
        self.verdict = Some(verdict);
        vec![Action::Withdraw]
    }

    pub(super) fn finish(&mut self, verdict: Verdict) -> Actions {
        self.phase = Phase::Done;
        vec![Action::Finish(verdict)]
    }
}

pub(super) fn nop() -> Actions {
    Vec::new()
}

pub(super) fn guard_died() -> String {
    "the guard process died".into()
}
