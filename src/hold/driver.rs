//! The loop: the only `select!`. It builds an event, asks the machine, and does what it says.

use crate::exit::Verdict;
use crate::guard::handle::Guard;
use crate::guard::terms::{Deadlines, Report, Start};
use crate::hold::ending::dying_until;
use crate::hold::event::{Action, Event, Phase, Readiness};
use crate::hold::machine::Machine;
use crate::hold::sweep::Sweeps;
use crate::report::{Notice, Reporter};
use crate::store::contract::{Failure, Grant, Interruption, Queue, Remark, Store};
use crate::sys::alarm::Alarm;
use crate::sys::signals::{Received, Signals, stop_self};
use crate::sys::{children, clock, inherited, proc};
use crate::timing::Moment;
use nix::errno::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::pin::Pin;
use std::time::Duration;

/// What a run works with.
pub struct Run<'a, S: Store> {
    /// The lock's store.
    pub store: &'a S,
    /// The guard, forked and idle.
    pub guard: &'a Guard,
    /// Signals to fenced.
    pub signals: &'a Signals,
    /// Where the user is told things.
    pub reporter: &'a Reporter,
    /// Whether the command shares a terminal, and so a process group, with fenced.
    pub terminal: bool,
    /// What comes between the grant and the command, if anything does.
    pub before: Option<&'a dyn Before>,
    /// The variables to set for the command, once the grant is known.
    pub exports: &'a dyn Fn(&Grant) -> Vec<(OsString, OsString)>,
    /// The inherited variables that the command does not get.
    pub removes: &'a [&'a str],
}

/// What comes between the grant and the command.
pub trait Before {
    /// Looks whether the run was done already, and shows the gates the token, one after the other, until one refuses.
    fn prepare(&self, grant: Grant) -> Pin<Box<dyn Future<Output = Result<Readiness, Failure>> + '_>>;
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// The ending.
    pub verdict: Verdict,
    /// The user was already told why the command was stopped.
    pub explained: bool,
    /// The grant, if there was one.
    pub grant: Option<Grant>,
    /// From the first request to the grant, or to the end where there was none.
    pub waited: Duration,
    /// From the grant to the end.
    pub held: Duration,
}

type Asked<'a, T> = Option<Pin<Box<dyn Future<Output = T> + 'a>>>;

struct Loop<'a, S: Store> {
    run: &'a Run<'a, S>,
    machine: Machine,
    asked: Asked<'a, Event>,
    watch: Asked<'a, Interruption>,
    hint: Asked<'a, Result<Queue, Failure>>,
    remark: Asked<'a, Remark>,
    guard_gone: bool,
    sweeps: Sweeps,
    /// The command's pid, 0 before it runs.
    command: i32,
    explained: bool,
    granted_at: Option<Moment>,
}

/// Runs a run to its end.
pub async fn drive<S: Store>(run: &Run<'_, S>, machine: Machine) -> Outcome {
    let mut turn = Loop {
        run,
        machine,
        asked: None,
        watch: None,
        hint: None,
        remark: Some(Box::pin(run.store.remark())),
        guard_gone: false,
        sweeps: Sweeps::default(),
        command: 0,
        explained: false,
        granted_at: None,
    };
    let alarm = Alarm::new();
    let mut event = Some(Event::Tick);
    loop {
        if let Some(verdict) = event.and_then(|event| turn.feed(event)) {
            return turn.outcome(verdict);
        }
        event = turn.next(&alarm).await;
    }
}

impl<'a, S: Store> Loop<'a, S> {
    /// Waits for the next event; `None` where nothing came that concerns the machine.
    async fn next(&mut self, alarm: &Alarm) -> Option<Event> {
        let run = self.run;
        tokio::select! {
            // A loss that is certain comes first, however much the guard has to tell.
            biased;
            interruption = answer(&mut self.watch) => Some(Event::Interrupted(interruption)),
            report = run.guard.report(), if !self.guard_gone => self.heard(report),
            received = run.signals.next() => self.signal(received),
            remark = answer(&mut self.remark) => {
                self.note(&remark);
                None
            }
            event = answer(&mut self.asked) => Some(event),
            queue = answer(&mut self.hint) => {
                self.tell_holder(queue);
                None
            }
            () = alarm.until(self.machine.deadline().min(self.sweeps.due())) => {
                Some(self.sweeps.next(clock::now()).map_or(Event::Tick, Event::Signal))
            }
        }
    }

    /// Gives the machine an event, and does what it says until it has nothing more to say.
    fn feed(&mut self, event: Event) -> Option<Verdict> {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for action in self.machine.step(clock::now(), event) {
                if let Action::Finish(verdict) = action {
                    return Some(verdict);
                }
                events.extend(self.perform(action));
            }
            self.follow();
        }
        None
    }

    /// Watches the lock while it is held, and only then.
    fn follow(&mut self) {
        if self.machine.grant().is_some() {
            self.granted_at.get_or_insert_with(clock::now);
        }
        if !self.machine.holds() {
            self.watch = None;
        } else if self.watch.is_none() {
            self.watch = Some(Box::pin(self.run.store.interrupted()));
        }
    }

    fn perform(&mut self, action: Action) -> Option<Event> {
        let (store, guard) = (self.run.store, self.run.guard);
        match action {
            Action::Contend => self.ask(async { Event::Contended(store.contend().await) }),
            Action::Await => self.ask(async { Event::Granted(store.granted().await) }),
            Action::Renew => self.ask(async { Event::Renewed(store.renew().await) }),
            Action::Release(done) => self.ask(async move { Event::Released(store.release(done).await) }),
            Action::Withdraw => self.ask(async { Event::Withdrawn(store.withdraw().await) }),
            Action::Prepare => {
                let (before, grant) = (self.run.before, self.machine.grant().cloned());
                self.ask(async move {
                    Event::Prepared(match before.zip(grant) {
                        Some((before, grant)) => before.prepare(grant).await,
                        None => Ok(Readiness::Go),
                    })
                });
            }
            Action::Hint => {
                if self.run.reporter.has_reader() {
                    self.hint = Some(Box::pin(store.inspect()));
                }
            }
            Action::Start(deadlines) => return self.start(deadlines),
            Action::Extend(deadlines) => guard.renewed(deadlines),
            Action::Stop => guard.stop(),
            Action::Kill => guard.kill(),
            Action::TakeOver => {
                self.guard_gone = true;
                return Some(Event::TakenOver(guard.take_over(dying_until(clock::now()))));
            }
            Action::Forward(signal) => guard.signal(signal),
            Action::Pause(signal) => self.pause(signal),
            Action::Tell(notice) => {
                self.explained |= matches!(notice, Notice::Stopping(_) | Notice::Killing(_));
                self.run.reporter.tell(&notice);
            }
            Action::Finish(_) => {}
        }
        None
    }

    /// Follows the command into its stop, so that the shell gets its prompt back; not when it was continued meanwhile,
    /// or an `fg` would have to be typed twice.
    fn pause(&self, signal: i32) {
        if self.run.terminal && self.command_is_stopped() {
            stop_self(signal);
        }
    }

    fn command_is_stopped(&self) -> bool {
        proc::Stat::of(self.command).is_some_and(|stat| stat.is_stopped_child_of(self.run.guard.pid()))
    }

    fn ask(&mut self, call: impl Future<Output = Event> + 'a) {
        self.hint = None;
        self.asked = Some(Box::pin(call));
    }

    fn start(&mut self, deadlines: Deadlines) -> Option<Event> {
        let grant = self.machine.grant()?;
        let start = Start {
            set: (self.run.exports)(grant),
            remove: self.run.removes.iter().map(OsString::from).collect(),
            deadlines,
            descriptor: self.run.store.descriptor(),
        };
        let failed = self.run.guard.start(&start).err()?;
        Some(Event::Guard(match failed.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EPIPE | Errno::ECONNRESET) => Report::Gone,
            errno => Report::NotStarted { errno: errno.unwrap_or(Errno::EIO) as i32 },
        }))
    }

    fn heard(&mut self, report: Report) -> Option<Event> {
        match report {
            Report::Signaled { signal, sender } => {
                self.sweeps.came_to_guard(clock::now(), (signal, sender));
                return None;
            }
            Report::Gone => self.guard_gone = true,
            Report::Started { pid } => {
                self.command = pid;
                inherited::let_go_of_stdio();
            }
            _ => {}
        }
        Some(Event::Guard(report))
    }

    /// The rule of forwarding: the command shares fenced's process group on a terminal, so it has the kernel's own
    /// signals already (Ctrl-Z too: whether the command stops is its own affair, and the guard tells when it did), and
    /// the shell's SIGCONT; it also knows what comes from inside its own tree. Everything else is passed on.
    fn signal(&mut self, received: Received) -> Option<Event> {
        let Received { signal, by_kernel, sender } = received;
        match signal {
            libc::SIGCHLD => {
                self.run.guard.wake();
                children::reap_strangers(self.run.guard.pid());
                return None;
            }
            libc::SIGTSTP if !self.command_lives() => {
                stop_self(signal);
                return None;
            }
            _ if !self.command_lives() => {
                return (ends_by_default(signal) && !inherited::ignored(signal)).then_some(Event::Signal(signal));
            }
            // Of a hang-up the kernel tells the leader of the session only.
            libc::SIGHUP if by_kernel && self.run.terminal && proc::leads_session() => {}
            libc::SIGINT
            | libc::SIGQUIT
            | libc::SIGHUP
            | libc::SIGTSTP
            | libc::SIGWINCH
            | libc::SIGTTIN
            | libc::SIGTTOU
                if by_kernel && self.run.terminal =>
            {
                return None;
            }
            libc::SIGCONT if self.run.terminal && !self.command_is_stopped() => return None,
            _ => {}
        }
        if sender > 0 && proc::is_descendant(sender, self.run.guard.pid()) {
            return None;
        }
        if !by_kernel && signals_whole_groups(sender) {
            self.sweeps.came_to_fenced(clock::now(), (signal, sender));
            return None;
        }
        Some(Event::Signal(signal))
    }

    /// Whether there is a command that a signal could be meant for.
    fn command_lives(&self) -> bool {
        matches!(self.machine.phase(), Phase::Starting | Phase::Running | Phase::Stopping | Phase::Killing)
    }

    fn tell_holder(&self, queue: Result<Queue, Failure>) {
        let Ok(Queue { holder: Some(holder), waiters, .. }) = queue else { return };
        let waiters = waiters.len();
        self.run.reporter.error(&format!("waiting for lock {}: {holder}; {waiters} waiting", self.run.store.lock()));
    }

    fn note(&mut self, remark: &Remark) {
        match remark {
            Remark::Warning(text) => self.run.reporter.error(text),
            Remark::Detail(text) => self.run.reporter.step(text),
        }
        self.remark = Some(Box::pin(self.run.store.remark()));
    }

    fn outcome(self, verdict: Verdict) -> Outcome {
        let now = clock::now();
        let granted_at = self.granted_at.unwrap_or(now);
        Outcome {
            verdict,
            explained: self.explained,
            grant: self.machine.grant().cloned(),
            waited: granted_at.since(self.machine.began()),
            held: now.since(granted_at),
        }
    }
}

/// Polls what is under way, if anything is, and forgets it once it has answered.
async fn answer<T>(asked: &mut Asked<'_, T>) -> T {
    match asked {
        Some(call) => {
            let answer = call.await;
            *asked = None;
            answer
        }
        None => std::future::pending().await,
    }
}

/// Whether a sender may be one that signals each process of a unit or a container: systemd, or somebody outside of this
/// pid namespace. Not anybody who could mean fenced by its name, as `kill $(pidof fenced)` does: that is the guard's, too.
fn signals_whole_groups(sender: i32) -> bool {
    sender == 0 || proc::name(sender).as_deref() == Some("systemd")
}

/// Whether a signal would have ended a program that does not handle it.
fn ends_by_default(signal: i32) -> bool {
    !matches!(
        signal,
        libc::SIGCHLD | libc::SIGCONT | libc::SIGURG | libc::SIGWINCH | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU
    )
}
