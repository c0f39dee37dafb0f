//! Files that survive a crash of the machine: written whole, flushed, and only then given their name.

use super::ofd::{self, Kind, Span};
use nix::errno::Errno;
use nix::fcntl::{OFlag, RenameFlags, openat, renameat2};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::{Mode, fchmod, fstat};
use nix::unistd::{Gid, UnlinkatFlags, fchown, unlinkat};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// Locked in a temporary file by who writes it.
const IN_USE: Span = Span::byte(0);

/// Makes a new file that nobody else has open, with the permissions that its directory gives to its own users: the
/// directory's group, and its mode without the execute bits.
///
/// # Errors
/// As `openat(2)`, `EEXIST` included.
pub fn create(directory: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = File::from(openat(&directory, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    if let Err(error) = share(&directory, &file) {
        remove(directory, name);
        return Err(error);
    }
    Ok(file)
}

/// Gives a file its directory's group and mode; without the group, if we may not give it away, nothing for the group.
fn share(directory: impl AsFd, file: &File) -> io::Result<()> {
    let (from, to) = (fstat(directory)?, fstat(file)?);
    let mut mode = Mode::from_bits_truncate(from.st_mode & 0o666);
    if from.st_gid != to.st_gid {
        match fchown(file, None, Some(Gid::from_raw(from.st_gid))) {
            Ok(()) => {}
            Err(Errno::EPERM) => mode.remove(Mode::S_IRWXG),
            Err(errno) => return Err(errno.into()),
        }
    }
    fchmod(file, mode)?;
    Ok(())
}

/// Writes `bytes` under the name `name`, which must not exist: flushed under the name `temporary` before it gets its
/// own. What the caller may still have to do is [`flush_directory`].
///
/// # Errors
/// `EEXIST` when there is such a file, `ENOENT` when somebody removed the temporary one; otherwise as the calls.
pub fn publish(directory: impl AsFd, temporary: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    place(directory, temporary, name, bytes, RenameFlags::RENAME_NOREPLACE)
}

/// As [`publish`], in the place of what has the name, and with the directory flushed.
///
/// # Errors
/// As the calls.
pub fn replace(directory: impl AsFd, temporary: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    place(&directory, temporary, name, bytes, RenameFlags::empty())?;
    flush_directory(directory)
}

fn place(directory: impl AsFd, temporary: &str, name: &str, bytes: &[u8], how: RenameFlags) -> io::Result<()> {
    fits(bytes)?;
    let mut file = create(&directory, temporary)?;
    let done = ofd::lock(&file, Kind::Write, IN_USE)
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all())
        .and_then(|()| renameat2(&directory, temporary, &directory, name, how).map_err(io::Error::from));
    if done.is_err() {
        remove(directory, temporary);
    }
    done
}

/// Removes a temporary file that a crash has left; one that is being written stays.
pub fn remove_abandoned(directory: impl AsFd, temporary: &str) {
    let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let Ok(file) = openat(&directory, temporary, flags, Mode::empty()) else { return };
    if matches!(ofd::try_lock(&file, Kind::Write, IN_USE), Ok(true)) {
        remove(directory, temporary);
    }
}

/// Overwrites the file's beginning and flushes it. Less than a sector is never half written by a crash.
///
/// # Errors
/// As `pwrite(2)` and `fdatasync(2)`; what is in the file is then either the old or the new.
pub fn overwrite(file: &File, bytes: &[u8]) -> io::Result<()> {
    fits(bytes)?;
    file.write_all_at(bytes, 0)?;
    file.sync_data()
}

/// Whether a file that holds these bytes may be written under `ulimit -f`: beyond it the kernel writes a part of them, or
/// kills the process.
///
/// # Errors
/// `EFBIG` when it may not.
pub fn fits(bytes: &[u8]) -> io::Result<()> {
    let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE)?;
    if bytes.len() as u64 > limit { Err(Errno::EFBIG.into()) } else { Ok(()) }
}

/// Flushes the names in a directory.
///
/// # Errors
/// As `fsync(2)`.
pub fn flush_directory(directory: impl AsFd) -> io::Result<()> {
    nix::unistd::fsync(directory)?;
    Ok(())
}

/// Removes a file that nothing depends on; whether it was there does not matter.
pub fn remove(directory: impl AsFd, name: &str) {
    let _ = unlinkat(directory, name, UnlinkatFlags::NoRemoveDir);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_published_once_and_leaves_no_temporary() {
        let place = tempfile::tempdir().unwrap();
        let directory = File::open(place.path()).unwrap();
        publish(&directory, "t", "name", b"first").unwrap();
        let second = publish(&directory, "t", "name", b"second").unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(place.path().join("name")).unwrap(), b"first");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_new_file_has_the_permissions_of_its_directory_whatever_the_umask() {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o2770)).unwrap();
        let directory = File::open(place.path()).unwrap();
        let file = create(&directory, "name").unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o7777, 0o660);
    }

    #[test]
    fn an_abandoned_temporary_is_removed_and_one_in_use_stays() {
        let place = tempfile::tempdir().unwrap();
        let directory = File::open(place.path()).unwrap();
        let used = create(&directory, "used").unwrap();
        ofd::lock(&used, Kind::Write, IN_USE).unwrap();
        drop(create(&directory, "abandoned").unwrap());
        remove_abandoned(&directory, "used");
        remove_abandoned(&directory, "abandoned");
        assert!(place.path().join("used").exists() && !place.path().join("abandoned").exists());
    }

    #[test]
    fn an_overwritten_beginning_leaves_the_rest() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("name");
        fs::write(&path, b"old and the rest").unwrap();
        overwrite(&File::options().write(true).open(&path).unwrap(), b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new and the rest");
    }
}
