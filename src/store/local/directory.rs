//! Which directory the store is in, and whether its locks can be trusted: nobody else may move or remove them, and the
//! kernel that keeps them must be the only one.

use crate::store::contract::Failure;
use crate::sys::error::in_words;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat, stat};
use nix::sys::statfs::fstatfs;
use nix::unistd::{User, geteuid};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const OVERLAY: u32 = 0x794c_7630;
/// File systems of this machine alone, by the magic of `statfs(2)`. What is not in the list is refused.
const LOCAL: &[u32] = &[
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x2fc1_2fc1, // zfs
    0xf2f5_2010, // f2fs
    0xca45_1a4e, // bcachefs
    0x3153_464a, // jfs
    0x5265_4973, // reiserfs
    0x3434,      // nilfs2
    0x2405_1905, // ubifs
    OVERLAY,
];
/// Names for file systems that people do try.
const ELSEWHERE: &[(u32, &str)] = &[
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "ceph"),
    (0x0116_1970, "gfs2"),
    (0x7461_636f, "ocfs2"),
    (0x0bd0_0bd0, "lustre"),
    (0x5346_414f, "afs"),
    (0x4d44, "vfat"),
    (0xf15f, "ecryptfs"),
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
];

/// An open directory that can be trusted.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    /// Without symbolic links, `.` and `..`.
    pub path: PathBuf,
    /// Its owner's user id.
    pub owner: u32,
    /// Members of its group may make files in it.
    pub shared: bool,
    /// It is on an overlay file system, so that its locks are those of this container only.
    pub overlay: bool,
}

impl Directory {
    /// Opens a directory and checks it.
    ///
    /// # Errors
    /// A sentence that names it and the reason.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let path = path.canonicalize().map_err(|error| unusable(path, &error))?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        let fd = open(&path, flags, Mode::empty()).map_err(|errno| unusable(&path, &errno.into()))?;
        let told = fstat(&fd).map_err(|errno| unusable(&path, &errno.into()))?;
        check_owner(&path, told.st_uid, told.st_mode)?;
        check_parents(&path)?;
        let magic = fstatfs(&fd).map_err(|errno| unusable(&path, &errno.into()))?.filesystem_type().0;
        let overlay = check_file_system(&path, magic)? == OVERLAY;
        Ok(Self { fd, path, owner: told.st_uid, shared: told.st_mode & libc::S_IWGRP != 0, overlay })
    }

    /// Whether its path still leads to it.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn in_place(&self) -> io::Result<bool> {
        let ours = fstat(&self.fd)?;
        match stat(&self.path) {
            Ok(there) => Ok((there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)),
            Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            let quoted = path.to_string().replace('\'', r"'\''");
            Failure::Refused(format!(
                "the lock directory {path} does not exist, make it with: mkdir -p -m 700 -- '{quoted}'"
            ))
        }
        io::ErrorKind::NotADirectory => Failure::Refused(format!("the lock directory {path} is not a directory")),
        _ => super::file::failure(&format!("the lock directory {path} cannot be opened"), error),
    }
}

fn check_owner(path: &Path, owner: u32, mode: u32) -> Result<(), Failure> {
    let path = path.display();
    if mode & libc::S_IWOTH != 0 {
        // A directory like /tmp is meant to be so.
        let cure = if mode & libc::S_ISVTX == 0 { "chmod o-w it, or name another" } else { "name another" };
        return Err(Failure::Refused(format!(
            "the lock directory {path} may be written by everybody, who could remove locks that are held: {cure}"
        )));
    }
    if owner != 0 && owner != geteuid().as_raw() {
        return Err(Failure::Refused(format!(
            "the lock directory {path} belongs to user {owner}, not to root or to user {}: name another",
            geteuid()
        )));
    }
    Ok(())
}

/// Who may write a directory above may put another in this one's place, unless the sticky bit keeps them from it.
fn check_parents(path: &Path) -> Result<(), Failure> {
    for parent in path.ancestors().skip(1) {
        let told = stat(parent).map_err(|errno| unusable(parent, &errno.into()))?;
        if told.st_mode & libc::S_IWOTH != 0 && told.st_mode & libc::S_ISVTX == 0 {
            return Err(Failure::Refused(format!(
                "the lock directory {} may be replaced by everybody, since they may write {}: chmod o-w that, or name \
                 another",
                path.display(),
                parent.display()
            )));
        }
    }
    Ok(())
}

/// The magic, if it is that of a local file system.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the magic is 32 bits; the type varies")]
fn check_file_system(path: &Path, magic: libc::__fsword_t) -> Result<u32, Failure> {
    let magic = magic as u32;
    if LOCAL.contains(&magic) {
        return Ok(magic);
    }
    let name = ELSEWHERE.iter().find(|(known, _)| *known == magic).map_or("unknown", |(_, name)| name);
    Err(Failure::Refused(format!(
        "the lock directory {} is on a file system ({name}, type {magic:#x}) that is not known to be local: name a \
         directory on a local disk",
        path.display()
    )))
}

/// Where the locks of this user are when nobody said: `/var/lib/fenced` for root, otherwise below the home of the
/// password entry. Not `$HOME`: cron and systemd have another environment than a login has.
///
/// # Errors
/// A clause when the user has no home there.
pub fn default_directory() -> Result<PathBuf, String> {
    let user = geteuid();
    if user.is_root() {
        return Ok(PathBuf::from("/var/lib/fenced"));
    }
    Ok(home()?.join(".local/state/fenced"))
}

fn home() -> Result<PathBuf, String> {
    let user = geteuid();
    let none = |why: String| format!("there is no default lock directory ({why}): give --store file:///DIRECTORY");
    match User::from_uid(user) {
        Ok(Some(entry)) if entry.dir.is_absolute() && entry.dir.is_dir() => Ok(entry.dir),
        Ok(Some(entry)) => Err(none(format!("the home {} of user {user} does not exist", entry.dir.display()))),
        Ok(None) => Err(none(format!("user {user} has no password entry"))),
        Err(errno) => Err(none(format!("the password entry of user {user} cannot be read: {}", errno.desc()))),
    }
}

/// Makes the default directory where it is missing, for this user only, and what is missing above it (never the home).
///
/// # Errors
/// A clause when there is none, or when it cannot be made.
pub fn make_default() -> Result<PathBuf, String> {
    let path = default_directory()?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&path)
        .map_err(|error| format!("the lock directory {} cannot be made: {}", path.display(), in_words(&error)))?;
    Ok(path)
}

/// A directory as a store URL: `file://` and the path, percent-encoded outside `A-Za-z0-9/._~-`.
pub fn url(path: &Path) -> String {
    const PLAIN: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'_').remove(b'~').remove(b'-');
    format!("file://{}", percent_encoding::percent_encode(path.as_os_str().as_bytes(), PLAIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_refused_by_name_and_unknown_ones_too() {
        let refused = |magic| match check_file_system(Path::new("/d"), magic) {
            Err(Failure::Refused(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(refused(0x6969).contains("(nfs, type 0x6969)"), "{}", refused(0x6969));
        assert!(refused(0xff53_4d42).contains("cifs"));
        assert!(refused(0x6573_5546).contains("fuse"));
        assert!(refused(0x1234_5678).contains("(unknown, type 0x12345678)"));
        assert_eq!(check_file_system(Path::new("/d"), 0xef53), Ok(0xef53));
    }

    #[test]
    fn a_url_has_no_spaces_and_no_two_directories_share_one() {
        assert_eq!(url(Path::new("/var/lib/fenced")), "file:///var/lib/fenced");
        assert_eq!(url(Path::new("/a b/%20\n?#é")), "file:///a%20b/%2520%0A%3F%23%C3%A9");
    }

    #[test]
    fn the_default_directory_does_not_follow_the_environment() {
        let directory = default_directory().unwrap();
        if geteuid().is_root() {
            assert_eq!(directory, Path::new("/var/lib/fenced"));
        } else {
            assert!(directory.ends_with(".local/state/fenced"));
        }
    }
}
