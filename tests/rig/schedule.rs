//! What is done to a world, and when: written down for the schedules that once broke a design, drawn from a seed for the
//! others.

use crate::support::proxy::Mode;
use nix::sys::signal::Signal;
use std::time::Duration;

/// What is done, after so much time since the beginning.
#[derive(Clone, Debug)]
pub struct Step {
    pub after: Duration,
    pub act: Act,
}

/// One interference, or the end of one.
#[derive(Clone, Debug)]
pub enum Act {
    /// The proxies of a worker (or of all) before a member (or all).
    Network { worker: Option<usize>, member: Option<usize>, mode: Mode },
    /// Replies on the connections that are open now are swallowed.
    LoseOpenReplies { worker: usize },
    /// The nth reply from now is swallowed.
    LoseReply { worker: usize, nth: usize },
    /// All connections are reset, or one.
    Reset { worker: usize, nth: Option<usize> },
    /// SIGSTOP.
    Stop(Who),
    /// SIGCONT to all members that are stopped.
    Thaw,
    /// SIGKILL.
    Kill(Who),
    /// All members that are dead start again.
    Restart,
    /// The history up to now is compacted.
    Compact,
    /// A member defragments its data, and answers nobody meanwhile.
    Defragment(Who),
    /// A signal to parts of a worker's current run, at one blow.
    Signal { worker: usize, parts: &'static [Part], signal: Signal },
    /// SIGCONT to everything of all workers.
    Continue,
    /// So many threads that only compute.
    Spin { threads: usize, span: Duration },
    /// The lock file is removed, or the holder's lease revoked.
    Revoke,
    /// So many keys a second are written elsewhere.
    Write { rate: u32, span: Duration },
    /// The database is filled until it takes nothing more.
    Fill,
    /// There is room again.
    MakeRoom,
}

/// A member.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    Leader,
    Follower,
}

/// A part of a run's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Fenced,
    Guard,
    Command,
    /// Everything else that the run started.
    Descendants,
    /// The process group of fenced, as a signal reaches it.
    Group,
}

pub const WHOLE: &[Part] = &[Part::Command, Part::Descendants, Part::Guard, Part::Fenced];
const HEAD: &[Part] = &[Part::Fenced, Part::Guard];

/// What the world has that can be interfered with.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub workers: usize,
    pub members: usize,
    /// Whether members are stopped: only then live leases may be revoked.
    pub frozen_members: bool,
}

/// A random schedule of this length; the same seed gives the same one.
pub fn random(seed: u64, length: Duration, shape: Shape) -> Vec<Step> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut steps = Vec::new();
    let mut at = Duration::from_millis(500);
    while at < length {
        // A holder that is stopped on the local store stops all that wait for it.
        let span = Duration::from_millis(random.u64(20..if shape.members == 0 { 300 } else { 3_000 }));
        let (begin, end) = draw(&mut random, shape, span);
        // Long enough for every lease to be over by the clock of a leader that was away.
        let span = if matches!(begin, Act::Stop(_)) { 2 * span } else { span };
        steps.push(Step { after: at, act: begin });
        steps.extend(end.map(|act| Step { after: at + span, act }));
        at += Duration::from_millis(random.u64(20..if shape.members == 0 { 300 } else { 2_000 }));
    }
    steps.sort_by_key(|step| step.after);
    steps
}

fn draw(random: &mut fastrand::Rng, shape: Shape, span: Duration) -> (Act, Option<Act>) {
    let worker = random.usize(..shape.workers);
    if shape.members == 0 || random.u8(..3) == 0 {
        return processes(random, worker, span);
    }
    let who = if random.bool() { Who::Leader } else { Who::Follower };
    match random.u8(..25) {
        0..=7 => network(random, worker, shape),
        8 | 9 => (Act::LoseOpenReplies { worker }, None),
        10 | 11 => (Act::LoseReply { worker, nth: random.usize(..20) }, None),
        12 | 13 => (Act::Reset { worker, nth: random.bool().then(|| random.usize(..10)) }, None),
        14 | 15 if shape.frozen_members => (Act::Stop(who), Some(Act::Thaw)),
        14..=17 => (Act::Kill(who), Some(Act::Restart)),
        18 | 19 => (Act::Compact, None),
        20 | 21 => (Act::Defragment(who), None),
        22 => (Act::Revoke, None),
        _ => (Act::Spin { threads: 4, span: span / 4 }, None),
    }
}

fn network(random: &mut fastrand::Rng, worker: usize, shape: Shape) -> (Act, Option<Act>) {
    let worker = (random.u8(..4) != 0).then_some(worker);
    let member = (random.u8(..3) != 0).then(|| random.usize(..shape.members));
    let mode = match random.u8(..6) {
        0 => Mode::Cut,
        1 => Mode::DropReplies,
        2 => Mode::Hold,
        3 => Mode::Delay(Duration::from_millis(random.u64(5..700))),
        4 => Mode::Throttle(random.u32(500..20_000)),
        _ => Mode::Refuse,
    };
    (Act::Network { worker, member, mode }, Some(Act::Network { worker, member, mode: Mode::Pass }))
}

fn processes(random: &mut fastrand::Rng, worker: usize, span: Duration) -> (Act, Option<Act>) {
    let signal = |parts, signal| Act::Signal { worker, parts, signal };
    let part: &'static [Part] = match random.u8(..4) {
        0 => &[Part::Guard],
        1 => &[Part::Command],
        _ => &[Part::Fenced],
    };
    match random.u8(..10) {
        0..=3 => (signal(part, Signal::SIGKILL), None),
        4 | 5 => (signal(part, Signal::SIGSTOP), Some(Act::Continue)),
        6 => (signal(&[Part::Fenced], Signal::SIGTERM), None),
        7 => (signal(HEAD, Signal::SIGSTOP), Some(Act::Continue)),
        8 => (signal(WHOLE, Signal::SIGSTOP), Some(Act::Continue)),
        _ => (Act::Spin { threads: 4, span: span / 4 }, None),
    }
}

impl Step {
    /// Something that is done so many milliseconds after the beginning.
    pub fn at(ms: u64, act: Act) -> Self {
        Self { after: Duration::from_millis(ms), act }
    }

    /// A signal to parts of a worker's run.
    pub fn signal(ms: u64, worker: usize, parts: &'static [Part], signal: Signal) -> Self {
        Self::at(ms, Act::Signal { worker, parts, signal })
    }
}

#[test]
fn a_seed_gives_one_schedule_and_another_seed_another() {
    let shape = Shape { workers: 3, members: 3, frozen_members: true };
    let drawn = |seed| format!("{:?}", random(seed, Duration::from_secs(60), shape));
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}
