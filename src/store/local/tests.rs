//! The store against the real kernel, in one process: open file descriptions exclude each other there as well.

mod processes;
mod queueing;
mod trust;
mod withdrawing;

use super::Local;
use super::names::Names;
use crate::name::LockName;
use crate::store::contract::{Contender, Failure, Grant, Place, Store};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What nobody should have to wait for.
const LONG: Duration = Duration::from_secs(30);

/// A directory for locks.
struct Room(TempDir);

impl Room {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self(directory)
    }

    /// A contender for lock `a`.
    fn contender(&self) -> Local {
        self.told("")
    }

    /// A contender for lock `a` that runs `command`.
    fn told(&self, command: &str) -> Local {
        let contender = Contender { command: vec![command.into()], pid: 7, ..Contender::default() };
        Local::open(self.0.path(), name(), contender, None).unwrap()
    }

    fn lock_file(&self) -> PathBuf {
        self.0.path().join(Names::of(&name()).lock())
    }

    /// The lock's file, opened by a stranger.
    fn stranger(&self) -> File {
        File::options().read(true).write(true).open(self.lock_file()).unwrap()
    }

    /// Makes the lock's file by using the lock once.
    async fn used(&self) {
        let first = self.contender();
        taken(&first).await;
        first.release(false).await.unwrap();
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(self.0.path()).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn name() -> LockName {
    LockName::parse("a").unwrap()
}

/// Runs as the program does, on one thread.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LONG, test).await.expect("something hangs") });
}

/// Takes a lock that is free.
async fn taken(contender: &Local) -> Grant {
    match contender.contend().await.unwrap() {
        Place::Granted(grant) => grant,
        Place::Waiting | Place::Done => panic!("the lock is not free"),
    }
}

/// Queues for a lock that is not free.
async fn queued(contender: &Local) {
    assert_eq!(contender.contend().await.unwrap(), Place::Waiting);
}

/// Whether the lock is not granted within a time in which it would be, by far.
async fn still_waits(contender: &Local) -> bool {
    tokio::time::timeout(Duration::from_millis(200), contender.granted()).await.is_err()
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "{what} never came");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn refusal(result: Result<Place, Failure>) -> String {
    match result {
        Err(Failure::Refused(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}
