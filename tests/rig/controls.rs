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

/// What went wrong, counted by kind.
fn count(world: &World, history: &History) -> Counted {
    let (wrong, brief) = check::overlaps(history, "a", Terms::default());
    let writes = check::writes(history, "a", &resource::accepted(&world.shared.resource("a")));
    let with = |wrong: &[String], what: &str| wrong.iter().filter(|line| line.contains(what)).count();
    let counted = Counted {
        revocations: with(&faults(history), "Revoke"),
        overlaps: wrong.len() + brief.len(),
        stale: with(&writes, "stale write"),
        lost: with(&writes, "was lost"),
        lies: with(&check::statuses(history), "success was reported"),
        refused: check::all(history, &world.shared, Terms::default()).refused,
    };
    eprintln!("{counted:?}");
    counted
}

#[derive(Debug)]
struct Counted {
    revocations: usize,
    overlaps: usize,
    stale: usize,
    lost: usize,
    /// Successes that were none.
    lies: usize,
    /// Writes that the gate refused.
    refused: usize,
}

fn faults(history: &History) -> Vec<String> {
    history.events.iter().map(|event| format!("{:?}", event.what)).filter(|what| what.contains("Fault")).collect()
}

#[test]
fn etcdctl_in_fenceds_place_is_found_to_overlap_and_the_gate_refuses_what_comes_of_it() {
    let (world, history) = revoked_again_and_again(Wrapper::Etcdctl, true);
    let found = count(&world, &history);
    assert!(found.revocations > 0 && found.overlaps > 0 && found.refused > 0, "{found:?}");
    assert_eq!((found.stale, found.lost), (0, 0), "the gate let something in");
}

#[test]
fn etcdctl_without_a_gate_is_found_to_overlap_to_lose_writes_and_to_call_that_a_success() {
    let (world, history) = revoked_again_and_again(Wrapper::Etcdctl, false);
    let found = count(&world, &history);
    assert!(found.overlaps > 0 && found.stale > 0 && found.lost > 0 && found.lies > 0, "{found:?}");
}

#[test]
fn fenced_in_the_same_place_passes() {
    let (world, history) = revoked_again_and_again(Wrapper::Fenced, true);
    count(&world, &history);
    let found = check::all(&history, &world.shared, Terms::default());
    found.expect_clean();
    assert!(found.outcomes.get("lost").is_some_and(|&lost| lost > 0), "nothing was revoked: {found}");
}
