//! What needs processes of its own: stopping, killing, other users. The test binary runs itself as the other process.

use super::*;
use crate::store::contract::Released;
use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::{Gid, Pid, chown, geteuid};
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const DIRECTORY: &str = "FENCED_TEST_DIRECTORY";
const WHAT: &str = "FENCED_TEST_WHAT";
/// The longest time that a process waits here before it should be killed.
const WAIT: Duration = Duration::from_millis(300);

/// Another process that does `what` in the directory.
fn other(directory: &Path, what: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "store::local::tests::processes::other_process"]);
    command.env(DIRECTORY, directory).env(WHAT, what).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Does nothing in a usual run: what the others start.
#[test]
fn other_process() {
    let (Ok(directory), Ok(what)) = (std::env::var(DIRECTORY), std::env::var(WHAT)) else { return };
    let until = (what != "forever").then_some(WAIT);
    let local = Local::open(Path::new(&directory), name(), Contender::default(), until).unwrap();
    run(async {
        let place = local.contend().await.unwrap();
        eprintln_now(if place == Place::Waiting { "waiting" } else { "granted" });
        match what.as_str() {
            "stopped" => raise(Signal::SIGSTOP).unwrap(),
            "withdrawn" => local.withdraw().await.unwrap(),
            "used" => assert_eq!(local.release(false).await, Ok(Released::Ours)),
            "forever" => drop(local.granted().await),
            _ => {}
        }
        // Past the moment at which the kernel would kill a waiter.
        tokio::time::sleep(if what == "used" { Duration::ZERO } else { WAIT + Duration::from_millis(1500) }).await;
        eprintln_now("done");
    });
}

/// A line for the parent, past the test harness.
fn eprintln_now(line: &str) {
    nix::unistd::write(std::io::stdout(), format!("\n@{line}\n").as_bytes()).unwrap();
}

/// Waits until the process has said that.
fn said(child: &mut Child, line: &str) {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut heard = lines.map_while(Result::ok).skip_while(|heard| heard.as_str() != format!("@{line}"));
    assert!(heard.next().is_some(), "it never said {line}");
}

#[test]
fn a_waiter_that_is_stopped_past_its_deadline_is_killed_and_those_behind_it_get_their_turn() {
    let directory = Room::new();
    run(async {
        let holder = directory.contender();
        taken(&holder).await;
        let mut stopped = other(directory.0.path(), "stopped").spawn().unwrap();
        said(&mut stopped, "waiting");
        let behind = directory.contender();
        queued(&behind).await;
        holder.release(false).await.unwrap();
        behind.granted().await.unwrap();
        assert_eq!(stopped.wait().unwrap().signal(), Some(9));
    });
}

#[test]
fn who_was_granted_the_lock_or_gave_up_is_not_killed() {
    let directory = Room::new();
    let granted = other(directory.0.path(), "granted").spawn().unwrap();
    let out = granted.wait_with_output();
    assert!(out.is_ok_and(|out| out.status.success()));
    run(async {
        let holder = directory.contender();
        taken(&holder).await;
        let mut withdrawn = other(directory.0.path(), "withdrawn").spawn().unwrap();
        assert!(withdrawn.wait().unwrap().success());
    });
}

#[test]
fn a_killed_holder_and_killed_waiters_are_succeeded_in_order() {
    let directory = Room::new();
    let mut children: Vec<_> = ["granted", "waiting", "waiting", "waiting"]
        .iter()
        .map(|place| {
            let mut child = other(directory.0.path(), "forever").spawn().unwrap();
            said(&mut child, place);
            child
        })
        .collect();
    run(async {
        let last = directory.contender();
        queued(&last).await;
        for at in [1, 0, 1, 0] {
            assert!(still_waits(&last).await);
            let mut child = children.remove(at);
            kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGKILL).unwrap();
            child.wait().unwrap();
        }
        assert_eq!(last.granted().await.unwrap().token.get(), 5);
    });
}

#[test]
fn two_users_of_one_group_share_a_lock() {
    let directory = Room::new();
    if !geteuid().is_root() {
        return;
    }
    let group = 4242;
    chown(directory.0.path(), None, Some(Gid::from_raw(group))).unwrap();
    fs::set_permissions(directory.0.path(), fs::Permissions::from_mode(0o2770)).unwrap();
    for (user, wanted) in [(4243, true), (4244, true)] {
        let run = other(directory.0.path(), "used").uid(user).gid(group).output();
        match run {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return,
            run => assert_eq!(run.unwrap().status.success(), wanted, "user {user}"),
        }
    }
    assert_eq!(fs::read(directory.lock_file()).unwrap()[31], 2);
}
