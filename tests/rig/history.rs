//! What happened: events with their moment on the boot clock, appended to one file by everybody who takes part, and the
//! same gathered by run.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// One run of a worker; 0 is the rig itself.
pub type RunId = u64;

/// Something that happened to a run, or to the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Nanoseconds of the boot clock.
    pub at: u64,
    pub run: RunId,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// The run was started and asks for a lock.
    Asked { lock: String, local: bool },
    /// fenced said that it stands in the queue.
    Waiting,
    /// fenced said that the store did not do what it was asked.
    Retrying,
    /// fenced said that the lock is its own.
    Granted { token: i64 },
    /// The command began.
    Started { token: i64 },
    /// A process of the command was alive.
    Beat,
    /// The command is about to write this value.
    Trying { value: u64 },
    /// The resource took the value or not.
    Wrote { value: u64, accepted: bool },
    /// The command came to its end, with this status.
    Ended { code: i32 },
    /// The wrapper ended.
    Finished { status: Option<i32>, signal: Option<i32>, line: Option<StatusLine> },
    /// The wrapper had to be ended: it hung.
    Hung,
    /// The rig interfered; `run` is whose processes it hit, 0 for the store, the network and the machine.
    Fault { class: Class, text: String },
    /// A thread of the rig was late by so much: the machine stood still.
    Stall { ns: u64 },
    /// A write of the rig's took so long to reach the disk.
    SlowDisk { ns: u64 },
    /// Nothing is interfered with from here on.
    Healed,
}

/// What a fault can be an excuse for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Nothing that has to be excused: network, members that die, single processes, signals.
    Plain,
    /// fenced, its guard and all of the command were stopped together, as a frozen machine is.
    Frozen,
    /// fenced and its guard were killed at one blow.
    Beheaded,
    /// A member of the store was stopped: it may revoke live leases when it goes on.
    MemberFrozen,
    /// The store's own record was taken away: lock file, key or lease.
    Revoked,
}

/// What `--status-file` says, as far as it is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusLine {
    pub outcome: String,
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    pub token: Option<i64>,
    pub reason: Option<String>,
}

/// Now, in nanoseconds of the boot clock.
pub fn now() -> u64 {
    fenced::sys::clock::now().0
}

/// A file of events. Each is one append, so that writers of several processes never mix and a death tears nothing.
#[derive(Clone, Debug)]
pub struct Journal(PathBuf);

impl Journal {
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn note(&self, run: RunId, what: What) {
        self.note_at(now(), run, what);
    }

    pub fn note_at(&self, at: u64, run: RunId, what: What) {
        let mut line = serde_json::to_vec(&Event { at, run, what }).expect("an event is JSON");
        line.push(b'\n');
        // Without its directory the world is gone, and nobody will read what a straggler has to say.
        let Ok(mut file) = File::options().append(true).create(true).open(&self.0) else { return };
        file.write_all(&line).expect("the journal can be written");
    }

    /// All events, by their moments.
    pub fn read(&self) -> History {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let event = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        History::of(text.lines().map(event).collect())
    }
}

/// Everything that happened, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub events: Vec<Event>,
    pub runs: BTreeMap<RunId, Run>,
}

/// What one run came to.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub id: RunId,
    pub lock: String,
    /// On the local store, where nothing expires.
    pub local: bool,
    pub asked: u64,
    pub waiting: Option<u64>,
    pub retrying: Vec<u64>,
    pub granted: Option<(u64, i64)>,
    pub started: Option<(u64, i64)>,
    /// Moments at which something of the command was alive, start and end included.
    pub signs: Vec<u64>,
    pub ended: Option<(u64, i32)>,
    pub finished: Option<Finish>,
    pub hung: bool,
    /// What was done to its processes.
    pub faults: Vec<(u64, Class, String)>,
}

/// How the wrapper ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finish {
    pub at: u64,
    pub status: Option<i32>,
    pub signal: Option<i32>,
    pub line: Option<StatusLine>,
}

impl Run {
    /// The last moment at which anything of the command is known to have lived.
    pub fn last_sign(&self) -> Option<u64> {
        self.signs.iter().max().copied()
    }

    /// The token it was granted.
    pub fn token(&self) -> Option<i64> {
        self.started.or(self.granted).map(|(_, token)| token)
    }

    /// Whether something of this kind was done to its processes before a moment.
    pub fn suffered(&self, class: Class, before: u64) -> bool {
        self.faults.iter().any(|(at, suffered, _)| *suffered == class && *at <= before)
    }
}

impl History {
    pub fn of(mut events: Vec<Event>) -> Self {
        events.sort_by_key(|event| event.at);
        let mut runs: BTreeMap<RunId, Run> = BTreeMap::new();
        for event in events.iter().filter(|event| event.run != 0) {
            let run = runs.entry(event.run).or_default();
            run.id = event.run;
            run.take(event);
        }
        Self { events, runs }
    }

    /// The names of the locks that were asked for.
    pub fn locks(&self) -> Vec<String> {
        let mut locks: Vec<_> = self.runs.values().map(|run| run.lock.clone()).collect();
        locks.sort();
        locks.dedup();
        locks
    }

    /// The runs that asked for a lock.
    pub fn of_lock<'a>(&'a self, lock: &'a str) -> impl Iterator<Item = &'a Run> {
        self.runs.values().filter(move |run| run.lock == lock)
    }

    /// Faults of a class that hit the store in a span.
    pub fn store_faults(&self, class: Class, from: u64, to: u64) -> bool {
        let hit = |event: &Event| {
            event.run == 0
                && (from..=to).contains(&event.at)
                && matches!(&event.what, What::Fault { class: suffered, .. } if *suffered == class)
        };
        self.events.iter().any(hit)
    }

    /// For how long the machine or its disk stood still in a span, all in all.
    pub fn stalled(&self, from: u64, to: u64) -> u64 {
        let slow = self.events.iter().filter_map(|event| match event.what {
            What::SlowDisk { ns } if event.at >= from && event.at.saturating_sub(ns) <= to => Some(ns),
            _ => None,
        });
        self.stalls(from, to).sum::<u64>() + slow.sum::<u64>()
    }

    /// For how long the machine stood still in a span, at most, in one piece.
    pub fn longest_stall(&self, from: u64, to: u64) -> u64 {
        self.stalls(from, to).max().unwrap_or(0)
    }

    fn stalls(&self, from: u64, to: u64) -> impl Iterator<Item = u64> {
        self.events.iter().filter_map(move |event| match event.what {
            What::Stall { ns } if event.at >= from && event.at.saturating_sub(ns) <= to => Some(ns),
            _ => None,
        })
    }
}

impl Run {
    fn take(&mut self, event: &Event) {
        let at = event.at;
        match &event.what {
            What::Asked { lock, local } => (self.lock, self.local, self.asked) = (lock.clone(), *local, at),
            What::Waiting => self.waiting = self.waiting.or(Some(at)),
            What::Retrying => self.retrying.push(at),
            What::Granted { token } => self.granted = Some((at, *token)),
            What::Started { token } => {
                self.started = Some((at, *token));
                self.signs.push(at);
            }
            What::Beat | What::Trying { .. } | What::Wrote { .. } => self.signs.push(at),
            What::Ended { code } => {
                self.ended = Some((at, *code));
                self.signs.push(at);
            }
            What::Finished { status, signal, line } => {
                self.finished = Some(Finish { at, status: *status, signal: *signal, line: line.clone() });
            }
            What::Hung => self.hung = true,
            What::Fault { class, text } => self.faults.push((at, *class, text.clone())),
            What::Stall { .. } | What::SlowDisk { .. } | What::Healed => {}
        }
    }
}
