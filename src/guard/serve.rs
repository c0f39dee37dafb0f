//! The guard's loop: orders from fenced, the clock and the children make events; the plan decides; this does it.
//!
//! Every turn looks at the clock before it reaps, and reaping is bounded: a fork storm must not keep the deadline from
//! being seen.

use super::plan::{Action, Event, Plan, State};
use super::spawn::{self, Answer, Command};
use super::terms::{Deadlines, Report, Spec};
use super::tree::{self, Chase, Tree};
use super::wire::{self, Order};
use crate::settings::OnExit;
use crate::sys::clock::now;
use crate::sys::ofd::{self, Span};
use crate::sys::proc::{self, Reaped, Stat};
use crate::sys::socket::{self, Received};
use crate::sys::timer::{KillTimer, Wake, wait};
use crate::sys::{inherited, urgency};
use crate::timing::Moment;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// How long one turn reaps.
const REAPING: Duration = Duration::from_millis(1);
/// How long the guard leaves the processor to fenced before it ends.
const LINGER: Duration = Duration::from_micros(200);
/// How many orders one turn takes.
const ORDERS: usize = 32;
/// How late the guard may be before its alarm ends it and fenced takes over: with a real-time priority, and without one
/// or without fenced (then the guard, though late, is still the better end).
const LATE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(400));

/// Serves until nothing is left to do. This is all that the guard's process does.
pub fn serve(socket: &OwnedFd, spec: Spec) {
    match Server::new(socket, spec) {
        Ok(mut server) => server.run(),
        Err(errno) => {
            let _ = socket::send(socket.as_fd(), &wire::encode(&Report::NotStarted { errno: errno as i32 }), None);
        }
    }
}

struct Server<'a> {
    spec: Spec,
    /// There is one, so the command stays in fenced's process group.
    terminal: bool,
    socket: BorrowedFd<'a>,
    abandoned: bool,
    signals: SignalFd,
    wake: Option<Wake>,
    alarm: Option<KillTimer>,
    late: Duration,
    tree: Tree,
    plan: Plan,
    command: Option<Command>,
    chase: Option<Chase>,
    descriptor: Option<OwnedFd>,
    buffer: Vec<u8>,
    set: (Option<Moment>, Option<Moment>),
}

impl<'a> Server<'a> {
    fn new(socket: &'a OwnedFd, spec: Spec) -> nix::Result<Self> {
        nix::sys::prctl::set_child_subreaper(true)?;
        // Not the real-time ones, which queue up.
        let all: SigSet = Signal::iterator().collect();
        let signals = SignalFd::with_flags(&all, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let plan = Plan::new(spec.grace, spec.on_exit);
        Ok(Self {
            spec,
            terminal: proc::has_terminal(),
            socket: socket.as_fd(),
            abandoned: false,
            signals,
            wake: Wake::new().ok(),
            alarm: None,
            late: LATE.1,
            tree: Tree::new(Vec::new()),
            plan,
            command: None,
            chase: None,
            descriptor: None,
            buffer: vec![0; wire::LONGEST_ORDER],
            set: (None, None),
        })
    }

    fn run(&mut self) {
        loop {
            self.take_orders();
            self.step(Event::Tick);
            self.hear_of_the_exec();
            let more = self.reap();
            if let Some(chase) = &mut self.chase {
                chase.pass(&mut self.tree);
            }
            if self.plan.state() == State::Done {
                return self.finish();
            }
            self.set_timers();
            if !more {
                self.sleep();
            }
        }
    }

    fn take_orders(&mut self) {
        for _ in 0..ORDERS {
            if self.abandoned {
                return;
            }
            match socket::receive(self.socket, &mut self.buffer) {
                Received::Nothing => return,
                Received::TooLong => self.step(Event::NotForked(libc::EMSGSIZE)),
                Received::Stripped => self.step(Event::NotForked(libc::EMFILE)),
                Received::Message(length, descriptor) => {
                    if let Some(order) = Order::decode(&self.buffer[..length]) {
                        self.obey(order, descriptor);
                    }
                }
                Received::Closed => {
                    self.abandoned = true;
                    self.late = LATE.1;
                    self.step(Event::Abandoned);
                }
            }
        }
    }

    fn obey(&mut self, order: Order, descriptor: Option<OwnedFd>) {
        match order {
            Order::Start { set, remove, deadlines } => {
                if self.plan.state() == State::Idle {
                    self.descriptor = descriptor;
                    self.start(&set, &remove, deadlines);
                }
            }
            Order::Renewed(deadlines) => self.step(Event::Renewed(deadlines)),
            Order::Signal(signal) => self.step(Event::Signal(signal)),
            Order::Stop => self.step(Event::Stop),
            Order::Kill => self.step(Event::Kill),
        }
    }

    fn start(&mut self, set: &[(OsString, OsString)], remove: &[OsString], deadlines: Deadlines) {
        let kept = self.descriptor.as_ref().filter(|_| self.spec.on_exit != OnExit::Leave);
        let descriptor = kept.map(AsFd::as_fd);
        let plan = spawn::Plan { argv: &self.spec.argv, set, remove, leads: !self.terminal, descriptor };
        let command = if now() >= deadlines.stop_by { Err(Errno::ETIME) } else { Command::fork(&plan) };
        match command {
            Ok(command) => self.command = Some(command),
            Err(errno) => return self.step(Event::NotForked(errno as i32)),
        }
        self.step(Event::Forked(deadlines));
        inherited::let_go_of_stdio();
        // Only now: the command stays in fenced's process group, which another session has no part in. The scheduler gives each
        // session its own share, so that a tree of spinning processes does not starve an unprivileged guard.
        let _ = nix::unistd::setsid();
        if urgency::take() {
            self.late = LATE.0;
        }
        self.alarm = KillTimer::new().ok();
    }

    fn hear_of_the_exec(&mut self) {
        let Some(command) = &mut self.command else { return };
        let pid = command.pid;
        match command.answer() {
            None => {}
            Some(Answer::Executed) => self.step(Event::Executed(pid)),
            Some(Answer::Failed(errno)) => self.step(Event::NotExecuted(errno)),
        }
    }

    /// Reaps what has ended, for a short time. Returns whether there may be more.
    fn reap(&mut self) -> bool {
        // Before anything else: a signal that is left would wake an idle guard again and again.
        while let Ok(Some(info)) = self.signals.read_signal() {
            self.signaled(&info);
        }
        if self.plan.state() == State::Idle {
            return false;
        }
        let until = now() + REAPING;
        while now() < until {
            match proc::reap(-1) {
                Reaped::Nothing => return false,
                Reaped::NoChildren => {
                    self.step(Event::Empty);
                    return false;
                }
                Reaped::Stopped { pid, signal } if self.is_command(pid) => self.step(Event::Paused(signal)),
                Reaped::Ended { pid, status } if self.is_command(pid) => {
                    // What it had to say before it ended comes first.
                    self.hear_of_the_exec();
                    self.command = None;
                    self.step(Event::Ended(status));
                    if self.plan.state() == State::Done {
                        return false;
                    }
                }
                Reaped::Stopped { .. } | Reaped::Ended { .. } => {}
            }
        }
        true
    }

    fn signaled(&self, info: &siginfo) {
        let signal = i32::try_from(info.ssi_signo).unwrap_or(0);
        if signal != libc::SIGCHLD {
            self.tell(&Report::Signaled { signal, sender: i32::try_from(info.ssi_pid).unwrap_or(0) });
        }
    }

    fn is_command(&self, pid: i32) -> bool {
        self.command.as_ref().is_some_and(|command| command.pid == pid)
    }

    fn step(&mut self, event: Event) {
        for action in self.plan.step(now(), event) {
            match action {
                Action::Tell(report) => self.tell(&report),
                Action::TellLingering => {
                    let names = self.tree.names(wire::MOST_NAMES);
                    if !names.is_empty() {
                        self.tell(&Report::Lingering(names));
                    }
                }
                Action::TellUnkillable => {
                    let names = self.tree.names(wire::MOST_NAMES);
                    self.tell(&Report::Unkillable(names));
                }
                Action::Stop => {
                    let span = (self.spec.grace / 10).clamp(tree::WALK.0, tree::WALK.1);
                    self.tree.stop(self.spec.stop_signal, span);
                }
                Action::Forward(signal) => {
                    if let Some(command) = &self.command {
                        command.signal(signal);
                    }
                }
                Action::Kill => self.kill(),
            }
        }
    }

    fn kill(&mut self) {
        // The alarm must not end the guard in mid-kill.
        if let Some(alarm) = &self.alarm {
            alarm.set(None);
        }
        let chase = self.chase.insert(Chase::begin(now()));
        chase.pass(&mut self.tree);
    }

    /// A report that does not get through is lost: fenced is gone, or stopped for so long that the guard's end
    /// has to tell it.
    fn tell(&self, report: &Report) {
        if !self.abandoned {
            let _ = socket::send(self.socket, &wire::encode(report), None);
        }
    }

    fn set_timers(&mut self) {
        let wanted = (self.plan.deadline(), self.plan.dead_by().map(|dead_by| dead_by + self.late));
        if wanted == self.set {
            return;
        }
        self.set = wanted;
        if let Some(wake) = &self.wake {
            wake.set(wanted.0);
        }
        if let Some(alarm) = &self.alarm {
            alarm.set(wanted.1);
        }
    }

    /// Until something is to be done. The descriptor wakes on the boot clock, also after a suspend; the timeout serves
    /// where there is no such descriptor, and for the passes.
    fn sleep(&self) {
        let due = self.chase.map(|chase| chase.due());
        let until = [due, self.plan.deadline()].into_iter().flatten().min();
        let mut fds = [self.signals.as_fd(); 4];
        let mut count = 1;
        let exec = self.command.as_ref().and_then(Command::pending).map(AsFd::as_fd);
        // A timer that has fired stays readable: in a kill the passes go by the timeout.
        let wake = self.wake.as_ref().filter(|_| self.set.0.is_some()).map(AsFd::as_fd);
        let socket = Some(self.socket).filter(|_| !self.abandoned);
        for fd in [exec, wake, socket].into_iter().flatten() {
            fds[count] = fd;
            count += 1;
        }
        wait(&fds[..count], until.map(|until| until.since(now())));
    }

    /// With fenced, what it does about the last report comes first: the guard's end takes as long, before its turn. Wakes a
    /// fenced that is stopped, as a job is: it has something to tell, and a lock to release. Without fenced nobody else lets
    /// go of the local lock: unlock it, since closing alone does not while a copy is open elsewhere.
    fn finish(&self) {
        if !self.abandoned {
            wait(&[self.socket], Some(LINGER));
            wake_fenced();
        } else if let Some(descriptor) = &self.descriptor {
            let _ = ofd::unlock(descriptor, Span::from(0));
        }
    }
}

fn wake_fenced() {
    let fenced = inherited::pid();
    if nix::unistd::getppid().as_raw() == fenced && Stat::of(fenced).is_some_and(|stat| stat.is_stopped()) {
        proc::signal(fenced, libc::SIGCONT);
    }
}
