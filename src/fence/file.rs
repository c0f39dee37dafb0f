//! A gate in a file: the state in place, and a lock on it while a writer is inside.

use super::record::{self, SECTOR};
use super::register::{Admission, Mark, Refusal, Register};
use crate::store::contract::Failure;
use crate::sys::clock;
use crate::sys::directory::{Directory, Unusable};
use crate::sys::durable;
use crate::sys::ofd::{self, Kind, Span};
use crate::timing::Moment;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{fstat, fstatat};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Locked by who is inside.
const INSIDE: Span = Span::byte(0);
/// Between two tries to get in.
const PAUSE: Duration = Duration::from_millis(5);
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// An open gate. Whoever is inside stays inside until the last copy of the descriptor is closed, or [`Gate::leave`].
#[derive(Debug)]
pub struct Gate {
    file: File,
    directory: Directory,
    name: String,
}

/// Where a gate is: the directory and the name in it.
fn place(path: &Path) -> Result<(PathBuf, String), Failure> {
    let refused = |why: &str| Failure::Refused(format!("gate {}: {why}", path.display()));
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| refused("not the name of a file"))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((parent.to_owned(), name.to_owned()))
}

fn open_directory(path: &Path) -> Result<Directory, Failure> {
    Directory::open(path, "gate's directory").map_err(Failure::from)
}

impl Gate {
    /// Opens the gate at this path.
    ///
    /// # Errors
    /// `Stale` when there is none: a state that is missing is never taken for an empty one. Otherwise a clause that names
    /// what cannot be trusted.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let (parent, name) = place(path)?;
        let directory = open_directory(&parent)?;
        match directory.open_file(&name, "gate", OFlag::O_RDWR)? {
            Some(file) => Ok(Self { file, directory, name }),
            None => Err(Failure::Stale(format!(
                "gate {} has no state; if it never had one, make it: fenced gate init {0}",
                path.display()
            ))),
        }
    }

    /// Makes an empty gate, or one that begins with `register`.
    ///
    /// # Errors
    /// `Stale` when there is one already.
    pub fn init(path: &Path, register: &Register) -> Result<(), Failure> {
        let (parent, name) = place(path)?;
        let directory = open_directory(&parent)?;
        let failed = |error: &io::Error| -> Failure {
            Unusable::failed(&format!("gate {} cannot be made", path.display()), error).into()
        };
        let temporary = format!(".{name}.{:016x}.tmp", fastrand::u64(..));
        match durable::publish(&directory, &temporary, &name, &record::encode(register)) {
            Ok(()) => durable::flush_directory(&directory).map_err(|error| failed(&error)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Failure::Stale(format!("gate {} is there already", path.display())))
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// Tries once to get inside.
    ///
    /// # Errors
    /// `Unavailable` when the gate was replaced or the kernel refuses.
    pub fn try_enter(&self) -> Result<bool, Failure> {
        if !ofd::try_lock(&self.file, Kind::Write, INSIDE).map_err(|error| self.failed("locked", &error))? {
            return Ok(false);
        }
        if self.is_in_place()? {
            return Ok(true);
        }
        Err(Failure::Unavailable(format!("gate {} was removed or replaced", self.path().display())))
    }

    /// Waits until nobody else is inside. Safe to drop.
    ///
    /// # Errors
    /// As [`Gate::try_enter`].
    pub async fn enter(&self) -> Result<(), Failure> {
        let mut pause = PAUSE;
        while !self.try_enter()? {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    /// As [`Gate::enter`], for who has no runtime. Tells whether it was entered until `until`.
    ///
    /// # Errors
    /// As [`Gate::try_enter`].
    pub fn enter_until(&self, until: Moment) -> Result<bool, Failure> {
        let mut pause = PAUSE;
        loop {
            if self.try_enter()? {
                return Ok(true);
            }
            if clock::now() >= until {
                return Ok(false);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Lets others in.
    pub fn leave(&self) {
        // What cannot be unlocked is when the descriptor is closed.
        let _ = ofd::unlock(&self.file, INSIDE);
    }

    /// Whether a writer would be admitted; remembers nothing.
    ///
    /// # Errors
    /// As [`Gate::admit`].
    pub fn would_admit(&self, mark: &Mark) -> Result<(), Failure> {
        self.judge(mark).map(drop)
    }

    fn judge(&self, mark: &Mark) -> Result<Admission, Failure> {
        let path = self.path();
        let refused = |refusal: Refusal| Failure::Stale(format!("gate {}: {refusal}", path.display()));
        self.read()?.admit(mark).map_err(refused)
    }

    /// From inside: admits a writer, and remembers it on disk before it may write.
    ///
    /// # Errors
    /// `Stale` when its token is refused, or the state is damaged; nothing was written then.
    pub fn admit(&self, mark: &Mark) -> Result<(), Failure> {
        match self.judge(mark)? {
            Admission::AsIs => Ok(()),
            Admission::After(next) => self.write(&next),
        }
    }

    /// What it remembers.
    ///
    /// # Errors
    /// `Stale` when that is damaged.
    pub fn read(&self) -> Result<Register, Failure> {
        // One byte more, so that a longer file is noticed.
        let mut bytes = [0; SECTOR + 1];
        let mut length = 0;
        while length < bytes.len() {
            match self.file.read_at(&mut bytes[length..], length as u64) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("read", &error)),
            }
        }
        record::decode(&bytes[..length]).map_err(|why| {
            let path = self.path();
            let path = path.display();
            Failure::Stale(format!("gate {path}: {why}; fenced gate reset {path} starts afresh"))
        })
    }

    /// From inside: remembers something else, whatever was there.
    ///
    /// # Errors
    /// What the disk said.
    pub fn write(&self, register: &Register) -> Result<(), Failure> {
        let bytes = record::encode(register);
        let written = durable::overwrite(&self.file, &bytes).and_then(|()| self.file.set_len(bytes.len() as u64));
        written.map_err(|error| self.failed("written", &error))
    }

    /// Whose it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.path.join(&self.name)
    }

    /// Whether its path still leads to it.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn is_in_place(&self) -> Result<bool, Failure> {
        let look = || -> io::Result<bool> {
            let ours = fstat(&self.file)?;
            match fstatat(&self.directory, self.name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(there) if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) => self.directory.in_place(),
                Ok(_) | Err(Errno::ENOENT) => Ok(false),
                Err(errno) => Err(errno.into()),
            }
        };
        look().map_err(|error| self.failed("looked at", &error))
    }

    fn failed(&self, be: &str, error: &io::Error) -> Failure {
        Unusable::failed(&format!("gate {} cannot be {be}", self.path().display()), error).into()
    }
}

impl AsFd for Gate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
