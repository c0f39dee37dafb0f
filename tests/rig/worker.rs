//! A contender: the real binary, again and again, each time with a job under it, and what is seen of it from outside.

use crate::history::{Finish, Journal, RunId, StatusLine, What, now};
use crate::job::{Job, Kind};
use crate::support::etcd::{CI, PASSWORD, etcdctl};
use crate::support::run::binary;
use crate::world::{Current, Shared};
use std::io::{BufRead, BufReader, Read};
use std::ops::RangeInclusive;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No run takes longer than this, whatever is done to it.
const ENDLESS: Duration = Duration::from_secs(120);

/// What a sidecar sleeps, in seconds, by which it is told from other processes.
pub const SIDECAR: &str = "54.321";

/// What a worker does, run for run.
#[derive(Clone, Debug)]
pub struct Habit {
    pub locks: Vec<String>,
    pub wrapper: Wrapper,
    pub ttl: Duration,
    pub grace: Duration,
    pub wait: Duration,
    /// Between two writes.
    pub think_ms: RangeInclusive<u64>,
    /// How many writes a job makes.
    pub writes: RangeInclusive<u64>,
    pub kinds: Vec<Kind>,
    pub gate: bool,
    /// How many runs, at most.
    pub runs: u64,
    /// How long before the first one.
    pub after: Duration,
    /// As the cluster's restricted user.
    pub user: bool,
}

/// What stands between the worker and its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapper {
    Fenced,
    /// fenced in the place of a shell that has started something else before: `sidecar & exec fenced …`.
    FencedAfterSidecar,
    Etcdctl,
}

impl Default for Habit {
    fn default() -> Self {
        Self {
            locks: vec!["a".into()],
            wrapper: Wrapper::Fenced,
            ttl: Duration::from_secs(4),
            grace: Duration::from_millis(400),
            wait: Duration::from_secs(30),
            think_ms: 0..=20,
            writes: 1..=3,
            kinds: vec![Kind::Plain],
            gate: true,
            runs: u64::MAX,
            after: Duration::ZERO,
            user: false,
        }
    }
}

/// A thread that works until the world closes or its runs are done.
pub fn start(shared: &Arc<Shared>, worker: usize, habit: Habit, seed: u64) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        std::thread::sleep(habit.after);
        let mut random = fastrand::Rng::with_seed(seed ^ (worker as u64 + 1));
        for _ in 0..habit.runs {
            if shared.closing.load(Ordering::SeqCst) {
                break;
            }
            once(&shared, worker, &habit, &mut random);
        }
    })
}

/// One run from its start to its end.
pub fn once(shared: &Shared, worker: usize, habit: &Habit, random: &mut fastrand::Rng) {
    let lock = habit.locks[random.usize(..habit.locks.len())].clone();
    let job = Job {
        run: shared.new_run(),
        journal: shared.journal.path().to_owned(),
        resource: shared.resource(&lock),
        gate: habit.gate,
        think_ms: random.u64(habit.think_ms.clone()),
        writes: random.u64(habit.writes.clone()),
        code: if random.u8(..8) == 0 { 7 } else { 0 },
        kind: habit.kinds[random.usize(..habit.kinds.len())],
        token: habit.token_variable().into(),
    };
    run(shared, worker, habit, &lock, &job);
}

impl Habit {
    fn token_variable(&self) -> &'static str {
        match self.wrapper {
            Wrapper::Fenced | Wrapper::FencedAfterSidecar => "FENCED_TOKEN",
            Wrapper::Etcdctl => "ETCD_LOCK_REV",
        }
    }

    fn fenced(&self) -> Command {
        let mut command = Command::new(binary());
        if self.wrapper == Wrapper::FencedAfterSidecar {
            command = Command::new("sh");
            command.args(["-c", &format!("sleep {SIDECAR} & exec \"$0\" \"$@\""), &binary()]);
        }
        if self.user {
            command.env("FENCED_USER", CI).env("FENCED_PASSWORD", PASSWORD);
        }
        command
    }

    fn command(&self, shared: &Shared, worker: usize, lock: &str, job: &Job) -> Command {
        let (words, (name, value)) = job.command();
        let mut command = match self.wrapper {
            Wrapper::Fenced | Wrapper::FencedAfterSidecar => {
                let mut command = self.fenced();
                command.args(["run", "-v", "--store", &shared.store(worker), "--lock", lock, "--wait"]);
                command.arg(format!("{}ms", self.wait.as_millis()));
                command.arg("--grace").arg(format!("{}ms", self.grace.as_millis()));
                if shared.local.is_none() {
                    command.arg("--ttl").arg(format!("{}ms", self.ttl.as_millis()));
                }
                command.arg("--status-file").arg(shared.directory.path().join(format!("status-{}", job.run)));
                command
            }
            Wrapper::Etcdctl => {
                let mut command = Command::new(etcdctl());
                command.env("ETCDCTL_API", "3").args(["--endpoints", &shared.endpoints(worker), "lock"]);
                command.arg("--ttl").arg(self.ttl.as_secs().to_string()).arg(format!("/fenced/v1/q/{lock}"));
                command
            }
        };
        command.arg("--").args(words).env(name, value).process_group(0);
        let (mark, own) = shared.mark_of(job.run);
        command.env(mark, own).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }
}

fn run(shared: &Shared, worker: usize, habit: &Habit, lock: &str, job: &Job) {
    let journal = &shared.journal;
    journal.note(job.run, What::Asked { lock: lock.to_owned(), local: shared.local.is_some() });
    let mut child = habit.command(shared, worker, lock, job).spawn().expect("the wrapper starts");
    let pid = i32::try_from(child.id()).expect("a process id");
    *shared.slot(worker) = Some(Current { run: job.run, pid });
    if let Some(stderr) = child.stderr.take() {
        let (journal, run) = (journal.clone(), job.run);
        std::thread::spawn(move || listen(&journal, run, stderr));
    }
    let Finish { at, status, signal, line } = finish(shared, worker, job.run, &mut child);
    journal.note_at(at, job.run, What::Finished { status, signal, line });
}

fn finish(shared: &Shared, worker: usize, run: RunId, child: &mut Child) -> Finish {
    let (began, mut hung) = (Instant::now(), false);
    let status: ExitStatus = loop {
        let mut slot = shared.slot(worker);
        if let Some(status) = child.try_wait().expect("a child of ours") {
            *slot = None;
            break status;
        }
        if began.elapsed() > ENDLESS && !std::mem::replace(&mut hung, true) {
            shared.journal.note(run, What::Hung);
            let _ = child.kill();
        }
        drop(slot);
        std::thread::sleep(Duration::from_millis(2));
    };
    let at = now();
    let file = shared.directory.path().join(format!("status-{run}"));
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(file);
    let line: Option<StatusLine> = serde_json::from_str(&text).ok();
    Finish { at, status: status.code(), signal: status.signal(), line }
}

/// What fenced says on the way, with the moment at which it was said.
fn listen(journal: &Journal, run: RunId, stderr: impl Read) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        let said = line.strip_prefix("fenced: ").unwrap_or_default();
        if let Some(token) = said.strip_prefix("granted: token ").and_then(|token| token.parse().ok()) {
            journal.note(run, What::Granted { token });
        } else if said.starts_with("waiting: ") {
            journal.note(run, What::Waiting);
        } else if said.starts_with("store: ") {
            journal.note(run, What::Retrying);
        }
    }
}
