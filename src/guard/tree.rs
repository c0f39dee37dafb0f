//! The tree below this process: walk it, signal it, kill it until nothing is left.
//!
//! Our own children cannot be reaped by anybody else, so a plain `kill` reaches them and nobody else. What is deeper is
//! reaped by its parent at any time: a pidfd is opened first, and then it is checked that the parent is the one we know.
//! Whatever a dying parent leaves behind comes to us as a subreaper.

use crate::sys::clock::now;
use crate::sys::proc::{self, Reaped, Stat};
use crate::timing::{LEAST_MARGIN, Moment};
use nix::sys::resource::{Resource, getrlimit};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// What one walk for the stop signal, or for names, may take at least and at most: under a fork storm it would never end.
pub const WALK: (Duration, Duration) = (Duration::from_millis(3), Duration::from_millis(20));
/// What the first passes of SIGKILL may take below the first level. Each four after them may take twice as much, up to
/// 32 times: under a fork storm the clock goes on while others run.
const PASS: Duration = Duration::from_millis(2);
/// The least time between two passes, or the dying get no processor to die on.
const PAUSE: Duration = Duration::from_micros(300);
/// The time between two passes once the margin is over and nothing new is found: what is left cannot be killed, or is
/// slow to die.
const GENTLE_PAUSE: Duration = Duration::from_millis(100);
/// How long new processes keep the passes from becoming gentle; what forks for longer is out of our reach.
const PURSUIT: Duration = Duration::from_secs(30);
/// How many handles are open at a time.
const HANDLES: usize = 16;
/// How many processes one walk sees at most; the next one sees the others.
const ROOM: usize = 16_384;

/// One process, as long as its parent does not reap it.
#[derive(Clone, Copy, Debug)]
struct Node {
    pid: i32,
    start: u64,
    threads: u32,
}

/// Everything below this process, but for the children that it had before.
#[derive(Debug)]
pub struct Tree {
    me: i32,
    /// Children that are none of ours, by pid and start time.
    strangers: Vec<(i32, u64)>,
    listed: bool,
    table: Vec<(i32, i32)>,
    first: Vec<i32>,
    found: Vec<i32>,
    queue: Vec<Node>,
}

/// A process below the first level, held so that its number cannot betray.
#[derive(Debug)]
struct Found {
    node: Node,
    handle: OwnedFd,
}

/// The children of this process, by pid and start time.
#[must_use]
pub fn children() -> Vec<(i32, u64)> {
    let mut tree = Tree::shallow(Vec::new());
    tree.look();
    tree.first.iter().filter_map(|&pid| Some((pid, proc::start_time(pid)?))).collect()
}

impl Tree {
    /// The tree below this process without `strangers` and what is below them.
    #[must_use]
    pub fn new(strangers: Vec<(i32, u64)>) -> Self {
        let (found, queue) = (Vec::with_capacity(ROOM), Vec::with_capacity(ROOM));
        Self { found, queue, ..Self::shallow(strangers) }
    }

    /// With room for the first level only.
    fn shallow(strangers: Vec<(i32, u64)>) -> Self {
        let listed = proc::lists_children();
        Self {
            me: proc::pid(),
            strangers,
            listed,
            table: Vec::with_capacity(if listed { 0 } else { ROOM * 4 }),
            first: Vec::with_capacity(ROOM),
            found: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// Sends a signal, and SIGCONT for those that are stopped, to everything that one walk of this length finds.
    ///
    /// Parents first, since a shell whose child has died goes on to its next line; but nobody before the walk is over,
    /// since what a dead parent leaves behind moves out of the walk's way.
    pub fn stop(&mut self, signal: i32, span: Duration) {
        let until = now() + span;
        let room = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft / 2);
        let room = usize::try_from(room).unwrap_or(ROOM).min(ROOM);
        let mut held = Vec::with_capacity(room);
        let tell = |found: &Found| {
            proc::signal_through(found.handle.as_fd(), signal);
            proc::signal_through(found.handle.as_fd(), libc::SIGCONT);
        };
        self.look();
        self.descend(until, |found| if held.len() < room { held.push(found) } else { tell(&found) });
        for &pid in &self.first {
            proc::signal(pid, signal);
            proc::signal(pid, libc::SIGCONT);
        }
        held.iter().for_each(tell);
    }

    /// Sends SIGKILL to everything that one pass finds: to all of the first level, and deeper for a short time. Deeper
    /// because a parent that is slow to die shields its children until they come to us.
    ///
    /// Returns when the youngest process that was found had started.
    pub fn kill(&mut self, span: Duration) -> u64 {
        self.look();
        for &pid in &self.first {
            proc::signal(pid, libc::SIGKILL);
            // The group that an unreaped child leads is in our tree; killing it whole leaves no time to fork.
            proc::signal(-pid, libc::SIGKILL);
        }
        self.descend(now() + span, |found| {
            proc::signal_through(found.handle.as_fd(), libc::SIGKILL);
            proc::signal_group_through(found.handle.as_fd(), libc::SIGKILL);
        })
    }

    /// What lives, as `name (pid)`, at most `most`.
    pub fn names(&mut self, most: usize) -> Vec<String> {
        self.look();
        let mut pids = self.first.clone();
        self.descend(now() + WALK.1, |found| pids.push(found.node.pid));
        let alive = pids.into_iter().filter(|&pid| Stat::of(pid).is_some_and(|stat| !stat.is_dead()));
        alive.take(most).map(|pid| format!("{} ({pid})", proc::name(pid).unwrap_or_default())).collect()
    }

    /// Reaps those children that ended and are ours. Returns whether none is left.
    pub fn reap(&mut self) -> bool {
        self.look();
        let ended = |&pid: &i32| matches!(proc::reap(pid), Reaped::Ended { .. } | Reaped::NoChildren);
        let all = self.first.iter().filter(|pid| ended(pid)).count() == self.first.len();
        // What a child left behind came to us as it died, after the list was read.
        all && {
            self.look();
            self.first.is_empty()
        }
    }

    /// Reads the first level. Nothing is reaped while a list is in use, so its numbers stay true.
    fn look(&mut self) {
        if !self.listed {
            proc::parents(&mut self.table);
        }
        let mut first = std::mem::take(&mut self.first);
        let threads = Stat::of(self.me).map_or(1, |stat| stat.threads);
        self.list(self.me, threads, &mut first);
        if !self.strangers.is_empty() {
            first.retain(|&pid| {
                let known = self.strangers.iter().find(|stranger| stranger.0 == pid);
                known.is_none_or(|&(_, start)| proc::start_time(pid) != Some(start))
            });
        }
        self.first = first;
    }

    /// Lists the children of a process.
    fn list(&self, pid: i32, threads: u32, into: &mut Vec<i32>) {
        into.clear();
        if self.listed {
            proc::children(pid, threads, into);
        } else {
            into.extend(self.table.iter().filter(|entry| entry.1 == pid).map(|entry| entry.0).take(ROOM));
        }
    }

    /// Visits everything below the first level, level by level, until there is no time left. Returns when the youngest
    /// process started.
    fn descend(&mut self, until: Moment, mut visit: impl FnMut(Found)) -> u64 {
        let mut youngest = 0;
        let mut listed = std::mem::take(&mut self.found);
        self.queue.clear();
        for next in 0.. {
            let parent = match self.first.get(next) {
                Some(&pid) => child_of_ours(pid),
                None if next >= self.first.len() + self.queue.len() => break,
                None => Some(self.queue[next - self.first.len()]),
            };
            let Some(parent) = parent else { continue };
            youngest = youngest.max(parent.start);
            self.list(parent.pid, parent.threads, &mut listed);
            for some in listed.chunks(HANDLES) {
                if now() >= until {
                    break;
                }
                for found in children_of(parent, some) {
                    if self.queue.len() < self.queue.capacity() {
                        self.queue.push(found.node);
                    }
                    visit(found);
                }
            }
            if now() >= until {
                break;
            }
        }
        self.found = listed;
        youngest
    }
}

/// A living child of ours, whose number cannot pass to another.
fn child_of_ours(pid: i32) -> Option<Node> {
    let stat = Stat::of(pid).filter(|stat| !stat.is_dead())?;
    Some(Node { pid, start: stat.start, threads: stat.threads })
}

/// Those of `pids` that are children of `parent`: opened first, and then still children of a number that is still the
/// same process.
fn children_of(parent: Node, pids: &[i32]) -> impl Iterator<Item = Found> {
    let mut found = [const { None }; HANDLES];
    for (slot, &pid) in found.iter_mut().zip(pids) {
        let Some(handle) = proc::handle(pid) else { continue };
        let Some(stat) = Stat::of(pid).filter(|stat| stat.parent == parent.pid) else { continue };
        *slot = Some(Found { node: Node { pid, start: stat.start, threads: stat.threads }, handle });
    }
    let same = proc::start_time(parent.pid) == Some(parent.start);
    found.into_iter().flatten().filter(move |_| same)
}

/// Passes of SIGKILL, with pauses in which the dying can die.
#[derive(Clone, Copy, Debug)]
pub struct Chase {
    began: Moment,
    next: Moment,
    passes: u32,
    youngest: u64,
}

impl Chase {
    /// A chase that begins now.
    #[must_use]
    pub fn begin(now: Moment) -> Self {
        Self { began: now, next: now, passes: 0, youngest: 0 }
    }

    /// When the next pass is due.
    #[must_use]
    pub fn due(&self) -> Moment {
        self.next
    }

    /// One pass, if it is due.
    pub fn pass(&mut self, tree: &mut Tree) {
        let before = now();
        if before < self.next {
            return;
        }
        let youngest = tree.kill(PASS * (1 << (self.passes / 4).min(5)));
        let after = now();
        let so_far = after.since(self.began);
        let gentle = so_far > LEAST_MARGIN && (youngest <= self.youngest || so_far > PURSUIT);
        // A long pass leaves the dying as much time as it took.
        self.next = after + if gentle { GENTLE_PAUSE } else { PAUSE.max(after.since(before)) };
        self.youngest = self.youngest.max(youngest);
        self.passes += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn shell(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).spawn().unwrap()
    }

    #[test]
    fn what_was_there_before_is_no_part_of_the_tree() {
        let mut child = shell("exec sleep 60");
        let pid = i32::try_from(child.id()).unwrap();
        let start = proc::start_time(pid).unwrap();
        let sees = |strangers| {
            let mut tree = Tree::new(strangers);
            tree.look();
            tree.first.contains(&pid)
        };
        let answers = (sees(vec![]), sees(vec![(pid, start)]), sees(vec![(pid, start + 1)]));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(answers, (true, false, true));
    }

    #[test]
    fn a_child_is_only_reached_through_the_parent_that_it_still_has() {
        let mut child = shell("sleep 60; true");
        let pid = i32::try_from(child.id()).unwrap();
        let mut below = Vec::with_capacity(8);
        let until = now() + Duration::from_secs(10);
        while below.is_empty() && now() < until {
            proc::children(pid, 1, &mut below);
        }
        let start = proc::start_time(pid).unwrap();
        let of = |pid, start| children_of(Node { pid, start, threads: 1 }, &below).count();
        let me = proc::pid();
        let counts = (of(pid, start), of(pid, start + 1), of(me, proc::start_time(me).unwrap()));
        end(&mut child, &below);
        assert_eq!(counts, (1, 0, 0));
    }

    /// The tree below a shell that has a child with two children of its own, and those three.
    fn three_below(child: &Child) -> (Tree, Vec<i32>) {
        let mut tree = Tree::new(vec![]);
        tree.me = i32::try_from(child.id()).unwrap();
        let until = now() + Duration::from_secs(10);
        let mut pids = vec![];
        while pids.len() < 3 && now() < until {
            tree.look();
            pids.clone_from(&tree.first);
            tree.descend(Moment::NEVER, |found| pids.push(found.node.pid));
        }
        (tree, pids)
    }

    fn end(child: &mut Child, below: &[i32]) {
        for &pid in below {
            proc::signal(pid, libc::SIGKILL);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn all_dead(pids: &[i32], within: Duration) -> bool {
        let until = now() + within;
        let dead = |&pid: &i32| Stat::of(pid).is_none_or(|stat| stat.is_dead());
        while !pids.iter().all(dead) && now() < until {}
        pids.iter().all(dead)
    }

    const DEEP: &str = "sh -c 'sleep 60 & setsid sleep 60 & wait' & wait; wait";

    /// Here, where this process is no subreaper, what a dying parent leaves behind may get out of one pass's way: hence
    /// the tries. A pass over direct children only would never do it.
    #[test]
    fn one_pass_kills_children_and_what_is_below_them() {
        let killed = (0..50).any(|_| {
            let mut child = shell(DEEP);
            let (mut tree, pids) = three_below(&child);
            tree.kill(Duration::from_secs(10));
            let dead = all_dead(&pids, Duration::from_millis(200));
            end(&mut child, &pids);
            pids.len() == 3 && dead
        });
        assert!(killed);
    }

    #[test]
    fn the_stop_signal_reaches_what_is_below_and_wakes_what_is_stopped() {
        let mut child = shell(DEEP);
        let (mut tree, pids) = three_below(&child);
        for &pid in &pids {
            proc::signal(pid, libc::SIGSTOP);
        }
        let named = tree.names(64);
        tree.stop(libc::SIGTERM, Duration::from_secs(10));
        let dead = all_dead(&pids, Duration::from_secs(10));
        end(&mut child, &pids);
        assert_eq!((pids.len(), dead), (3, true));
        assert!(pids.iter().all(|pid| named.iter().any(|name| name.ends_with(&format!("({pid})")))), "{named:?}");
    }

    #[test]
    fn passes_are_kept_apart_by_a_pause_and_become_gentle_after_the_margin() {
        let mut tree = Tree::new(vec![]);
        tree.me = 0;
        let mut chase = Chase::begin(now());
        chase.pass(&mut tree);
        assert!(chase.due() > now() - Duration::from_secs(1));
        let first = chase.due();
        chase.next = Moment::NEVER;
        chase.pass(&mut tree);
        assert_eq!(chase.due(), Moment::NEVER);
        let mut late = Chase { began: Moment(0), next: first, ..chase };
        while now() < first {}
        late.pass(&mut tree);
        assert!(late.due().since(first) >= GENTLE_PAUSE);
    }
}
