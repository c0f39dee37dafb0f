//! Where the workers live: a store, a proxy of each worker's own before each of its members, a journal, a resource for
//! each lock, and what the nemesis must know to find a worker's processes.

use crate::history::{History, Journal, RunId, What, now};
use crate::support::etcd::{Cluster, Options};
use crate::support::processes::{self, MARK, new_mark};
use crate::support::proxy::Proxy;
use crate::support::run::LocalStore;
use crate::support::wait::{SOON, until};
use nix::sys::signal::Signal;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A thread that slept this much longer than it asked for tells of a machine that stood still.
const LATE: Duration = Duration::from_millis(30);

/// How often the disk is tried.
const DISK: Duration = Duration::from_millis(200);

/// What workers and nemesis share.
pub struct Shared {
    pub journal: Journal,
    pub directory: TempDir,
    /// One row a worker, one proxy a member; empty on the local store.
    pub proxies: Vec<Vec<Proxy>>,
    pub local: Option<LocalStore>,
    pub mark: String,
    /// No new run begins.
    pub closing: AtomicBool,
    slots: Vec<Mutex<Option<Current>>>,
    last: AtomicU64,
}

/// A run whose wrapper has not been reaped: its pid is still its own while the slot is locked.
#[derive(Clone, Copy, Debug)]
pub struct Current {
    pub run: RunId,
    pub pid: i32,
}

/// A world, owned by the thread of its test: servers die with the thread that starts them.
pub struct World {
    pub shared: Arc<Shared>,
    pub cluster: Option<Cluster>,
    monitors: Vec<JoinHandle<()>>,
    over: Arc<AtomicBool>,
}

impl World {
    pub fn on_etcd(options: &Options, workers: usize) -> Self {
        let cluster = Cluster::start(options);
        let row = |_| cluster.members.iter().map(|member| Proxy::before(&member.address)).collect();
        let proxies = (0..workers).map(row).collect();
        Self::new(proxies, Some(cluster), None, workers)
    }

    pub fn on_files(workers: usize) -> Self {
        Self::new(Vec::new(), None, Some(LocalStore::new()), workers)
    }

    fn new(proxies: Vec<Vec<Proxy>>, cluster: Option<Cluster>, local: Option<LocalStore>, workers: usize) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let shared = Arc::new(Shared {
            journal: Journal::at(directory.path().join("journal")),
            directory,
            proxies,
            local,
            mark: new_mark(),
            closing: AtomicBool::new(false),
            slots: (0..workers).map(|_| Mutex::default()).collect(),
            last: AtomicU64::new(0),
        });
        let over = Arc::new(AtomicBool::new(false));
        let watched = [watch_the_machine, watch_the_disk].map(|watch| {
            let (journal, ended) = (shared.journal.clone(), Arc::clone(&over));
            std::thread::spawn(move || watch(&journal, &ended))
        });
        Self { shared, cluster, monitors: watched.into(), over }
    }

    /// Ends what still runs and returns what happened.
    pub fn finish(&mut self) -> History {
        self.over.store(true, Ordering::SeqCst);
        for monitor in self.monitors.drain(..) {
            monitor.join().expect("a monitor ends");
        }
        self.shared.journal.read()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        self.shared.closing.store(true, Ordering::SeqCst);
        let ended = until(SOON, || {
            let left = self.shared.everything();
            for &pid in &left {
                processes::signal(pid, Signal::SIGKILL);
            }
            left.is_empty().then_some(())
        });
        if ended.is_none() {
            eprintln!("processes marked {} could not be killed", self.shared.mark);
        }
        if std::thread::panicking() {
            eprintln!("the journal:\n{}", self.tail());
        }
    }
}

impl World {
    /// What a failure is told with.
    fn tail(&self) -> String {
        self.keep();
        let text = std::fs::read_to_string(self.shared.journal.path()).unwrap_or_default();
        let lines: Vec<_> = text.lines().filter(|line| !line.contains("\"beat\"")).collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Copies the journal into the directory that `RIG_KEEP` names.
    pub fn keep(&self) {
        if let Some(directory) = std::env::var_os("RIG_KEEP") {
            let name = format!("journal-{}", self.shared.mark);
            let _ = std::fs::copy(self.shared.journal.path(), PathBuf::from(directory).join(name));
        }
    }
}

impl Shared {
    pub fn new_run(&self) -> RunId {
        self.last.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The variable that marks everything that a run starts.
    pub fn mark_of(&self, run: RunId) -> (&'static str, String) {
        (MARK, format!("{}-run{run}", self.mark))
    }

    pub fn slot(&self, worker: usize) -> MutexGuard<'_, Option<Current>> {
        self.slots[worker].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a worker's `--store` is.
    pub fn store(&self, worker: usize) -> String {
        match &self.local {
            Some(store) => store.to_string(),
            None => format!("etcd://{}", self.endpoints(worker)),
        }
    }

    pub fn endpoints(&self, worker: usize) -> String {
        let addresses: Vec<_> = self.proxies[worker].iter().map(|proxy| proxy.address.as_str()).collect();
        addresses.join(",")
    }

    pub fn resource(&self, lock: &str) -> PathBuf {
        self.directory.path().join(format!("resource-{lock}"))
    }

    /// Every process that any run of this world started and that lives.
    pub fn everything(&self) -> Vec<i32> {
        let prefix = format!("{}-run", self.mark);
        processes::marked_by(|mark| mark.starts_with(&prefix))
    }
}

/// Notes when a thread that only sleeps was late.
fn watch_the_machine(journal: &Journal, over: &AtomicBool) {
    let pause = Duration::from_millis(10);
    while !over.load(Ordering::SeqCst) {
        let before = Instant::now();
        std::thread::sleep(pause);
        let late = before.elapsed().saturating_sub(pause);
        if late > LATE {
            journal.note_at(now(), 0, What::Stall { ns: nanos(late) });
        }
    }
}

/// Notes when a small write took long to be on the disk.
fn watch_the_disk(journal: &Journal, over: &AtomicBool) {
    let probe = journal.path().with_file_name("probe");
    while !over.load(Ordering::SeqCst) {
        let before = Instant::now();
        let written = File::create(&probe).and_then(|mut file| file.write_all(b"x").and_then(|()| file.sync_data()));
        let took = before.elapsed();
        if written.is_ok() && took > LATE {
            journal.note_at(now(), 0, What::SlowDisk { ns: nanos(took) });
        }
        std::thread::sleep(DISK);
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
