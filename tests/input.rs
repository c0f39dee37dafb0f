//! Bad input is refused with 125 and one line that names what to mend, before anything is asked of a store.

mod support;

use std::fs;
use std::net::TcpListener;
use support::run::{LocalStore, Run};

/// A store that notices when it is asked anything.
struct Trap(TcpListener);

impl Trap {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn url(&self) -> String {
        format!("etcd://{}", self.0.local_addr().unwrap())
    }

    fn untouched(&self) -> bool {
        self.0.accept().is_err()
    }
}

#[track_caller]
fn refused(run: Run, named: &str) {
    let ended = run.output().exits(125);
    let one_line =
        ended.stderr.lines().count() == 1 && ended.stderr.starts_with("fenced: ") && ended.stderr.ends_with('\n');
    assert!(one_line && ended.stderr.contains(named), "{named}: {:?}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[test]
fn settings_that_make_no_sense_are_refused_before_etcd_is_asked() {
    let trap = Trap::new();
    for (options, named) in [
        (&["--ttl", "30"][..], "--ttl"),
        (&["--ttl=-1s"], "--ttl"),
        (&["--ttl", "0"], "--ttl"),
        (&["--ttl", "301s"], "--ttl"),
        (&["--ttl", "1s"], "--ttl 2s or more"),
        (&["--ttl", "10s", "--grace", "9s"], "--grace"),
        (&["--grace", "x"], "--grace"),
        (&["--wait", "soon"], "--wait"),
        (&["--jitter", "5"], "--jitter"),
        (&["--signal", "STOP"], "--signal"),
        (&["--on-exit", "explode"], "--on-exit"),
        (&["-E", "256"], "256"),
        (&["-n", "--wait", "1s"], "--wait"),
        (&["-q", "-v"], "--verbose"),
        (&["--no-such-option"], "--no-such-option"),
        (&["--status-fd", "99"], "--status-fd"),
        (&["--status-file", "/no/such/place"], "--status-file"),
        (&["--lock", "b"], "--lock"),
    ] {
        refused(Run::new(&trap.url()).lock("a").args(options).command(["true"]), named);
    }
    assert!(trap.untouched());
}

#[test]
fn names_that_make_no_sense_are_refused_before_anything_is_made() {
    let store = LocalStore::new();
    for name in ["", "a\nb", "\u{7f}", &"x".repeat(256)] {
        refused(Run::new(&store).lock(name).command(["true"]), "--lock");
    }
    refused(Run::new(&store).command(["true"]), "--lock");
    refused(Run::new(&store).lock("a"), "COMMAND");
    refused(Run::new(&store).lock("a").command([""]), "command");
    assert_eq!(fs::read_dir(store.path()).unwrap().count(), 0);
}

#[test]
fn a_name_that_is_not_utf_8_is_refused() {
    let store = LocalStore::new();
    let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff");
    refused(Run::new(&store).lock(name).command(["true"]), "UTF-8");
}

#[test]
fn every_other_name_is_a_lock_of_its_own() {
    let store = LocalStore::new();
    let names = [
        ".",
        "..",
        "a",
        "a/b",
        "a%2Fb",
        "-",
        "é",
        " ",
        "a.lock",
        ".a",
        "a.1.info",
        &"x".repeat(255),
        &"y".repeat(254),
        &"/".repeat(255),
    ];
    let held: Vec<_> = names
        .iter()
        .map(|name| {
            let run =
                Run::new(&store).args([format!("--lock={name}")]).args(["-n"]).script("echo in; sleep 60").spawn();
            run.prints("in");
            run
        })
        .collect();
    for name in names {
        Run::new(&store).args([format!("--lock={name}")]).args(["-n"]).command(["true"]).output().exits(75);
    }
    drop(held);
}

#[test]
fn store_urls_that_make_no_sense_are_refused() {
    for url in [
        "",
        "zookeeper://h",
        "etcd://",
        "etcd://,",
        "etcd:///p",
        "etcd://h:0",
        "etcd://u:p@h",
        "file:relative",
        "file://host/dir",
        "/var/lock",
    ] {
        refused(Run::bare().args(["--store", url]).lock("a").command(["true"]), "--store");
    }
    refused(Run::bare().env("FENCED_STORE", "nonsense").lock("a").command(["true"]), "FENCED_STORE");
}

#[test]
fn the_command_keeps_its_flags() {
    let store = LocalStore::new();
    let mut command = Run::new(&store).args(["-l", "a", "echo", "-n", "--wait", "x", "-v", "--help"]).into_std();
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--wait x -v --help");
}

#[test]
fn help_and_version_go_to_stdout_and_succeed() {
    for words in [&["--help"][..], &["--version"], &["run", "--help"], &["run", "-h"]] {
        let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("fenced")).args(words).output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty() && output.stderr.is_empty(), "{words:?}");
    }
    let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("fenced")).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0));
}
