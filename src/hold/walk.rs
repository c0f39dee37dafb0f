//! A random walk of the machine against an independent model of the store, the guard and the command. The model keeps
//! its own account of when the store may grant the lock to somebody else, and never looks at the machine's.

use super::event::{Action, Event, Readiness, Setup};
use super::machine::Machine;
use crate::exit::Verdict;
use crate::guard::terms::{Deadlines, Report};
use crate::settings::OnExit;
use crate::store::contract::{Failure, Grant, Interruption, Place, Released};
use crate::timing::{Lease, Moment};
use crate::token::{Lineage, Token};
use std::time::Duration;

const TTL: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_millis(2500);
const STEP: Duration = Duration::from_millis(20);
/// How long the model's tree takes from SIGKILL to the last reaped process, at most.
const DYING: u64 = 10;

#[expect(clippy::struct_excessive_bools, reason = "what is true of a world")]
struct World {
    random: fastrand::Rng,
    now: Moment,
    /// Since when the store counts our lease: the moment at which it worked on our last renewal.
    counted_from: Option<Moment>,
    /// The store took the lock away before its time.
    revoked: bool,
    call: Option<(Moment, Event)>,
    guard: Option<Deadlines>,
    alive: bool,
    kill_at: Moment,
    command_ends: Moment,
    reports: Vec<(Moment, Report)>,
    outage: bool,
    released: bool,
    /// fenced was told of the loss, by an event or by the answer to its release.
    told: bool,
    /// The tree outlived the lease at some moment.
    overlap: bool,
    ran: bool,
    /// How often the machine was asked.
    steps: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let runtime = Duration::from_millis(random.u64(1..60_000));
        Self {
            now: Moment(5_000_000_000_000),
            counted_from: None,
            revoked: false,
            call: None,
            guard: None,
            alive: false,
            kill_at: Moment::NEVER,
            command_ends: Moment(5_000_000_000_000) + runtime,
            reports: Vec::new(),
            outage: false,
            released: false,
            told: false,
            overlap: false,
            ran: false,
            steps: 0,
            random,
        }
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.random.u64(0..=most))
    }

    fn ours(&self) -> bool {
        !self.revoked && !self.released && self.counted_from.is_some_and(|from| self.now < from + TTL)
    }

    /// When the store works on a request sent now, and when its answer is here; `None`: no answer. A request may be
    /// worked on although its answer never comes.
    fn travel(&mut self) -> (Option<Moment>, Option<Moment>) {
        let there = self.now + self.millis(900);
        let back = there + self.millis(900);
        match (self.outage, self.random.u8(0..10)) {
            (true, 0..5) => (None, None),
            (true, _) | (false, 0) => (Some(there), None),
            (false, _) => (Some(there), Some(back)),
        }
    }

    fn unavailable() -> Failure {
        Failure::Unavailable("no answer".into())
    }

    fn contend(&mut self) {
        let sent = self.now;
        let (there, back) = self.travel();
        self.call = Some(match (there, back) {
            (Some(there), Some(back)) => {
                self.counted_from = Some(there);
                (back, Event::Contended(Ok(Place::Granted(grant(sent, self.random.bool())))))
            }
            _ => (sent + Duration::from_secs(2), Event::Contended(Err(Self::unavailable()))),
        });
    }

    fn renew(&mut self) {
        let sent = self.now;
        let (there, back) = self.travel();
        if let Some(there) = there
            && !self.revoked
            && self.counted_from.is_some_and(|from| there < from + TTL)
        {
            self.counted_from = Some(there);
        }
        self.call = Some(match (there, back) {
            (Some(_), Some(back)) if self.ours() => (back, Event::Renewed(Ok(Lease { sent, ttl: TTL }))),
            (Some(_), Some(back)) => (back, Event::Renewed(Err(Failure::Lost("key gone".into())))),
            _ => (sent + Duration::from_secs(2), Event::Renewed(Err(Self::unavailable()))),
        });
    }

    fn release(&mut self) {
        assert!(!self.alive, "released while the tree lives");
        let (there, back) = self.travel();
        let ours = self.ours();
        if there.is_some() {
            self.released = true;
        }
        self.call = Some(match (there.is_some(), back) {
            (true, Some(back)) if ours => (back, Event::Released(Ok(Released::Ours))),
            (true, Some(back)) => {
                self.told = true;
                (back, Event::Released(Ok(Released::NotOurs("gone".into()))))
            }
            _ => (self.now + Duration::from_secs(2), Event::Released(Err(Self::unavailable()))),
        });
    }

    fn perform(&mut self, action: Action) -> Option<Verdict> {
        match action {
            Action::Contend => self.contend(),
            Action::Renew => self.renew(),
            Action::Prepare => {
                let answer =
                    if self.random.u8(0..20) == 0 { Err(Failure::Stale("stale".into())) } else { Ok(Readiness::Go) };
                self.call = Some((self.now + self.millis(9_000), Event::Prepared(answer)));
            }
            Action::Release(_) => self.release(),
            Action::Withdraw => {
                assert!(!self.alive, "withdrawn while the tree lives");
                self.call = Some((self.now + self.millis(900), Event::Withdrawn(Ok(()))));
            }
            Action::Start(deadlines) => {
                if self.now >= deadlines.stop_by {
                    self.reports.push((self.now, Report::NotStarted { errno: libc::ETIME }));
                } else {
                    self.guard = Some(deadlines);
                    self.alive = true;
                    self.ran = true;
                    let when = self.now + self.millis(5);
                    self.reports.push((when, Report::Started { pid: 9 }));
                }
            }
            Action::Extend(deadlines) => {
                if self.kill_at == Moment::NEVER {
                    self.guard = Some(deadlines);
                }
            }
            Action::Stop => {
                let dead_by = self.guard.map_or(Moment::NEVER, |guard| guard.dead_by);
                self.kill_at = self.kill_at.min(dead_by).min(self.now + GRACE);
            }
            Action::Kill | Action::TakeOver => self.kill_at = self.now,
            Action::Finish(verdict) => return Some(verdict),
            Action::Await | Action::Hint | Action::Forward(_) | Action::Pause(_) | Action::Tell(_) => {}
        }
        None
    }

    /// The guard's own clockwork, as the design says it: TERM at `stop_by`, KILL at `dead_by`.
    fn guard_turn(&mut self) {
        let Some(Deadlines { stop_by, dead_by }) = self.guard else { return };
        if !self.alive {
            return;
        }
        if self.now >= stop_by && self.kill_at == Moment::NEVER {
            self.kill_at = dead_by;
            self.reports.push((self.now, Report::Overdue));
        }
        if self.now >= self.command_ends {
            self.die(0);
        } else if self.now >= self.kill_at {
            self.die(libc::SIGKILL);
        }
    }

    fn die(&mut self, status: i32) {
        self.alive = false;
        let reaped = self.now + self.millis(DYING);
        self.reports.push((reaped, Report::Ended { status }));
        self.reports.push((reaped, Report::Clear));
    }

    fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        if self.random.u16(0..2_000) == 0 {
            self.outage = !self.outage;
        }
        if self.alive && self.random.u16(0..20_000) == 0 {
            self.revoked = true;
            // A watch is only a hint: without it the next renewal finds out, or the release.
            if self.random.bool() {
                self.told = true;
                events.push(Event::Interrupted(Interruption::Lost("revoked".into())));
            }
        }
        self.guard_turn();
        let now = self.now;
        self.reports.retain(|(when, report)| {
            let due = *when <= now;
            if due {
                events.push(Event::Guard(report.clone()));
            }
            !due
        });
        if self.call.as_ref().is_some_and(|(when, _)| *when <= now) {
            events.extend(self.call.take().map(|(_, event)| event));
        }
        events
    }
}

fn grant(sent: Moment, confirm: bool) -> Grant {
    let (token, lineage) = (Token::new(7).unwrap(), Lineage::new("lineage").unwrap());
    Grant { token, lineage, lease: Some(Lease { sent, ttl: TTL }), confirm, key: None }
}

/// Walks one run to its end and returns the world and the verdict.
fn walk(seed: u64) -> (World, Verdict) {
    let mut world = World::new(seed);
    let setup = Setup {
        delay: Duration::ZERO,
        wait: Some(Duration::from_secs(20)),
        grace: GRACE,
        on_exit: OnExit::Kill,
        prepares: seed % 2 == 1,
        seed,
    };
    let mut machine = Machine::new(setup, world.now);
    let mut events = vec![Event::Tick];
    for _ in 0..20_000 {
        for event in events {
            world.steps += 1;
            for action in machine.step(world.now, event) {
                if let Some(verdict) = world.perform(action) {
                    return (world, verdict);
                }
            }
        }
        world.now = world.now + STEP;
        if world.alive && !world.revoked && !world.ours() {
            world.overlap = true;
        }
        events = world.events();
        if machine.deadline() <= world.now {
            events.push(Event::Tick);
        }
    }
    panic!("seed {seed}: the run never ended, in {:?}", machine.phase());
}

/// `FENCED_WALK_STEPS`, or few enough for every day.
fn wanted_steps() -> u64 {
    std::env::var("FENCED_WALK_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(0)
}

#[test]
fn no_walk_lets_the_tree_outlive_the_lease_or_calls_a_lost_lease_a_success() {
    let (mut ran, mut lost, mut exited, mut unavailable, mut refused) = (0, 0, 0, 0, 0);
    let wanted = wanted_steps();
    let (mut seed, mut steps) = (0, 0);
    while seed < 4_000 || steps < wanted {
        seed += 1;
        let (world, verdict) = walk(seed);
        steps += world.steps;
        assert!(!world.overlap, "seed {seed}: the tree outlived the lease, {verdict:?}");
        assert!(!world.alive, "seed {seed}: ended with the tree alive");
        match verdict {
            Verdict::Exited(_) => {
                assert!(
                    !world.told && world.kill_at == Moment::NEVER,
                    "seed {seed}: a lost lease was called a success"
                );
                exited += 1;
            }
            Verdict::Lost(_) => lost += 1,
            Verdict::Unavailable(_) => {
                assert!(!world.ran, "seed {seed}: the command ran, yet the store is blamed");
                unavailable += 1;
            }
            Verdict::Refused(_) => {
                assert!(!world.ran, "seed {seed}: the command ran, yet a gate had refused");
                refused += 1;
            }
            other => panic!("seed {seed}: {other:?}"),
        }
        ran += u32::from(world.ran);
    }
    eprintln!("{steps} steps");
    assert!(ran > 1_000 && lost > 200 && exited > 1_000 && unavailable > 20 && refused > 20);
}
