//! The ways out: a tree that is dying, the release, the withdrawal.

use super::event::{Action, Actions, Event};
use super::machine::{GUARD_PATIENCE, Machine, nop};
use crate::exit::Verdict;
use crate::guard::terms::Report;
use crate::report::Notice;
use crate::store::contract::{Failure, Interruption, Released};
use crate::timing::Moment;
use std::time::Duration;

impl Machine {
    pub(super) fn stopping(&mut self, now: Moment, event: Event) -> Actions {
        match event {
            Event::Interrupted(Interruption::Lost(why)) | Event::Renewed(Err(Failure::Lost(why))) => {
                self.kill(now, why)
            }
            Event::Signal(signal) => vec![Action::Forward(signal)],
            event => self.dying(now, event),
        }
    }

    pub(super) fn killing(&mut self, now: Moment, event: Event) -> Actions {
        self.dying(now, event)
    }

    /// What stopping and killing have in common: the tree goes, and the verdict stands.
    pub(super) fn dying(&mut self, now: Moment, event: Event) -> Actions {
        match event {
            Event::Guard(Report::Clear | Report::NotStarted { .. }) => self.release(now),
            Event::Guard(Report::Unkillable(who)) => {
                let why = self.lost_reason();
                self.abandon(who, why)
            }
            Event::Guard(Report::Gone) => vec![Action::TakeOver],
            Event::Tick if now >= self.kill_at + GUARD_PATIENCE => {
                self.kill_at = Moment::NEVER;
                vec![Action::TakeOver]
            }
            Event::TakenOver(left) => self.taken_over(now, left),
            _ => nop(),
        }
    }

    pub(super) fn releasing(&mut self, event: Event) -> Actions {
        let Event::Released(answer) = event else { return nop() };
        let verdict = self.verdict.take().unwrap_or_else(|| Verdict::Error("released without a verdict".into()));
        match answer {
            Ok(Released::Ours) => {
                let mut actions = vec![Action::Tell(Notice::Released)];
                actions.extend(self.finish(verdict));
                actions
            }
            Ok(Released::Unrecorded(why)) => {
                let mut actions = vec![Action::Tell(Notice::Unrecorded(why)), Action::Tell(Notice::Released)];
                actions.extend(self.finish(verdict));
                actions
            }
            Ok(Released::NotOurs(why)) | Err(Failure::Lost(why)) => self.finish(lost_instead(verdict, why)),
            Err(Failure::Unavailable(why) | Failure::Refused(why) | Failure::Stale(why))
                if self.cleared >= self.window.dead_by =>
            {
                self.finish(lost_instead(verdict, format!("the lease may have ended before the command did: {why}")))
            }
            Err(Failure::Unavailable(why) | Failure::Refused(why) | Failure::Stale(why)) => {
                let mut actions = vec![Action::Tell(Notice::ReleaseUnanswered(why))];
                actions.extend(self.finish(verdict));
                actions
            }
        }
    }

    pub(super) fn withdrawing(&mut self, event: Event) -> Actions {
        let Event::Withdrawn(answer) = event else { return nop() };
        let verdict = self.verdict.take().unwrap_or_else(|| Verdict::Error("withdrawn without a verdict".into()));
        match (verdict, answer) {
            (Verdict::Busy(_), Err(Failure::Unavailable(why) | Failure::Refused(why) | Failure::Stale(why))) => {
                self.finish(Verdict::Unavailable(why))
            }
            (verdict, _) => self.finish(verdict),
        }
    }

    pub(super) fn taken_over(&mut self, now: Moment, left: Vec<String>) -> Actions {
        if left.is_empty() {
            return self.release(now);
        }
        let why = self.lost_reason();
        self.abandon(left, why)
    }

    pub(super) fn lost_reason(&self) -> String {
        self.verdict.as_ref().and_then(Verdict::reason).unwrap_or("the lock was lost").to_owned()
    }

    /// Something survives SIGKILL: the lock is not released, it ends with its lease.
    pub(super) fn abandon(&mut self, who: Vec<String>, why: String) -> Actions {
        let mut actions = vec![Action::Tell(Notice::Unkillable(who))];
        actions.extend(self.finish(Verdict::Lost(why)));
        actions
    }
}

/// A lost lock is never reported as the command's own success or failure.
fn lost_instead(verdict: Verdict, why: String) -> Verdict {
    match verdict {
        Verdict::Exited(_) | Verdict::Signaled(_) => Verdict::Lost(why),
        other => other,
    }
}

/// How long a tree that was taken over may take to die, memory to be freed included; after it fenced stops waiting.
const DYING: Duration = Duration::from_secs(5);

/// When what was taken over counts as unkillable.
#[must_use]
pub fn dying_until(now: Moment) -> Moment {
    now + DYING
}
