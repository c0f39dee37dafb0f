//! fenced or its guard killed or stopped: the tree dies inside the lease, and the next one waits for the lease's end.

use crate::scene::{Journal, holder, keys, now, run};
use crate::support::etcd::{Cluster, Version, ask};
use crate::support::processes;
use crate::support::run::Running;
use crate::support::wait::{SOON, eventually, throughout};
use nix::sys::signal::Signal;
use std::time::Duration;

const LEASE: [&str; 4] = ["--ttl", "4s", "--grace", "500ms"];
const TTL: Duration = Duration::from_secs(4);

struct Pair {
    cluster: Cluster,
    journal: Journal,
    first: Running,
    second: Running,
}

/// One holds, with a tree that ignores TERM, one waits.
fn pair() -> Pair {
    let (cluster, journal) = (Cluster::single(Version::V37), Journal::new());
    let first = journal.stubborn(run(&cluster).args(LEASE), "first").spawn();
    journal.begins("first", SOON);
    let second = journal.stubborn(run(&cluster).args(LEASE).args(["-v"]), "second").spawn();
    second.says("waiting");
    Pair { cluster, journal, first, second }
}

impl Pair {
    /// The command's tree, as far as it is not fenced or the guard.
    fn command_is_gone(&self, but: &[i32]) -> bool {
        self.first.tree().iter().all(|pid| but.contains(pid))
    }

    fn hands_over(&self, since: u64) {
        self.journal.begins("second", SOON);
        let (last, first) = (self.journal.last("first"), self.journal.first("second"));
        assert!(last < first, "overlap: {last} {first}");
        eprintln!("dead {} ms after the blow, the next one in after {} ms", last.saturating_sub(since), first - since);
    }
}

#[test]
fn fenced_killed_leaves_no_process_and_the_next_in_line_enters_after_the_lease() {
    let mut pair = pair();
    let since = now();
    pair.first.signal(Signal::SIGKILL);
    pair.first.gone(TTL);
    pair.hands_over(since);
}

#[test]
fn fenced_stopped_has_its_command_killed_before_the_lease_ends_and_says_so_when_it_goes_on() {
    let pair = pair();
    let (fenced, guard) = (pair.first.pid(), pair.first.guard());
    let since = now();
    pair.first.signal(Signal::SIGSTOP);
    eventually(TTL, || pair.command_is_gone(&[fenced, guard]));
    pair.hands_over(since);
    pair.first.signal(Signal::SIGCONT);
    let Pair { first, second, cluster, journal } = pair;
    let ended = first.wait(SOON).exits(76);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    let beats = journal.times("second", "beat").len();
    eventually(SOON, || journal.times("second", "beat").len() > beats);
    assert_eq!(keys(&cluster.members[0].address, "a").len(), 1, "the next one's key stays");
    drop(second);
}

#[test]
fn the_guard_killed_ends_the_tree_at_once_and_the_lock_is_given_back() {
    let mut pair = pair();
    let since = now();
    processes::signal(pair.first.guard(), Signal::SIGKILL);
    pair.first.gone(SOON);
    pair.hands_over(since);
    let ended = pair.first.wait(SOON).exits(76);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("guard"), "{}", ended.stderr);
}

#[test]
fn the_guard_stopped_is_woken_and_keeps_its_deadlines() {
    let pair = pair();
    let guard = pair.first.guard();
    processes::signal(guard, Signal::SIGSTOP);
    eventually(TTL, || !processes::is_stopped(guard));
    let alone = || pair.journal.times("second", "beat").is_empty() && processes::is_alive(guard);
    assert!(throughout(TTL + TTL, alone), "{}", pair.first.stderr());
    let (since, lease) = (now(), holder(&pair.cluster).lease());
    ask(&pair.cluster.members[0].address, async |mut client| client.lease_revoke(lease).await.map(drop));
    pair.hands_over(since);
    pair.first.wait(SOON).exits(76);
}

#[test]
fn the_lock_is_not_free_before_the_lease_of_a_killed_holder_ends() {
    let (cluster, journal) = (Cluster::single(Version::V37), Journal::new());
    let first = journal.stubborn(run(&cluster).args(["--ttl", "10s"]), "first").spawn();
    journal.begins("first", SOON);
    first.signal(Signal::SIGKILL);
    assert!(throughout(Duration::from_secs(3), || keys(&cluster.members[0].address, "a").len() == 1));
    run(&cluster).args(["-n"]).command(["true"]).output().exits(75);
}
