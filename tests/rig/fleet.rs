//! Workers and a nemesis in one world, from the first run to the proof that all is well again.

use crate::history::History;
use crate::nemesis::Nemesis;
use crate::schedule::Step;
use crate::worker::{self, Habit, Wrapper};
use crate::world::World;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Lets one worker for each habit do its work while the steps are carried out; then, with all healed, one more run asks
/// for each lock.
pub fn play(world: &mut World, habits: &[Habit], seed: u64, steps: &[Step], length: Duration) -> History {
    let workers: Vec<_> =
        habits.iter().enumerate().map(|(n, habit)| worker::start(&world.shared, n, habit.clone(), seed)).collect();
    Nemesis::of(world).carry_out(steps, length);
    world.shared.closing.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.join().expect("a worker ends");
    }
    ask_once_more(world, habits);
    world.finish()
}

fn ask_once_more(world: &World, habits: &[Habit]) {
    let mut locks: Vec<_> = habits.iter().flat_map(|habit| habit.locks.clone()).collect();
    locks.sort();
    locks.dedup();
    world.shared.closing.store(false, Ordering::SeqCst);
    for lock in locks {
        let habit =
            Habit { locks: vec![lock], runs: 1, after: Duration::ZERO, wrapper: Wrapper::Fenced, ..habits[0].clone() };
        worker::start(&world.shared, 0, habit, 0).join().expect("a worker ends");
    }
}
