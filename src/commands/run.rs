//! `fenced run`: checks everything that can be checked before a store is asked, forks the guard, and lets the heart run.

use crate::cli;
use crate::etcd::credentials::Credentials;
use crate::exit::{self, Ending, Verdict, signal_name};
use crate::guard::handle::Guard;
use crate::guard::terms::Spec;
use crate::hold::driver::{self, Outcome};
use crate::hold::event::{FIRST_ANSWER, Setup};
use crate::hold::machine::Machine;
use crate::report::{Reporter, span};
use crate::settings::{self, Chatter, Run, StatusTo, StoreUrl, held_line};
use crate::store::contract::{Contender, Failure, Grant, Queue, Store};
use crate::store::etcd::{Cluster, Contention, EtcdStore};
use crate::store::local::{self, Local};
use crate::sys::error::in_words;
use crate::sys::executable::{self, Refusal};
use crate::sys::signals::{self, Signals};
use crate::sys::{clock, descriptors, proc, user};
use serde_json::{Value, json};
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime};

/// What the command does not inherit: these are set anew for this lock, or are a secret of the store.
const REMOVED: [&str; 8] = [
    "FENCED_LOCK",
    "FENCED_TOKEN",
    "FENCED_LINEAGE",
    "FENCED_OWNER",
    "FENCED_STORE",
    "FENCED_KEY",
    "FENCED_HELD",
    "FENCED_PASSWORD",
];

/// How long the holder of a busy lock is asked for, for the message only.
const LOOK: Duration = Duration::from_millis(500);

/// Runs `fenced run` and says how the process shall end.
#[must_use]
pub fn run(typed: cli::Run) -> Ending {
    let (lock, to) = (typed.lock.clone(), typed.status());
    let settings = match settings::run(typed, &|name| env::var_os(name)) {
        Ok(settings) => settings,
        Err(why) => return refused(&lock, to.as_ref(), why),
    };
    let reporter = Reporter::new(settings.chatter);
    let mut status = match settings.status.as_ref().map(open_status).transpose() {
        Ok(status) => status,
        Err(why) => {
            reporter.error(&why);
            return Ending::Status(exit::ERROR);
        }
    };
    let (outcome, store) = match prepare(&settings, &reporter) {
        Ok(prepared) => prepared.hold(&settings, &reporter),
        Err(verdict) => (never_asked(verdict), None),
    };
    explain(&settings, store.as_deref(), &outcome, &reporter);
    let ending = outcome.verdict.ending(settings.busy_exit);
    if let Some(status) = &mut status {
        let line = status_line(settings.lock.as_str(), store.as_deref(), &outcome, ending);
        if let Err(why) = writeln!(status, "{line}") {
            reporter.error(&format!("status line: {}", in_words(&why)));
        }
    }
    ending
}

/// Settings that make no sense: said, and written where the status line goes, so that none of an earlier run stays.
fn refused(lock: &str, to: Option<&StatusTo>, why: String) -> Ending {
    let reporter = Reporter::new(Chatter::Normal);
    reporter.error(&why);
    let (outcome, ending) = (never_asked(Verdict::Error(why)), Ending::Status(exit::ERROR));
    if let Some(Ok(mut status)) = to.map(open_status) {
        let _ = writeln!(status, "{}", status_line(lock, None, &outcome, ending));
    }
    ending
}

/// Everything that was checked, and the guard.
struct Prepared {
    guard: Guard,
    terminal: bool,
}

/// Refuses what can be refused before a store is asked, then forks the guard.
fn prepare(settings: &Run, reporter: &Reporter) -> Result<Prepared, Verdict> {
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
    let guard = Guard::fork(spec).map_err(|why| failed("guard process", why))?;
    reporter.step(&format!("guard process: pid {}", guard.pid()));
    Ok(Prepared { guard, terminal: proc::has_terminal() })
}

fn check_command(word: &OsString) -> Result<(), Verdict> {
    executable::check(word, env::var_os("PATH").as_deref()).map_err(|refusal| match refusal {
        Refusal::NotFound => Verdict::NotExecuted(exit::NOT_FOUND, "not found".into()),
        Refusal::NotExecutable(why) => Verdict::NotExecuted(exit::NOT_EXECUTABLE, why.into()),
    })
}

impl Prepared {
    /// Opens the store and runs to the end. Also tells the store's URL, once that is known.
    fn hold(self, settings: &Run, reporter: &Reporter) -> (Outcome, Option<String>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_keep_alive(Duration::from_millis(100))
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(why) => return (never_asked(Verdict::Error(format!("runtime: {}", in_words(&why)))), None),
        };
        let delay = settings.jitter.mul_f64(fastrand::f64());
        let now = clock::now();
        let setup = Setup {
            delay,
            wait: settings.wait,
            grace: settings.grace,
            on_exit: settings.on_exit,
            seed: fastrand::u64(..),
        };
        let machine = Machine::new(setup, now);
        let patience = settings.wait.map(|wait| wait.max(FIRST_ANSWER));
        let held = AssertUnwindSafe(|| {
            runtime.block_on(async {
                match &settings.store {
                    StoreUrl::Etcd { members, prefix, tls } => {
                        let credentials = match Credentials::load(&settings.access, *tls) {
                            Ok(credentials) => credentials,
                            Err(why) => return (never_asked(Verdict::Error(why)), None),
                        };
                        let (members, prefix) = (members.clone(), prefix.clone());
                        let cluster = Cluster { members, prefix, tls: *tls, credentials };
                        self.with(contention(cluster, settings), settings, reporter, machine).await
                    }
                    StoreUrl::File { directory } => {
                        let store = open_local(directory.as_deref(), settings, reporter, patience);
                        self.with(store, settings, reporter, machine).await
                    }
                }
            })
        });
        // Whatever went wrong inside has been said by the panic hook; what it means depends on the command.
        let ended = catch_unwind(held).unwrap_or_else(|_| (never_asked(self.broken()), None));
        // The process ends next: what taking the connections down in order would free, the kernel frees at once.
        std::mem::forget(runtime);
        ended
    }

    /// The ending of a run that failed inside: with a command under way the lock may be lost, and the guard ends it.
    fn broken(&self) -> Verdict {
        let why = "internal error".to_owned();
        if self.guard.is_busy() { Verdict::Lost(why) } else { Verdict::Error(why) }
    }

    async fn with<S: Store>(
        &self,
        store: Result<S, Failure>,
        settings: &Run,
        reporter: &Reporter,
        machine: Machine,
    ) -> (Outcome, Option<String>) {
        let store = match store {
            Ok(store) => store,
            Err(Failure::Lost(why) | Failure::Unavailable(why) | Failure::Refused(why)) => {
                return (never_asked(Verdict::Unavailable(why)), None);
            }
            Err(Failure::Stale(why)) => return (never_asked(Verdict::Refused(why)), None),
        };
        let url = store.url();
        if settings.held.lines().any(|line| line == held_line(&url, &settings.lock)) {
            let why = format!(
                "lock {}: this run is inside a run that holds it, it would wait for itself; leave the inner lock out, or name another",
                settings.lock
            );
            return (never_asked(Verdict::Error(why)), Some(url));
        }
        let signals = match Signals::new() {
            Ok(signals) => signals,
            Err(why) => return (never_asked(Verdict::Error(format!("signals: {}", in_words(&why)))), Some(url)),
        };
        let run = driver::Run {
            store: &store,
            guard: &self.guard,
            signals: &signals,
            reporter,
            terminal: self.terminal,
            exports: &|grant| exports(settings, &url, grant),
            removes: &REMOVED,
        };
        let mut outcome = driver::drive(&run, machine).await;
        if let Verdict::Busy(why) = &mut outcome.verdict
            && settings.busy_exit != 0
            && let Ok(Ok(Queue { holder: Some(holder), .. })) = tokio::time::timeout(LOOK, store.inspect()).await
        {
            *why = holder.to_string();
        }
        (outcome, Some(url))
    }
}

fn open_local(
    directory: Option<&std::path::Path>,
    settings: &Run,
    reporter: &Reporter,
    patience: Option<Duration>,
) -> Result<Local, Failure> {
    let directory = match directory {
        Some(directory) => directory.to_owned(),
        None => local::make_default().map_err(Failure::Refused)?,
    };
    let store = Local::open(&directory, settings.lock.clone(), contender(settings), patience)?;
    if settings.unconfigured {
        let covers = if store.is_overlay() { "this container only" } else { "this machine and user only" };
        let directory = store.directory().display();
        reporter.error(&format!(
            "no store configured: the lock covers {covers}, in {directory} (--store file: accepts that, --store etcd://HOST:2379 covers many machines)"
        ));
    }
    Ok(store)
}

fn contention(cluster: Cluster, settings: &Run) -> Result<EtcdStore, Failure> {
    let contention = Contention {
        contender: contender(settings),
        ttl: settings.ttl,
        grace: settings.grace,
        curious: settings.chatter == Chatter::Verbose,
    };
    EtcdStore::new(cluster, settings.lock.clone(), contention)
}

/// What the store shows of this contender to people.
fn contender(settings: &Run) -> Contender {
    Contender {
        token: None,
        host: host(),
        pid: std::process::id(),
        user: user::name(nix::unistd::Uid::effective()),
        command: settings.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        since: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        note: settings.note.clone(),
    }
}

fn host() -> String {
    nix::unistd::gethostname().map_or_else(|_| "unknown".into(), |name| name.to_string_lossy().into_owned())
}

fn exports(settings: &Run, url: &str, grant: &Grant) -> Vec<(OsString, OsString)> {
    let held = match settings.held.trim_end() {
        "" => held_line(url, &settings.lock),
        outer => format!("{outer}\n{}", held_line(url, &settings.lock)),
    };
    let owner = format!("{}:{}:{}", host(), std::process::id(), grant.token);
    let mut set = vec![
        ("FENCED_LOCK", settings.lock.as_str().to_owned()),
        ("FENCED_TOKEN", grant.token.to_string()),
        ("FENCED_LINEAGE", grant.lineage.to_string()),
        ("FENCED_OWNER", owner),
        ("FENCED_STORE", url.to_owned()),
        ("FENCED_HELD", held),
    ];
    set.extend(grant.key.clone().map(|key| ("FENCED_KEY", key)));
    let set = set.into_iter().map(|(name, value)| (name.into(), value.into()));
    set.chain(settings.access.exports().into_iter().map(|(name, value)| (name.into(), value.into()))).collect()
}

fn never_asked(verdict: Verdict) -> Outcome {
    Outcome { verdict, explained: false, grant: None, waited: Duration::ZERO, held: Duration::ZERO }
}

/// The one line about an ending that is not the command's own.
fn explain(settings: &Run, store: Option<&str>, outcome: &Outcome, reporter: &Reporter) {
    let lock = &settings.lock;
    match &outcome.verdict {
        Verdict::Exited(_) | Verdict::Signaled(_) => {}
        Verdict::Interrupted(signal) => {
            reporter.step(&format!("lock {lock}: signal {} ended the waiting", signal_name(*signal)));
        }
        Verdict::Busy(why) => {
            let line = format!("lock {lock}: {why}; gave up after {}", span(outcome.waited));
            if settings.busy_exit == 0 { reporter.step(&line) } else { reporter.error(&line) }
        }
        Verdict::Unavailable(why) => match store {
            Some(url) => reporter.error(&format!("store {url}: {why}")),
            None => reporter.error(&format!("store: {why}")),
        },
        Verdict::Lost(_) if outcome.explained => {}
        Verdict::Lost(why) => reporter.error(&format!("lock {lock}: lost: {why}")),
        Verdict::NotExecuted(_, why) => {
            reporter.error(&format!("{}: {why}", settings.command[0].to_string_lossy()));
        }
        Verdict::Refused(why) | Verdict::Error(why) => reporter.error(why),
    }
}

fn open_status(to: &StatusTo) -> Result<File, String> {
    match to {
        StatusTo::File(path) => {
            descriptors::create(path).map_err(|why| format!("--status-file {}: {}", path.display(), in_words(&why)))
        }
        StatusTo::Descriptor(number) => {
            descriptors::adopt(*number).map_err(|why| format!("--status-fd {number}: {}", in_words(&why)))
        }
    }
}

fn status_line(lock: &str, store: Option<&str>, outcome: &Outcome, ending: Ending) -> Value {
    let (code, signal) = match ending {
        Ending::Status(code) => (Some(code), None),
        Ending::Signal(signal) => (None, Some(signal_name(signal))),
    };
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    json!({
        "outcome": outcome.verdict.outcome(),
        "exit_code": code,
        "signal": signal,
        "lock": lock,
        "token": outcome.grant.as_ref().map(|grant| grant.token.get()),
        "lineage": outcome.grant.as_ref().map(|grant| grant.lineage.as_str()),
        "store": store,
        "waited_ms": millis(outcome.waited),
        "held_ms": millis(outcome.held),
        "reason": outcome.verdict.reason(),
    })
}
