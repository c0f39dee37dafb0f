//! What these tests share: a run on a cluster, its keys as the store has them, and a journal that commands write to.

use crate::support::etcd::{Cluster, ask};
use crate::support::run::Run;
use crate::support::wait::{SOON, obtain};
use etcd_client::{GetOptions, KeyValue};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Where the contenders for a lock stand.
pub fn queue_of(lock: &str) -> String {
    format!("/fenced/v1/q/{lock}/")
}

/// A run of lock `a` on all members of a cluster.
pub fn run(cluster: &Cluster) -> Run {
    run_on(&cluster.addresses())
}

/// A run of lock `a` on these members.
pub fn run_on(addresses: &[impl AsRef<str>]) -> Run {
    let addresses: Vec<_> = addresses.iter().map(AsRef::as_ref).collect();
    Run::new(&format!("etcd://{}", addresses.join(","))).lock("a")
}

/// The keys of a lock's queue, the oldest first, as this member has them.
pub fn keys(address: &str, lock: &str) -> Vec<KeyValue> {
    let mut keys = ask(address, async |mut client| {
        let found = client.get(queue_of(lock), Some(GetOptions::new().with_prefix())).await?;
        Ok(found.kvs().to_vec())
    });
    keys.sort_by_key(KeyValue::create_revision);
    keys
}

/// The oldest key of lock `a`, as soon as there is one.
#[track_caller]
pub fn holder(cluster: &Cluster) -> KeyValue {
    obtain(SOON, || keys(&cluster.members[0].address, "a").into_iter().next())
}

/// Milliseconds of the boot clock.
pub fn now() -> u64 {
    fenced::sys::clock::now().0 / 1_000_000
}

/// A file to which commands append `NAME WORD BOOT_SECONDS`, one line each.
pub struct Journal(TempDir);

/// Writes a line about once in 10 ms, for ever, whoever says TERM.
const BEAT: &str = r#"trap '' TERM
while :; do read up idle </proc/uptime; echo "$NAME beat $up" >>"$JOURNAL"; sleep 0.01; done"#;

/// A tree that ignores TERM, one half of it in a session of its own.
const STUBBORN: &str = r#"trap '' TERM; echo started; setsid sh -c "$BEAT" & sh -c "$BEAT" & wait; wait"#;

/// A tree of which one process notes the TERM and all go on.
const NOTING: &str = r#"exec 2>/dev/null
setsid sh -c "$BEAT" & trap 'read up idle </proc/uptime; echo "$NAME term $up" >>"$JOURNAL"' TERM
while :; do sleep 0.02; done"#;

impl Journal {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn file(&self) -> PathBuf {
        self.0.path().join("journal")
    }

    /// The run with the journal in its environment.
    pub fn open(&self, run: Run, name: &str) -> Run {
        run.env("JOURNAL", self.file()).env("NAME", name).env("BEAT", BEAT)
    }

    /// The run with a tree of heartbeats that ignores TERM.
    pub fn stubborn(&self, run: Run, name: &str) -> Run {
        self.open(run, name).script(STUBBORN)
    }

    /// The same, but the TERM is noted.
    pub fn noting(&self, run: Run, name: &str) -> Run {
        self.open(run, name).script(NOTING)
    }

    /// When these lines were written, in milliseconds of the boot clock.
    pub fn times(&self, name: &str, word: &str) -> Vec<u64> {
        let lines = self.lines();
        let wanted = lines.iter().filter(|line| line.0 == name && line.1 == word);
        wanted.map(|line| line.2).collect()
    }

    pub fn last(&self, name: &str) -> u64 {
        self.times(name, "beat").into_iter().max().expect("it wrote")
    }

    pub fn first(&self, name: &str) -> u64 {
        self.times(name, "beat").into_iter().min().expect("it wrote")
    }

    /// Waits for the first heartbeat.
    #[track_caller]
    pub fn begins(&self, name: &str, within: Duration) -> u64 {
        obtain(within, || self.times(name, "beat").first().copied())
    }

    /// All whole lines.
    pub fn lines(&self) -> Vec<(String, String, u64)> {
        read_lines(&self.file())
    }
}

fn read_lines(file: &Path) -> Vec<(String, String, u64)> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let line = |line: &str| {
        let mut words = line.split(' ');
        let (name, word) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (seconds, hundredths) = words.next()?.split_once('.')?;
        Some((name, word, seconds.parse::<u64>().ok()? * 1000 + hundredths.parse::<u64>().ok()? * 10))
    };
    whole.lines().filter_map(line).collect()
}
