//! Tokens that end: by time, by disuse, with the server that gave them, and by every change of the users.

use crate::scene::{Users, on_every_version};
use crate::support::etcd::{Cluster, Version};
use crate::support::pki::Authority;
use crate::support::proxy::{Mode, Proxy};
use crate::support::run::{Ended, Run};
use crate::support::wait::SOON;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Far longer than a token lives: the next beat comes long after it.
const SLOW_BEAT: [&str; 4] = ["--ttl", "60s", "--grace", "1s"];
const LEASE: [&str; 4] = ["--ttl", "6s", "--grace", "1s"];

/// Opaque tokens that end when they are not used for a second.
fn simple(version: Version) -> Users {
    Users::single(version, vec![("--auth-token-ttl", "1".into())])
}

/// Signed tokens that end after so long, however often they are used, and when the users change.
fn signed(version: Version, ttl: &str) -> Users {
    let files = Authority::new();
    let key = files.file("tokens.key", "a key of thirty-two bytes or more");
    let flag = format!("jwt,sign-method=HS256,priv-key={},ttl={ttl}", key.display());
    Users::single(version, vec![("--auth-token", flag)])
}

/// The moment, in hundredths of a second of the boot clock.
const MOMENT: &str = "read up idle </proc/uptime; echo $up";

fn moment(ended: &Ended) -> f64 {
    ended.stdout.lines().last().and_then(|line| line.parse().ok()).expect("a moment")
}

/// A holder that renews many times, and a waiter whose tokens end while it has nothing to say.
fn holds_and_hands_over(users: &Users) {
    let holder = users.run().args(LEASE).script(&format!("echo in; sleep 9; {MOMENT}")).spawn();
    holder.prints("in");
    let waiter = users.run().args(SLOW_BEAT).args(["-v"]).script(MOMENT).spawn();
    waiter.says("waiting");
    let ended = holder.wait(SOON).exits(0);
    assert_eq!(ended.stderr, "");
    let next = waiter.wait(SOON).exits(0);
    let between = moment(&next) - moment(&ended);
    eprintln!("handed over in {between:.2} s");
    assert!(between < 3.0, "{between} {}", next.stderr);
    assert!(users.queue().is_empty());
}

#[test]
fn tokens_that_end_by_disuse_cost_nothing() {
    on_every_version(|version| holds_and_hands_over(&simple(version)));
}

#[test]
fn tokens_that_end_by_time_cost_nothing() {
    on_every_version(|version| holds_and_hands_over(&signed(version, "1s")));
}

fn through(proxy: &Proxy, users: &Users) -> Run {
    users.run_at(&format!("etcd://{}", proxy.address)).args(SLOW_BEAT)
}

/// Breaks the connection after the token's end, so that the watch is opened again with the token that ended.
fn breaks(proxy: &Proxy) {
    sleep(Duration::from_millis(2500));
    proxy.set(Mode::Refuse);
    proxy.set(Mode::Pass);
}

#[test]
fn a_watch_that_is_opened_again_with_a_token_that_ended_works() {
    on_every_version(|version| {
        let users = signed(version, "1s");
        let (near, far) =
            (Proxy::before(&users.cluster.members[0].address), Proxy::before(&users.cluster.members[0].address));
        let holder = through(&near, &users).script("echo in; sleep 60").spawn();
        holder.prints("in");
        let waiter = through(&far, &users).args(["-v"]).script("echo in; sleep 60").spawn();
        waiter.says("waiting");
        breaks(&near);
        breaks(&far);
        sleep(Duration::from_secs(1));
        let began = Instant::now();
        let key = users.queue().into_iter().min_by_key(etcd_client::KeyValue::create_revision).expect("a holder");
        users.access.as_root(async |mut client| client.delete(key.key(), None).await);
        let lost = holder.wait(SOON).exits(76);
        waiter.prints("in");
        eprintln!("{version:?} after {:?}: {}", began.elapsed(), lost.stderr);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    });
}

#[test]
fn a_server_that_forgot_its_tokens_in_a_restart_is_given_the_password_again() {
    on_every_version(|version| {
        let mut users = Users::on(Cluster::single(version), crate::scene::PREFIX);
        let holder = users.run().args(["--ttl", "12s", "--grace", "1s"]).script("echo in; sleep 12").spawn();
        holder.prints("in");
        users.cluster.members[0].restart();
        let ended = holder.wait(SOON).exits(0);
        eprintln!("{version:?} {}", ended.stderr);
        assert!(!ended.stderr.contains("stopping"), "{}", ended.stderr);
        assert!(users.queue().is_empty());
    });
}

/// A login costs a loaded machine up to a second, and each change spoils all of them.
fn outlives_changes(users: &Users) {
    let run = || users.run().args(["--ttl", "12s", "--grace", "1s"]);
    let mut holder = run().script("echo in; sleep 12").spawn();
    holder.prints("in");
    let waiter = run().args(["-v"]).command(["true"]).spawn();
    waiter.says("waiting");
    while holder.ended().is_none() {
        users.access.change();
        sleep(Duration::from_secs(1));
    }
    let said = holder.wait(SOON).exits(0).stderr;
    assert!(!said.contains("stopping"), "{said}");
    waiter.wait(SOON).exits(0);
    assert!(users.queue().is_empty());
}

#[test]
fn changes_of_the_users_meanwhile_cost_nothing_where_tokens_are_signed() {
    on_every_version(|version| outlives_changes(&signed(version, "5m")));
}

#[test]
fn changes_of_the_users_meanwhile_cost_nothing_where_tokens_are_opaque() {
    on_every_version(|version| outlives_changes(&Users::single(version, Vec::new())));
}

#[test]
fn a_user_who_is_taken_away_meanwhile_stops_the_command_in_time_and_is_named() {
    let users = Users::single(Version::V37, Vec::new());
    let holder = users.run().args(LEASE).script("echo in; sleep 60").spawn();
    holder.prints("in");
    users.access.as_root(async |mut client| client.user_delete("ci").await);
    let ended = holder.wait(SOON).exits(76);
    eprintln!("{}", ended.stderr);
    assert!(ended.stderr.contains("--user"), "{}", ended.stderr);
}
