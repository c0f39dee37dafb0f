//! Schedules that broke earlier designs, and those that a user is likely to meet.

use crate::check::{self, Findings, Terms};
use crate::fleet::play;
use crate::history::{Class, History, What};
use crate::job::Kind;
use crate::schedule::{Act, Part, Step, WHOLE, Who};
use crate::support::etcd::{Access, Options, Version};
use crate::support::proxy::Mode;
use crate::worker::{self, Habit, SIDECAR, Wrapper};
use crate::world::{Shared, World};
use nix::sys::signal::Signal;
use std::sync::Arc;
use std::time::Duration;

/// Jobs that need a renewal or two.
fn long() -> Habit {
    Habit { think_ms: 100..=150, writes: 15..=25, ..Habit::default() }
}

fn terms(habit: &Habit) -> Terms {
    Terms { ttl: habit.ttl, grace: habit.grace }
}

/// Plays, checks everything, and returns what was found when all is in order.
#[track_caller]
fn passes(world: &mut World, habits: &[Habit], steps: &[Step], seconds: u64) -> (History, Findings) {
    let history = play(world, habits, 1, steps, Duration::from_secs(seconds));
    let mut found = check::all(&history, &world.shared, terms(&habits[0]));
    // The last lease ends, perhaps after an election that began it anew.
    let within = habits[0].ttl + Duration::from_millis(500) + Duration::from_secs(1);
    found.wrong.extend(check::turns(&history, within));
    eprintln!("{found}");
    found.expect_clean();
    (history, found)
}

fn three(version: Version, workers: usize) -> World {
    World::on_etcd(&Options { version, members: 3, ..Options::default() }, workers)
}

#[track_caller]
fn ended(found: &Findings, outcome: &str) -> usize {
    let count = found.outcomes.get(outcome).copied().unwrap_or(0);
    assert!(count > 0, "no run was {outcome}: {found}");
    count
}

/// A keepalive and a read in different terms, live leases revoked, "lease not found" for a live one: the leader is away
/// for longer than a lease, so that all are over by its own clock when it comes back.
#[test]
fn a_leader_frozen_for_longer_than_an_election_and_thawed_again_and_again() {
    for version in Version::all() {
        let mut world = three(version, 6);
        let steps: Vec<_> = (0..4)
            .flat_map(|n| [Step::at(1000 + n * 4700, Act::Stop(Who::Leader)), Step::at(4200 + n * 4700, Act::Thaw)])
            .collect();
        let habit = |lock: &str| Habit {
            locks: vec![lock.into()],
            ttl: Duration::from_secs(3),
            grace: Duration::from_millis(300),
            think_ms: 20..=30,
            writes: 100..=200,
            ..Habit::default()
        };
        let habits = ["a", "a", "b", "b", "c", "c"].map(habit);
        passes(&mut world, &habits, &steps, 20);
    }
}

/// Grant, enqueue, look, claim, renewal, release, revoke: whichever reply is lost, what was asked is asked again.
#[test]
fn every_reply_lost_once_at_every_step() {
    const PAIRS: usize = 6;
    let mut world = World::on_etcd(&Options::default(), 2 * PAIRS);
    // Long enough for a renewal.
    let lease = Habit { ttl: Duration::from_secs(3), grace: Duration::from_millis(300), ..Habit::default() };
    let habit =
        |pair| Habit { locks: vec![format!("lock{pair}")], think_ms: 100..=100, writes: 12..=12, ..lease.clone() };
    let mut random = fastrand::Rng::with_seed(7);
    worker::once(&world.shared, 0, &habit(0), &mut random);
    // Who waits hears more than who enters at once.
    let replies = 2 * world.shared.proxies[0][0].replies();
    let threads: Vec<_> = (0..PAIRS)
        .map(|pair| {
            let (shared, habit) = (Arc::clone(&world.shared), habit(pair));
            std::thread::spawn(move || losing_each(&shared, pair, (pair..replies).step_by(PAIRS), &habit))
        })
        .collect();
    for thread in threads {
        thread.join().expect("a worker ends");
    }
    let history = world.finish();
    let found = check::all(&history, &world.shared, terms(&lease));
    eprintln!("{replies} replies lost: {found}");
    found.expect_clean();
    assert_eq!(found.granted, found.runs, "a lost reply costs time and nothing else");
}

/// Runs of worker `2 * pair`, each without one reply, against a rival that loses none.
fn losing_each(shared: &Arc<Shared>, pair: usize, replies: impl Iterator<Item = usize>, habit: &Habit) {
    let mut random = fastrand::Rng::with_seed(7);
    for nth in replies {
        let rival = worker::start(shared, 2 * pair + 1, Habit { runs: 1, writes: 1..=3, ..habit.clone() }, 1);
        shared.proxies[2 * pair][0].lose_reply(nth);
        let text = format!("reply {nth} of worker {} is lost", 2 * pair);
        shared.journal.note(0, What::Fault { class: Class::Plain, text });
        worker::once(shared, 2 * pair, habit, &mut random);
        rival.join().expect("a worker ends");
    }
}

#[test]
fn a_queue_on_a_server_that_writes_five_hundred_keys_a_second_elsewhere() {
    let mut world = World::on_etcd(&Options::default(), 4);
    let steps = [Step::at(0, Act::Write { rate: 500, span: Duration::from_secs(8) })];
    let habits = vec![Habit { think_ms: 0..=5, ..Habit::default() }; 4];
    let (history, _) = passes(&mut world, &habits, &steps, 7);
    let mut hand_overs: Vec<_> = history.runs.values().filter_map(|run| Some(run.granted?.0 - run.waiting?)).collect();
    hand_overs.sort_unstable();
    eprintln!("{} waited, {} ms at the median", hand_overs.len(), hand_overs[hand_overs.len() / 2] / 1_000_000);
}

#[test]
fn a_command_with_a_gigabyte_to_free_when_its_lease_ends() {
    let mut world = World::on_etcd(&Options::default(), 2);
    let heavy =
        Habit { kinds: vec![Kind::Heavy(1024)], think_ms: 200..=200, writes: 60..=60, runs: 1, ..Habit::default() };
    let rival = Habit { after: Duration::from_secs(2), ..Habit::default() };
    let steps = [Step::at(3000, Act::Network { worker: Some(0), member: None, mode: Mode::Cut })];
    let (_, found) = passes(&mut world, &[heavy, rival], &steps, 10);
    ended(&found, "lost");
}

#[test]
fn what_a_command_leaves_behind_is_gone_before_the_next_one_begins() {
    let mut world = World::on_files(3);
    let habit = Habit { kinds: vec![Kind::Stubborn], ..Habit::default() };
    let (_, found) = passes(&mut world, &vec![habit; 3], &[], 4);
    ended(&found, "exited");
}

#[test]
fn each_process_of_a_run_killed_in_turn() {
    let stubborn = Habit { kinds: vec![Kind::Stubborn], ..long() };
    for mut world in [World::on_etcd(&Options::default(), 3), World::on_files(3)] {
        let kill = |ms, worker, part| Step::signal(ms, worker, part, Signal::SIGKILL);
        let steps = [
            kill(1000, 0, &[Part::Fenced]),
            kill(1200, 1, &[Part::Fenced]),
            kill(7000, 0, &[Part::Guard]),
            kill(7300, 1, &[Part::Guard]),
            kill(9000, 0, &[Part::Command]),
            kill(9300, 2, &[Part::Fenced]),
            kill(11_000, 1, &[Part::Fenced]),
        ];
        passes(&mut world, &[stubborn.clone(), stubborn.clone(), Habit::default()], &steps, 13);
    }
}

/// A new leader gives every lease its whole time anew.
#[test]
fn a_holder_killed_and_then_the_leader_costs_one_lease_from_the_leader_s_death() {
    let mut world = three(Version::V37, 2);
    let habits =
        [Habit { runs: 1, ..long() }, Habit { after: Duration::from_millis(800), runs: 1, ..Habit::default() }];
    let steps = [
        Step::signal(1200, 0, &[Part::Fenced], Signal::SIGKILL),
        Step::at(3500, Act::Kill(Who::Leader)),
        Step::at(5500, Act::Restart),
    ];
    let (history, _) = passes(&mut world, &habits, &steps, 11);
    let killed = history.events.iter().find(|event| format!("{:?}", event.what).contains("Kill(Leader)"));
    let killed = killed.expect("it was done").at;
    let waited = history.runs.values().filter(|run| run.waiting.is_some()).find_map(|run| run.started);
    let (entered, _) = waited.expect("the waiter had its turn");
    let took = Duration::from_nanos(entered.saturating_sub(killed));
    eprintln!("the waiter was in {took:?} after the leader's death");
    // Twice the election timeout until there is a leader, and the promised second.
    let stalled = Duration::from_nanos(history.stalled(killed, entered));
    let allowed = habits[0].ttl + Duration::from_millis(1500) + Duration::from_secs(1) + stalled;
    assert!(took <= allowed, "{took:?} > {allowed:?}");
}

/// `sidecar & exec fenced …`: what was there before is none of fenced's.
#[test]
fn a_wrapper_that_had_children_before_leaves_them_alone_whoever_dies() {
    let mut world = World::on_etcd(&Options::default(), 2);
    let habit = Habit { wrapper: Wrapper::FencedAfterSidecar, kinds: vec![Kind::Plain, Kind::Stubborn], ..long() };
    let steps = [
        Step::signal(1000, 0, &[Part::Guard], Signal::SIGKILL),
        Step::signal(2500, 1, &[Part::Guard], Signal::SIGKILL),
        Step::signal(4000, 0, &[Part::Fenced], Signal::SIGTERM),
        Step::signal(5500, 1, &[Part::Command], Signal::SIGKILL),
    ];
    let (history, _) = passes(&mut world, &[habit.clone(), habit], &steps, 8);
    let sidecars = world.shared.everything().into_iter().filter(|pid| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == SIDECAR.as_bytes())
    });
    // The last run is one without.
    assert_eq!(sidecars.count() + 1, history.runs.len());
}

/// `docker stop` signals one process, a shell's `kill -- -PGID` and a terminal the whole group.
#[test]
fn signals_to_fenced_alone_and_to_its_group_end_the_command_as_its_own() {
    let mut world = World::on_files(2);
    let habit = Habit {
        kinds: vec![Kind::Plain, Kind::Plain, Kind::Stubborn],
        think_ms: 10..=30,
        writes: 5..=10,
        ..Habit::default()
    };
    let steps: Vec<_> = (0..40)
        .map(|n| {
            let parts: &[Part] = if n % 2 == 0 { &[Part::Fenced] } else { &[Part::Group] };
            let signal = if n % 3 == 0 { Signal::SIGINT } else { Signal::SIGTERM };
            let worker = usize::try_from(n % 4 / 2).expect("a worker");
            Step::signal(300 + n * 150, worker, parts, signal)
        })
        .collect();
    let (_, found) = passes(&mut world, &[habit.clone(), habit], &steps, 7);
    ended(&found, "signaled");
}

#[test]
fn a_stopped_waiter_at_the_head_of_the_queue_costs_its_lease_and_no_more() {
    let holder = Habit { think_ms: 100..=100, writes: 25..=25, runs: 1, ..Habit::default() };
    let second = Duration::from_secs(1);
    let waiter = Habit { after: second / 2, wait: second * 3, runs: 1, ..Habit::default() };
    let behind = Habit { after: second, runs: 1, ..Habit::default() };
    for mut world in [World::on_etcd(&Options::default(), 3), World::on_files(3)] {
        let steps =
            [Step::signal(1500, 1, &[Part::Fenced, Part::Guard], Signal::SIGSTOP), Step::at(14_000, Act::Continue)];
        let (history, _) = passes(&mut world, &[holder.clone(), waiter.clone(), behind.clone()], &steps, 15);
        let continued = history.events.iter().rfind(|event| format!("{:?}", event.what).contains("Continue"));
        let last = history
            .runs
            .values()
            .filter(|run| run.asked < continued.expect("it was done").at)
            .max_by_key(|run| run.asked);
        let last = last.expect("three runs");
        let (entered, _) = last.started.expect("it entered");
        assert!(entered < continued.expect("it was done").at - 1_000_000_000, "the stopped waiter held it up");
    }
}

#[test]
fn compaction_defragmentation_and_the_restart_of_every_member() {
    let mut world = three(Version::V37, 3);
    let steps = [
        Step::at(500, Act::Compact),
        Step::at(1000, Act::Defragment(Who::Leader)),
        Step::at(1500, Act::Kill(Who::Leader)),
        Step::at(2500, Act::Restart),
        Step::at(3000, Act::Compact),
        Step::at(4000, Act::Kill(Who::Follower)),
        Step::at(4500, Act::Compact),
        Step::at(5000, Act::Restart),
        Step::at(6500, Act::Kill(Who::Leader)),
        Step::at(7500, Act::Restart),
        Step::at(8000, Act::Defragment(Who::Follower)),
    ];
    passes(&mut world, &[long(), Habit::default(), Habit::default()], &steps, 10);
}

#[test]
fn a_full_database_lets_holders_finish_and_takes_waiters_in_when_there_is_room_again() {
    let flags = vec![("--quota-backend-bytes", (2 << 20).to_string())];
    let mut world = World::on_etcd(&Options { flags, ..Options::default() }, 3);
    let steps = [Step::at(1500, Act::Fill), Step::at(8500, Act::MakeRoom)];
    let habits = [long(), Habit { wait: Duration::from_secs(2), ..Habit::default() }, Habit::default()];
    let (_, found) = passes(&mut world, &habits, &steps, 12);
    ended(&found, "unavailable");
}

#[test]
fn logins_that_expire_every_two_seconds() {
    let key = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(key.path(), "a key of thirty-two bytes or more").expect("a key");
    let signed = format!("jwt,sign-method=HS256,priv-key={},ttl=2s", key.path().display());
    for flags in [vec![("--auth-token", signed)], vec![("--auth-token-ttl", "1".to_owned())]] {
        let mut world = World::on_etcd(&Options { flags, ..Options::default() }, 3);
        Access::enable(world.cluster.as_ref().expect("a cluster"), "/fenced/v1/");
        let habit = Habit { user: true, ..long() };
        let steps = [
            Step::at(3000, Act::LoseOpenReplies { worker: 0 }),
            Step::at(4000, Act::Reset { worker: 1, nth: None }),
            Step::at(5000, Act::Kill(Who::Leader)),
            Step::at(5300, Act::Restart),
        ];
        let (_, found) = passes(&mut world, &vec![habit; 3], &steps, 8);
        ended(&found, "exited");
    }
}

#[test]
fn a_machine_whose_processors_are_all_taken() {
    let mut world = three(Version::V37, 2);
    let spin = |ms| Step::at(ms, Act::Spin { threads: 8, span: Duration::from_millis(1500) });
    passes(&mut world, &[long(), long()], &[spin(1000), spin(4000), spin(7000)], 9);
}

/// As a laptop's lid or `docker pause` does it: no lock can help, the token does.
#[test]
fn a_whole_job_frozen_past_its_lease_and_thawed_writes_nothing() {
    let mut world = World::on_etcd(&Options::default(), 2);
    let frozen = Habit { kinds: vec![Kind::Stubborn, Kind::Plain], ..long() };
    let steps = [
        Step::signal(1000, 0, WHOLE, Signal::SIGSTOP),
        Step::at(6500, Act::Continue),
        Step::signal(8000, 0, WHOLE, Signal::SIGSTOP),
        Step::at(13_500, Act::Continue),
    ];
    let (_, found) = passes(&mut world, &[frozen, Habit::default()], &steps, 15);
    ended(&found, "lost");
}
