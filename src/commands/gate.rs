//! `fenced gate`: what keeps the highest token, made, asked, looked at and reset by hand.

use super::ending::{Ended, explain};
use super::holding::{Job, prepare};
use crate::cli::{self, GateAction};
use crate::etcd::credentials::Credentials;
use crate::etcd::members::Members;
use crate::exit::{self, Ending};
use crate::fence::inside::Inside;
use crate::fence::register::{Mark, Register};
use crate::fence::{command, etcd, file};
use crate::guard::terms::Deadlines;
use crate::report::Reporter;
use crate::settings::gate::{self, Beginning, GateName, Shown};
use crate::settings::{self, Chatter, StoreUrl, held_line};
use crate::store::contract::{Failure, Grant};
use crate::sys::clock;
use crate::sys::error::in_words;
use crate::timing::{Moment, show};
use serde_json::json;
use std::env;
use std::io::{self, Write};
use std::path::Path;

/// Why a gate was not even asked, or what it said.
enum Fault {
    /// What was typed makes no sense.
    Usage(String),
    /// The gate's answer.
    Gate(Failure),
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Gate(failure)
    }
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Usage(why)
    }
}

/// Runs `fenced gate` and says how the process shall end.
#[must_use]
pub fn run(typed: cli::Gate) -> Ending {
    let reporter = Reporter::new(Chatter::Normal);
    match act(typed.action, &reporter) {
        Ok(ending) => ending,
        Err(Fault::Usage(why)) => {
            reporter.error(&why);
            Ending::Status(exit::ERROR)
        }
        Err(Fault::Gate(failure)) => failed(&failure, &reporter),
    }
}

fn act(action: GateAction, reporter: &Reporter) -> Result<Ending, Fault> {
    match action {
        GateAction::File(typed) => inside(typed),
        GateAction::Init(typed) => {
            let beginning = gate::beginning(typed.token, typed.lineage)?;
            init(&GateName::parse(&typed.gate)?, beginning, typed.store)
        }
        GateAction::Reset(typed) => {
            let beginning = gate::beginning(typed.token, typed.lineage)?;
            reset(&GateName::parse(&typed.gate)?, beginning, typed.store)
        }
        GateAction::Show(typed) => look(&GateName::parse(&typed.gate)?, typed.json, typed.store),
        GateAction::Advance(typed) => {
            let shown = gate::shown(typed.shown, &|name| env::var_os(name))?;
            advance(&GateName::parse(&typed.gate)?, &shown, typed.store, reporter)
        }
    }
}

/// A command inside the gate: a run like any other, but for what keeps the lock.
fn inside(typed: cli::GateFile) -> Result<Ending, Fault> {
    let path = typed.state.clone();
    let (settings, shown) = settings::inside(typed, &|name| env::var_os(name))?;
    let reporter = Reporter::new(settings.chatter);
    let exports = |url: &str, grant: &Grant| {
        let held = [settings.held.trim_end(), &held_line(url, &settings.lock)].join("\n");
        let (token, lineage) = (grant.token.to_string(), grant.lineage.to_string());
        let set = [("FENCED_TOKEN", token), ("FENCED_LINEAGE", lineage), ("FENCED_HELD", held)];
        set.into_iter().map(|(name, value)| (name.into(), value.trim_start().into())).collect()
    };
    let removes = ["FENCED_TOKEN", "FENCED_LINEAGE", "FENCED_HELD"];
    let job = Job { settings: &settings, reporter: &reporter, exports: &exports, removes: &removes };
    let ended = match prepare(&settings, &reporter) {
        Ok(prepared) => prepared.hold(async |prepared| {
            let inside = |gate| Inside::new(gate, mark(&shown), settings.lock.clone());
            prepared.with(open_or_make(&path, &shown).map(inside), &job).await
        }),
        Err(verdict) => Ended::never_asked(verdict),
    };
    explain(&settings, &ended, &reporter);
    Ok(ended.outcome.verdict.ending(exit::BUSY))
}

fn init(gate: &GateName, beginning: Beginning, store: cli::Store) -> Result<Ending, Fault> {
    let register = Register { highest: beginning, lock: None };
    match gate {
        GateName::File(path) => file::Gate::init(path, &register)?,
        GateName::Etcd(key) => on_etcd(key, store, async |gate| gate.init(&register).await)?,
        GateName::Command(_) => return Err(no_state()),
    }
    Ok(Ending::Status(0))
}

fn reset(gate: &GateName, beginning: Beginning, store: cli::Store) -> Result<Ending, Fault> {
    let register = Register { highest: beginning, lock: None };
    match gate {
        GateName::File(path) => match file::Gate::open(path) {
            Ok(gate) => gate.write(&register)?,
            Err(Failure::Stale(_)) => file::Gate::init(path, &register)?,
            Err(failure) => return Err(failure.into()),
        },
        GateName::Etcd(key) => on_etcd(key, store, async |gate| gate.write(&register).await)?,
        GateName::Command(_) => return Err(no_state()),
    }
    Ok(Ending::Status(0))
}

fn no_state() -> Fault {
    Fault::Usage("cmd: such a gate keeps its state itself".into())
}

fn look(gate: &GateName, as_json: bool, store: cli::Store) -> Result<Ending, Fault> {
    let register = match gate {
        GateName::File(path) => file::Gate::open(path)?.read()?,
        GateName::Etcd(key) => on_etcd(key, store, async |gate| gate.read().await)?,
        GateName::Command(_) => return Err(no_state()),
    };
    let (token, lineage) = register.highest.unzip();
    let lock = register.lock.map(|lock| lock.as_str().to_owned());
    let text = if as_json {
        let lineage = lineage.map(|lineage| lineage.to_string());
        format!("{}\n", json!({ "token": token.map(crate::token::Token::get), "lineage": lineage, "lock": lock }))
    } else {
        let or_none = |word: Option<String>| word.unwrap_or_else(|| "none".into());
        let (token, lineage) = (token.map(|token| token.to_string()), lineage.map(|lineage| lineage.to_string()));
        format!("token {}\nlineage {}\nlock {}\n", or_none(token), or_none(lineage), or_none(lock))
    };
    let written = io::stdout().write_all(text.as_bytes());
    written.map_err(|error| Fault::Usage(format!("stdout: {}", in_words(&error))))?;
    Ok(Ending::Status(0))
}

fn advance(gate: &GateName, shown: &Shown, store: cli::Store, reporter: &Reporter) -> Result<Ending, Fault> {
    let mark = mark(shown);
    match gate {
        GateName::File(path) => {
            let advance = || -> Result<bool, Failure> {
                let Some(gate) = enter_or_make(path, shown, deadline(shown))? else { return Ok(false) };
                gate.admit(&mark)?;
                Ok(true)
            };
            return Ok(end(advance(), shown, reporter));
        }
        GateName::Etcd(key) => on_etcd(key, store, async |gate| {
            if shown.init {
                match gate.init(&Register::default()).await {
                    Ok(()) | Err(Failure::Stale(_)) => {}
                    failed => return failed,
                }
            }
            gate.admit(&mark).await
        })?,
        GateName::Command(script) => {
            let failed = |error: io::Error| Fault::Usage(format!("guard process: {}", in_words(&error)));
            let gate = command::Gate::prepare(script).map_err(failed)?;
            let until = deadline(shown);
            let deadlines = Deadlines { stop_by: until, dead_by: until };
            block_on(gate.admit(&mark, deadlines))??;
        }
    }
    Ok(Ending::Status(0))
}

fn on_etcd<T>(
    key: &str,
    store: cli::Store,
    ask: impl AsyncFnOnce(etcd::Gate<'_>) -> Result<T, Failure>,
) -> Result<T, Fault> {
    let (StoreUrl::Etcd { members, tls, .. }, access) = gate::cluster(store, &|name| env::var_os(name))? else {
        return Err(Fault::Usage("--store: a gate etcd:KEY wants an etcd store".into()));
    };
    let credentials = Credentials::load(&access, tls)?;
    let members = Members::new(&members, credentials, format!("the key {key}"));
    Ok(block_on(ask(etcd::Gate::new(&members, key.to_owned())))??)
}

fn block_on<T>(task: impl Future<Output = T>) -> Result<T, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Fault::Usage(format!("runtime: {}", in_words(&error))))?;
    let done = runtime.block_on(task);
    runtime.shutdown_background();
    Ok(done)
}

/// The gate in a file, made first where it is missing and that was asked for.
fn open_or_make(path: &Path, shown: &Shown) -> Result<file::Gate, Failure> {
    if shown.init {
        match file::Gate::init(path, &Register::default()) {
            Ok(()) | Err(Failure::Stale(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    file::Gate::open(path)
}

/// As [`open_or_make`], and entered; `None` when somebody else was inside until `until`.
pub(super) fn enter_or_make(path: &Path, shown: &Shown, until: Moment) -> Result<Option<file::Gate>, Failure> {
    let gate = open_or_make(path, shown)?;
    Ok(gate.enter_until(until)?.then_some(gate))
}

/// What the gate is shown.
pub(super) fn mark(shown: &Shown) -> Mark {
    Mark { token: shown.token, lineage: shown.lineage.clone(), lock: shown.lock.clone() }
}

/// Until when to wait for others.
pub(super) fn deadline(shown: &Shown) -> Moment {
    shown.wait.map_or(Moment::NEVER, |wait| clock::now() + wait)
}

/// The end of what was to be done inside a gate; false: it was never entered.
pub(super) fn end(outcome: Result<bool, Failure>, shown: &Shown, reporter: &Reporter) -> Ending {
    match outcome {
        Ok(true) => Ending::Status(0),
        Ok(false) => {
            let waited = shown.wait.map_or_else(String::new, |wait| format!("; gave up after {}", show(wait)));
            reporter.error(&format!("gate: somebody else is inside{waited}"));
            Ending::Status(exit::BUSY)
        }
        Err(failure) => failed(&failure, reporter),
    }
}

fn failed(failure: &Failure, reporter: &Reporter) -> Ending {
    let (why, status) = match failure {
        Failure::Stale(why) => (why, exit::REFUSED),
        Failure::Unavailable(why) | Failure::Lost(why) => (why, exit::UNAVAILABLE),
        Failure::Refused(why) => (why, exit::ERROR),
    };
    reporter.error(why);
    Ending::Status(status)
}
