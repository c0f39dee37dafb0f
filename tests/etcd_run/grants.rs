//! What a run gets: tokens, variables, a lease that is renewed, and the rules for runs inside runs.

use crate::scene::{Journal, holder, keys, run};
use crate::support::etcd::{Cluster, Version};
use crate::support::run::Run;
use crate::support::wait::{SOON, throughout};
use std::collections::HashMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn variables(printed: &str) -> HashMap<String, String> {
    printed.lines().filter_map(|line| line.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

#[test]
fn the_command_is_told_its_lock_token_lineage_owner_store_and_key() {
    let cluster = Cluster::single(Version::V37);
    let inside = run(&cluster).script("env; read line").stdin(Stdio::piped()).env("FENCED_TOKEN", "99").spawn();
    inside.prints("FENCED_TOKEN");
    let (key, pid) = (holder(&cluster), inside.pid());
    let got = variables(&inside.stdout());
    let url = format!("etcd://{}/fenced/v1", cluster.members[0].address);
    let token = key.create_revision();
    assert_eq!(got["FENCED_LOCK"], "a");
    assert_eq!(got["FENCED_TOKEN"], token.to_string());
    assert_eq!(got["FENCED_KEY"], key.key_str().unwrap());
    assert_eq!(got["FENCED_STORE"], url);
    assert_eq!(got["FENCED_HELD"], format!("{url} a"));
    let owner: Vec<_> = got["FENCED_OWNER"].rsplitn(3, ':').collect();
    assert_eq!(owner[..2], [token.to_string(), pid.to_string()]);
    assert!(got["FENCED_LINEAGE"].ends_with("-290ed822fede54fa"), "{}", got["FENCED_LINEAGE"]);
    drop(inside);
}

#[test]
fn tokens_of_two_runs_increase_within_one_lineage_and_nothing_is_left_or_said() {
    let cluster = Cluster::single(Version::V37);
    let print = || run(&cluster).script("echo $FENCED_TOKEN $FENCED_LINEAGE").output().exits(0);
    let (first, second) = (print(), print());
    assert_eq!((first.stderr.as_str(), second.stderr.as_str()), ("", ""));
    let split = |text: &str| {
        let (token, lineage) = text.trim().split_once(' ').unwrap();
        (token.parse::<u64>().unwrap(), lineage.to_owned())
    };
    let (first, second) = (split(&first.stdout), split(&second.stdout));
    assert!(second.0 > first.0, "{first:?} {second:?}");
    assert_eq!(first.1, second.1);
    assert!(keys(&cluster.members[0].address, "").is_empty());
    assert_eq!(cluster.etcdctl(&["lease", "list"]).stdout, b"found 0 leases\n");
}

#[test]
fn a_command_that_runs_for_five_ttls_keeps_its_token_and_never_meets_a_rival() {
    let cluster = Cluster::single(Version::V37);
    let journal = Journal::new();
    let command = r#"echo started; end=$(($(date +%s) + 20))
while [ $(date +%s) -lt $end ]; do read up idle </proc/uptime; echo "$NAME beat $up" >>"$JOURNAL"; sleep 0.01; done"#;
    let lease = ["--ttl", "4s", "--grace", "300ms"];
    let first = journal.open(run(&cluster).args(lease), "first").script(command).spawn();
    first.prints("started");
    let token = holder(&cluster).create_revision();
    let second = journal.stubborn(run(&cluster).args(lease), "second").spawn();
    let kept = throughout(Duration::from_secs(16), || {
        holder(&cluster).create_revision() == token && journal.times("second", "beat").is_empty()
    });
    assert!(kept, "{}", first.stderr());
    assert_eq!(first.wait(2 * SOON).exits(0).stderr, "");
    journal.begins("second", SOON);
    assert!(journal.last("first") <= journal.first("second"));
    drop(second);
}

#[test]
fn a_run_inside_a_run_of_the_same_lock_is_refused_at_once_and_of_another_lock_gets_its_own_token() {
    let cluster = Cluster::single(Version::V37);
    let url = format!("etcd://{}", cluster.members[0].address);
    let binary = assert_cmd::cargo::cargo_bin!("fenced");
    let nested = |lock: &str, script: &str| {
        let outer = Run::new(&url).lock("a").env("FENCED", binary).env("URL", &url);
        let began = Instant::now();
        let inner = format!("\"$FENCED\" run --store \"$URL\" --lock {lock} -- sh -c '{script}'");
        (outer.script(&format!("echo $FENCED_TOKEN; {inner}")).output(), began.elapsed())
    };
    let (ended, took) = nested("a", "echo no");
    let ended = ended.exits(125);
    assert!(ended.stderr.contains("inside a run that holds it") && !ended.stdout.contains("no"), "{ended:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    for other in ["b", "a/b"] {
        let (ended, _) = nested(other, "echo $FENCED_TOKEN; echo \"$FENCED_HELD\"");
        let ended = ended.exits(0);
        let lines: Vec<_> = ended.stdout.lines().collect();
        assert!(lines[1].parse::<u64>().unwrap() > lines[0].parse().unwrap(), "{lines:?}");
        let encoded = other.replace('/', "%2F");
        assert_eq!(lines[2..], [format!("{url}/fenced/v1 a"), format!("{url}/fenced/v1 {encoded}")]);
    }
}

#[test]
fn a_lock_and_one_below_it_in_name_do_not_meet() {
    let cluster = Cluster::single(Version::V37);
    let url = format!("etcd://{}", cluster.members[0].address);
    let below = Run::new(&url).lock("a/b").script("echo in; sleep 60").spawn();
    below.prints("in");
    run(&cluster).args(["-n"]).command(["true"]).output().exits(0);
    let above = run(&cluster).script("echo in; sleep 60").spawn();
    above.prints("in");
    Run::new(&url).lock("a/c").args(["-n"]).command(["true"]).output().exits(0);
    Run::new(&url).lock("a/b").args(["-n"]).command(["true"]).output().exits(75);
}
