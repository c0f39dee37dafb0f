//! While the command or what it left behind lives: keeping the lease, and ending the tree when that fails.

use super::event::{Action, Actions, Event, Phase};
use super::machine::{Machine, guard_died, nop};
use crate::exit::{self, Verdict};
use crate::guard::terms::Report;
use crate::report::Notice;
use crate::settings::OnExit;
use crate::store::contract::{Failure, Interruption};
use crate::sys::error::in_words;
use crate::timing::{Lease, Moment, SHORTEST_ATTEMPT, Window};
use nix::errno::Errno;

impl Machine {
    pub(super) fn starting(&mut self, now: Moment, event: Event) -> Actions {
        match event {
            Event::Guard(Report::Started { pid }) => {
                self.phase = Phase::Running;
                vec![Action::Tell(Notice::Started(pid))]
            }
            Event::Guard(Report::NotStarted { errno }) => self.withdraw(not_started(errno)),
            event => self.running(now, event),
        }
    }

    pub(super) fn running(&mut self, now: Moment, event: Event) -> Actions {
        match event {
            Event::Guard(Report::Ended { status }) => {
                self.phase = Phase::Clearing;
                self.verdict = Some(ended(status));
                nop()
            }
            Event::Guard(Report::Paused { signal }) => vec![Action::Pause(signal)],
            Event::Signal(signal) => vec![Action::Forward(signal), Action::Tell(Notice::Forwarded(signal))],
            event => self.holding(now, event),
        }
    }

    pub(super) fn clearing(&mut self, now: Moment, event: Event) -> Actions {
        match event {
            Event::Guard(Report::Clear) => self.release(now),
            Event::Guard(Report::Lingering(who)) => vec![Action::Tell(match self.setup.on_exit {
                OnExit::Leave => Notice::Leaving(who),
                OnExit::Kill | OnExit::Wait => Notice::Ending(who),
            })],
            Event::Signal(signal) if self.setup.on_exit == OnExit::Wait => {
                self.verdict = Some(Verdict::Signaled(signal));
                vec![Action::Stop]
            }
            Event::Signal(_) | Event::Guard(Report::Ended { .. } | Report::Paused { .. }) => nop(),
            event => self.holding(now, event),
        }
    }

    /// What [`Phase::Starting`], [`Phase::Running`] and [`Phase::Clearing`] have in common: keeping the lease.
    pub(super) fn holding(&mut self, now: Moment, event: Event) -> Actions {
        match event {
            Event::Renewed(Ok(lease)) if now < self.window.stop_by => self.extend(lease),
            Event::Renewed(Ok(_)) => {
                self.asked = false;
                nop()
            }
            Event::Renewed(Err(Failure::Lost(why))) | Event::Interrupted(Interruption::Lost(why)) => {
                self.kill(now, why)
            }
            Event::Renewed(Err(Failure::Unavailable(why) | Failure::Refused(why) | Failure::Stale(why))) => {
                self.jeopardy(now, why)
            }
            Event::Interrupted(Interruption::Evicted(why)) => self.stop(now, format!("evicted: {why}")),
            Event::Guard(Report::Overdue) => self.overdue(now),
            Event::Tick if now >= self.window.stop_by => self.overdue(now),
            Event::Tick if !self.asked && now >= self.next => self.ask(now, Action::Renew),
            Event::Guard(Report::Unkillable(who)) => {
                self.abandon(who, "processes of the command cannot be killed".into())
            }
            Event::Guard(Report::Gone) => self.take_over(guard_died()),
            Event::TakenOver(left) => self.taken_over(now, left),
            _ => nop(),
        }
    }

    pub(super) fn extend(&mut self, lease: Lease) -> Actions {
        let window = Window::of(lease, self.setup.grace);
        let recovered = self.trouble.is_some();
        self.succeeded();
        self.window = window;
        self.next = window.beat - window.beat.since(lease.sent).mul_f64(0.1 * self.random.f64());
        let mut actions = vec![Action::Extend(self.deadlines())];
        if recovered {
            actions.push(Action::Tell(Notice::Recovered));
        }
        actions
    }

    /// A renewal failed: the next attempt at once, but attempts that fail quickly stay [`SHORTEST_ATTEMPT`] apart.
    pub(super) fn missed(&mut self, why: String) {
        self.asked = false;
        self.next = self.asked_at + SHORTEST_ATTEMPT;
        self.trouble = Some(why);
    }

    pub(super) fn jeopardy(&mut self, now: Moment, why: String) -> Actions {
        let first = self.trouble.is_none();
        self.missed(why.clone());
        if first { vec![Action::Tell(Notice::Jeopardy(why, self.window.stop_by.since(now)))] } else { nop() }
    }

    pub(super) fn overdue(&mut self, now: Moment) -> Actions {
        let why = self.trouble.take().unwrap_or_else(|| "no renewal in time".into());
        self.stop(now, format!("the lease could not be renewed: {why}"))
    }

    pub(super) fn stop(&mut self, now: Moment, why: String) -> Actions {
        self.phase = Phase::Stopping;
        self.kill_at = self.window.dead_by.min(now + self.setup.grace);
        self.verdict = Some(Verdict::Lost(why.clone()));
        vec![Action::Stop, Action::Tell(Notice::Stopping(why))]
    }

    pub(super) fn kill(&mut self, now: Moment, why: String) -> Actions {
        self.phase = Phase::Killing;
        self.kill_at = now;
        self.verdict = Some(Verdict::Lost(why.clone()));
        vec![Action::Kill, Action::Tell(Notice::Killing(why))]
    }

    pub(super) fn take_over(&mut self, why: String) -> Actions {
        self.phase = Phase::Killing;
        self.kill_at = Moment::NEVER;
        self.verdict = Some(Verdict::Lost(why.clone()));
        vec![Action::TakeOver, Action::Tell(Notice::Killing(why))]
    }
}

/// What a status as `waitpid(2)` gave it means for the run.
fn ended(status: i32) -> Verdict {
    if libc::WIFSIGNALED(status) {
        Verdict::Signaled(libc::WTERMSIG(status))
    } else {
        Verdict::Exited(u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX))
    }
}

fn not_started(errno: i32) -> Verdict {
    let what = Errno::from_raw(errno);
    match what {
        Errno::ENOENT => Verdict::NotExecuted(exit::NOT_FOUND, "not found".into()),
        Errno::ETIME => Verdict::Unavailable("the lease had no time left when the command was to start".into()),
        Errno::EAGAIN | Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE => {
            Verdict::Error(format!("the command could not be started: {}", in_words(&what.into())))
        }
        _ => Verdict::NotExecuted(exit::NOT_EXECUTABLE, what.desc().to_lowercase()),
    }
}
