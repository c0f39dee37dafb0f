//! A lock's file: opened only if it is what it should be, made whole if there is none, and looked at by its path.

use super::names::Names;
use super::place;
use super::record::Record;
use crate::name::LockName;
use crate::store::contract::Failure;
use crate::sys::directory::{Directory, Unusable};
use crate::sys::durable;
use crate::sys::ofd::{self, Kind, Span};
use crate::sys::random;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{Mode, fstat, fstatat};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// An open lock file, and the directory that it was found in.
#[derive(Debug)]
pub struct LockFile {
    file: File,
    pub directory: Directory,
    pub names: Names,
    lock: LockName,
}

impl LockFile {
    /// Opens a lock's file to take part, and makes it where it is missing.
    ///
    /// # Errors
    /// A sentence that names the file or the directory.
    pub fn open_or_make(directory: &Path, lock: &LockName) -> Result<Self, Failure> {
        // Somebody else may make it, or remove it, between any two calls; but nobody does for long.
        for _ in 0..1000 {
            if let Some(file) = Self::open(directory, lock, OFlag::O_RDWR)? {
                return Ok(file);
            }
            make(&place::open(directory)?, lock)?;
        }
        Err(Failure::Unavailable(format!("the lock files in {} are removed all the time", directory.display())))
    }

    /// Opens a lock's file to look at it; `None` where there is none.
    ///
    /// # Errors
    /// As for [`LockFile::open_or_make`].
    pub fn open_to_look(directory: &Path, lock: &LockName) -> Result<Option<Self>, Failure> {
        Self::open(directory, lock, OFlag::O_RDONLY)
    }

    fn open(directory: &Path, lock: &LockName, access: OFlag) -> Result<Option<Self>, Failure> {
        let directory = place::open(directory)?;
        let names = Names::of(lock);
        let Some(file) = directory.open_file(&names.lock(), "lock file", access)? else { return Ok(None) };
        Ok(Some(Self { file, directory, names, lock: lock.clone() }))
    }

    /// Where it was found.
    pub fn path(&self) -> PathBuf {
        self.directory.path.join(self.names.lock())
    }

    /// Whether its path still leads to it.
    ///
    /// # Errors
    /// `Unavailable` when that cannot be told.
    pub fn in_place(&self) -> Result<bool, Failure> {
        let look = || {
            let ours = fstat(&self.file)?;
            match fstatat(&self.directory, self.names.lock().as_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(there) if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) => self.directory.in_place(),
                Ok(_) | Err(Errno::ENOENT) => Ok(false),
                Err(errno) => Err(errno.into()),
            }
        };
        look().map_err(|error: io::Error| {
            Failure::Unavailable(format!("the lock file {} cannot be looked at: {error}", self.path().display()))
        })
    }

    /// Reads the record. Only with the mutex is it sure to be whole.
    ///
    /// # Errors
    /// `Refused` when it is damaged.
    pub fn read(&self) -> Result<Record, Failure> {
        // One byte more than a record has, so that a longer file is noticed.
        let mut bytes = [0; 81];
        let mut length = 0;
        while length < bytes.len() {
            match self.file.read_at(&mut bytes[length..], length as u64) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(cannot(&self.path(), "be read", &error)),
            }
        }
        Record::decode(&bytes[..length], &self.lock).map_err(|why| self.refused(&why))
    }

    /// Overwrites the record and flushes it. The first number flushes the directory before: a number that was granted
    /// is never in a file that a crash can take away.
    ///
    /// # Errors
    /// What the disk said. The number may or may not have been written: it must not be granted.
    pub fn write(&self, record: &Record) -> Result<(), Failure> {
        let flushed = if record.number == 1 { durable::flush_directory(&self.directory) } else { Ok(()) };
        flushed
            .and_then(|()| durable::overwrite(&self.file, &record.encode()))
            .map_err(|error| cannot(&self.path(), "be written", &error))
    }

    /// Takes a lock if it is free, tells whether it was.
    pub fn try_lock(&self, kind: Kind, span: Span) -> Result<bool, Failure> {
        ofd::try_lock(&self.file, kind, span).map_err(|error| cannot(&self.path(), "be locked", &error))
    }

    /// Takes a lock, blocking the thread until it is free.
    pub fn lock(&self, kind: Kind, span: Span) -> Result<(), Failure> {
        ofd::lock(&self.file, kind, span).map_err(|error| cannot(&self.path(), "be locked", &error))
    }

    /// Gives up what we have locked in a range, in every process that has a copy of the descriptor.
    pub fn unlock(&self, span: Span) -> Result<(), Failure> {
        ofd::unlock(&self.file, span).map_err(|error| cannot(&self.path(), "be unlocked", &error))
    }

    /// A lock of somebody else that keeps us from such a one.
    pub fn conflict(&self, kind: Kind, span: Span) -> Result<Option<Span>, Failure> {
        ofd::conflict(&self.file, kind, span).map_err(|error| cannot(&self.path(), "be looked at", &error))
    }

    /// A refusal that names the file.
    pub fn refused(&self, why: &str) -> Failure {
        refused(&self.path(), why)
    }
}

impl AsFd for LockFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Makes a lock's file with a lineage of its own. That somebody else was faster is fine.
fn make(directory: &Directory, lock: &LockName) -> Result<(), Failure> {
    let names = Names::of(lock);
    remove_leftovers(directory, &names);
    let mut lineage = [0; 16];
    random::fill(&mut lineage)
        .map_err(|error| failure("there is no randomness for a lineage, /dev/urandom cannot be read", &error))?;
    let record = Record::new(lock, lineage).encode();
    match durable::publish(directory, &names.temporary(), &names.lock(), &record) {
        Ok(()) => Ok(()),
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => Ok(()),
        Err(error) => Err(cannot(&directory.path.join(names.lock()), "be made", &error)),
    }
}

/// Removes the temporary files that a crash has left here. Whose is removed between making and locking it makes another:
/// the names are random, so that nobody ever renames a file of somebody else.
fn remove_leftovers(directory: &Directory, names: &Names) {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let Ok(mut entries) = Dir::openat(directory, ".", flags, Mode::empty()) else { return };
    for entry in entries.iter().flatten() {
        match entry.file_name().to_str() {
            Ok(name) if names.is_temporary(name) => durable::remove_abandoned(directory, name),
            _ => {}
        }
    }
}

/// What a caller does about an error of the kernel: ask again, where it may pass, or give up.
pub fn failure(what: &str, error: &io::Error) -> Failure {
    Unusable::failed(what, error).into()
}

fn cannot(path: &Path, be: &str, error: &io::Error) -> Failure {
    failure(&format!("the lock file {} cannot {be}", path.display()), error)
}

fn refused(path: &Path, why: &str) -> Failure {
    Failure::Refused(format!("the lock file {} cannot be used: {why}", path.display()))
}
