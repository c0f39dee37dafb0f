//! Negative controls: what the checks must find, done with real programs that let it happen.

use crate::check::{self, Terms};
use crate::fleet::play;
use crate::history::History;
use crate::resource;
use crate::schedule::{Act, Step};
use crate::support::etcd::Options;
use crate::worker::{Habit, Wrapper};
use crate::world::World;
use std::time::Duration;

/// Two workers whose jobs are longer than the time between two revocations, for so long.
fn revoked_again_and_again(wrapper: Wrapper, gate: bool) -> (World, History) {
    let mut world = World::on_etcd(&Options::default(), 2);
    let habit = Habit { wrapper, gate, think_ms: 80..=80, writes: 20..=20, ..Habit::default() };
    let steps: Vec<_> = (1..8).map(|n| Step { after: Duration::from_millis(500 * n), act: Act::Revoke }).collect();
    let history = play(&mut world, &[habit.clone(), habit], 1, &steps, Duration::from_secs(5));
    (world, history)
}

fn has(wrong: &[String], what: &str) -> bool {
    wrong.iter().any(|line| line.contains(what))
}

#[test]
fn etcdctl_in_fenceds_place_is_found_to_overlap_and_the_gate_refuses_what_comes_of_it() {
    let (world, history) = revoked_again_and_again(Wrapper::Etcdctl, true);
    let (wrong, brief) = check::overlaps(&history, "a", Terms::default());
    assert!(!wrong.is_empty() || !brief.is_empty(), "no overlap was found");
    let records = resource::accepted(&world.shared.resource("a"));
    let wrong = check::writes(&history, "a", &records);
    assert!(wrong.is_empty(), "the gate let a stale write in: {wrong:?}");
    assert!(check::all(&history, &world.shared, Terms::default()).refused > 0);
}

#[test]
fn etcdctl_without_a_gate_is_found_to_overlap_to_lose_writes_and_to_call_that_a_success() {
    let (world, history) = revoked_again_and_again(Wrapper::Etcdctl, false);
    let records = resource::accepted(&world.shared.resource("a"));
    let wrong = check::writes(&history, "a", &records);
    assert!(has(&wrong, "stale write") && has(&wrong, "lost"), "{wrong:?}");
    let (wrong, _) = check::overlaps(&history, "a", Terms::default());
    assert!(has(&wrong, "began while"), "{wrong:?}");
    let wrong = check::statuses(&history);
    assert!(has(&wrong, "success was reported"), "{wrong:?}");
}

#[test]
fn fenced_in_the_same_place_passes() {
    let (world, history) = revoked_again_and_again(Wrapper::Fenced, true);
    let found = check::all(&history, &world.shared, Terms::default());
    eprintln!("{found}");
    found.expect_clean();
    assert!(found.outcomes.get("lost").is_some_and(|&lost| lost > 0), "nothing was revoked: {found}");
}
