//! The embedded local store under real processes: order, tokens, deaths, and what it refuses.

mod support;

use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;
use support::processes;
use support::run::{LocalStore, Run};
use support::wait::{SOON, eventually};

fn tokens(text: &str) -> Vec<u64> {
    text.lines().filter_map(|line| line.strip_prefix("token ")?.parse().ok()).collect()
}

/// Enters a section, notes whether anybody is inside, and leaves.
const SECTION: &str = "mkdir inside 2>/dev/null || echo overlap >> log; echo token $FENCED_TOKEN >> log; rmdir inside";

#[test]
fn many_contenders_never_overlap_and_their_tokens_rise_in_the_order_of_the_grants() {
    let store = LocalStore::new();
    let work = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..15 {
                    Run::new(&store).lock("a").script(SECTION).current_dir(work.path()).output().exits(0);
                }
            });
        }
    });
    let log = fs::read_to_string(work.path().join("log")).unwrap();
    let tokens = tokens(&log);
    assert!(!log.contains("overlap") && tokens.len() == 120, "{log}");
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

#[test]
fn contenders_that_are_killed_at_any_moment_leave_neither_an_overlap_nor_a_hole_that_blocks() {
    let store = LocalStore::new();
    let work = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for worker in 0..6u64 {
            let (store, work) = (&store, &work);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(worker);
                for _ in 0..15 {
                    let section = format!("{SECTION}; sleep 0.01");
                    let mut run = Run::new(store)
                        .lock("a")
                        .args(["--grace", "0"])
                        .script(&section)
                        .current_dir(work.path())
                        .spawn();
                    std::thread::sleep(Duration::from_millis(random.u64(0..60)));
                    if random.bool() {
                        processes::signal(run.pid(), Signal::SIGKILL);
                        run.gone(SOON);
                        // A section that was killed inside leaves its mark.
                        continue;
                    }
                    assert_eq!(run.wait(SOON).code(), Some(0));
                }
            });
        }
    });
    let log = fs::read_to_string(work.path().join("log")).unwrap_or_default();
    let tokens = tokens(&log);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    Run::new(&store).lock("a").args(["--wait", "5s"]).command(["true"]).output().exits(0);
}

#[test]
fn waiters_are_served_in_the_order_in_which_they_came() {
    let store = LocalStore::new();
    let work = tempfile::tempdir().unwrap();
    let holder = Run::new(&store)
        .lock("a")
        .script("echo in; until test -e go; do sleep 0.01; done")
        .current_dir(work.path())
        .spawn();
    holder.prints("in");
    let mut waiters = Vec::new();
    for number in 0..5 {
        let waiter = Run::new(&store)
            .lock("a")
            .args(["-v"])
            .script(&format!("echo {number} >> order"))
            .current_dir(work.path())
            .spawn();
        waiter.says("waiting");
        waiters.push(waiter);
    }
    processes::signal(waiters[2].pid(), Signal::SIGKILL);
    waiters[2].gone(SOON);
    fs::write(work.path().join("go"), "").unwrap();
    for (number, waiter) in waiters.into_iter().enumerate().filter(|(number, _)| *number != 2) {
        assert_eq!(waiter.wait(SOON).code(), Some(0), "{number}");
    }
    assert_eq!(fs::read_to_string(work.path().join("order")).unwrap(), "0\n1\n3\n4\n");
}

#[test]
fn a_stopped_waiter_is_killed_after_its_wait_and_does_not_block_those_behind_it() {
    let store = LocalStore::new();
    let holder = Run::new(&store).lock("a").script("echo in; sleep 60").spawn();
    holder.prints("in");
    let mut stopped = Run::new(&store).lock("a").args(["-v", "--wait", "500ms"]).command(["true"]).spawn();
    stopped.says("waiting");
    processes::signal(stopped.pid(), Signal::SIGSTOP);
    let behind = Run::new(&store).lock("a").args(["-v", "--wait", "30s"]).script("echo behind").spawn();
    behind.says("waiting");
    drop(holder);
    behind.prints("behind");
    eventually(SOON, || stopped.ended().is_some());
}

#[test]
fn a_lock_file_that_is_removed_under_a_holder_is_a_lost_lock() {
    let store = LocalStore::new();
    let run = Run::new(&store).lock("a").script("trap '' TERM; echo in; while :; do sleep 1; done").spawn();
    run.prints("in");
    fs::remove_file(store.path().join("a.lock")).unwrap();
    let ended = run.wait(SOON).exits(76);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn a_lock_file_that_is_damaged_or_no_plain_file_is_refused_with_a_sentence_that_names_it() {
    let store = LocalStore::new();
    let path = store.path().join("a.lock");
    let refused = |what: &str| {
        let ended = Run::new(&store).lock("a").command(["true"]).output().exits(69);
        let named = ended.stderr.contains("a.lock") && ended.stderr.lines().count() == 1;
        assert!(named, "{what}: {}", ended.stderr);
    };
    Run::new(&store).lock("a").command(["true"]).output().exits(0);
    let good = fs::read(&path).unwrap();
    for at in [0, 20, 40, 79] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&path, bad).unwrap();
        refused("a flipped bit");
    }
    fs::write(&path, &good[..79]).unwrap();
    refused("a short file");
    fs::write(&path, "").unwrap();
    refused("an empty file");
    fs::remove_file(&path).unwrap();
    fs::write(store.path().join("elsewhere"), &good).unwrap();
    symlink("elsewhere", &path).unwrap();
    refused("a symbolic link");
    fs::remove_file(&path).unwrap();
    fs::hard_link(store.path().join("elsewhere"), &path).unwrap();
    refused("a second link");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    refused("a directory");
}

#[test]
fn a_directory_that_others_may_write_is_refused() {
    for mode in [0o777, 0o1777, 0o702] {
        let store = LocalStore::new();
        fs::set_permissions(store.path(), fs::Permissions::from_mode(mode)).unwrap();
        let ended = Run::new(&store).lock("a").command(["true"]).output().exits(69);
        assert!(ended.stderr.contains(store.path().to_str().unwrap()), "{}", ended.stderr);
    }
}

/// A small file system of its own; needs root.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let options = Some("size=64k,mode=700");
        nix::mount::mount(Some("tmpfs"), directory.path(), Some("tmpfs"), nix::mount::MsFlags::empty(), options)
            .ok()?;
        Some(Self(directory))
    }

    fn fill(&self) {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(self.0.path().join("fill")).unwrap();
        while std::io::Write::write_all(&mut file, &[0; 512]).is_ok() {}
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = nix::mount::umount(self.0.path());
    }
}

#[test]
fn a_full_disk_damages_nothing_and_is_69() {
    let Some(disk) = Disk::new() else {
        assert!(std::env::var_os("CI").is_none(), "CI can mount a tmpfs");
        return;
    };
    let url = format!("file://{}", disk.0.path().display());
    Run::new(&url).lock("known").command(["true"]).output().exits(0);
    disk.fill();
    Run::new(&url).lock("known").script("exit 3").output().exits(3);
    let ended = Run::new(&url).lock("new").args(["--wait", "1s"]).command(["true"]).output().exits(69);
    assert!(ended.stderr.contains("no space left"), "{}", ended.stderr);
    fs::remove_file(disk.0.path().join("fill")).unwrap();
    Run::new(&url).lock("new").command(["true"]).output().exits(0);
}

#[test]
fn who_configured_no_store_is_told_what_the_lock_covers() {
    // As root the default directory is /var/lib/fenced; an ordinary user's is in the home of the password entry.
    let lock = format!("test-of-the-default-{}", std::process::id());
    let told = Run::bare().lock(&lock).command(["true"]).output().exits(0).stderr;
    let directory = told.split(", in ").nth(1).and_then(|rest| rest.split(" (").next()).expect(&told);
    let silent = Run::bare().args(["--store", "file:"]).lock(&lock).command(["true"]).output().exits(0).stderr;
    fs::remove_file(format!("{directory}/{lock}.lock")).unwrap();
    assert!(told.contains("no store configured") && told.lines().count() == 1, "{told}");
    assert_eq!(silent, "");
}
