//! Random schedules, each from a seed that is printed first. `RIG_SEED` replays one (the same faults at the same moments;
//! the machine adds its own), `RIG_SECONDS` says for how long new ones are drawn, `RIG_KEEP` where the journals of those
//! go in which something is wrong.

use crate::check::{self, Findings, Terms};
use crate::fleet::play;
use crate::job::Kind;
use crate::schedule::{Shape, random};
use crate::support::etcd::{Options, Version};
use crate::worker::Habit;
use crate::world::World;
use std::time::{Duration, Instant};

/// One schedule's length: short ones fail with short journals.
const ROUND: Duration = Duration::from_secs(20);

fn seconds() -> Duration {
    let given = std::env::var("RIG_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(60))
}

/// The seeds to play: one from the environment, or new ones until the time is over.
fn seeds() -> impl Iterator<Item = u64> {
    let given: Option<u64> = std::env::var("RIG_SEED").ok().map(|text| text.parse().expect("RIG_SEED is a number"));
    let began = Instant::now();
    let mut first = true;
    std::iter::from_fn(move || {
        let again = std::mem::take(&mut first) || (given.is_none() && began.elapsed() < seconds());
        again.then(|| given.unwrap_or_else(|| fastrand::u64(..1_000_000)))
    })
}

#[derive(Default)]
struct Sum {
    rounds: usize,
    found: Findings,
    wrong: Vec<String>,
}

impl Sum {
    fn add(&mut self, seed: u64, world: &World, found: Findings) {
        if !found.wrong.is_empty() {
            world.keep();
        }
        eprintln!("RIG_SEED={seed}: {found}");
        for overlap in &found.excused {
            eprintln!("RIG_SEED={seed}: {overlap:?}");
        }
        self.rounds += 1;
        self.wrong.extend(found.wrong.iter().map(|wrong| format!("RIG_SEED={seed}: {wrong}")));
        self.found.sum(found);
    }

    fn judge(&self, what: &str) {
        eprintln!("{what}: {} rounds, {}", self.rounds, self.found);
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
    }
}

#[test]
fn random_faults_on_etcd_break_no_promise() {
    let terms = Terms::default();
    let mut sum = Sum::default();
    for seed in seeds() {
        let mut random_choice = fastrand::Rng::with_seed(seed);
        let versions = Version::all();
        let members = if random_choice.u8(..3) == 0 { 1 } else { 3 };
        let version = versions[random_choice.usize(..versions.len())];
        let shape = Shape { workers: 6, members, frozen_members: random_choice.bool() };
        eprintln!("RIG_SEED={seed}: {version:?}, {shape:?}");
        let mut world = World::on_etcd(&Options { version, members, ..Options::default() }, shape.workers);
        let habit = Habit {
            locks: vec!["a".into(), "b".into(), "c".into()],
            ttl: terms.ttl,
            grace: terms.grace,
            kinds: [vec![Kind::Plain; 5], vec![Kind::Stubborn]].concat(),
            think_ms: 0..=30,
            writes: 1..=8,
            ..Habit::default()
        };
        let mut habits = vec![habit.clone(); shape.workers];
        // Long enough to need renewals.
        habits[0] = Habit { think_ms: 50..=100, writes: 10..=40, ..habit };
        let history = play(&mut world, &habits, seed, &random(seed, ROUND, shape), ROUND);
        let mut found = check::all(&history, &world.shared, terms);
        // The lease of whoever was killed last, begun anew by an election.
        let within = terms.ttl + Duration::from_millis(500) + Duration::from_secs(1);
        found.wrong.extend(check::turns(&history, within));
        sum.add(seed, &world, found);
    }
    sum.judge("etcd");
}

#[test]
fn random_faults_on_files_break_no_promise() {
    let mut sum = Sum::default();
    for seed in seeds() {
        let shape = Shape { workers: 6, members: 0, frozen_members: false };
        eprintln!("RIG_SEED={seed}: {shape:?}");
        let mut world = World::on_files(shape.workers);
        let habit = Habit {
            locks: vec!["a".into(), "b".into(), "c".into()],
            kinds: [vec![Kind::Plain; 15], vec![Kind::Stubborn]].concat(),
            think_ms: 0..=2,
            writes: 1..=2,
            ..Habit::default()
        };
        let history = play(&mut world, &vec![habit; shape.workers], seed, &random(seed, ROUND, shape), ROUND);
        let mut found = check::all(&history, &world.shared, Terms::default());
        found.wrong.extend(check::turns(&history, Duration::from_secs(1)));
        sum.add(seed, &world, found);
    }
    sum.judge("files");
}
