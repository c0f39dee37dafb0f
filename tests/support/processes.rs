//! Looking at processes by /proc: who is whose child, what state they are in, what is left of a marked tree.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// The variable that marks everything a run started, however far it went from its parent.
pub const MARK: &str = "FENCED_TEST_MARK";

/// A mark that no other test has.
pub fn new_mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The processes whose environment at their last exec (or their parent's) had the mark; zombies have none any more.
/// Two looks, since a process that forks and ends while the first one walks /proc can slip past it.
pub fn marked(mark: &str) -> Vec<i32> {
    marked_by(|found| found == mark)
}

/// The same for marks of which only the beginning is known.
pub fn marked_by(is_wanted: impl Fn(&str) -> bool) -> Vec<i32> {
    let mut found = look_for(&is_wanted);
    found.extend(look_for(&is_wanted));
    found.sort_unstable();
    found.dedup();
    found.retain(|&pid| is_alive(pid));
    found
}

fn look_for(is_wanted: impl Fn(&str) -> bool) -> Vec<i32> {
    let prefix = format!("{MARK}=");
    let has_mark = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut marks = environment
            .split(|&byte| byte == 0)
            .filter_map(|variable| std::str::from_utf8(variable.strip_prefix(prefix.as_bytes())?).ok());
        marks.any(&is_wanted)
    };
    all().into_iter().filter(has_mark).collect()
}

/// The direct children of a process, the zombies among them too.
pub fn children(parent: i32) -> Vec<i32> {
    all().into_iter().filter(|&pid| stat(pid).is_some_and(|stat| stat.parent == parent)).collect()
}

/// Whether the process exists and is no zombie.
pub fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Whether the process is stopped by a signal.
pub fn is_stopped(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| stat.state == 'T')
}

/// The process's name, none when it is gone.
pub fn name(pid: i32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned())
}

/// Sends a signal; that the process is gone already is fine.
pub fn signal(pid: i32, signal: Signal) {
    assert!(pid > 1, "{pid} is no process of a test");
    let _ = kill(Pid::from_raw(pid), signal);
}

struct Stat {
    state: char,
    parent: i32,
}

fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    Some(Stat { state: fields.next()?.chars().next()?, parent: fields.next()?.parse().ok()? })
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}
