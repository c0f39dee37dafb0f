//! `fenced run`: a command under a named lock.

use super::ending::{Ended, explain, open_status, status_line};
use super::holding::{Job, Prepared, prepare};
use crate::cli;
use crate::etcd::credentials::Credentials;
use crate::exit::{self, Ending, Verdict};
use crate::hold::event::FIRST_ANSWER;
use crate::report::Reporter;
use crate::settings::{self, Chatter, Run, StatusTo, StoreUrl, held_line};
use crate::store::contract::{Contender, Failure, Grant, Once};
use crate::store::etcd::{Cluster, Contention, EtcdStore};
use crate::store::local::{self, Local};
use crate::sys::error::in_words;
use crate::sys::user;
use std::env;
use std::ffi::OsString;
use std::io::Write;
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
    let ended = match prepare(&settings, &reporter) {
        Ok(prepared) => prepared.hold(async |prepared| hold(prepared, &settings, &reporter).await),
        Err(verdict) => Ended::never_asked(verdict),
    };
    explain(&settings, &ended, &reporter);
    let ending = ended.outcome.verdict.ending(settings.busy_exit);
    if let Some(status) = &mut status {
        let line = status_line(settings.lock.as_str(), &ended, ending);
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
    let (ended, ending) = (Ended::never_asked(Verdict::Error(why)), Ending::Status(exit::ERROR));
    if let Some(Ok(mut status)) = to.map(open_status) {
        let _ = writeln!(status, "{}", status_line(lock, &ended, ending));
    }
    ending
}

/// Opens the store and runs to the end.
async fn hold(prepared: &Prepared, settings: &Run, reporter: &Reporter) -> Ended {
    let exports = |url: &str, grant: &Grant| exports(settings, url, grant);
    let job = Job { settings, reporter, exports: &exports, removes: &REMOVED };
    match &settings.store {
        StoreUrl::Etcd { members, prefix, tls } => {
            let credentials = match Credentials::load(&settings.access, *tls) {
                Ok(credentials) => credentials,
                Err(why) => return Ended::never_asked(Verdict::Error(why)),
            };
            let (members, prefix) = (members.clone(), prefix.clone());
            let cluster = Cluster { members, prefix, tls: *tls, credentials };
            prepared.with(contention(cluster, settings), &job).await
        }
        StoreUrl::File { directory } => {
            let patience = settings.wait.map(|wait| wait.max(FIRST_ANSWER));
            let store = open_local(directory.as_deref(), settings, reporter, patience);
            prepared.with(store, &job).await
        }
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
    let store =
        Local::open(&directory, settings.lock.clone(), contender(settings), patience)?.with_once(once(settings));
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
        once: once(settings),
    };
    EtcdStore::new(cluster, settings.lock.clone(), contention)
}

/// What is recorded when the run has been done.
fn once(settings: &Run) -> Option<Once> {
    settings.once.clone().map(|once| Once { key: once.key, keep: once.keep })
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
