//! `run --fence`: gates are shown the new token after the grant and before the command.

use crate::scene::{Place, remembered, showing};
use crate::support::etcd::{Cluster, Version};
use crate::support::run::{LocalStore, Run};
use crate::support::wait::SOON;
use serde_json::Value;
use std::fs;
use std::thread;

fn run(store: &LocalStore, gate: &str) -> Run {
    Run::new(store).lock("a").args(["--fence", gate])
}

#[test]
fn the_holder_before_is_shut_out_before_the_command_starts() {
    let (store, place) = (LocalStore::new(), Place::new());
    let gate = place.gate("g");
    let old: i64 = run(&store, &gate).script("echo $FENCED_TOKEN").output().exits(0).stdout.trim().parse().unwrap();
    let ended = run(&store, &gate).command(["grep", "^token", &gate]).output().exits(0);
    assert_eq!(ended.stdout, format!("token {}\n", old + 1));
}

#[test]
fn a_refusal_starts_no_command_gives_the_lock_back_and_says_so() {
    let (store, place) = (LocalStore::new(), Place::new());
    let (good, bad, status) = (place.gate("good"), place.gate("bad"), place.at("status"));
    showing(&["gate", "advance", &bad], 1).output().exits(0);
    let ended = run(&store, &good).args(["--fence", &bad, "--status-file", &status]).script("echo never").output();
    let ended = ended.exits(77);
    assert!(
        ended.stdout.is_empty() && ended.stderr.contains("lineage") && ended.stderr.lines().count() == 1,
        "{ended:?}"
    );
    let line: Value = serde_json::from_str(&fs::read_to_string(&status).unwrap()).unwrap();
    assert_eq!((line["outcome"].as_str(), line["exit_code"].as_i64()), (Some("refused"), Some(77)));
    Run::new(&store).lock("a").args(["-n"]).script("true").output().exits(0);
}

#[test]
fn a_writer_that_is_still_inside_is_waited_for() {
    let (store, place) = (LocalStore::new(), Place::new());
    let (gate, go) = (place.gate("g"), place.at("go"));
    let writer = Run::of(["gate", "file"]).args(["--token", "1", "--lineage", "other", &gate]);
    let writer = writer.script(&format!("echo in; until [ -e {go} ]; do sleep 0.01; done")).spawn();
    writer.prints("in");
    let next = run(&store, &gate).args(["-v"]).script("echo never").spawn();
    next.says("granted");
    assert_eq!(remembered(&gate), 1);
    fs::write(&go, "").unwrap();
    writer.wait(SOON).exits(0);
    // Of another lineage, so that it is the gate that answers, and only once the writer has left.
    next.wait(SOON).exits(77);
}

#[test]
fn a_gate_that_is_a_command_is_asked_with_the_new_token() {
    let (store, place) = (LocalStore::new(), Place::new());
    let seen = place.at("seen");
    let gate = format!("cmd:echo $FENCED_TOKEN $FENCED_LOCK >>{seen}");
    run(&store, &gate).script(&format!("echo ran >>{seen}")).output().exits(0);
    assert_eq!(fs::read_to_string(&seen).unwrap(), "1 a\nran\n");
    run(&store, "cmd:exit 1").script("echo never").output().exits(77);
}

#[test]
fn a_signal_while_a_gate_is_asked_ends_the_run_and_what_asks() {
    let store = LocalStore::new();
    let mut asking = run(&store, "cmd:echo asked; exec sleep 1000").script("echo never").spawn();
    asking.says("asked");
    asking.signal(nix::sys::signal::Signal::SIGTERM);
    asking.gone(SOON);
    Run::new(&store).lock("a").args(["-n"]).script("true").output().exits(0);
}

#[test]
fn a_key_of_the_cluster_is_a_gate_on_every_version() {
    for version in Version::all() {
        let cluster = Cluster::single(version);
        let url = cluster.url();
        let on = |words: &[&str]| Run::of(words).args(["--store", &url]);
        let run = || Run::new(&url).lock("a").args(["--fence", "etcd:/gates/g"]);
        run().script("echo never").output().exits(77);
        on(&["gate", "init", "etcd:/gates/g"]).output().exits(0);
        on(&["gate", "init", "etcd:/gates/g"]).output().exits(77);
        let token = run().script("echo $FENCED_TOKEN").output().exits(0).stdout;
        let shown = on(&["gate", "show", "etcd:/gates/g"]).output().exits(0).stdout;
        assert!(shown.starts_with(&format!("token {token}")) && shown.contains("lock a"), "{shown}");
        on(&["gate", "advance", "etcd:/gates/g", "--token", "1", "--lineage", "x"]).output().exits(77);
        on(&["gate", "reset", "etcd:/gates/g", "--token", "5", "--lineage", "a"]).output().exits(0);
        on(&["gate", "advance", "etcd:/gates/g", "--token", "4", "--lineage", "a"]).output().exits(77);
    }
}

#[test]
fn many_at_one_key_never_bring_it_down_and_the_highest_stays() {
    let cluster = Cluster::single(Version::V37);
    let url = cluster.url();
    Run::of(["gate", "init", "etcd:/g"]).args(["--store", &url]).output().exits(0);
    thread::scope(|scope| {
        for token in 1..=20 {
            let advance = showing(&["gate", "advance", "etcd:/g"], token).args(["--store", &url]);
            scope.spawn(move || assert!(matches!(advance.output().code(), Some(0 | 77))));
        }
    });
    let shown = Run::of(["gate", "show", "etcd:/g"]).args(["--store", &url]).output().exits(0).stdout;
    assert!(shown.starts_with("token 20\n"), "{shown}");
}
