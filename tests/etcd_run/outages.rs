//! The store out of reach while a command runs.

use crate::scene::{Journal, now, run, run_on};
use crate::support::etcd::{Cluster, Version};
use crate::support::proxy::{Mode, Proxy};
use crate::support::run::Running;
use crate::support::wait::{SOON, obtain};
use std::time::{Duration, Instant};

const LEASE: [&str; 4] = ["--ttl", "4s", "--grace", "700ms"];
const TTL: u64 = 4000;
/// What asking a silent store to release may take, on a busy machine.
const END: Duration = Duration::from_millis(2500);

/// TERM, the grace, KILL, all before the lease that was renewed at `cut` at the latest; 76 and three lines at most.
fn is_stopped_in_time(mut running: Running, journal: &Journal, cut: u64) {
    let term = obtain(SOON, || journal.times("job", "term").first().copied());
    running.says("renewal failed");
    let dead = obtain(SOON, || {
        let own = [running.pid(), running.guard()];
        running.tree().iter().all(|pid| own.contains(pid)).then(Instant::now)
    });
    let last = journal.last("job");
    eprintln!("TERM {} ms, last sign of life {} ms after the cut", term - cut, last - cut);
    assert!(last < cut + TTL, "alive {} ms after the last renewal", last - cut);
    assert!(last > term, "no grace was granted: {term} {last}");
    let ended = obtain(SOON, || running.ended().map(|_| Instant::now()));
    eprintln!("fenced ended {:?} after its tree", ended.duration_since(dead));
    assert!(ended.duration_since(dead) < END, "{:?}", ended.duration_since(dead));
    let ended = running.wait(SOON).exits(76);
    let count = |text: &str| ended.stderr.matches(text).count();
    assert_eq!((count("renewal failed"), count("stopping the command")), (1, 1), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count() - count("release unanswered"), 2, "{}", ended.stderr);
}

fn behind_a_proxy(mode: Mode) {
    let (cluster, journal) = (Cluster::single(Version::V37), Journal::new());
    let proxy = Proxy::before(&cluster.members[0].address);
    let running = journal.noting(run_on(&[&proxy.address]).args(LEASE), "job").spawn();
    journal.begins("job", SOON);
    let rival = journal.stubborn(run(&cluster).args(LEASE), "rival").spawn();
    std::thread::sleep(Duration::from_millis(1500));
    let cut = now();
    proxy.set(mode);
    // The keepalive may still arrive with replies dropped; what counts is what fenced knows.
    is_stopped_in_time(running, &journal, cut);
    journal.begins("rival", SOON);
    assert!(journal.last("job") < journal.first("rival"));
    drop(rival);
}

#[test]
fn a_network_that_swallows_everything_ends_the_command_before_the_lease() {
    behind_a_proxy(Mode::Cut);
}

#[test]
fn a_network_that_swallows_the_answers_ends_the_command_before_the_lease() {
    behind_a_proxy(Mode::DropReplies);
}

#[test]
fn a_network_that_holds_everything_back_ends_the_command_before_the_lease() {
    behind_a_proxy(Mode::Hold);
}

#[test]
fn a_server_that_refuses_connections_ends_the_command_before_the_lease() {
    behind_a_proxy(Mode::Refuse);
}

#[test]
fn a_server_that_is_stopped_ends_the_command_before_the_lease() {
    let (cluster, journal) = (Cluster::single(Version::V37), Journal::new());
    let running = journal.noting(run(&cluster).args(LEASE), "job").spawn();
    journal.begins("job", SOON);
    let cut = now();
    cluster.members[0].stop();
    is_stopped_in_time(running, &journal, cut);
}

#[test]
fn an_outage_that_ends_in_time_costs_two_lines_and_nothing_else() {
    let cluster = Cluster::single(Version::V37);
    for mode in [Mode::Cut, Mode::DropReplies, Mode::Hold, Mode::Refuse] {
        let proxy = Proxy::before(&cluster.members[0].address);
        let lease = ["--ttl", "12s", "--grace", "500ms"];
        let running = run_on(&[&proxy.address]).args(lease).script("echo started; sleep 10").spawn();
        running.prints("started");
        proxy.set(mode);
        running.says("renewal failed");
        proxy.set(Mode::Pass);
        running.says("renewal succeeded");
        let ended = running.wait(SOON).exits(0);
        assert_eq!(ended.stderr.lines().count(), 2, "{mode:?}: {}", ended.stderr);
    }
}

#[test]
fn a_command_that_ends_in_an_outage_has_its_own_status_and_a_warning() {
    let cluster = Cluster::single(Version::V37);
    let running = run(&cluster).args(["--ttl", "30s"]).script("echo started; sleep 1; exit 3").spawn();
    running.prints("started");
    cluster.members[0].stop();
    let ended = running.wait(SOON).exits(3);
    assert!(ended.stderr.contains("release unanswered") && ended.stderr.lines().count() == 1, "{}", ended.stderr);
}

/// The kernel raises SIGPIPE in the name of who writes to a closed connection; that is not for the command.
#[test]
fn connections_that_the_store_closes_raise_no_signal_in_the_command() {
    let cluster = Cluster::single(Version::V37);
    let proxy = Proxy::before(&cluster.members[0].address);
    let script = "trap 'echo PIPE' PIPE; echo started; for n in 1 2 3 4 5 6 7 8 9; do sleep 0.5; done";
    let running = run_on(&[&proxy.address]).args(["--ttl", "6s", "--grace", "500ms"]).script(script).spawn();
    running.prints("started");
    let mut running = running;
    while running.ended().is_none() {
        proxy.set(Mode::Refuse);
        std::thread::sleep(Duration::from_millis(300));
        proxy.set(Mode::Pass);
        std::thread::sleep(Duration::from_millis(700));
    }
    assert_eq!(running.wait(SOON).exits(0).stdout, "started\n");
}
