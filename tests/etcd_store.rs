//! The store on real etcd servers.

mod support;

use etcd_client::{Client, GetOptions, PutOptions, SortOrder, SortTarget, Txn, TxnOp};
use fenced::etcd::credentials::Credentials;
use fenced::name::LockName;
use fenced::store::contract::{Contender, Failure, Grant, Interruption, Place, Released, Store};
use fenced::store::etcd::{self, Contention, EtcdStore};
use fenced::sys::clock;
use fenced::timing::Lease;
use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::rc::Rc;
use std::slice::from_ref;
use std::time::Duration;
use support::etcd::{Cluster, Options, Version};
use support::proxy::{Mode, Proxy};
use tokio::time::{Instant, sleep, timeout};

const PREFIX: &str = "/fenced/v1";
const SECOND: Duration = Duration::from_secs(1);
/// Longer than anything here takes, on a loaded machine as well.
const LONG: Duration = Duration::from_secs(60);

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { timeout(3 * LONG, test).await.expect("the test ends") })
}

fn store_with(addresses: &[String], lock: &str, ttl: Duration) -> EtcdStore {
    let contender = Contender { host: "here".into(), pid: 7, command: vec!["job".into()], ..Contender::default() };
    let lock = LockName::parse(lock).expect("a name");
    let contention = Contention { contender, ttl, grace: ttl / 8, curious: false, once: None };
    let plain = etcd::Cluster {
        members: addresses.to_vec(),
        prefix: PREFIX.into(),
        tls: false,
        credentials: Credentials::default(),
    };
    EtcdStore::new(plain, lock, contention).expect("a store")
}

fn store(cluster: &Cluster, lock: &str) -> EtcdStore {
    store_with(&cluster.addresses(), lock, 10 * SECOND)
}

async fn holder(store: &EtcdStore) -> Grant {
    match store.contend().await {
        Ok(Place::Granted(grant)) => grant,
        other => panic!("not granted: {other:?}"),
    }
}

async fn waiter(store: &EtcdStore) {
    assert_eq!(store.contend().await, Ok(Place::Waiting));
}

async fn client(cluster: &Cluster) -> Client {
    Client::connect([&cluster.members[0].address], None).await.expect("a client")
}

fn lease_of(grant: &Grant) -> i64 {
    let key = grant.key.as_deref().expect("a key");
    i64::from_str_radix(key.rsplit('/').next().expect("a name"), 16).expect("a lease id")
}

#[test]
fn a_free_lock_is_granted_released_and_granted_again_with_a_greater_token() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        run(async {
            let mut last = 0;
            for _ in 0..3 {
                let store = store(&cluster, "a");
                let before = clock::now();
                let grant = holder(&store).await;
                assert!(grant.token.get() > last, "{version:?}");
                last = grant.token.get();
                let lease = grant.lease.expect("a lease");
                assert_eq!(lease.ttl, 10 * SECOND);
                assert!(lease.sent >= before && !grant.confirm);
                assert!(grant.lineage.as_str().ends_with("-290ed822fede54fa"), "{}", grant.lineage);
                assert_eq!(store.release(false).await, Ok(Released::Ours));
                assert_eq!(store.release(false).await, Ok(Released::Ours), "idempotent");
            }
            let left = client(&cluster).await.get("", Some(GetOptions::new().with_all_keys())).await;
            assert_eq!(left.expect("keys").count(), 0, "nothing is left behind");
            assert!(client(&cluster).await.leases().await.expect("leases").leases().is_empty());
        });
    }
}

#[test]
fn an_uncontended_run_costs_four_calls_and_one_watch() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        run(async {
            let store = store(&cluster, "a");
            let began = Instant::now();
            holder(&store).await;
            let acquired = began.elapsed();
            assert!(timeout(Duration::from_millis(300), store.interrupted()).await.is_err(), "nothing happened");
            let began = Instant::now();
            assert_eq!(store.release(false).await, Ok(Released::Ours));
            eprintln!("{version:?}: contend {acquired:?}, release {:?}", began.elapsed());
            let member = &cluster.members[0];
            for (method, count) in
                [("LeaseGrant", 1), ("Txn", 2), ("LeaseRevoke", 1), ("Watch", 1), ("Range", 0), ("LeaseKeepAlive", 0)]
            {
                assert_eq!(member.calls(method), count, "{version:?} {method}");
            }
        });
    }
}

#[test]
fn waiters_are_served_in_the_order_in_which_they_joined() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        run(async {
            let stores: Vec<_> = (0..12).map(|_| store(&cluster, "a")).collect();
            let mut last = holder(&stores[0]).await.token;
            for waiting in &stores[1..] {
                waiter(waiting).await;
            }
            for pair in stores.windows(2) {
                let (first, second) = (&pair[0], &pair[1]);
                assert!(timeout(Duration::from_millis(20), second.granted()).await.is_err(), "not before its turn");
                let (released, granted) = tokio::join!(first.release(false), second.granted());
                assert_eq!(released, Ok(Released::Ours));
                let token = granted.expect("the lock").token;
                assert!(token > last);
                last = token;
            }
        });
    }
}

/// Every call is dropped at a random moment and made again, as often as it takes.
async fn impatiently<T>(mut call: impl AsyncFnMut() -> T) -> T {
    loop {
        if let Ok(done) = timeout(Duration::from_micros(fastrand::u64(100..6000)), call()).await {
            return done;
        }
    }
}

#[test]
fn calls_that_are_dropped_anywhere_and_repeated_never_let_two_in_and_tokens_only_rise() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        let (inside, last, entries) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        run(async {
            let tasks = tokio::task::LocalSet::new();
            for _ in 0..6 {
                let addresses = cluster.addresses();
                let (inside, last, entries) = (inside.clone(), last.clone(), entries.clone());
                tasks.spawn_local(async move {
                    for _ in 0..10 {
                        let store = store_with(&addresses, "a", 60 * SECOND);
                        let grant = match impatiently(async || store.contend().await.expect("a place")).await {
                            Place::Granted(grant) => grant,
                            Place::Waiting | Place::Done => {
                                impatiently(async || store.granted().await.expect("the lock")).await
                            }
                        };
                        assert_eq!(inside.replace(1), 0, "alone");
                        assert!(grant.token.get() > last.replace(grant.token.get()), "{grant:?}");
                        sleep(Duration::from_millis(1)).await;
                        inside.set(0);
                        assert_eq!(impatiently(async || store.release(false).await).await, Ok(Released::Ours));
                        entries.set(entries.get() + 1);
                    }
                });
            }
            tasks.await;
        });
        assert_eq!(entries.get(), 60, "{version:?}");
    }
}

#[test]
fn a_contention_that_is_repeated_finds_the_same_place() {
    let cluster = Cluster::single(Version::V37);
    run(async {
        let (first, second, third) = (store(&cluster, "a"), store(&cluster, "a"), store(&cluster, "a"));
        let grant = holder(&first).await;
        assert_eq!(holder(&first).await.token, grant.token, "a holder stays the holder");
        waiter(&second).await;
        waiter(&third).await;
        waiter(&second).await;
        assert_eq!(first.release(false).await, Ok(Released::Ours));
        second.granted().await.expect("the second is next, though it asked again after the third");
    });
}

#[test]
fn a_waiter_that_asks_again_after_the_holder_left_is_granted_at_once() {
    let cluster = Cluster::single(Version::V37);
    run(async {
        let (first, second) = (store(&cluster, "a"), store(&cluster, "a"));
        holder(&first).await;
        waiter(&second).await;
        assert_eq!(first.release(false).await, Ok(Released::Ours));
        holder(&second).await;
    });
}

#[test]
fn a_grant_whose_answer_is_lost_is_found_again_and_its_lease_counts_from_the_first_try() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        let proxy = Proxy::before(&cluster.members[0].address);
        run(async {
            let store = store_with(from_ref(&proxy.address), "a", 10 * SECOND);
            proxy.set(Mode::DropReplies);
            let before = clock::now();
            assert!(matches!(store.contend().await, Err(Failure::Unavailable(_))));
            let after = clock::now();
            proxy.set(Mode::Pass);
            let grant = holder(&store).await;
            let sent = grant.lease.expect("a lease").sent;
            assert!(before <= sent && sent < after, "{version:?}");
            assert!(grant.confirm, "its ttl was never told");
            assert_eq!(store.renew().await.expect("a lease").ttl, 10 * SECOND);
        });
    }
}

#[test]
fn an_enqueue_whose_answer_is_lost_leaves_a_holder_the_holder() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        let proxy = Proxy::before(&cluster.members[0].address);
        run(async {
            let store = store_with(from_ref(&proxy.address), "a", 60 * SECOND);
            // A dropped call in mid-way: the lease is there, the enqueue's answer is lost.
            proxy.set(Mode::Delay(Duration::from_millis(300)));
            let contend = async {
                let outcome = timeout(LONG, store.contend()).await;
                assert!(matches!(outcome, Ok(Err(Failure::Unavailable(_)))), "{outcome:?}");
            };
            let cut = async {
                while cluster.members[0].calls("Txn") == 0 {
                    sleep(Duration::from_millis(1)).await;
                }
                proxy.set(Mode::DropReplies);
            };
            tokio::join!(contend, cut);
            proxy.set(Mode::Pass);
            let grant = holder(&store).await;
            let mut client = client(&cluster).await;
            let found = client.get(grant.key.clone().expect("a key"), None).await.expect("a read");
            assert_eq!(found.kvs()[0].create_revision(), grant.token.get());
            assert_eq!(found.kvs()[0].version(), 1, "written once");
        });
    }
}

#[test]
fn a_lease_counts_from_before_its_request_was_sent() {
    let cluster = Cluster::single(Version::V37);
    let proxy = Proxy::before(&cluster.members[0].address);
    run(async {
        let delay = Duration::from_millis(150);
        proxy.set(Mode::Delay(delay));
        let store = store_with(from_ref(&proxy.address), "a", 30 * SECOND);
        let before = clock::now();
        let granted = holder(&store).await.lease.expect("a lease");
        assert!(granted.sent.since(before) < delay * 2, "no answer had come by then");
        // On a busy machine an attempt of three slow round trips may be over before its answers are here.
        let (before, renewed) = loop {
            let before = clock::now();
            match store.renew().await {
                Ok(lease) => break (before, lease),
                Err(failure) => assert!(matches!(failure, Failure::Unavailable(_)), "{failure:?}"),
            }
        };
        assert!(renewed.sent >= before && renewed.sent.since(before) < delay * 2, "no answer had come by then");
    });
}

#[test]
fn a_waiter_whose_key_went_together_with_the_one_before_it_does_not_enter() {
    let cluster = Cluster::single(Version::V37);
    run(async {
        let (first, second, third) = (store(&cluster, "a"), store(&cluster, "a"), store(&cluster, "a"));
        holder(&first).await;
        waiter(&second).await;
        waiter(&third).await;
        let delete = async {
            sleep(Duration::from_millis(200)).await;
            let mut client = client(&cluster).await;
            let oldest_first = GetOptions::new().with_prefix().with_sort(SortTarget::Create, SortOrder::Ascend);
            let queue = client.get(queue_key("a"), Some(oldest_first)).await.expect("keys");
            let both: Vec<_> = queue.kvs()[..2].iter().map(|key| TxnOp::delete(key.key(), None)).collect();
            client.txn(Txn::new().and_then(both)).await.expect("deleted");
        };
        let (lost, ()) = tokio::join!(second.granted(), delete);
        assert!(matches!(lost, Err(Failure::Lost(_))), "{lost:?}");
        third.granted().await.expect("the lock");
    });
}

#[test]
fn a_lease_has_the_ttl_that_the_store_granted_not_the_one_that_was_asked_for() {
    let cluster = Cluster::start(&Options { election_ms: 2000, ..Options::default() });
    run(async {
        let store = store_with(&cluster.addresses(), "a", SECOND);
        let granted = holder(&store).await.lease.expect("a lease");
        assert!(granted.ttl > SECOND, "etcd has a floor: {granted:?}");
        assert_eq!(store.renew().await.expect("a lease").ttl, granted.ttl);
    });
}

#[test]
fn a_waiter_gets_the_lock_when_the_lease_before_it_ends() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        run(async {
            let (first, second) = (store_with(&cluster.addresses(), "a", 2 * SECOND), store(&cluster, "a"));
            let lease = holder(&first).await.lease.expect("a lease");
            waiter(&second).await;
            drop(first);
            second.granted().await.expect("the lock");
            assert!(clock::now() >= lease.sent + lease.ttl, "{version:?}: not before the lease's end");
        });
    }
}

#[test]
fn a_waiter_that_gives_up_or_dies_in_the_middle_of_the_queue_holds_nobody_up() {
    let cluster = Cluster::single(Version::V37);
    run(async {
        let first = store(&cluster, "a");
        let leaver = store(&cluster, "a");
        let dying = store_with(&cluster.addresses(), "a", 2 * SECOND);
        let last = store(&cluster, "a");
        holder(&first).await;
        for waiting in [&leaver, &dying, &last] {
            waiter(waiting).await;
        }
        assert_eq!(leaver.withdraw().await, Ok(()));
        assert_eq!(leaver.withdraw().await, Ok(()), "idempotent");
        drop(dying);
        assert!(timeout(4 * SECOND, last.granted()).await.is_err(), "the first still holds");
        assert_eq!(first.release(false).await, Ok(Released::Ours));
        last.granted().await.expect("the lock");
    });
}

#[test]
fn giving_up_leaves_neither_key_nor_lease() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        run(async {
            let (first, second) = (store(&cluster, "a"), store(&cluster, "a"));
            holder(&first).await;
            waiter(&second).await;
            assert!(timeout(Duration::from_millis(50), second.granted()).await.is_err());
            assert_eq!(second.withdraw().await, Ok(()));
            assert_eq!(first.withdraw().await, Ok(()), "a grant that is not used");
            let mut client = client(&cluster).await;
            let left = client.get("", Some(GetOptions::new().with_all_keys())).await.expect("keys");
            assert_eq!(left.count(), 0, "{version:?}");
            assert!(client.leases().await.expect("leases").leases().is_empty());
            let unused = store(&cluster, "a");
            assert_eq!(unused.withdraw().await, Ok(()));
        });
    }
}

#[test]
fn a_waiter_keeps_its_lease_alive_for_longer_than_its_ttl() {
    let cluster = Cluster::single(Version::V37);
    run(async {
        let (first, second) = (store(&cluster, "a"), store_with(&cluster.addresses(), "a", 2 * SECOND));
        holder(&first).await;
        waiter(&second).await;
        assert!(timeout(5 * SECOND, second.granted()).await.is_err(), "still held");
        assert_eq!(first.release(false).await, Ok(Released::Ours));
        let lease = second.granted().await.expect("the lock").lease.expect("a lease");
        assert!(clock::now() < lease.sent + lease.ttl, "the grant rests on the last renewal");
    });
}

#[test]
fn a_waiter_whose_lease_was_revoked_is_told_and_joins_anew_at_the_end() {
    let cluster = Cluster::single(Version::V37);
    run(async {
        let (first, second, third) = (store(&cluster, "a"), store(&cluster, "a"), store(&cluster, "a"));
        let grant = holder(&first).await;
        waiter(&second).await;
        waiter(&third).await;
        let queue = client(&cluster).await.get(queue_key("a"), Some(GetOptions::new().with_prefix())).await;
        let waiting: Vec<_> = queue.expect("keys").kvs().iter().map(etcd_client::KeyValue::lease).collect();
        let revoke = async {
            sleep(Duration::from_millis(50)).await;
            for lease in waiting {
                if lease != lease_of(&grant) {
                    client(&cluster).await.lease_revoke(lease).await.expect("revoked");
                }
            }
        };
        let (lost, ()) = tokio::join!(second.granted(), revoke);
        assert!(matches!(lost, Err(Failure::Lost(_))), "{lost:?}");
        waiter(&second).await;
        assert_eq!(first.release(false).await, Ok(Released::Ours));
        assert!(matches!(third.granted().await, Err(Failure::Lost(_))));
        second.granted().await.expect("the lock");
    });
}

#[test]
fn a_waiter_that_is_woken_without_reason_does_not_enter() {
    let cluster = Cluster::single(Version::V37);
    run(async {
        let (first, second) = (store(&cluster, "a"), store(&cluster, "a"));
        let grant = holder(&first).await;
        waiter(&second).await;
        let mut client = client(&cluster).await;
        let queue = client.get(queue_key("a"), Some(GetOptions::new().with_prefix())).await.expect("keys");
        let own = queue.kvs().iter().find(|k| k.lease() != lease_of(&grant)).expect("the waiter's").clone();
        let touch = async {
            for _ in 0..5 {
                sleep(Duration::from_millis(30)).await;
                let same = Some(PutOptions::new().with_lease(own.lease()));
                client.put(own.key(), own.value(), same).await.expect("a put");
            }
        };
        let both = async { tokio::join!(second.granted(), touch) };
        assert!(timeout(SECOND, both).await.is_err(), "the first still holds");
        assert!(first.renew().await.is_ok());
    });
}

#[test]
fn a_key_that_was_deleted_under_a_living_lease_is_lost_whatever_the_keepalive_says() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        run(async {
            let store = store(&cluster, "a");
            let grant = holder(&store).await;
            assert!(store.renew().await.is_ok());
            client(&cluster).await.delete(grant.key.clone().expect("a key"), None).await.expect("deleted");
            let lost = store.renew().await;
            assert!(matches!(lost, Err(Failure::Lost(_))), "{version:?} {lost:?}");
            let told = store.interrupted().await;
            assert!(matches!(told, Interruption::Lost(_)), "also when it was deleted before the watch began");
            assert!(matches!(store.release(false).await, Ok(Released::NotOurs(_))));
        });
    }
}

#[test]
fn a_revoked_lease_interrupts_the_holder_at_once() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        run(async {
            let store = store(&cluster, "a");
            let grant = holder(&store).await;
            let revoke = async {
                sleep(Duration::from_millis(100)).await;
                client(&cluster).await.lease_revoke(lease_of(&grant)).await.expect("revoked");
                Instant::now()
            };
            let (told, revoked) = tokio::join!(store.interrupted(), revoke);
            eprintln!("{version:?}: told {:?} after the revoke", revoked.elapsed());
            assert!(matches!(told, Interruption::Lost(_)));
            assert!(matches!(store.renew().await, Err(Failure::Lost(_))), "{version:?}");
            assert!(matches!(store.release(false).await, Ok(Released::NotOurs(_))));
        });
    }
}

#[test]
fn a_put_on_the_holders_key_is_an_eviction_or_a_loss_and_one_that_asks_for_nothing_is_neither() {
    let cluster = Cluster::single(Version::V37);
    run(async {
        let mut client = client(&cluster).await;
        let store = store(&cluster, "a");
        let grant = holder(&store).await;
        let key = grant.key.clone().expect("a key");
        let same = Some(PutOptions::new().with_lease(lease_of(&grant)));
        client.put(key.as_str(), "{}", same.clone()).await.expect("a put");
        assert!(timeout(Duration::from_millis(200), store.interrupted()).await.is_err(), "nothing is asked for");

        client.put(key.as_str(), r#"{"evict":"root on b: deploy"}"#, same).await.expect("a put");
        assert_eq!(store.interrupted().await, Interruption::Evicted("root on b: deploy".into()));
        assert!(store.renew().await.is_ok(), "asked to leave, but still the holder");

        let other = client.lease_grant(60, None).await.expect("a lease").id();
        client.put(key.as_str(), "", Some(PutOptions::new().with_lease(other))).await.expect("a put");
        assert!(matches!(store.interrupted().await, Interruption::Lost(_)));
        assert!(matches!(store.renew().await, Err(Failure::Lost(_))));
        assert!(matches!(store.release(false).await, Ok(Released::NotOurs(_))));
        let left = client.get(key, None).await.expect("a read");
        assert_eq!(left.count(), 1, "what is not ours is not deleted");
    });
}

#[test]
fn a_key_that_somebody_made_anew_is_not_released() {
    let cluster = Cluster::single(Version::V37);
    run(async {
        let mut client = client(&cluster).await;
        let store = store(&cluster, "a");
        let grant = holder(&store).await;
        let key = grant.key.clone().expect("a key");
        client.delete(key.as_str(), None).await.expect("deleted");
        let same = Some(PutOptions::new().with_lease(lease_of(&grant)));
        client.put(key.as_str(), "", same).await.expect("a put");
        assert!(matches!(store.renew().await, Err(Failure::Lost(_))));
        assert!(matches!(store.release(false).await, Ok(Released::NotOurs(_))));
    });
}

#[test]
fn a_compacted_history_hides_neither_a_loss_nor_what_comes_after() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        run(async {
            let mut client = client(&cluster).await;
            let store = store(&cluster, "a");
            let grant = holder(&store).await;
            let mut compact = async || {
                for n in 0..5 {
                    client.put("noise", format!("{n}"), None).await.expect("a put");
                }
                let now = client.get("noise", None).await.expect("a read").header().expect("a header").revision();
                client.compact(now, None).await.expect("compacted");
            };
            compact().await;
            let delete = async {
                sleep(Duration::from_millis(500)).await;
                let mut client = crate::client(&cluster).await;
                client.delete(grant.key.clone().expect("a key"), None).await.expect("deleted");
            };
            let (told, ()) = tokio::join!(store.interrupted(), delete);
            assert!(matches!(told, Interruption::Lost(_)), "{version:?}");
            compact().await;
            assert!(matches!(store.interrupted().await, Interruption::Lost(_)), "{version:?}");
        });
    }
}

#[test]
fn a_release_whose_answer_is_lost_counts_as_released() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        let proxy = Proxy::before(&cluster.members[0].address);
        run(async {
            let store = store_with(from_ref(&proxy.address), "a", 10 * SECOND);
            holder(&store).await;
            proxy.drop_replies_of_open_connections();
            assert_eq!(store.release(false).await, Ok(Released::Ours), "{version:?}");
        });
    }
}

#[test]
fn a_key_that_was_gone_before_any_release_was_sent_is_never_reported_as_released() {
    let mut cluster = Cluster::single(Version::V37);
    run(async {
        let store = store_with(&cluster.addresses(), "a", 60 * SECOND);
        let grant = holder(&store).await;
        // Under a living lease, as a release of ours would leave it.
        client(&cluster).await.delete(grant.key.clone().expect("a key"), None).await.expect("deleted");
        cluster.members[0].kill();
        assert!(matches!(store.renew().await, Err(Failure::Unavailable(_))), "the connection is given up");
        // Refused by the kernel: these tries carry nothing anywhere.
        assert!(matches!(store.release(false).await, Err(Failure::Unavailable(_))));
        cluster.members[0].restart();
        let found = store.release(false).await;
        assert!(matches!(found, Ok(Released::NotOurs(_))), "{found:?}");
    });
}

#[test]
fn a_release_without_a_store_ends_in_time_and_says_so() {
    let mut cluster = Cluster::single(Version::V37);
    run(async {
        let store = store(&cluster, "a");
        holder(&store).await;
        cluster.members[0].stop();
        let began = Instant::now();
        let failed = store.release(false).await;
        assert!(matches!(failed, Err(Failure::Unavailable(_))), "{failed:?}");
        assert!(began.elapsed() < 15 * SECOND);
        cluster.members[0].kill();
    });
}

#[test]
fn locks_whose_names_begin_alike_do_not_exclude_each_other() {
    let cluster = Cluster::single(Version::V37);
    run(async {
        let stores = ["a", "a/b", "a%2Fb", "ab"].map(|name| store(&cluster, name));
        for store in &stores {
            holder(store).await;
        }
    });
}

#[test]
fn the_queue_is_shown_with_who_holds_and_who_waits() {
    let cluster = Cluster::single(Version::V37);
    run(async {
        let (first, second) = (store(&cluster, "a"), store(&cluster, "a"));
        let nobody = first.inspect().await.expect("a queue");
        assert_eq!((nobody.holder, nobody.waiters), (None, vec![]));
        let token = holder(&first).await.token.get();
        waiter(&second).await;
        let queue = second.inspect().await.expect("a queue");
        let shown = queue.holder.expect("a holder");
        assert_eq!((shown.token, shown.host.as_str(), shown.pid), (Some(token), "here", 7));
        assert_eq!(queue.waiters.len(), 1);
    });
}

#[test]
fn the_url_is_the_same_for_every_order_of_members() {
    let url = |addresses: &[&str]| {
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        store_with(&addresses, "a", SECOND).url()
    };
    assert_eq!(url(&["b:2379", "a:2379"]), "etcd://a:2379,b:2379/fenced/v1");
    assert_eq!(url(&["a:2379", "b:2379"]), url(&["b:2379", "a:2379"]));
}

#[test]
fn members_that_cannot_be_used_are_named_each_with_its_reason() {
    let web = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let web_address = web.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in web.incoming().flatten() {
            let mut stream = stream;
            // The client's preface and its request have arrived by then.
            std::thread::sleep(Duration::from_millis(100));
            let _ = stream.read(&mut [0; 4096]);
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").ok();
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_address = silent.local_addr().expect("an address").to_string();
    let closed = format!("127.0.0.1:{}", support::etcd::free_ports(1)[0]);
    run(async {
        let addresses = [closed.clone(), silent_address.clone(), web_address.clone(), "no-such-host.invalid:1".into()];
        let store = store_with(&addresses, "a", 4 * SECOND);
        let Err(Failure::Unavailable(why)) = store.contend().await else { panic!("contended") };
        eprintln!("{why}");
        for part in [
            format!("{closed}: connection refused"),
            format!("{silent_address}: no answer within 1s"),
            format!("{web_address}: it wants TLS (use etcds://), or is no etcd server"),
            "no-such-host.invalid:1: the host name was not found".into(),
        ] {
            assert!(why.contains(&part), "{part} | {why}");
        }
    });
}

#[test]
fn a_store_that_wants_a_user_says_which_flag_gives_one() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        for arguments in [&["user", "add", "root:x"][..], &["user", "grant-role", "root", "root"], &["auth", "enable"]]
        {
            assert!(cluster.etcdctl(arguments).status.success(), "{arguments:?}");
        }
        run(async {
            let failed = store(&cluster, "a").contend().await;
            let Err(Failure::Refused(why)) = &failed else { panic!("{version:?}: {failed:?}") };
            assert!(why.contains("--user"), "{why}");
        });
    }
}

#[test]
fn a_dead_member_is_passed_over_and_one_that_returns_is_used_again() {
    let mut cluster = Cluster::three(Version::V37);
    run(async {
        cluster.members[0].kill();
        let store = store(&cluster, "a");
        holder(&store).await;
        assert!(store.renew().await.is_ok());
        cluster.members[0].restart();
        cluster.members[1].kill();
        let renewed = retried(&store).await;
        assert!(renewed.ttl > Duration::ZERO);
        assert_eq!(store.release(false).await, Ok(Released::Ours));
    });
}

/// Renews until it works, as a holder would.
async fn retried(store: &EtcdStore) -> Lease {
    let until = Instant::now() + LONG;
    loop {
        match store.renew().await {
            Ok(lease) => return lease,
            Err(Failure::Unavailable(_)) if Instant::now() < until => sleep(Duration::from_millis(50)).await,
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_member_that_hangs_costs_one_attempt_and_the_watch_moves_on_with_the_renewals() {
    let cluster = Cluster::three(Version::V37);
    run(async {
        // Not the one that leads, so that no election comes into it.
        let hung = (cluster.leader(None) + 1) % 3;
        let mut addresses = cluster.addresses();
        addresses.rotate_left(hung);
        let store = store_with(&addresses, "a", 10 * SECOND);
        let grant = holder(&store).await;
        cluster.members[hung].stop();
        let beats = async {
            let began = Instant::now();
            let failed = store.renew().await;
            assert!(matches!(failed, Err(Failure::Unavailable(_))), "{failed:?}");
            assert!(began.elapsed() < 5 * SECOND);
            assert!(store.renew().await.is_ok(), "the next one is asked");
            sleep(Duration::from_millis(500)).await;
            let other = Client::connect([&addresses[1]], None).await;
            other.expect("a client").lease_revoke(lease_of(&grant)).await.expect("revoked");
        };
        let (told, ()) = tokio::join!(timeout(LONG, store.interrupted()), beats);
        assert!(matches!(told, Ok(Interruption::Lost(_))), "{told:?}");
        cluster.members[hung].thaw();
    });
}

#[test]
fn a_waiter_keeps_its_place_through_an_outage_of_the_store() {
    let mut cluster = Cluster::single(Version::V37);
    run(async {
        let (first, second, third) = (store(&cluster, "a"), store(&cluster, "a"), store(&cluster, "a"));
        holder(&first).await;
        waiter(&second).await;
        waiter(&third).await;
        cluster.members[0].kill();
        let failed = second.granted().await;
        assert!(matches!(failed, Err(Failure::Unavailable(_))), "{failed:?}");
        assert!(matches!(second.contend().await, Err(Failure::Unavailable(_))));
        cluster.members[0].restart();
        waiter(&second).await;
        assert_eq!(first.release(false).await, Ok(Released::Ours));
        second.granted().await.expect("the lock");
        assert!(timeout(Duration::from_millis(200), third.granted()).await.is_err());
    });
}

#[test]
fn a_waiter_behind_a_cut_connection_reports_it_and_a_waiting_watch_on_a_hung_member_is_replaced() {
    let cluster = Cluster::three(Version::V37);
    let proxy = Proxy::before(&cluster.members[0].address);
    run(async {
        let first = store(&cluster, "a");
        holder(&first).await;
        let addresses = [proxy.address.clone(), cluster.members[1].address.clone()];
        let second = store_with(&addresses, "a", 4 * SECOND);
        waiter(&second).await;
        assert!(timeout(Duration::from_millis(300), second.granted()).await.is_err());
        let cut = async {
            sleep(Duration::from_millis(300)).await;
            proxy.set(Mode::Cut);
            sleep(6 * SECOND).await;
            assert_eq!(first.release(false).await, Ok(Released::Ours));
        };
        let (granted, ()) = tokio::join!(second.granted(), cut);
        granted.expect("by way of the other member");
    });
}

fn queue_key(lock: &str) -> String {
    format!("{PREFIX}/q/{lock}/")
}

#[test]
fn fenced_waits_for_etcdctl_and_etcdctl_waits_for_fenced() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        let name = format!("{PREFIX}/q/a");
        // etcdctl swallows SIGTERM, so its command ends when a file does.
        let files = tempfile::tempdir().expect("a temporary directory");
        let hold = |file: &str| {
            let path = files.path().join(file);
            std::fs::write(&path, "").expect("a file");
            let script = format!("while [ -e {} ]; do sleep 0.02; done", path.display());
            let mut command = cluster.etcdctl_command(&["lock", &name, "--", "sh", "-c", &script]);
            command.stdout(std::process::Stdio::null()).spawn().expect("etcdctl is installed")
        };
        let end = |file: &str, mut holder: std::process::Child| {
            std::fs::remove_file(files.path().join(file)).expect("a file");
            assert!(holder.wait().expect("it ends").success());
        };
        run(async {
            let mut client = client(&cluster).await;
            let mut count =
                async || client.get(queue_key("a"), Some(GetOptions::new().with_prefix())).await.expect("keys").count();
            // etcdctl first, fenced second, etcdctl third.
            let theirs = hold("theirs");
            while count().await < 1 {
                sleep(Duration::from_millis(10)).await;
            }
            let ours = store(&cluster, "a");
            waiter(&ours).await;
            let later = hold("later");
            while count().await < 3 {
                sleep(Duration::from_millis(10)).await;
            }
            assert!(timeout(Duration::from_millis(300), ours.granted()).await.is_err(), "etcdctl holds");
            let queue = ours.inspect().await.expect("a queue");
            assert_eq!((queue.holder.expect("etcdctl").host.as_str(), queue.waiters.len()), ("", 2));
            end("theirs", theirs);
            let grant = ours.granted().await.expect("the lock");
            sleep(Duration::from_millis(300)).await;
            assert_eq!(ours.inspect().await.expect("a queue").holder.expect("us").token, Some(grant.token.get()));
            assert_eq!(ours.release(false).await, Ok(Released::Ours));
            assert_eq!(count().await, 1, "etcdctl holds now");
            end("later", later);
        });
    }
}

#[test]
fn a_leader_that_was_frozen_past_an_election_renews_nothing_that_is_not_so() {
    for version in [Version::V34, Version::V37].into_iter().filter(|v| Version::all().contains(v)) {
        let cluster = Cluster::three(version);
        run(async {
            let frozen = cluster.leader(None);
            let mut addresses = cluster.addresses();
            addresses.rotate_left(frozen);
            let mut client = Client::connect([&addresses[1]], None).await.expect("a client");
            let stores: Vec<_> = (0..16).map(|n| store_with(&addresses[..1], &format!("l{n}"), 6 * SECOND)).collect();
            for store in &stores {
                holder(store).await;
            }
            for store in &stores {
                store.renew().await.expect("a lease");
            }
            cluster.members[frozen].stop();
            cluster.leader(Some(frozen));
            sleep(2 * SECOND).await;
            let tasks = tokio::task::LocalSet::new();
            let claims = Rc::new(RefCell::new(Vec::new()));
            for store in stores {
                let claims = claims.clone();
                tasks.spawn_local(async move {
                    // Only the first answer counts: it is the one that the frozen leader may get wrong.
                    if let Ok(lease) = store.renew().await {
                        claims.borrow_mut().push((store.lock().as_str().to_owned(), lease));
                    }
                });
            }
            tasks.spawn_local({
                let pid = cluster.members[frozen].pid();
                async move {
                    sleep(Duration::from_millis(200)).await;
                    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).expect("it runs");
                }
            });
            tasks.await;
            let claims = claims.take();
            eprintln!("{version:?}: {} of 16 renewals were proven", claims.len());
            for (lock, lease) in claims {
                let end = lease.sent + lease.ttl - Duration::from_millis(100);
                loop {
                    let before = clock::now();
                    let there = client.get(queue_key(&lock), Some(GetOptions::new().with_prefix())).await;
                    assert!(
                        clock::now() >= end || there.expect("a read").count() == 1,
                        "{lock} ended before {lease:?}"
                    );
                    if before >= end {
                        break;
                    }
                    sleep(Duration::from_millis(20)).await;
                }
            }
        });
    }
}
