//! `gate file`: a command inside a gate, alone, under a guard.

use crate::scene::{Place, remembered, showing};
use crate::support::processes;
use crate::support::run::{Run, binary};
use crate::support::wait::{SOON, eventually};
use nix::sys::signal::Signal;
use std::fs;

fn inside(gate: &str, token: i64) -> Run {
    showing(&["gate", "file"], token).args([gate])
}

#[test]
fn a_command_inside_is_as_without_a_wrapper_and_finds_the_token() {
    let place = Place::new();
    let gate = place.gate("g");
    let ended = inside(&gate, 5).script("echo $FENCED_TOKEN $FENCED_LINEAGE; exit 7").output().exits(7);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("5 a\n", ""));
    inside(&gate, 4).script("echo never").output().exits(77);
    assert_eq!(remembered(&gate), 5);
}

#[test]
fn one_command_is_inside_at_a_time_and_the_next_waits_or_gives_up() {
    let place = Place::new();
    let (gate, go) = (place.gate("g"), place.at("go"));
    let first = inside(&gate, 5).script(&format!("echo in; until [ -e {go} ]; do sleep 0.01; done")).spawn();
    first.prints("in");
    let busy = inside(&gate, 6).args(["--wait", "50ms"]).script("echo never").output().exits(75);
    assert!(busy.stdout.is_empty() && busy.stderr.contains("gate"), "{busy:?}");
    let next = inside(&gate, 6).script("echo next").spawn();
    fs::write(&go, "").unwrap();
    first.wait(SOON).exits(0);
    next.wait(SOON).exits(0);
    assert_eq!(remembered(&gate), 6);
}

#[test]
fn nothing_of_the_command_is_left_when_the_gate_is_let_go() {
    let place = Place::new();
    let gate = place.gate("g");
    let first = inside(&gate, 5).script("setsid sleep 1000 & (setsid sleep 1000 &) ; echo in").spawn();
    let mark = first.mark().to_owned();
    first.wait(SOON).exits(0);
    assert_eq!(processes::marked(&mark), Vec::<i32>::new());
    inside(&gate, 6).args(["--wait", "0"]).script("true").output().exits(0);
}

#[test]
fn a_killed_fenced_takes_its_command_along_before_the_gate_is_free() {
    let place = Place::new();
    let gate = place.gate("g");
    let first =
        inside(&gate, 5).script("trap '' TERM; echo in; while :; do sleep 1; done").args(["-k", "100ms"]).spawn();
    first.prints("in");
    let mark = first.mark().to_owned();
    first.signal(Signal::SIGKILL);
    inside(&gate, 6).script("true").output().exits(0);
    eventually(SOON, || processes::marked(&mark).is_empty());
}

#[test]
fn a_gate_inside_itself_is_refused_at_once() {
    let place = Place::new();
    let gate = place.gate("g");
    let fenced = binary();
    let ended = inside(&gate, 5).command([fenced.as_str(), "gate", "file", &gate, "--", "true"]).output().exits(125);
    assert!(ended.stderr.contains("inside"), "{ended:?}");
}
