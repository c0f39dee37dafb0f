//! What is left behind, and what becomes of a lock whose file is taken away.

use super::*;
use crate::store::contract::{Interruption, Released};
use crate::store::local::queue::FIRST;
use crate::store::local::record::Record;
use crate::sys::ofd::{self, Kind, Span};

#[test]
fn a_withdrawn_waiter_leaves_no_byte_and_no_file() {
    run(async {
        let directory = Room::new();
        let holder = directory.told("holder");
        taken(&holder).await;
        let waiter = directory.told("waiter");
        queued(&waiter).await;
        assert_eq!(directory.files(), ["a.1.info", "a.2.info", "a.lock"]);
        waiter.withdraw().await.unwrap();
        waiter.withdraw().await.unwrap();
        assert_eq!(directory.files(), ["a.1.info", "a.lock"]);
        // Its thread is still blocked behind the holder, and has the file open.
        assert_eq!(ofd::conflict(directory.stranger(), Kind::Read, Span::from(FIRST + 2)).unwrap(), None);
        assert!(matches!(waiter.granted().await, Err(Failure::Lost(_))));

        holder.release(false).await.unwrap();
        assert_eq!(taken(&directory.contender()).await.token.get(), 3);
    });
}

#[test]
fn a_waiter_that_is_dropped_leaves_no_byte() {
    run(async {
        let directory = Room::new();
        let holder = directory.contender();
        taken(&holder).await;
        let waiter = directory.contender();
        queued(&waiter).await;
        drop(waiter);
        assert_eq!(ofd::conflict(directory.stranger(), Kind::Read, Span::from(FIRST + 2)).unwrap(), None);
    });
}

#[test]
fn a_file_that_was_replaced_on_the_way_to_the_mutex_is_not_used() {
    run(async {
        let directory = Room::new();
        directory.used().await;
        let stranger = directory.stranger();
        ofd::lock(&stranger, Kind::Write, Span::byte(0)).unwrap();
        let local = directory.contender();
        let mut contending = Box::pin(local.contend());
        assert!(tokio::time::timeout(Duration::from_millis(200), &mut contending).await.is_err());
        fs::remove_file(directory.lock_file()).unwrap();
        ofd::unlock(&stranger, Span::from(0)).unwrap();
        assert!(matches!(contending.await, Ok(Place::Granted(grant)) if grant.token.get() == 1));
    });
}

#[test]
fn a_withdrawal_at_any_moment_leaves_the_lock_free() {
    run(async {
        let directory = Room::new();
        for turn in 0..200u32 {
            let local = directory.contender();
            let _ = tokio::time::timeout(Duration::from_micros(u64::from(turn) * 5), local.contend()).await;
            local.withdraw().await.unwrap();
            let next = directory.contender();
            // The thread may be about to give back what it has just taken.
            next.contend().await.unwrap();
            next.granted().await.unwrap();
            next.release(false).await.unwrap();
        }
        until("the last thread's end", || directory.files() == ["a.lock"]).await;
    });
}

#[test]
fn a_grant_that_is_not_used_is_given_back() {
    run(async {
        let directory = Room::new();
        let local = directory.contender();
        taken(&local).await;
        local.withdraw().await.unwrap();
        taken(&directory.contender()).await;
        assert!(matches!(local.contend().await, Err(Failure::Refused(_))));
    });
}

#[test]
fn a_release_can_be_repeated_and_needs_a_grant() {
    run(async {
        let directory = Room::new();
        let local = directory.contender();
        assert!(matches!(local.release(false).await, Ok(Released::NotOurs(_))));
        taken(&local).await;
        assert_eq!(local.release(false).await, Ok(Released::Ours));
        let next = directory.contender();
        taken(&next).await;
        assert_eq!(local.release(false).await, Ok(Released::Ours));
        queued(&directory.contender()).await;
        assert!(matches!(local.renew().await, Err(Failure::Lost(_))));
    });
}

#[test]
fn a_holder_hears_at_once_that_its_file_is_gone() {
    for replace in [false, true] {
        run(async move {
            let directory = Room::new();
            let holder = directory.contender();
            taken(&holder).await;
            assert!(holder.renew().await.is_ok());
            let file = directory.lock_file();
            let mut interrupted = Box::pin(holder.interrupted());
            // A change of its mode is no loss, and the watch goes on.
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            assert!(tokio::time::timeout(Duration::from_millis(100), &mut interrupted).await.is_err());
            if replace {
                fs::rename(&file, directory.0.path().join("elsewhere")).unwrap();
            } else {
                fs::remove_file(&file).unwrap();
            }
            // Well under the pace at which it would look by itself.
            let heard = tokio::time::timeout(Duration::from_secs(2), interrupted).await.unwrap();
            assert!(matches!(heard, Interruption::Lost(_)));
            assert!(matches!(holder.interrupted().await, Interruption::Lost(_)));
            assert!(matches!(holder.renew().await, Err(Failure::Lost(_))));
            assert!(matches!(holder.release(false).await, Ok(Released::NotOurs(_))));
        });
    }
}

#[test]
fn a_directory_that_is_moved_away_takes_its_locks_along() {
    run(async {
        let directory = Room::new();
        let inner = directory.0.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let holder = Local::open(&inner, name(), Contender::default(), None).unwrap();
        taken(&holder).await;
        let mut interrupted = Box::pin(holder.interrupted());
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut interrupted).await.is_err());
        fs::rename(&inner, directory.0.path().join("moved")).unwrap();
        let heard = tokio::time::timeout(Duration::from_secs(2), interrupted).await.unwrap();
        assert!(matches!(heard, Interruption::Lost(_)));
    });
}

#[test]
fn a_lock_whose_file_was_removed_starts_a_new_lineage() {
    run(async {
        let directory = Room::new();
        let holder = directory.contender();
        let old = taken(&holder).await;
        let waiter = directory.contender();
        queued(&waiter).await;
        fs::remove_file(directory.lock_file()).unwrap();
        let other = directory.contender();
        let new = taken(&other).await;
        assert_ne!(old.lineage, new.lineage);
        assert_eq!(new.token.get(), 1);

        holder.release(false).await.unwrap();
        assert!(matches!(waiter.granted().await, Err(Failure::Lost(_))));
        queued(&waiter).await;
        other.release(false).await.unwrap();
        let grant = waiter.granted().await.unwrap();
        assert_eq!((grant.token.get(), grant.lineage), (2, new.lineage));
    });
}

#[test]
fn people_see_the_holder_and_the_waiters_in_order() {
    run(async {
        let directory = Room::new();
        let looking = directory.contender();
        assert_eq!(looking.inspect().await, Ok(crate::store::contract::Queue::default()));
        let holder = directory.told("holder");
        taken(&holder).await;
        let waiters = ["one", "two", "three"].map(|command| directory.told(command));
        for waiter in &waiters {
            queued(waiter).await;
        }
        // A file without a contender, and a contender without a file.
        fs::copy(directory.0.path().join("a.1.info"), directory.0.path().join("a.99.info")).unwrap();
        fs::remove_file(directory.0.path().join("a.3.info")).unwrap();
        let queue = looking.inspect().await.unwrap();
        let shown = |c: &Contender| (c.token.unwrap(), c.command.join(" "));
        assert_eq!(queue.holder.as_ref().map(shown), Some((1, "holder".into())));
        let expected = [(2, "one".into()), (3, String::new()), (4, "three".into())];
        assert_eq!(queue.waiters.iter().map(shown).collect::<Vec<_>>(), expected);
        assert_eq!(queue.holder.unwrap().pid, 7);
    });
}

#[test]
fn the_files_of_the_living_stay() {
    run(async {
        let directory = Room::new();
        let mut record = Record::new(&name(), [1; 16]);
        record.number = 62;
        fs::write(directory.lock_file(), record.encode()).unwrap();
        let (holder, waiter) = (directory.contender(), directory.contender());
        taken(&holder).await;
        queued(&waiter).await;
        assert_eq!(directory.files(), ["a.63.info", "a.64.info", "a.lock"]);
    });
}

#[test]
fn what_crashes_leave_behind_is_bounded() {
    run(async {
        let directory = Room::new();
        let twin = LockName::parse("a.b").unwrap();
        let twin = Local::open(directory.0.path(), twin, Contender::default(), None).unwrap();
        taken(&twin).await;
        fs::write(directory.0.path().join(".a.0123456789abcdef.tmp"), "").unwrap();
        for _ in 0..300 {
            taken(&directory.contender()).await;
        }
        assert!(directory.files().len() < 70, "{:?}", directory.files());
        assert!(directory.files().contains(&"a.b.1.info".into()));
        assert!(!directory.files().contains(&".a.0123456789abcdef.tmp".into()));
    });
}
