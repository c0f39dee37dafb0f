//! The two forks: of the guard, and of the command.

#![expect(unsafe_code, reason = "fork, exec, and what stands between them")]

use super::environment;
use crate::sys::inherited;
use crate::sys::proc;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::SigSet;
use nix::unistd::{ForkResult, Pid, fork, getppid, pipe2, setpgid};
use std::ffi::{CString, OsString, c_char};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Forks the guard, with every signal blocked. What is `kept` is fenced's alone: the guard closes its copy first.
///
/// # Errors
/// When the kernel refuses another process.
pub fn guard<T>(kept: T, guard: impl FnOnce()) -> nix::Result<(Pid, T)> {
    // With SIGCHLD ignored, children would vanish with their statuses; the command gets it back as it was.
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let mask = SigSet::all().thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)?;
    // SAFETY: the caller has no other threads yet, so the child may go on as the parent could.
    let forked = unsafe { fork() };
    if let Ok(ForkResult::Child) = forked {
        drop(kept);
        // Nothing may unwind into what the parent was doing.
        let status = i32::from(catch_unwind(AssertUnwindSafe(guard)).is_err());
        // SAFETY: ends this process without running what the parent has registered for its own end.
        unsafe { libc::_exit(status) };
    }
    mask.thread_set_mask()?;
    match forked? {
        ForkResult::Parent { child } => Ok((child, kept)),
        ForkResult::Child => unreachable!("the child has ended above"),
    }
}

/// The command between its fork and its reaping.
#[derive(Debug)]
pub struct Command {
    /// Its process id.
    pub pid: i32,
    /// Whether it leads a process group of its own.
    pub leads: bool,
    answer: Option<File>,
}

/// How the exec went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The command runs.
    Executed,
    /// It could not be executed: the error number.
    Failed(i32),
}

/// What the command is started with.
pub struct Plan<'a> {
    /// The file and its arguments.
    pub argv: &'a [CString],
    /// Variables that are set, over the inherited ones.
    pub set: &'a [(OsString, OsString)],
    /// Inherited variables that are removed.
    pub remove: &'a [OsString],
    /// Whether the command leads a process group of its own. Without one it stays in the guard's, which is fenced's: it is
    /// not joined by its number, which is none in a pid namespace that its leader is not in.
    pub leads: bool,
    /// What the command inherits a copy of, out of the way.
    pub descriptor: Option<BorrowedFd<'a>>,
}

impl Command {
    /// Forks the command. Whether it could be executed is told by [`Command::answer`].
    ///
    /// # Errors
    /// When there is no other process or descriptor to be had, or a name or value holds a NUL.
    pub fn fork(plan: &Plan<'_>) -> nix::Result<Self> {
        let guard = Pid::this();
        let variables = environment::compose(plan.set, plan.remove)?;
        let (reader, writer) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        // SAFETY: the guard has one thread.
        match unsafe { fork() }? {
            ForkResult::Child => {
                let errno = execute(plan, guard, variables);
                let _ = nix::unistd::write(&writer, &errno.to_ne_bytes());
                // SAFETY: as above.
                unsafe { libc::_exit(127) }
            }
            ForkResult::Parent { child } => {
                // Also from here, so that a signal to the group right after the fork finds it.
                if plan.leads {
                    let _ = setpgid(child, child);
                }
                Ok(Self { pid: child.as_raw(), leads: plan.leads, answer: Some(File::from(reader)) })
            }
        }
    }

    /// What to wait on for the answer.
    pub fn pending(&self) -> Option<&File> {
        self.answer.as_ref()
    }

    /// How the exec went; none before that is known, and once it was told.
    pub fn answer(&mut self) -> Option<Answer> {
        let mut errno = [0; 4];
        let answer = match self.answer.as_mut()?.read(&mut errno) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return None,
            Ok(0) | Err(_) => Answer::Executed,
            Ok(_) => Answer::Failed(i32::from_ne_bytes(errno)),
        };
        self.answer = None;
        Some(answer)
    }

    /// Forwards a signal: to its group when it leads one, else to itself. Only before it is reaped.
    pub fn signal(&self, signal: i32) {
        if !(self.leads && proc::signal(-self.pid, signal)) {
            proc::signal(self.pid, signal);
        }
    }
}

/// In the child: becomes the command, or returns the error number.
fn execute(plan: &Plan<'_>, guard: Pid, mut variables: Vec<CString>) -> i32 {
    environment::readdress(&mut variables, inherited::pid(), proc::pid());
    let argv = terminated(plan.argv);
    let envp = terminated(&variables);
    // SAFETY: the vectors end in a null and outlive the call; there is one thread, so nobody else reads `environ`.
    // execvp looks for the file in the PATH of `environ` and runs a script without an interpreter line by /bin/sh.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
            return Errno::last_raw();
        }
        // The guard may have died before the line above.
        if getppid() != guard {
            libc::_exit(127);
        }
        if plan.leads {
            let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
        }
        if let Some(descriptor) = plan.descriptor
            && let Err(errno) = copy_out_of_the_way(descriptor.as_raw_fd())
        {
            return errno as i32;
        }
        inherited::give_back();
        environ = envp.as_ptr();
        libc::execvp(argv[0], argv.as_ptr());
    }
    Errno::last_raw()
}

unsafe extern "C" {
    static mut environ: *const *const c_char;
}

/// Makes a copy that survives exec, with a number so high that scripts do not use it.
fn copy_out_of_the_way(fd: RawFd) -> nix::Result<()> {
    let mut result = Err(Errno::EMFILE);
    for least in [1000, 500, 200, 100, 50, 10, 3] {
        // SAFETY: makes a new descriptor; nobody in this process owns it, and exec follows.
        result = Errno::result(unsafe { libc::fcntl(fd, libc::F_DUPFD, least) }).map(|_| ());
        if result.is_ok() {
            break;
        }
    }
    result
}

fn terminated(words: &[CString]) -> Vec<*const c_char> {
    words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect()
}
