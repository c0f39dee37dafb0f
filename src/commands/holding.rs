//! What every run under a lock has in common, whatever keeps the lock: the guard, the runtime, the heart.

use super::ending::Ended;
use super::fences;
use crate::exit::{self, Verdict};
use crate::guard::handle::Guard;
use crate::guard::terms::Spec;
use crate::hold::driver;
use crate::hold::event::Setup;
use crate::hold::machine::Machine;
use crate::report::Reporter;
use crate::settings::{self, Run, held_line};
use crate::store::contract::{Failure, Grant, Queue, Store};
use crate::sys::error::in_words;
use crate::sys::executable::{self, Refusal};
use crate::sys::signals::{self, Signals};
use crate::sys::{clock, proc};
use std::env;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How long the holder of a busy lock is asked for, for the message only.
const LOOK: Duration = Duration::from_millis(500);

/// Variables and their values.
pub(super) type Variables = Vec<(OsString, OsString)>;

/// What to run, and what the command finds in its environment.
pub(super) struct Job<'a> {
    pub settings: &'a Run,
    pub reporter: &'a Reporter,
    /// What is set, once the store's URL and the grant are known.
    pub exports: &'a dyn Fn(&str, &Grant) -> Variables,
    /// What is not inherited.
    pub removes: &'a [&'a str],
}

/// Everything that was checked, and the guard.
pub(super) struct Prepared {
    guard: Guard,
    gates: Vec<fences::Ready>,
    terminal: bool,
}

/// Refuses what can be refused before a store is asked, then forks the guard.
pub(super) fn prepare(settings: &Run, reporter: &Reporter) -> Result<Prepared, Verdict> {
    check_command(&settings.command[0])?;
    if !proc::has_own_proc() {
        let why = "/proc is not that of this pid namespace, mount one (mount -t proc proc /proc)";
        return Err(Verdict::Error(why.into()));
    }
    if !clock::is_there() {
        return Err(Verdict::Error(
            "the boot clock cannot be read (does a seccomp filter forbid clock_gettime?)".into(),
        ));
    }
    let argv = settings::c_strings(&settings.command).map_err(Verdict::Error)?;
    let failed = |what: &str, why: std::io::Error| Verdict::Error(format!("{what}: {}", in_words(&why)));
    signals::block().map_err(|why| failed("signals", why))?;
    let spec = Spec { argv, stop_signal: settings.stop_signal, grace: settings.grace, on_exit: settings.on_exit };
    // First those of the gates: what exists when the guard is forked is not taken for a part of its tree.
    let gates = fences::prepare(&settings.gates).map_err(|why| failed("guard process of a gate", why))?;
    let guard = Guard::fork(spec).map_err(|why| failed("guard process", why))?;
    reporter.step(&format!("guard process: pid {}", guard.pid()));
    Ok(Prepared { guard, gates, terminal: proc::has_terminal() })
}

fn check_command(word: &OsString) -> Result<(), Verdict> {
    executable::check(word, env::var_os("PATH").as_deref()).map_err(|refusal| match refusal {
        Refusal::NotFound => Verdict::NotExecuted(exit::NOT_FOUND, "not found".into()),
        Refusal::NotExecutable(why) => Verdict::NotExecuted(exit::NOT_EXECUTABLE, why.into()),
    })
}

impl Prepared {
    /// Runs to the end what is to be done with a runtime.
    pub fn hold(self, task: impl AsyncFnOnce(&Self) -> Ended) -> Ended {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_keep_alive(Duration::from_millis(100))
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(why) => return Ended::never_asked(Verdict::Error(format!("runtime: {}", in_words(&why)))),
        };
        let held = AssertUnwindSafe(|| runtime.block_on(task(&self)));
        // Whatever went wrong inside has been said by the panic hook; what it means depends on the command.
        let ended = catch_unwind(held).unwrap_or_else(|_| Ended::never_asked(self.broken()));
        // The process ends next: what taking the connections down in order would free, the kernel frees at once.
        std::mem::forget(runtime);
        ended
    }

    /// The ending of a run that failed inside: with a command under way the lock may be lost, and the guard ends it.
    fn broken(&self) -> Verdict {
        let why = "internal error".to_owned();
        if self.guard.is_busy() { Verdict::Lost(why) } else { Verdict::Error(why) }
    }

    /// Contends for what the store keeps, and runs the command while it is held.
    pub async fn with<S: Store>(&self, store: Result<S, Failure>, job: &Job<'_>) -> Ended {
        let Job { settings, reporter, exports, removes } = job;
        let store = match store {
            Ok(store) => store,
            Err(Failure::Lost(why) | Failure::Unavailable(why) | Failure::Refused(why)) => {
                return Ended::never_asked(Verdict::Unavailable(why));
            }
            Err(Failure::Stale(why)) => return Ended::never_asked(Verdict::Refused(why)),
        };
        let url = store.url();
        let failed = |why: String| Ended { store: Some(url.clone()), ..Ended::never_asked(Verdict::Error(why)) };
        if settings.held.lines().any(|line| line == held_line(&url, &settings.lock)) {
            return failed(format!(
                "lock {}: this run is inside a run that holds it, it would wait for itself; leave the inner lock out, or name another",
                settings.lock
            ));
        }
        let signals = match Signals::new() {
            Ok(signals) => signals,
            Err(why) => return failed(format!("signals: {}", in_words(&why))),
        };
        let before = fences::Before { store: &store, gates: &self.gates, settings };
        let run = driver::Run {
            store: &store,
            guard: &self.guard,
            signals: &signals,
            reporter,
            terminal: self.terminal,
            before: prepares(settings).then_some(&before),
            exports: &|grant| exports(&url, grant),
            removes,
        };
        let mut outcome = driver::drive(&run, machine(settings)).await;
        if let Verdict::Busy(why) = &mut outcome.verdict
            && settings.busy_exit != 0
            && let Ok(Ok(Queue { holder: Some(holder), .. })) = tokio::time::timeout(LOOK, store.inspect()).await
        {
            *why = holder.to_string();
        }
        Ended { outcome, store: Some(url) }
    }
}

fn prepares(settings: &Run) -> bool {
    settings.once.is_some() || !settings.gates.is_empty()
}

fn machine(settings: &Run) -> Machine {
    let setup = Setup {
        delay: settings.jitter.mul_f64(fastrand::f64()),
        wait: settings.wait,
        grace: settings.grace,
        on_exit: settings.on_exit,
        prepares: prepares(settings),
        seed: fastrand::u64(..),
    };
    Machine::new(setup, clock::now())
}
