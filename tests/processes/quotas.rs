//! In a control group with a limit, as a container has one: the limit is named, and the run ends as it should.

use crate::support::run::{Ended, LocalStore, Run};
use crate::support::wait::{SOON, eventually};
use crate::{bash, is_root};
use std::fs;
use std::path::{Path, PathBuf};

/// A control group with a limit; removed at the end.
struct Group(PathBuf);

impl Group {
    /// By the first of these files, for the two versions of the interface, that there is.
    fn new(controller: &str, limits: [(&str, &str); 2]) -> Option<Self> {
        let name = format!("fenced-{}-{}", std::process::id(), fastrand::u32(..));
        let below = [Path::new("/sys/fs/cgroup").join(controller), "/sys/fs/cgroup".into()];
        let made = below.iter().zip(limits).find_map(|(parent, (file, value))| {
            let group = parent.join(&name);
            fs::create_dir(&group).ok()?;
            let group = Self(group);
            fs::write(group.0.join(file), value).ok()?;
            Some(group)
        });
        assert!(made.is_some() || std::env::var_os("CI").is_none(), "this test needs the controller {controller}");
        made
    }

    /// A run as one of the group.
    fn run(&self, store: &LocalStore, words: &str) -> Ended {
        let script =
            format!("echo $$ >{}/cgroup.procs && exec \"$F\" run --store \"$S\" --lock a -n {words}", self.0.display());
        bash(store, &script).wait(SOON)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        eventually(SOON, || fs::remove_dir(&self.0).is_ok());
    }
}

fn free(store: &LocalStore) {
    Run::new(store).lock("a").args(["-n"]).command(["true"]).output().exits(0);
}

#[test]
fn a_container_without_room_for_processes_is_refused_in_one_line_that_names_the_limit() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    for (limit, status) in [("1", 125), ("2", 69), ("3", 3)] {
        let Some(group) = Group::new("pids", [("pids.max", limit), ("pids.max", limit)]) else { return };
        let ended = group.run(&store, "-- sh -c 'exit 3'");
        assert_eq!(ended.code(), Some(status), "{limit}: {ended:?}");
        let lines = usize::from(status != 3);
        assert_eq!(ended.stderr.matches("the pids limit of the container").count(), lines, "{limit}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), lines, "{limit}: {ended:?}");
        free(&store);
    }
}

#[test]
fn a_command_that_uses_up_the_containers_processes_is_ended_and_its_status_told() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    let Some(group) = Group::new("pids", [("pids.max", "20"), ("pids.max", "20")]) else { return };
    let fork = "import os, time
try:
    while True:
        if os.fork() == 0: time.sleep(1000)
except OSError: os._exit(3)";
    let ended = group.run(&store, &format!("--grace 1s -- python3 -c '{fork}'")).exits(3);
    assert!(ended.stderr.contains("background processes") && ended.stderr.lines().count() == 1, "{ended:?}");
    free(&store);
}

#[test]
fn a_command_that_is_killed_at_the_containers_memory_limit_ends_as_killed_and_frees_the_lock() {
    if !is_root() {
        return;
    }
    let store = LocalStore::new();
    let limits = [("memory.limit_in_bytes", "60M"), ("memory.max", "60M")];
    let Some(group) = Group::new("memory", limits) else { return };
    let ended = group.run(&store, "-- python3 -c 'b = bytearray(300 << 20)'");
    assert_eq!((ended.signal(), ended.stderr.as_str()), (Some(9), ""), "{ended:?}");
    free(&store);
    let ended = group.run(&store, "-- sh -c 'python3 -c \"b = bytearray(300 << 20)\"; echo $?; exit 4'").exits(4);
    assert!(ended.stdout == "137\n" && !ended.stderr.contains("fenced"), "{ended:?}");
    free(&store);
}
