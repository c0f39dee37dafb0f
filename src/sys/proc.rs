//! Other processes, as `/proc` and `waitpid` show them. Reading one allocates nothing.

#![expect(unsafe_code, reason = "waitpid with its raw status, pidfds")]

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What is used of `/proc/<pid>/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// `R`, `S`, `D`, `T`, `Z` …
    pub state: u8,
    /// The parent.
    pub parent: i32,
    /// The device number of the controlling terminal; 0 when there is none.
    pub terminal: i32,
    /// How many threads there are.
    pub threads: u32,
    /// When it started, in clock ticks since boot: together with the pid it names a process for good.
    pub start: u64,
}

impl Stat {
    /// Of a process; none when it is gone.
    #[must_use]
    pub fn of(pid: i32) -> Option<Self> {
        let mut buffer = [0; 1024];
        Self::parse(read(format_args!("/proc/{pid}/stat"), &mut buffer)?)
    }

    /// The name stands in parentheses and may itself hold `) `, so the fields are counted from its last one.
    fn parse(line: &[u8]) -> Option<Self> {
        let end = line.iter().rposition(|&byte| byte == b')')?;
        let text = std::str::from_utf8(&line[end + 1..]).ok()?;
        let mut fields = text.split_ascii_whitespace();
        Some(Self {
            state: *fields.next()?.as_bytes().first()?,
            parent: fields.next()?.parse().ok()?,
            terminal: fields.nth(2)?.parse().ok()?,
            threads: fields.nth(12)?.parse().ok()?,
            start: fields.nth(1)?.parse().ok()?,
        })
    }

    /// Whether it has ended and is only waiting to be reaped.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Whether it is stopped by a signal.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.state == b'T'
    }

    /// Whether it is stopped by a signal, and still this process's child.
    #[must_use]
    pub fn is_stopped_child_of(&self, parent: i32) -> bool {
        self.is_stopped() && self.parent == parent
    }
}

/// When a process started, in clock ticks since boot; none when it is gone.
#[must_use]
pub fn start_time(pid: i32) -> Option<u64> {
    Stat::of(pid).map(|stat| stat.start)
}

/// The name of a process, at most 15 bytes as the kernel keeps it; none when it is gone.
#[must_use]
pub fn name(pid: i32) -> Option<String> {
    let mut buffer = [0; 64];
    let name = read(format_args!("/proc/{pid}/comm"), &mut buffer)?;
    Some(String::from_utf8_lossy(name).trim_end_matches('\n').to_owned())
}

/// Whether `pid` is below `of` in the tree of processes. A process is not below itself.
#[must_use]
pub fn is_descendant(pid: i32, of: i32) -> bool {
    let mut at = pid;
    // The tree may change while it is climbed; no real one is this deep.
    for _ in 0..65_536 {
        match Stat::of(at) {
            Some(stat) if stat.parent == of => return true,
            Some(stat) if stat.parent > 0 => at = stat.parent,
            _ => return false,
        }
    }
    false
}

/// Whether `/proc` shows this process under its own pid. In a pid namespace without a `/proc` of its own it does not,
/// and walking that `/proc` would find strangers.
#[must_use]
pub fn has_own_proc() -> bool {
    std::fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == pid().to_string().as_str())
}

/// Whether this process has a controlling terminal.
#[must_use]
pub fn has_terminal() -> bool {
    Stat::of(pid()).is_some_and(|stat| stat.terminal != 0)
}

/// Whether this process is the leader of its session.
#[must_use]
pub fn leads_session() -> bool {
    nix::unistd::getsid(None).is_ok_and(|session| session.as_raw() == pid())
}

/// This process.
#[must_use]
pub fn pid() -> i32 {
    nix::unistd::getpid().as_raw()
}

/// Whether the kernel lists the children of a process (`CONFIG_PROC_CHILDREN`); [`parents`] is for where it does not.
#[must_use]
pub fn lists_children() -> bool {
    let me = pid();
    File::open(format!("/proc/{me}/task/{me}/children")).is_ok()
}

/// Appends the children of a process, those of all its threads, as far as `into` has room. Complete only for what
/// nobody reaps meanwhile.
pub fn children(pid: i32, threads: u32, into: &mut Vec<i32>) {
    if threads <= 1 {
        return children_of_thread(pid, pid, into);
    }
    each_number(format_args!("/proc/{pid}/task"), |thread| children_of_thread(pid, thread, into));
}

fn children_of_thread(pid: i32, thread: i32, into: &mut Vec<i32>) {
    let Some(mut file) = open(format_args!("/proc/{pid}/task/{thread}/children")) else { return };
    let mut buffer = [0; 4096];
    let mut number = 0;
    // A read that leaves room for another number was the last.
    let mut length = buffer.len();
    while length + 16 > buffer.len() {
        length = file.read(&mut buffer).unwrap_or(0);
        for &byte in &buffer[..length] {
            if byte.is_ascii_digit() {
                number = number * 10 + i32::from(byte - b'0');
            } else if number > 0 {
                if into.len() == into.capacity() {
                    return;
                }
                into.push(std::mem::take(&mut number));
            }
        }
    }
}

/// Replaces `into` by every process with its parent, as far as there is room.
pub fn parents(into: &mut Vec<(i32, i32)>) {
    into.clear();
    each_number(format_args!("/proc"), |pid| {
        if into.len() < into.capacity()
            && let Some(stat) = Stat::of(pid)
        {
            into.push((pid, stat.parent));
        }
    });
}

fn each_number(directory: fmt::Arguments<'_>, mut each: impl FnMut(i32)) {
    let Some(path) = Path::of(directory) else { return };
    let Ok(entries) = std::fs::read_dir(path.as_str()) else { return };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()));
    numbers.for_each(&mut each);
}

/// A path on the stack.
struct Path {
    bytes: [u8; 64],
    length: usize,
}

impl Path {
    fn of(text: fmt::Arguments<'_>) -> Option<Self> {
        let mut path = Self { bytes: [0; 64], length: 0 };
        path.write_fmt(text).ok()?;
        Some(path)
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl fmt::Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

fn open(path: fmt::Arguments<'_>) -> Option<File> {
    File::open(Path::of(path)?.as_str()).ok()
}

fn read<'a>(path: fmt::Arguments<'_>, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let length = open(path)?.read(buffer).ok()?;
    Some(&buffer[..length])
}

/// What `waitpid` gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaped {
    /// There are children, and none of them has changed.
    Nothing,
    /// There are no children: the certificate that nothing is left of a tree, in a subreaper.
    NoChildren,
    /// A child has ended and is reaped; its number may belong to somebody else from now on.
    Ended {
        /// Which.
        pid: i32,
        /// As `waitpid(2)` gave it.
        status: i32,
    },
    /// A child was stopped.
    Stopped {
        /// Which.
        pid: i32,
        /// By what.
        signal: i32,
    },
}

/// Takes one change of one child, or of any with -1, without waiting.
#[must_use]
pub fn reap(pid: i32) -> Reaped {
    let mut status = 0;
    // SAFETY: the kernel writes one integer to a valid pointer.
    match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG | libc::WUNTRACED) } {
        0 => Reaped::Nothing,
        -1 => match nix::errno::Errno::last() {
            nix::errno::Errno::ECHILD => Reaped::NoChildren,
            _ => Reaped::Nothing,
        },
        pid if libc::WIFSTOPPED(status) => Reaped::Stopped { pid, signal: libc::WSTOPSIG(status) },
        pid => Reaped::Ended { pid, status },
    }
}

/// A handle on a process that a reused number cannot betray. None when it is gone, or before Linux 5.3.
#[must_use]
pub fn handle(pid: i32) -> Option<OwnedFd> {
    // SAFETY: no pointers; a descriptor that was returned is new, close-on-exec and owned by nobody else.
    unsafe {
        let fd = i32::try_from(libc::syscall(libc::SYS_pidfd_open, pid, 0)).ok().filter(|&fd| fd >= 0)?;
        Some(OwnedFd::from_raw_fd(fd))
    }
}

/// Signals the process behind a handle, if it is still there and we may.
pub fn signal_through(handle: BorrowedFd<'_>, signal: i32) {
    send(handle, signal, 0);
}

/// Signals the process group that the process behind a handle leads, if it leads one. Nothing before Linux 6.9.
pub fn signal_group_through(handle: BorrowedFd<'_>, signal: i32) {
    const PROCESS_GROUP: libc::c_uint = 1 << 2;
    send(handle, signal, PROCESS_GROUP);
}

fn send(handle: BorrowedFd<'_>, signal: i32, flags: libc::c_uint) {
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: no siginfo is passed; the descriptor is borrowed for the call.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, handle.as_raw_fd(), signal, none, flags) };
}

/// Signals a process, or with a negative number its group. Only for what cannot have been reaped: an unreaped child.
///
/// Returns whether anybody was signalled.
#[expect(clippy::must_use_candidate, reason = "mostly nothing can be done about it")]
pub fn signal(pid: i32, signal: i32) -> bool {
    // SAFETY: no pointers.
    pid != 0 && pid != -1 && unsafe { libc::kill(pid, signal) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = b"77 (a) S 1 (b)) T 42 77 77 34816 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 123456 9 9\n";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(stat, Stat { state: b'T', parent: 42, terminal: 34816, threads: 3, start: 123_456 });
    }

    #[test]
    fn a_short_or_strange_line_is_no_process_and_no_panic() {
        for line in [&b""[..], b"77", b"77 (x", b"77 (x)", b"77 (x) S", b"77 (x) S one 2 3 4", b")", b"\xff)\xff"] {
            assert_eq!(Stat::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn this_process_is_found_with_its_parent_and_its_name() {
        let stat = Stat::of(pid()).unwrap();
        assert_eq!(stat.parent, nix::unistd::getppid().as_raw());
        assert!(!stat.is_dead() && stat.threads >= 1 && stat.start > 0);
        assert_eq!(start_time(pid()), Some(stat.start));
        assert!(has_own_proc());
        assert_eq!(name(pid()).unwrap(), std::fs::read_to_string("/proc/self/comm").unwrap().trim_end());
    }

    #[test]
    fn a_process_is_below_its_parent_and_grandparent_and_not_below_itself_or_its_child() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let below = i32::try_from(child.id()).unwrap();
        let answers = (
            is_descendant(below, pid()),
            is_descendant(below, nix::unistd::getppid().as_raw()),
            is_descendant(below, below),
            is_descendant(pid(), below),
        );
        let mut found = Vec::with_capacity(64);
        children(pid(), Stat::of(pid()).unwrap().threads, &mut found);
        let mut table = Vec::with_capacity(65_536);
        parents(&mut table);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(answers, (true, true, false, false));
        assert!(!lists_children() || found.contains(&below));
        assert!(table.contains(&(below, pid())));
    }

    #[test]
    fn a_process_that_is_gone_has_nothing() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = i32::try_from(child.id()).unwrap();
        child.wait().unwrap();
        assert_eq!((Stat::of(gone), name(gone)), (None, None));
        assert!(!is_descendant(gone, pid()));
    }

    #[test]
    fn no_call_ever_signals_everybody() {
        assert!(!signal(0, libc::SIGCONT) && !signal(-1, libc::SIGCONT));
    }
}
