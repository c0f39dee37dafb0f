//! The queue: its order, leaving it, and sharing it with etcdctl.

use crate::scene::{Journal, holder, keys, now, queue_of, run, run_on};
use crate::support::etcd::{Cluster, Version};
use crate::support::proxy::{Mode, Proxy};
use crate::support::run::Running;
use crate::support::wait::{SOON, eventually, throughout};
use nix::sys::signal::Signal;
use std::process::Stdio;
use std::time::Duration;

const HOLD: &str = "echo in; read line";
const NOTE: &str = r#"read up idle </proc/uptime; echo "$NAME in $up" >>"$JOURNAL""#;

fn holds(cluster: &Cluster) -> Running {
    let holder = run(cluster).script(HOLD).stdin(Stdio::piped()).spawn();
    holder.prints("in");
    holder
}

fn count(cluster: &Cluster) -> usize {
    keys(&cluster.members[0].address, "a").len()
}

#[test]
fn waiters_are_served_in_the_order_in_which_they_came() {
    let (cluster, journal) = (Cluster::single(Version::V37), Journal::new());
    let holder = holds(&cluster);
    let names = ["1", "2", "3", "4", "5"];
    let waiters: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(before, name)| {
            let waiter = journal.open(run(&cluster), name).script(NOTE).spawn();
            eventually(SOON, || count(&cluster) == before + 2);
            waiter
        })
        .collect();
    holder.signal(Signal::SIGTERM);
    for waiter in waiters {
        assert_eq!(waiter.wait(SOON).exits(0).stderr, "");
    }
    let lines = journal.lines();
    let order: Vec<_> = lines.iter().map(|line| line.0.as_str()).collect();
    assert_eq!(order, names);
    eprintln!("5 hand-overs in {} ms", lines[4].2 - lines[0].2);
}

#[test]
fn forty_runs_at_once_enter_one_after_the_other_with_increasing_tokens_and_leave_nothing() {
    let (cluster, journal) = (Cluster::single(Version::V37), Journal::new());
    let script =
        r#"note() { read up idle </proc/uptime; echo "$FENCED_TOKEN $1 $up" >>"$JOURNAL"; }; note in; note out"#;
    let runs: Vec<_> = (0..40).map(|_| journal.open(run(&cluster), "").script(script).spawn()).collect();
    for run in runs {
        assert_eq!(run.wait(SOON + SOON).exits(0).stderr, "");
    }
    let lines = journal.lines();
    assert_eq!(lines.len(), 80);
    let mut newest = 0;
    for pair in lines.chunks(2) {
        let token = pair[0].0.parse::<u64>().unwrap();
        assert!(token > newest && pair[1].0 == pair[0].0, "{lines:?}");
        assert_eq!((pair[0].1.as_str(), pair[1].1.as_str()), ("in", "out"));
        newest = token;
    }
    assert_eq!(count(&cluster), 0);
    assert_eq!(cluster.etcdctl(&["lease", "list"]).stdout, b"found 0 leases\n");
}

#[test]
fn giving_up_leaves_nothing_in_the_queue() {
    let cluster = Cluster::single(Version::V37);
    let _holder = holds(&cluster);
    run(&cluster).args(["-n"]).command(["true"]).output().exits(75);
    run(&cluster).args(["--wait", "300ms"]).command(["true"]).output().exits(75);
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let waiter = run(&cluster).args(["-v"]).command(["true"]).spawn();
        waiter.says("waiting");
        assert_eq!(count(&cluster), 2);
        waiter.signal(signal);
        assert_eq!(waiter.wait(SOON).signal(), Some(signal as i32));
        assert_eq!(count(&cluster), 1);
    }
    assert_eq!(count(&cluster), 1);
    assert!(cluster.etcdctl(&["lease", "list"]).stdout.starts_with(b"found 1 leases"));
}

#[test]
fn a_waiter_killed_in_the_middle_costs_its_own_lease_and_no_ones_place() {
    let (cluster, journal) = (Cluster::single(Version::V37), Journal::new());
    let holder = holds(&cluster);
    let mut waiters = Vec::new();
    for name in ["1", "2", "3"] {
        let run = run(&cluster).args(["-v", "--ttl", "3s", "--grace", "300ms"]);
        waiters.push(journal.open(run, name).script(NOTE).spawn());
        waiters.last().unwrap().says("waiting");
    }
    waiters[1].signal(Signal::SIGKILL);
    let since = now();
    holder.signal(Signal::SIGTERM);
    waiters.remove(2).wait(SOON).exits(0);
    let order: Vec<_> = journal.lines().into_iter().map(|line| line.0).collect();
    assert_eq!(order, ["1", "3"]);
    eprintln!("the third was in {} ms after the second died", journal.times("3", "in")[0] - since);
}

#[test]
fn etcdctl_waits_for_fenced_and_fenced_for_etcdctl() {
    let (cluster, journal) = (Cluster::single(Version::V37), Journal::new());
    let name = queue_of("a");
    let name = name.trim_end_matches('/');
    let first = holds(&cluster);
    let mark = crate::support::processes::new_mark();
    let mut foreign = cluster.etcdctl_command(&["lock", name, "--", "sh", "-c", "echo in; sleep 2; echo out"]);
    foreign.env("JOURNAL", journal.file());
    let foreign = Running::start(foreign, mark);
    eventually(SOON, || count(&cluster) == 2);
    let third = run(&cluster).args(["-v"]).script("echo in").spawn();
    third.says("waiting");
    assert!(throughout(Duration::from_secs(1), || foreign.stdout().is_empty()));
    first.signal(Signal::SIGTERM);
    foreign.prints("in");
    assert_eq!(third.stdout(), "");
    third.prints("in");
    assert!(foreign.stdout().contains("out"), "{}", foreign.stdout());
    third.wait(SOON).exits(0);
    assert_eq!(foreign.wait(SOON).code(), Some(0));
}

#[test]
fn a_lock_that_etcdctl_holds_is_busy_and_its_token_counts() {
    let cluster = Cluster::single(Version::V37);
    let name = queue_of("a");
    let foreign = cluster.etcdctl_command(&["lock", name.trim_end_matches('/'), "--", "sleep", "60"]);
    let foreign = Running::start(foreign, crate::support::processes::new_mark());
    let revision = holder(&cluster).create_revision();
    run(&cluster).args(["-n"]).command(["true"]).output().exits(75);
    drop(foreign);
    cluster.etcdctl(&["del", "--prefix", &name]);
    let after = run(&cluster).script("echo $FENCED_TOKEN").output().exits(0);
    assert!(after.stdout.trim().parse::<i64>().unwrap() > revision);
}

#[test]
fn a_waiter_whose_lease_died_unheard_starts_nothing_and_queues_again() {
    let (cluster, journal) = (Cluster::single(Version::V37), Journal::new());
    let first = holds(&cluster);
    let proxy = Proxy::before(&cluster.members[0].address);
    let run_cut = run_on(&[&proxy.address]).args(["-v", "--ttl", "3s", "--grace", "300ms", "--wait", "50s"]);
    let cut = journal.open(run_cut, "cut").script(NOTE).spawn();
    cut.says("waiting");
    let old = keys(&cluster.members[0].address, "a")[1].clone();
    proxy.set(Mode::Cut);
    eventually(SOON, || count(&cluster) == 1);
    let next = journal.open(run(&cluster).args(["-v"]), "next").script(&format!("{NOTE}; echo in; read line"));
    let next = next.stdin(Stdio::piped()).spawn();
    next.says("waiting");
    first.signal(Signal::SIGTERM);
    next.prints("in");
    assert!(throughout(Duration::from_secs(2), || journal.times("cut", "in").is_empty()));
    proxy.set(Mode::Pass);
    eventually(SOON, || count(&cluster) == 2);
    let again = keys(&cluster.members[0].address, "a")[1].clone();
    assert!(again.create_revision() > old.create_revision() && again.lease() != old.lease());
    assert!(journal.times("cut", "in").is_empty());
    next.signal(Signal::SIGTERM);
    cut.wait(SOON).exits(0);
    let order: Vec<_> = journal.lines().into_iter().map(|line| line.0).collect();
    assert_eq!(order, ["next", "cut"]);
}
