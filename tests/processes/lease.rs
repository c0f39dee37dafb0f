//! Nothing of the tree runs past the lease's end, whatever the tree, the machine or the user does.

use crate::support::etcd::{Cluster, Version};
use crate::support::processes::{self, is_alive, is_stopped};
use crate::support::run::{LocalStore, Run, Running};
use crate::support::wait::{SOON, eventually};
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const TTL: &str = "2s";
/// A renewal that was sent just before the server stopped moves the end by this much at most.
const LEASE_MS: u128 = 2000;

/// Appends the boot clock in ms to a file of its own, for ever, deaf to the stop signal.
const BEAT: &str = "import os,time,signal,sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
out = os.open('beats/%d' % os.getpid(), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while True:
    os.write(out, b'%d\\n' % (time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000))
    time.sleep(0.002)";

/// Beating children everywhere: in the background, in sessions of their own, without a parent.
const TREE: &str = "trap '' TERM; python3 -c \"$BEAT\" & setsid python3 -c \"$BEAT\" & \
    (setsid sh -c 'python3 -c \"$BEAT\" & python3 -c \"$BEAT\" &' &) ; python3 -c \"$BEAT\"";

fn boot_ms() -> u128 {
    Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap()).as_millis()
}

struct Beating {
    directory: TempDir,
    cluster: Cluster,
    run: Running,
}

impl Beating {
    fn start(script: &str, beats: usize) -> Self {
        let cluster = Cluster::single(Version::V37);
        let directory = TempDir::new().unwrap();
        fs::create_dir(directory.path().join("beats")).unwrap();
        let run = Run::new(&format!("etcd://{}", cluster.members[0].address))
            .lock("a")
            .args(["--ttl", TTL, "--grace", "300ms"])
            .env("BEAT", BEAT)
            .current_dir(directory.path())
            .script(script)
            .spawn();
        eventually(SOON, || beat_files(directory.path()).len() == beats);
        Self { directory, cluster, run }
    }

    /// Asserts that nothing beats after the moment at which a lease that was renewed now would end.
    fn ends_inside_the_lease(mut self) {
        let lease_ends = boot_ms() + LEASE_MS;
        self.run.gone(SOON);
        self.ended_before(lease_ends);
        self.run.wait(SOON).exits(76);
    }

    #[track_caller]
    fn ended_before(&self, lease_ends: u128) {
        let beats = beat_files(self.directory.path()).into_iter().map(|file| last_beat(&file));
        let last = beats.max().unwrap();
        assert!(last < lease_ends, "{} ms too late", last - lease_ends);
        assert!(last > lease_ends - LEASE_MS, "it did not beat when the lease began to run out");
    }
}

fn beat_files(directory: &Path) -> Vec<String> {
    let files = fs::read_dir(directory.join("beats")).unwrap();
    let read = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    read.filter(|beats| beats.contains('\n')).collect()
}

fn last_beat(beats: &str) -> u128 {
    let complete = &beats[..beats.rfind('\n').unwrap()];
    complete.rsplit('\n').next().unwrap().parse().unwrap()
}

/// Processes that do nothing but use the processors, nicely; they end with this.
struct Spinners(Vec<Child>);

impl Spinners {
    fn start(count: usize) -> Self {
        let spin = || {
            Command::new("setpriv")
                .args(["--pdeathsig", "KILL", "nice", "-n", "10", "sh", "-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .unwrap()
        };
        Self((0..count).map(|_| spin()).collect())
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_stubborn_tree_is_dead_before_the_lease_ends_when_the_server_does_not_answer() {
    let beating = Beating::start(TREE, 5);
    beating.cluster.members[0].stop();
    beating.ends_inside_the_lease();
}

#[test]
fn a_stubborn_tree_is_dead_before_the_lease_ends_on_a_machine_that_is_busy() {
    let beating = Beating::start(TREE, 5);
    let spinners = Spinners::start(32);
    beating.cluster.members[0].stop();
    beating.ends_inside_the_lease();
    drop(spinners);
}

#[test]
fn a_parent_that_is_slow_to_die_does_not_shield_its_children() {
    let parent = "import subprocess,os,signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
big = bytearray(500 << 20)
big[::4096] = b'x' * len(big[::4096])
for n in range(3): subprocess.Popen(['setsid', 'python3', '-c', os.environ['BEAT']])
signal.pause()";
    let beating = Beating::start(&format!("exec python3 -c \"{parent}\""), 3);
    beating.cluster.members[0].stop();
    beating.ends_inside_the_lease();
}

#[test]
fn a_guard_that_is_stopped_does_not_keep_the_tree_alive_past_the_lease() {
    let beating = Beating::start(TREE, 5);
    beating.cluster.members[0].stop();
    processes::signal(beating.run.guard(), Signal::SIGSTOP);
    beating.ends_inside_the_lease();
}

#[test]
fn the_guard_ends_the_tree_of_a_fenced_that_is_stopped_and_fenced_says_so_when_it_is_continued() {
    let beating = Beating::start(TREE, 5);
    let lease_ends = boot_ms() + LEASE_MS;
    let guard = beating.run.guard();
    beating.run.signal(Signal::SIGSTOP);
    eventually(SOON, || !is_alive(guard) || processes::children(guard).is_empty());
    eventually(SOON, || beating.run.tree().iter().all(|&pid| pid == beating.run.pid() || pid == guard));
    beating.ended_before(lease_ends);
    beating.run.signal(Signal::SIGCONT);
    beating.run.wait(SOON).exits(76);
}

#[test]
fn the_command_dies_with_a_guard_that_is_stopped_as_fenced_is_and_fenced_ends_the_rest_when_it_is_continued() {
    let mut beating = Beating::start(TREE, 5);
    let (guard, command) = (beating.run.guard(), beating.run.command());
    beating.cluster.members[0].stop();
    let lease_ends = boot_ms() + LEASE_MS;
    beating.run.signal(Signal::SIGSTOP);
    processes::signal(guard, Signal::SIGSTOP);
    eventually(SOON, || !is_alive(guard) && !is_alive(command));
    let now = boot_ms();
    assert!(now < lease_ends, "{} ms too late", now - lease_ends);
    beating.run.signal(Signal::SIGCONT);
    beating.run.gone(SOON);
    beating.run.wait(SOON).exits(76);
}

#[test]
fn a_guard_that_is_stopped_is_continued_and_the_run_goes_on() {
    let store = LocalStore::new();
    let run = Run::new(&store).lock("a").script("echo in; sleep 0.7; exit 6").spawn();
    run.prints("in");
    let guard = run.guard();
    processes::signal(guard, Signal::SIGSTOP);
    eventually(SOON, || !is_stopped(guard));
    assert!(is_alive(guard));
    run.wait(SOON).exits(6);
}

#[test]
fn what_a_shell_leaves_behind_is_told_to_stop_before_it_is_killed() {
    let cluster = Cluster::single(Version::V37);
    let script = "(trap 'echo told; exit' TERM; echo in; while :; do sleep 0.05; done) & sleep 1000";
    let run = Run::new(&format!("etcd://{}", cluster.members[0].address))
        .lock("a")
        .args(["--ttl", "3s", "--grace", "700ms"])
        .script(script)
        .spawn();
    run.prints("in");
    cluster.members[0].stop();
    let ended = run.wait(SOON).exits(76);
    assert_eq!(ended.stdout, "in\ntold\n");
}
