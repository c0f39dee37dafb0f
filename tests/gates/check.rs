//! `fenced check`: whether a token is still the holder's.

use crate::support::etcd::{Cluster, Version};
use crate::support::run::{LocalStore, Run, binary};
use crate::support::wait::SOON;
use std::fmt::Display;

fn answers(store: &impl Display) {
    let check = |token: &str| Run::of(["check", "--lock", "a", "--token", token]).args(["--store", &store.to_string()]);
    assert!(check("1").output().exits(77).stderr.contains("nobody"));
    let holder = Run::new(store).lock("a").script("echo $FENCED_TOKEN; sleep 1000").spawn();
    holder.prints("\n");
    let token = holder.stdout();
    let token = token.trim();
    assert_eq!(check(token).output().exits(0).stderr, "");
    let said = check(token).args(["-v"]).output().exits(0).stderr;
    assert!(said.contains("advisory"), "{said}");
    let other = check("9223372036854775807").output().exits(77).stderr;
    assert!(other.contains(&format!("token {token}")) && other.contains("advisory"), "{other}");
    check(token).args(["--lineage", "other"]).output().exits(77);
}

#[test]
fn a_local_lock_is_looked_at() {
    answers(&LocalStore::new());
}

#[test]
fn a_lock_on_etcd_is_looked_at() {
    answers(&Cluster::single(Version::V37).url());
}

#[test]
fn a_command_can_ask_about_its_own_run_without_options() {
    let store = LocalStore::new();
    Run::new(&store).lock("a").command([binary().as_str(), "check"]).spawn().wait(SOON).exits(0);
}

#[test]
fn a_store_that_cannot_be_asked_cannot_say() {
    let check = ["check", "--lock", "a", "--token", "1", "--store", "etcd://127.0.0.1:1"];
    assert!(Run::of(check).output().exits(69).stderr.contains("refused"));
}
