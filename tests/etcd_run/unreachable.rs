//! A store that cannot be asked is 69, a held lock is 75, and neither is ever taken for the other.

use crate::scene::{run, run_on};
use crate::support::etcd::{Cluster, Version, free_ports};
use crate::support::proxy::{Mode, Proxy};
use crate::support::wait::SOON;
use std::time::{Duration, Instant};

#[test]
fn a_store_that_cannot_be_reached_is_69_within_the_wait_and_each_member_has_its_reason() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = (silent.local_addr().unwrap().to_string(), silent).0;
    let hung = Cluster::single(Version::V37);
    hung.members[0].stop();
    let members = [&silent, &hung.members[0].address];
    let began = Instant::now();
    let ended = run_on(&members).args(["--wait", "6s"]).command(["true"]).output().exits(69);
    let took = began.elapsed();
    eprintln!("{took:?}: {}", ended.stderr);
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(9), "{took:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for member in members {
        assert!(ended.stderr.contains(&format!("{member}: ")), "{member} is not in {}", ended.stderr);
    }
    assert!(ended.stderr.contains("refused") && ended.stderr.contains("no answer within"), "{}", ended.stderr);
}

#[test]
fn a_store_that_cannot_be_reached_is_69_soon_without_a_wait() {
    let cluster = Cluster::single(Version::V37);
    let proxy = Proxy::before(&cluster.members[0].address);
    let nobody = format!("127.0.0.1:{}", free_ports(1)[0]);
    for mode in [Mode::Cut, Mode::DropReplies, Mode::Refuse] {
        proxy.set(mode);
        for address in [&proxy.address, &nobody] {
            let began = Instant::now();
            let ended = run_on(&[address]).args(["-n"]).command(["true"]).output().exits(69);
            eprintln!("{mode:?} {:?}: {}", began.elapsed(), ended.stderr);
            assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
            assert!(ended.stderr.contains(address.as_str()) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
        }
    }
}

#[test]
fn a_held_lock_is_75_also_when_the_store_is_slow() {
    let cluster = Cluster::single(Version::V37);
    let holder = run(&cluster).script("echo in; sleep 60").spawn();
    holder.prints("in");
    let proxy = Proxy::before(&cluster.members[0].address);
    for delay in [0, 50, 100] {
        proxy.set(Mode::Delay(Duration::from_millis(delay)));
        for wait in ["0", "1s"] {
            let ended = run_on(&[&proxy.address]).args(["--wait", wait]).command(["true"]).output().exits(75);
            assert!(ended.stderr.contains("lock a: held by ") && ended.stderr.contains("gave up"), "{}", ended.stderr);
        }
    }
}

#[test]
fn a_store_that_goes_away_while_a_run_waits_is_69() {
    let cluster = Cluster::single(Version::V37);
    let holder = run(&cluster).args(["--ttl", "60s"]).script("echo in; sleep 60").spawn();
    holder.prints("in");
    for mode in [Mode::Cut, Mode::DropReplies, Mode::Hold, Mode::Refuse] {
        let proxy = Proxy::before(&cluster.members[0].address);
        let waiter = run_on(&[&proxy.address]).args(["-v", "--ttl", "60s", "--wait", "4s"]).command(["true"]).spawn();
        waiter.says("waiting");
        proxy.set(mode);
        let ended = waiter.wait(SOON);
        eprintln!("{mode:?}: {}", ended.stderr.lines().last().unwrap_or_default());
        let ended = ended.exits(69);
        assert!(ended.stderr.lines().last().unwrap().contains(&proxy.address), "{}", ended.stderr);
    }
}

#[test]
fn a_minority_of_the_members_is_an_outage() {
    let mut cluster = Cluster::three(Version::V37);
    let holder = run(&cluster).args(["--ttl", "60s"]).script("echo in; sleep 60").spawn();
    holder.prints("in");
    let waiter = run(&cluster).args(["-v", "--wait", "8s"]).command(["true"]).spawn();
    waiter.says("waiting");
    cluster.members[1].kill();
    cluster.members[2].kill();
    let ended = waiter.wait(SOON + SOON).exits(69);
    eprintln!("{}", ended.stderr);
    run(&cluster).args(["-n"]).command(["true"]).output().exits(69);
}
