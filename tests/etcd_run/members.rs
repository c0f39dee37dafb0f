//! Three members, of which one goes.

use crate::scene::{Journal, run, run_on};
use crate::support::etcd::{Cluster, Version, free_ports};
use crate::support::wait::{SOON, until};
use std::time::{Duration, Instant};

const LEASE: [&str; 4] = ["--ttl", "10s", "--grace", "1s"];

#[derive(Clone, Copy, Debug)]
enum Blow {
    Kill,
    Stop,
}

/// The members in the order in which a run gets them: the first is asked first.
fn survives(blow: Blow, pick: impl Fn(&Cluster) -> usize, first: impl Fn(usize) -> usize) {
    let mut cluster = Cluster::three(Version::V37);
    let target = pick(&cluster);
    let mut addresses = cluster.addresses();
    addresses.rotate_left(first(target));
    let running = run_on(&addresses).args(LEASE).script("echo started; sleep 11").spawn();
    running.prints("started");
    match blow {
        Blow::Kill => cluster.members[target].kill(),
        Blow::Stop => cluster.members[target].stop(),
    }
    let ended = running.wait(SOON).exits(0);
    eprintln!("{blow:?}: {:?}", ended.stderr);
    assert!(!ended.stderr.contains("stopping"), "{}", ended.stderr);
}

fn leader(cluster: &Cluster) -> usize {
    cluster.leader(None)
}

fn follower(cluster: &Cluster) -> usize {
    (cluster.leader(None) + 1) % 3
}

#[test]
fn the_leader_killed_while_preferred_costs_nothing() {
    survives(Blow::Kill, leader, |target| target);
}

#[test]
fn the_leader_stopped_while_preferred_costs_nothing() {
    survives(Blow::Stop, leader, |target| target);
}

#[test]
fn the_leader_stopped_while_another_is_preferred_costs_nothing() {
    survives(Blow::Stop, leader, |target| (target + 1) % 3);
}

#[test]
fn a_follower_killed_while_preferred_costs_nothing() {
    survives(Blow::Kill, follower, |target| target);
}

#[test]
fn a_follower_stopped_while_preferred_costs_nothing() {
    survives(Blow::Stop, follower, |target| target);
}

#[test]
fn a_member_that_refuses_from_the_start_is_passed_over() {
    let cluster = Cluster::single(Version::V37);
    let nobody = format!("127.0.0.1:{}", free_ports(1)[0]);
    for addresses in [[&nobody, &cluster.members[0].address], [&cluster.members[0].address, &nobody]] {
        assert_eq!(run_on(&addresses).command(["true"]).output().exits(0).stderr, "");
    }
}

#[test]
fn a_member_that_hangs_from_the_start_is_passed_over() {
    let cluster = Cluster::three(Version::V37);
    let hung = follower(&cluster);
    cluster.members[hung].stop();
    let mut addresses = cluster.addresses();
    addresses.rotate_left(hung);
    let began = Instant::now();
    assert_eq!(run_on(&addresses).args(LEASE).command(["true"]).output().exits(0).stderr, "");
    eprintln!("{:?}", began.elapsed());
}

/// The file is written by `enter` and `leave` of one run after the other; a run that reports 76 may have met another.
#[test]
fn a_leader_that_is_frozen_longer_than_an_election_and_thawed_never_lets_two_in_unreported() {
    let (cluster, journal) = (Cluster::three(Version::V37), Journal::new());
    let script = r#"note() { read up idle </proc/uptime; echo "$FENCED_TOKEN $1 $up" >>"$JOURNAL"; }
note enter; sleep 0.2; note leave"#;
    let mut lost = Vec::new();
    let mut runs: Vec<_> = (0..3).map(|_| None).collect();
    for round in 0..4 {
        let frozen = cluster.leader(None);
        cluster.members[frozen].stop();
        let began = Instant::now();
        let mut thawed = false;
        until(Duration::from_secs(6), || {
            if !thawed && began.elapsed() > Duration::from_secs(3) {
                cluster.members[frozen].thaw();
                thawed = true;
            }
            for run_slot in &mut runs {
                let Some(mut running): Option<crate::support::run::Running> = run_slot.take() else {
                    let run = run(&cluster).args(["--ttl", "3s", "--grace", "300ms", "--wait", "30s"]);
                    *run_slot = Some(journal.open(run, "x").script(script).spawn());
                    continue;
                };
                match running.ended() {
                    None => *run_slot = Some(running),
                    Some(status) if status.code() == Some(76) => lost.push(running.stderr()),
                    Some(status) => assert!(matches!(status.code(), Some(0 | 69)), "{status:?} {}", running.stderr()),
                }
            }
            None::<()>
        });
        eprintln!("round {round}: {} lines, {} lost", journal.lines().len(), lost.len());
    }
    drop(runs);
    let mut line_before: Option<(String, String)> = None;
    let mut overlaps = 0;
    for (token, word, _) in journal.lines() {
        let alternates = match (&line_before, word.as_str()) {
            (None, "enter") => true,
            (Some((_, before)), "enter") => before == "leave",
            (Some((holder, before)), _) => before == "enter" && *holder == token,
            _ => false,
        };
        overlaps += usize::from(!alternates);
        line_before = Some((token, word));
    }
    eprintln!("{overlaps} irregular lines, {} lost: {lost:?}", lost.len());
    assert!(journal.lines().len() > 20, "the lock went on");
    assert!(overlaps <= 2 * lost.len(), "{overlaps} irregular lines with {} runs lost", lost.len());
}
