//! `--once`: a run that is to succeed once, on both stores, over crashes, failures and clocks that differ.

mod support;

use nix::sys::signal::Signal;
use serde_json::Value;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use support::etcd::{Cluster, Version};
use support::run::{LocalStore, Run};
use support::wait::{SOON, eventually};

/// A file to which each run of the command appends a line.
struct Journal(tempfile::TempDir);

impl Journal {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("journal")
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.path()).unwrap_or_default().lines().count()
    }

    fn script(&self, rest: &str) -> String {
        format!("echo ran >>{}; {rest}", self.path().display())
    }
}

fn once(store: &impl Display) -> Run {
    Run::new(store).lock("a").args(["--once", "nightly"])
}

/// The same on a local store and on etcd.
fn on_both(test: impl Fn(&dyn Display)) {
    test(&LocalStore::new());
    for version in Version::all() {
        test(&Cluster::single(version).url());
    }
}

#[test]
fn a_run_that_succeeded_is_not_repeated_and_says_so_to_those_who_ask() {
    on_both(|store| {
        let journal = Journal::new();
        once(&store).script(&journal.script("")).output().exits(0);
        let skipped = once(&store).args(["-v"]).script(&journal.script("")).output().exits(0);
        assert!(skipped.stderr.contains("skipped"), "{skipped:?}");
        assert_eq!(once(&store).script(&journal.script("")).output().exits(0).stderr, "");
        assert_eq!(journal.runs(), 1);
        let status = journal.0.path().join("status");
        once(&store).args(["--status-file".as_ref(), status.as_os_str()]).script("false").output().exits(0);
        let line: Value = serde_json::from_str(&fs::read_to_string(status).unwrap()).unwrap();
        assert_eq!((line["outcome"].as_str(), line["exit_code"].as_i64()), (Some("skipped"), Some(0)));
        Run::new(&store).lock("b").args(["--once", "nightly"]).script(&journal.script("")).output().exits(0);
        Run::new(&store).lock("a").args(["--once", "other"]).script(&journal.script("")).output().exits(0);
        assert_eq!(journal.runs(), 3, "a key belongs to its lock");
    });
}

#[test]
fn a_run_that_failed_is_repeated() {
    on_both(|store| {
        let journal = Journal::new();
        once(&store).script(&journal.script("exit 3")).output().exits(3);
        once(&store).script(&journal.script("kill -TERM $$")).output();
        once(&store).script(&journal.script("")).output().exits(0);
        once(&store).script(&journal.script("")).output().exits(0);
        assert_eq!(journal.runs(), 3);
    });
}

#[test]
fn at_start_a_run_that_failed_is_not_repeated() {
    on_both(|store| {
        let journal = Journal::new();
        let run = || once(&store).args(["--once-at", "start"]).script(&journal.script("exit 3"));
        run().output().exits(3);
        run().output().exits(0);
        assert_eq!(journal.runs(), 1);
    });
}

#[test]
fn waiters_behind_a_run_that_succeeds_are_skipped_after_their_grant() {
    on_both(|store| {
        let journal = Journal::new();
        let go = journal.0.path().join("go");
        let first = once(&store)
            .script(&journal.script(&format!("echo in; until [ -e {} ]; do sleep 0.01; done", go.display())));
        let first = first.spawn();
        first.prints("in");
        let waiters: Vec<_> = (0..3).map(|_| once(&store).args(["-v"]).script(&journal.script("")).spawn()).collect();
        for waiter in &waiters {
            waiter.says("waiting");
        }
        fs::write(go, "").unwrap();
        first.wait(SOON).exits(0);
        for waiter in waiters {
            assert!(waiter.wait(SOON).exits(0).stderr.contains("skipped"));
        }
        assert_eq!(journal.runs(), 1);
    });
}

/// The documented gap: the command has ended, the release has not been made. The run is repeated: at least once.
#[test]
fn a_crash_between_the_commands_end_and_the_release_repeats_the_run_and_at_start_it_does_not() {
    let store = LocalStore::new();
    for (when, runs) in [("success", 2), ("start", 1)] {
        let journal = Journal::new();
        let run = || Run::new(&store).lock(when).args(["--once", "k", "--once-at", when]);
        // What outlives the command keeps the release back: there fenced is killed.
        let lingering = journal.script("trap '' TERM; (trap '' TERM; sleep 1000) & echo in");
        let mut first = run().args(["-k", "3s"]).script(&lingering).spawn();
        first.prints("in");
        first.says("outlived");
        first.signal(Signal::SIGKILL);
        first.gone(SOON);
        run().script(&journal.script("")).output().exits(0);
        assert_eq!(journal.runs(), runs, "--once-at {when}");
    }
}

#[test]
fn a_lost_lock_records_nothing() {
    let cluster = Cluster::single(Version::V37);
    let (store, journal) = (cluster.url(), Journal::new());
    let first = once(&store).script(&journal.script("echo in; sleep 1000")).spawn();
    first.prints("in");
    cluster.etcdctl(&["del", "--prefix", "/fenced/v1/q/"]);
    first.wait(SOON).exits(76);
    once(&store).script(&journal.script("")).output().exits(0);
    assert_eq!(journal.runs(), 2);
}

#[test]
fn a_record_is_forgotten_after_its_time() {
    let store = LocalStore::new();
    let journal = Journal::new();
    let run = || once(&store).args(["--once-keep", "1s"]).script(&journal.script(""));
    run().output().exits(0);
    eventually(SOON, || {
        run().output().exits(0);
        journal.runs() == 2
    });
}

#[test]
fn a_damaged_record_is_refused_and_never_taken_for_an_empty_one() {
    let store = LocalStore::new();
    once(&store).script("true").output().exits(0);
    fs::write(store.path().join("a.once"), "").unwrap();
    let refused = once(&store).script("true").output().exits(69);
    assert!(refused.stderr.contains("a.once") && refused.stderr.contains("damaged"), "{refused:?}");
}

/// Two hosts whose clocks differ by hours, as libfaketime shows them: the store has one record for both.
#[test]
fn clocks_that_differ_leave_one_record() {
    let Some(library) = faketime() else { return };
    on_both(|store| {
        let journal = Journal::new();
        let on_host = |offset: &str| {
            let run = once(&store).env("LD_PRELOAD", &library).env("FAKETIME", offset);
            run.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").script(&journal.script("date +%s"))
        };
        let ahead = on_host("+5h").output().exits(0).stdout;
        assert_ne!(ahead, "", "the first host ran");
        let real = humantime::parse_duration("4h").unwrap();
        let shown: u64 = ahead.trim().parse().unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert!(shown > (now + real).as_secs(), "the clock was not faked");
        on_host("-5h").output().exits(0);
        on_host("+0").output().exits(0);
        assert_eq!(journal.runs(), 1);
    });
}

/// The library, where `make setup-test` or the system has put it; in CI it must be there.
fn faketime() -> Option<PathBuf> {
    let below = std::env::var_os("FENCED_TEST_TOOLS").map_or_else(|| "/".into(), PathBuf::from);
    let found = [below.as_path(), Path::new("/")].into_iter().find_map(|root| {
        let path = root.join("usr/lib").join(format!("{}-linux-gnu/faketime/libfaketime.so.1", std::env::consts::ARCH));
        path.exists().then_some(path)
    });
    assert!(found.is_some() || std::env::var_os("CI").is_none(), "libfaketime is missing, see scripts/setup-test.sh");
    found
}
