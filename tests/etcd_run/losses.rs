//! Leases and keys that the store takes away while a command runs.

use crate::scene::{Journal, holder, keys, now, run, run_on};
use crate::support::etcd::{Cluster, Version, ask, etcdctl};
use crate::support::processes;
use crate::support::proxy::{Mode, Proxy};
use crate::support::run::{Ended, Running};
use crate::support::wait::{SOON, eventually, throughout};
use etcd_client::PutOptions;
use nix::fcntl::OFlag;
use nix::sys::signal::Signal;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Far less than the ttl and the grace of these runs, far more than a kill takes.
const QUICK: Duration = Duration::from_secs(5);

fn held(cluster: &Cluster, journal: &Journal) -> Running {
    let running = journal.stubborn(run(cluster).args(["--ttl", "60s", "--grace", "15s"]), "job").spawn();
    running.prints("started");
    journal.begins("job", SOON);
    running
}

/// The whole tree is dead at once, without grace, and one line says why.
fn is_killed_at_once(mut running: Running, journal: &Journal, since: u64) -> Ended {
    running.gone(QUICK);
    eprintln!("the last sign of life came {} ms after the loss", journal.last("job").saturating_sub(since));
    let ended = running.wait(SOON).exits(76);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("killing the command: the "), "{}", ended.stderr);
    ended
}

fn revoke(cluster: &Cluster, lease: i64) {
    ask(&cluster.members[0].address, async |mut client| client.lease_revoke(lease).await.map(drop));
}

#[test]
fn a_revoked_lease_kills_the_whole_tree_at_once() {
    for version in Version::all() {
        let (cluster, journal) = (Cluster::single(version), Journal::new());
        let running = held(&cluster, &journal);
        let key = holder(&cluster);
        let since = now();
        revoke(&cluster, key.lease());
        is_killed_at_once(running, &journal, since);
    }
}

#[test]
fn a_deleted_key_kills_the_whole_tree_at_once() {
    let (cluster, journal) = (Cluster::single(Version::V37), Journal::new());
    let running = held(&cluster, &journal);
    let key = holder(&cluster);
    let since = now();
    ask(&cluster.members[0].address, async |mut client| client.delete(key.key(), None).await.map(drop));
    is_killed_at_once(running, &journal, since);
}

#[test]
fn a_key_that_somebody_else_puts_under_another_lease_or_none_kills_the_whole_tree_at_once() {
    let (cluster, journal) = (Cluster::single(Version::V37), Journal::new());
    for lease in [0, 4711] {
        let running = held(&cluster, &journal);
        let key = holder(&cluster);
        let since = now();
        ask(&cluster.members[0].address, async |mut client| {
            if lease != 0 {
                let chosen = etcd_client::LeaseGrantOptions::new().with_id(lease);
                client.lease_grant(60, Some(chosen)).await?;
            }
            client.put(key.key(), "", Some(PutOptions::new().with_lease(lease))).await.map(drop)
        });
        let ended = is_killed_at_once(running, &journal, since);
        assert!(ended.stderr.contains("another lease"), "{}", ended.stderr);
        assert_eq!(holder(&cluster).create_revision(), key.create_revision(), "what is not ours is not deleted");
        ask(&cluster.members[0].address, async |mut client| client.delete(key.key(), None).await.map(drop));
    }
}

/// The command takes its own lease away and ends with success before anybody can tell fenced.
#[test]
fn a_command_that_exits_0_as_its_lease_is_lost_is_still_76() {
    let cluster = Cluster::single(Version::V37);
    let etcdctl = format!("ETCDCTL_API=3 {} --endpoints {}", etcdctl().display(), cluster.members[0].address);
    for script in [
        format!("{etcdctl} lease revoke ${{FENCED_KEY##*/}} >/dev/null; exit 0"),
        format!("{etcdctl} del $FENCED_KEY >/dev/null; exit 0"),
        format!("{etcdctl} put $FENCED_KEY x >/dev/null; exit 0"),
    ] {
        let ended = run(&cluster).args(["--ttl", "20s"]).script(&script).output().exits(76);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        cluster.etcdctl(&["del", "--prefix", "/fenced"]);
    }
}

#[test]
fn a_loss_that_no_one_could_tell_before_the_command_exited_0_is_found_at_the_release() {
    let cluster = Cluster::single(Version::V37);
    let (reader, writer) = nix::unistd::pipe2(OFlag::O_CLOEXEC).unwrap();
    let running = run(&cluster).args(["--ttl", "60s"]).script("echo started; read line; exit 0").stdin(reader).spawn();
    running.prints("started");
    let command = running.command();
    running.signal(Signal::SIGSTOP);
    revoke(&cluster, holder(&cluster).lease());
    drop(writer);
    eventually(SOON, || !processes::is_alive(command));
    running.signal(Signal::SIGCONT);
    let ended = running.wait(SOON).exits(76);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

/// A run behind a proxy, and what ends its command.
fn behind(proxy: &Proxy) -> (Running, OwnedFd) {
    let (reader, writer) = nix::unistd::pipe2(OFlag::O_CLOEXEC).unwrap();
    let running = run_on(&[&proxy.address]).args(["--ttl", "60s"]).script("echo started; read line; exit 0");
    let running = running.stdin(reader).spawn();
    running.prints("started");
    (running, writer)
}

#[test]
fn a_lease_that_was_revoked_while_a_release_went_unanswered_is_lost() {
    let cluster = Cluster::single(Version::V37);
    let proxy = Proxy::before(&cluster.members[0].address);
    let (running, end) = behind(&proxy);
    let command = running.command();
    proxy.set(Mode::Cut);
    revoke(&cluster, holder(&cluster).lease());
    drop(end);
    eventually(SOON, || !processes::is_alive(command));
    std::thread::sleep(Duration::from_millis(300));
    proxy.set(Mode::Pass);
    let ended = running.wait(SOON).exits(76);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn a_release_whose_answer_was_lost_is_still_a_release() {
    let cluster = Cluster::single(Version::V37);
    let proxy = Proxy::before(&cluster.members[0].address);
    let (running, end) = behind(&proxy);
    proxy.set(Mode::DropReplies);
    drop(end);
    eventually(SOON, || keys(&cluster.members[0].address, "a").is_empty());
    proxy.set(Mode::Pass);
    assert_eq!(running.wait(SOON).exits(0).stderr, "");
}

#[test]
fn the_next_in_line_enters_after_the_lease_of_a_killed_holder_was_revoked_and_never_before() {
    let (cluster, journal) = (Cluster::single(Version::V37), Journal::new());
    let first = journal.stubborn(run(&cluster).args(["--ttl", "30s", "--grace", "300ms"]), "first").spawn();
    journal.begins("first", SOON);
    let second = journal.stubborn(run(&cluster).args(["-v"]), "second").spawn();
    second.says("waiting");
    first.signal(Signal::SIGKILL);
    // The guard clears the tree; nobody gives the lock back, so the lease is what ends it.
    assert!(throughout(Duration::from_secs(3), || journal.times("second", "beat").is_empty()));
    revoke(&cluster, holder(&cluster).lease());
    let since = now();
    journal.begins("second", SOON);
    assert!(journal.last("first") < journal.first("second"));
    eprintln!("the next one was in {} ms after the revocation", journal.first("second").saturating_sub(since));
}
