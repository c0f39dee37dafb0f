//! The rule by the command line: what is accepted, what is refused, and with which status.

use crate::scene::{Place, remembered, showing};
use crate::support::run::Run;
use std::fs;

#[test]
fn a_lower_token_is_refused_with_77_and_both_tokens_are_named() {
    let place = Place::new();
    let gate = place.gate("g");
    for token in ["9007199254740993", "9007199254740993"] {
        showing(&["gate", "advance", &gate], token).output().exits(0);
    }
    let before = fs::read(&gate).unwrap();
    let refused = showing(&["gate", "advance", &gate], "9007199254740992").output().exits(77).stderr;
    assert!(refused.contains("9007199254740992") && refused.contains("9007199254740993"), "{refused}");
    assert_eq!(fs::read(&gate).unwrap(), before);
}

#[test]
fn a_missing_a_damaged_and_a_foreign_state_are_refused_and_only_a_reset_mends_them() {
    let place = Place::new();
    let missing = showing(&["gate", "advance", &place.at("g")], 5).output().exits(77).stderr;
    assert!(missing.contains("gate init"), "{missing}");
    let gate = place.gate("g");
    showing(&["gate", "advance", &gate], 5).output().exits(0);
    let foreign = Run::of(["gate", "advance", &gate, "--token", "9", "--lineage", "b"]).output().exits(77).stderr;
    assert!(foreign.contains("lineage b") && foreign.contains("gate reset"), "{foreign}");
    fs::write(&gate, "").unwrap();
    let damaged = showing(&["gate", "advance", &gate], 9).output().exits(77).stderr;
    assert!(damaged.contains("damaged") && damaged.contains("gate reset"), "{damaged}");
    Run::of(["gate", "reset", &gate, "--token", "7", "--lineage", "a"]).output().exits(0);
    showing(&["gate", "advance", &gate], 6).output().exits(77);
    showing(&["gate", "advance", &gate], 7).output().exits(0);
}

#[test]
fn a_first_use_may_make_the_gate_and_a_later_one_does_not_forget() {
    let place = Place::new();
    let gate = place.at("g");
    showing(&["gate", "advance", "--init", &gate], 5).output().exits(0);
    showing(&["gate", "advance", "--init", &gate], 4).output().exits(77);
    Run::of(["gate", "init", &gate]).output().exits(77);
    assert_eq!(remembered(&gate), 5);
}

#[test]
fn what_is_no_token_is_a_mistake_and_not_a_refusal() {
    let place = Place::new();
    let gate = place.gate("g");
    for bad in ["", "007", "-1", "1e3", "9223372036854775808"] {
        let said = showing(&["gate", "advance", &gate], bad).output().exits(125).stderr;
        assert!(said.contains("--token") && said.lines().count() == 1, "{said}");
    }
    assert_eq!(remembered(&gate), 0);
}

#[test]
fn a_gate_says_what_it_remembers() {
    let place = Place::new();
    let gate = place.gate("g");
    let shown = || Run::of(["gate", "show", &gate]).output().exits(0).stdout;
    assert_eq!(shown(), "token none\nlineage none\nlock none\n");
    Run::of(["gate", "advance", &gate])
        .env("FENCED_TOKEN", "7")
        .env("FENCED_LINEAGE", "x")
        .env("FENCED_LOCK", "a b")
        .output()
        .exits(0);
    assert_eq!(shown(), "token 7\nlineage x\nlock a b\n");
}

#[test]
fn a_gate_that_is_a_command_answers_by_its_status() {
    let place = Place::new();
    let seen = place.at("seen");
    let ask = |script: &str| showing(&["gate", "advance", &format!("cmd:{script}")], 7);
    let accepted = ask(&format!("echo $FENCED_TOKEN $FENCED_LINEAGE >{seen}; echo for people")).output().exits(0);
    assert_eq!((fs::read_to_string(&seen).unwrap().as_str(), accepted.stdout.as_str()), ("7 a\n", ""));
    assert!(ask("exit 3").output().exits(77).stderr.contains("exit 3"));
    ask("kill -9 $$").output().exits(77);
    ask("sleep 60").args(["--wait", "100ms"]).output().exits(69);
}
