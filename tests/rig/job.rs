//! What the workers run under the lock: this test binary once more, as a program that reads, thinks and writes with its
//! token, and tells the journal about it.

use crate::history::{Journal, What};
use crate::resource::{Outcome, Resource};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the job finds in its environment.
const VARIABLE: &str = "RIG_JOB";
/// Its status when the gate refused it.
pub const REFUSED: i32 = 77;

/// One job to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    pub run: u64,
    pub journal: PathBuf,
    pub resource: PathBuf,
    pub gate: bool,
    /// Between two writes, and between reading and writing.
    pub think_ms: u64,
    pub writes: u64,
    /// The status at the end.
    pub code: i32,
    pub kind: Kind,
    /// Where the token stands in the environment.
    pub token: String,
}

/// What kind of a process the command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// One process.
    Plain,
    /// A shell that ignores TERM, with a child of its own and a daemon in a session of its own, which live as long as
    /// nobody ends them.
    Stubborn,
    /// A shell that ignores TERM, with a child that has so many MiB of memory to free.
    Heavy(usize),
    /// Only shows signs of life, until it is killed.
    Background,
}

impl Job {
    /// The command line and the variable that make a process do it.
    pub fn command(&self) -> (Vec<String>, (String, String)) {
        let this = std::env::current_exe().expect("this program").display().to_string();
        let own = [this.as_str(), "--ignored", "--exact", "job::the_command_of_a_worker", "--nocapture", "-q"];
        let own: Vec<String> = own.map(str::to_owned).into();
        let words = match self.kind {
            Kind::Stubborn | Kind::Heavy(_) => {
                let shell = r#"trap '' TERM; "$@"; exit $?"#;
                [vec!["sh".into(), "-c".into(), shell.into(), "sh".into()], own].concat()
            }
            Kind::Plain | Kind::Background => own,
        };
        (words, (VARIABLE.to_owned(), serde_json::to_string(self).expect("a job is JSON")))
    }

    fn spawn_daemon(&self) {
        let background = Self { kind: Kind::Background, ..self.clone() };
        let (words, (name, value)) = background.command();
        let mut command = Command::new("setsid");
        command.args(words).env(name, value).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Reaped by whom it comes to.
        drop(command.spawn().expect("a daemon starts"));
    }

    fn perform(&self) -> i32 {
        let journal = Journal::at(&self.journal);
        let token: i64 = std::env::var(&self.token).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        if self.kind == Kind::Background {
            beat_until(&journal, self.run, Duration::from_secs(60));
            return 0;
        }
        journal.note(self.run, What::Started { token });
        let memory = if let Kind::Heavy(mib) = self.kind { vec![1_u8; mib << 20] } else { Vec::new() };
        if self.kind == Kind::Stubborn {
            self.spawn_daemon();
        }
        let resource = Resource { path: &self.resource, gate: self.gate };
        let mut code = if resource.advance(token, self.run) == Outcome::Accepted { self.code } else { REFUSED };
        for _ in 0..self.writes {
            if code == REFUSED {
                break;
            }
            let value = resource.read().value + 1;
            beat_until(&journal, self.run, Duration::from_millis(self.think_ms));
            journal.note(self.run, What::Trying { value });
            let accepted = resource.write(token, value, self.run) == Outcome::Accepted;
            journal.note(self.run, What::Wrote { value, accepted });
            code = if accepted { code } else { REFUSED };
        }
        drop(memory);
        journal.note(self.run, What::Ended { code });
        code
    }
}

fn beat_until(journal: &Journal, run: u64, span: Duration) {
    let end = Instant::now() + span;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        journal.note(run, What::Beat);
        std::thread::sleep(left.min(Duration::from_millis(10)));
    }
}

#[test]
#[ignore = "a worker's command, not a test"]
fn the_command_of_a_worker() {
    let Ok(job) = std::env::var(VARIABLE) else { return };
    let job: Job = serde_json::from_str(&job).expect("a job");
    std::process::exit(job.perform());
}
