//! Killed at every system call: what is left can be read, never goes down, and shows no half file. Each attempt stops the
//! program at its next call more than the last, and kills it there.

use crate::scene::{Place, remembered, showing};
use crate::support::run::{Run, binary};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs;
use std::process::{Command, Stdio};

/// Runs a subcommand for so many stops at system calls (two for each), and kills it. False when it ended before.
fn killed_after(stops: usize, run: Run) -> bool {
    let run = run.into_std();
    let mut stopped = Command::new("sh");
    stopped.args(["-c", "kill -STOP $$; exec \"$@\"", "sh"]).arg(binary()).args(run.get_args().collect::<Vec<_>>());
    let mut child = stopped.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    assert!(matches!(waitpid(pid, Some(WaitPidFlag::WUNTRACED)), Ok(WaitStatus::Stopped(..))));
    ptrace::seize(pid, ptrace::Options::PTRACE_O_TRACESYSGOOD | ptrace::Options::PTRACE_O_TRACEEXEC).unwrap();
    kill(pid, Signal::SIGCONT).unwrap();
    let mut left = None;
    loop {
        match waitpid(pid, None).unwrap() {
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
                child.wait().ok();
                return false;
            }
            // The program has begun: from here on its calls count.
            WaitStatus::PtraceEvent(_, _, event) if event == libc_exec() => left = Some(stops),
            WaitStatus::PtraceSyscall(_) => {
                if let Some(count) = &mut left {
                    if *count == 0 {
                        kill(pid, Signal::SIGKILL).unwrap();
                        waitpid(pid, None).unwrap();
                        child.wait().ok();
                        return true;
                    }
                    *count -= 1;
                }
            }
            _ => {}
        }
        ptrace::syscall(pid, None).ok();
    }
}

fn libc_exec() -> i32 {
    ptrace::Event::PTRACE_EVENT_EXEC as i32
}

/// Kills at one stop after the other until the run gets through. Returns how many there were.
fn at_every_stop(run: impl Fn() -> Run, check: impl Fn(usize)) -> usize {
    // A call has two stops, and the two differ in nothing but whether it was made; both count.
    let mut stops = 0;
    while killed_after(stops, run()) {
        check(stops);
        stops += 1;
    }
    stops
}

#[test]
fn a_gate_that_is_advanced_is_the_old_or_the_new_one() {
    let place = Place::new();
    let gate = place.gate("g");
    showing(&["gate", "advance", &gate], 5).output().exits(0);
    let stops = at_every_stop(
        || showing(&["gate", "advance", &gate], 6),
        |stops| assert!(matches!(remembered(&gate), 5 | 6), "after {stops} stops"),
    );
    assert!(stops > 20, "only {stops} stops");
    assert_eq!(remembered(&gate), 6);
}

#[test]
fn a_gate_that_is_made_is_there_whole_or_not_at_all() {
    let place = Place::new();
    let gate = place.at("g");
    let make = || {
        fs::remove_file(&gate).ok();
        Run::of(["gate", "init", &gate])
    };
    let stops = at_every_stop(make, |stops| {
        if fs::exists(&gate).unwrap() {
            assert_eq!(remembered(&gate), 0, "after {stops} stops");
        }
    });
    assert!(stops > 20, "only {stops} stops");
}

#[test]
fn a_file_that_is_published_is_the_old_or_the_new_one_and_behind_a_gate_that_knows_it() {
    let place = Place::new();
    let (source, destination, gate) = (place.at("source"), place.at("site"), place.at(".site.fence"));
    let publish = |token: i64| showing(&["publish"], token).args([&source, &destination]);
    fs::write(&source, "5 ".repeat(9_000)).unwrap();
    publish(5).args(["--init"]).output().exits(0);
    fs::write(&source, "6 ".repeat(9_000)).unwrap();
    let stops = at_every_stop(
        || publish(6),
        |stops| {
            let text = fs::read_to_string(&destination).unwrap();
            let whole = ["5 ".repeat(9_000), "6 ".repeat(9_000)];
            assert!(whole.contains(&text), "after {stops} stops: half a file");
            assert!(
                remembered(&gate) >= i64::from(text.as_bytes()[0] - b'0'),
                "after {stops} stops: unknown to the gate"
            );
        },
    );
    assert!(stops > 40, "only {stops} stops");
    let left = fs::read_dir(place.path("")).unwrap().count();
    assert_eq!(left, 3, "something staged is left");
}

#[test]
fn a_directory_that_is_published_is_the_old_or_the_new_one() {
    let place = Place::new();
    let (source, destination, gate) = (place.path("source"), place.at("site"), place.at(".site.fence"));
    let publish = |token: i64| showing(&["publish"], token).args([&source.display().to_string(), &destination]);
    let write = |text: &str| {
        fs::create_dir_all(source.join("deep")).unwrap();
        fs::write(source.join("page"), text).unwrap();
        fs::write(source.join("deep/page"), text).unwrap();
    };
    write("5");
    publish(5).args(["--init"]).output().exits(0);
    write("6");
    let stops = at_every_stop(
        || publish(6),
        |stops| {
            let read = |name: &str| fs::read_to_string(place.path("site").join(name)).unwrap();
            assert_eq!(read("page"), read("deep/page"), "after {stops} stops");
            assert!(remembered(&gate) >= read("page").parse().unwrap(), "after {stops} stops: unknown to the gate");
        },
    );
    assert!(stops > 60, "only {stops} stops");
    let left = fs::read_dir(place.path("")).unwrap().count();
    assert_eq!(left, 5, "source, link, gate, this version and the one before");
}
