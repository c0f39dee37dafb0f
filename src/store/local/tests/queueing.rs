//! Who gets the lock, when, and with which token.

use super::*;
use crate::store::contract::Released;
use crate::store::local::queue::{FIRST, place};
use crate::sys::ofd::{self, Kind, Span};

#[test]
fn waiters_are_served_in_the_order_in_which_they_came() {
    run(async {
        let directory = Room::new();
        let holder = directory.contender();
        let mut last = taken(&holder).await;
        let waiters: Vec<_> = (0..20).map(|_| directory.contender()).collect();
        for waiter in &waiters {
            queued(waiter).await;
        }
        let mut holder = &holder;
        for (at, next) in waiters.iter().enumerate() {
            assert!(at > 2 || still_waits(next).await);
            assert_eq!(holder.release(false).await, Ok(Released::Ours));
            let grant = next.granted().await.unwrap();
            assert_eq!(grant.token.get(), last.token.get() + 1);
            assert_eq!(grant.lineage, last.lineage);
            (holder, last) = (next, grant);
        }
    });
}

#[test]
fn tokens_increase_over_releases_and_deaths() {
    run(async {
        let directory = Room::new();
        for expected in 1..=20 {
            let contender = directory.contender();
            let grant = taken(&contender).await;
            assert_eq!(grant.token.get(), expected);
            assert_eq!((grant.lease, grant.confirm, grant.key), (None, false, None));
            if expected % 2 == 0 {
                contender.release(false).await.unwrap();
            }
        }
    });
}

#[test]
fn a_copy_of_the_descriptor_keeps_the_lock_and_a_release_ends_it_everywhere() {
    run(async {
        let directory = Room::new();
        let holder = directory.contender();
        taken(&holder).await;
        let copy = holder.descriptor().unwrap().try_clone_to_owned().unwrap();
        drop(holder);
        let next = directory.contender();
        queued(&next).await;
        assert!(still_waits(&next).await);
        drop(copy);
        let grant = next.granted().await.unwrap();

        let copy = next.descriptor().unwrap().try_clone_to_owned().unwrap();
        next.release(false).await.unwrap();
        assert_eq!(taken(&directory.contender()).await.token.get(), grant.token.get() + 1);
        drop(copy);
    });
}

/// The order of two locks: with the mutex given up before the byte is taken, another contender could be granted the lock
/// in between. A stranger on the byte stops the contender exactly there.
#[test]
fn the_mutex_is_held_until_the_contenders_own_byte_is_locked() {
    run(async {
        let directory = Room::new();
        directory.used().await;
        let stranger = directory.stranger();
        ofd::lock(&stranger, Kind::Read, place(2)).unwrap();
        let blocked = directory.contender();
        let mut contending = Box::pin(blocked.contend());
        let written = || fs::read(directory.lock_file()).unwrap()[31] == 2;
        tokio::select! {
            place = &mut contending => panic!("{place:?} without its byte"),
            () = until("number 2", written) => {}
        }
        let _ = tokio::time::timeout(Duration::from_millis(200), &mut contending).await;
        assert_eq!(ofd::conflict(&stranger, Kind::Read, Span::byte(0)).unwrap(), Some(Span::byte(0)));

        let second = directory.contender();
        assert!(tokio::time::timeout(Duration::from_millis(100), second.contend()).await.is_err(), "past the mutex");
        ofd::unlock(&stranger, Span::from(0)).unwrap();
        assert!(matches!(contending.await, Ok(Place::Granted(grant)) if grant.token.get() == 2));
        assert_eq!(second.contend().await, Ok(Place::Waiting));
    });
}

/// The dead one's byte is free, but somebody older lives.
#[test]
fn a_free_predecessor_is_no_proof() {
    run(async {
        let directory = Room::new();
        let (holder, dying) = (directory.contender(), directory.contender());
        taken(&holder).await;
        queued(&dying).await;
        let behind = directory.contender();
        queued(&behind).await;
        drop(dying);
        assert!(still_waits(&behind).await);
        let (leaving, last) = (directory.contender(), directory.contender());
        queued(&leaving).await;
        leaving.withdraw().await.unwrap();
        assert_eq!(last.contend().await, Ok(Place::Waiting));
        assert!(still_waits(&last).await);

        holder.release(false).await.unwrap();
        assert_eq!(behind.granted().await.unwrap().token.get(), 3);
        assert!(still_waits(&last).await);
        behind.release(false).await.unwrap();
        assert_eq!(last.granted().await.unwrap().token.get(), 5);
    });
}

#[test]
fn deaths_in_the_middle_of_the_queue_cost_nothing() {
    run(async {
        let directory = Room::new();
        let holder = directory.contender();
        taken(&holder).await;
        let mut middle = Vec::new();
        for _ in 0..10 {
            middle.push(directory.contender());
            queued(middle.last().unwrap()).await;
        }
        let last = directory.contender();
        queued(&last).await;
        for at in [4, 8, 0, 3, 2, 0, 1, 2, 0, 0] {
            drop(middle.remove(at));
        }
        assert!(still_waits(&last).await);
        holder.release(false).await.unwrap();
        assert_eq!(last.granted().await.unwrap().token.get(), 12);
    });
}

#[test]
fn a_contender_that_is_dropped_and_asked_again_has_one_place_and_one_thread() {
    run(async {
        let directory = Room::new();
        let holder = directory.contender();
        taken(&holder).await;
        let waiter = directory.contender();
        let mut futures: Vec<_> = (0..50).map(|_| Box::pin(waiter.contend())).collect();
        for future in &mut futures {
            tokio::select! { biased; _ = future => {}, () = std::future::ready(()) => {} }
        }
        drop(futures);
        queued(&waiter).await;
        queued(&waiter).await;
        for _ in 0..50 {
            tokio::select! { biased; _ = waiter.granted() => panic!("granted"), () = std::future::ready(()) => {} }
        }
        let stranger = directory.stranger();
        assert_eq!(ofd::conflict(&stranger, Kind::Read, place(2)).unwrap(), Some(place(2)));
        assert_eq!(ofd::conflict(&stranger, Kind::Read, Span::from(FIRST + 3)).unwrap(), None);
        holder.release(false).await.unwrap();
        let grant = waiter.granted().await.unwrap();
        assert_eq!(grant.token.get(), 2);
        assert_eq!(waiter.granted().await, Ok(grant.clone()));
        assert_eq!(waiter.contend().await, Ok(Place::Granted(grant)));
    });
}

#[test]
fn there_is_one_thread_while_waiting_and_none_while_the_lock_is_held() {
    // The kernel keeps 15 bytes of a thread's name, which is the lock's.
    let lock = LockName::parse("one_thread_only").unwrap();
    let threads = || {
        let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
        tasks.filter(|t| fs::read_to_string(t.path().join("comm")).is_ok_and(|c| c.trim() == lock.as_str())).count()
    };
    run(async {
        let directory = Room::new();
        let open = || Local::open(directory.0.path(), lock.clone(), Contender::default(), None).unwrap();
        let (holder, waiter) = (open(), open());
        taken(&holder).await;
        assert_eq!(threads(), 0);
        queued(&waiter).await;
        for _ in 0..10 {
            let _ = tokio::time::timeout(Duration::from_millis(1), waiter.granted()).await;
            queued(&waiter).await;
        }
        assert_eq!(threads(), 1);
        holder.release(false).await.unwrap();
        waiter.granted().await.unwrap();
        assert_eq!(threads(), 0);
    });
}

#[test]
fn many_threads_never_overlap_and_their_tokens_increase() {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let directory = Room::new();
    let (inside, log) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (directory, inside, log) = (directory.0.path(), &inside, &log);
            scope.spawn(move || {
                run(async {
                    for round in 0..40 {
                        let local = Local::open(directory, name(), Contender::default(), None).unwrap();
                        local.contend().await.unwrap();
                        let grant = local.granted().await.unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                        log.lock().unwrap().push(grant.token);
                        tokio::task::yield_now().await;
                        assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                        if (worker + round) % 3 != 0 {
                            assert_eq!(local.release(false).await, Ok(Released::Ours));
                        }
                    }
                });
            });
        }
    });
    let log = log.into_inner().unwrap();
    assert_eq!(log.len(), 320);
    assert!(log.is_sorted_by(|a, b| a < b));
}
