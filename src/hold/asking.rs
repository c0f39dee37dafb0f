//! Before the command runs: the random delay, the queue, the grant, and the proof that it still stands.

use super::event::{Action, Actions, Event, FIRST_ANSWER, GATES, Phase, Readiness};
use super::machine::{Machine, guard_died, nop};
use crate::exit::Verdict;
use crate::guard::terms::Report;
use crate::report::Notice;
use crate::store::contract::{Failure, Grant, Interruption, Place};
use crate::timing::{Moment, Window};
use std::time::Duration;

/// Retries after errors wait a random part of this, doubled each time up to [`LONGEST_BACKOFF`].
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// The longest backoff between retries.
const LONGEST_BACKOFF: Duration = Duration::from_secs(2);
/// After this much waiting a person at a terminal is told who holds the lock.
const HINT_AFTER: Duration = Duration::from_secs(2);

impl Machine {
    pub(super) fn delayed(&mut self, now: Moment, event: &Event) -> Actions {
        match event {
            Event::Tick if now >= self.next => {
                self.began = now;
                self.phase = Phase::Joining;
                self.ask(now, Action::Contend)
            }
            Event::Signal(signal) => self.finish(Verdict::Interrupted(*signal)),
            Event::Guard(Report::Gone) => self.finish(Verdict::Error(guard_died())),
            _ => nop(),
        }
    }

    pub(super) fn joining(&mut self, now: Moment, event: Event) -> Actions {
        match event {
            Event::Contended(Ok(place)) => {
                self.succeeded();
                self.answered = true;
                match place {
                    Place::Granted(grant) => self.granted(now, grant),
                    Place::Done => self.withdraw(done()),
                    Place::Waiting if now >= self.wait_until() => self.give_up(),
                    Place::Waiting => self.wait(now),
                }
            }
            Event::Contended(Err(failure)) => self.setback(now, failure),
            Event::Tick if now >= self.patience() => self.give_up(),
            Event::Tick if !self.asked && now >= self.next => self.ask(now, Action::Contend),
            Event::Signal(signal) => self.withdraw(Verdict::Interrupted(signal)),
            Event::Guard(Report::Gone) => self.withdraw(Verdict::Error(guard_died())),
            _ => nop(),
        }
    }

    pub(super) fn waiting(&mut self, now: Moment, event: Event) -> Actions {
        match event {
            Event::Granted(Ok(_)) | Event::Tick if now >= self.wait_until() => self.give_up(),
            Event::Granted(Ok(grant)) => self.granted(now, grant),
            Event::Granted(Err(failure)) => {
                self.phase = Phase::Joining;
                self.setback(now, failure)
            }
            Event::Tick if now >= self.hint => {
                self.hint = Moment::NEVER;
                vec![Action::Hint]
            }
            Event::Signal(signal) => self.withdraw(Verdict::Interrupted(signal)),
            Event::Guard(Report::Gone) => self.withdraw(Verdict::Error(guard_died())),
            _ => nop(),
        }
    }

    pub(super) fn confirming(&mut self, now: Moment, event: Event) -> Actions {
        match event {
            Event::Renewed(Ok(lease)) => {
                self.succeeded();
                self.window = Window::of(lease, self.setup.grace);
                if now < self.window.beat { self.start() } else { self.ask(now, Action::Renew) }
            }
            Event::Renewed(Err(Failure::Lost(why))) | Event::Interrupted(Interruption::Lost(why)) => {
                self.not_started(&why)
            }
            Event::Interrupted(Interruption::Evicted(why)) => self.not_started(&format!("evicted: {why}")),
            Event::Renewed(Err(Failure::Unavailable(why) | Failure::Refused(why) | Failure::Stale(why))) => {
                self.missed(why);
                nop()
            }
            Event::Tick if now >= self.window.stop_by => {
                let why = self.trouble.take().unwrap_or_else(|| "no answer".into());
                self.not_started(&format!("the lease could not be confirmed in time: {why}"))
            }
            Event::Tick if !self.asked && now >= self.next => self.ask(now, Action::Renew),
            Event::Signal(signal) => self.withdraw(Verdict::Interrupted(signal)),
            Event::Guard(Report::Gone) => self.withdraw(Verdict::Error(guard_died())),
            _ => nop(),
        }
    }

    /// Until when joining may take: the wait, but the first answer always has [`FIRST_ANSWER`].
    pub(super) fn patience(&self) -> Moment {
        if self.answered { self.wait_until() } else { self.wait_until().max(self.began + FIRST_ANSWER) }
    }

    /// A try to get into the queue, or to stay there, failed: again after full jitter.
    pub(super) fn setback(&mut self, now: Moment, failure: Failure) -> Actions {
        self.asked = false;
        let why = match failure {
            Failure::Refused(why) => return self.withdraw(Verdict::Unavailable(why)),
            Failure::Stale(why) => return self.withdraw(Verdict::Refused(why)),
            Failure::Unavailable(why) => {
                self.trouble = Some(why.clone());
                why
            }
            Failure::Lost(why) => why,
        };
        let most = LONGEST_BACKOFF.min(FIRST_BACKOFF * 2u32.saturating_pow(self.failures.min(10)));
        self.failures += 1;
        self.next = now + most.mul_f64(self.random.f64());
        vec![Action::Tell(Notice::Retrying(why))]
    }

    pub(super) fn wait(&mut self, now: Moment) -> Actions {
        self.phase = Phase::Waiting;
        self.hint = now.max(self.began + HINT_AFTER);
        let mut actions = self.ask(now, Action::Await);
        actions.push(Action::Tell(Notice::Waiting));
        actions
    }

    /// The wait is over without a grant: busy if the store was there until the end, otherwise unavailable.
    pub(super) fn give_up(&mut self) -> Actions {
        let verdict = match (self.phase, self.trouble.take()) {
            (_, Some(why)) => Verdict::Unavailable(why),
            (Phase::Joining, None) if !self.answered => Verdict::Unavailable("no answer in time".into()),
            _ => Verdict::Busy("held by somebody else".into()),
        };
        self.withdraw(verdict)
    }

    pub(super) fn granted(&mut self, now: Moment, grant: Grant) -> Actions {
        self.succeeded();
        self.window = grant.lease.map_or(Window::UNBOUNDED, |lease| Window::of(lease, self.setup.grace));
        let mut actions = vec![Action::Tell(Notice::Granted(grant.token.to_string()))];
        self.grant = Some(grant);
        actions.extend(if self.setup.prepares { self.prepare(now) } else { self.confirm(now) });
        actions
    }

    /// Gates come before the command, so that the holder before is shut out before the new one works.
    fn prepare(&mut self, now: Moment) -> Actions {
        self.phase = Phase::Preparing;
        self.gates_until = now + GATES;
        self.ask(now, Action::Prepare)
    }

    pub(super) fn preparing(&mut self, now: Moment, event: Event) -> Actions {
        match event {
            Event::Prepared(Ok(Readiness::Go)) => {
                self.succeeded();
                self.confirm(now)
            }
            Event::Prepared(Ok(Readiness::Done)) => self.withdraw(done()),
            Event::Prepared(Err(Failure::Stale(why))) => self.withdraw(Verdict::Refused(why)),
            Event::Prepared(Err(Failure::Unavailable(why) | Failure::Refused(why) | Failure::Lost(why))) => {
                self.withdraw(Verdict::Unavailable(why))
            }
            Event::Interrupted(Interruption::Lost(why)) => self.not_started(&why),
            Event::Interrupted(Interruption::Evicted(why)) => self.not_started(&format!("evicted: {why}")),
            Event::Tick if now >= self.gates_until.min(self.window.stop_by) => self
                .withdraw(Verdict::Unavailable("a gate of --fence did not answer in time, somebody is inside".into())),
            Event::Signal(signal) => self.withdraw(Verdict::Interrupted(signal)),
            Event::Guard(Report::Gone) => self.withdraw(Verdict::Error(guard_died())),
            _ => nop(),
        }
    }

    /// Starts the command, after a renewal where the lease may not have the time for it.
    fn confirm(&mut self, now: Moment) -> Actions {
        let doubtful = self
            .grant
            .as_ref()
            .is_some_and(|grant| grant.lease.is_some() && (grant.confirm || now >= self.window.beat));
        if doubtful {
            self.phase = Phase::Confirming;
            return self.ask(now, Action::Renew);
        }
        self.start()
    }

    pub(super) fn start(&mut self) -> Actions {
        self.phase = Phase::Starting;
        self.next = self.window.beat;
        vec![Action::Start(self.deadlines())]
    }

    pub(super) fn not_started(&mut self, why: &str) -> Actions {
        self.withdraw(Verdict::Unavailable(format!("the lock was lost before the command could start: {why}")))
    }
}

fn done() -> Verdict {
    Verdict::Skipped("a run with this key of --once has been done already".into())
}
