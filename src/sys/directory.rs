//! Directories and files in them that can be trusted: nobody else may move or remove them, and the kernel that keeps
//! their locks must be the only one.

use super::error::{in_words, may_pass};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, fstat, stat};
use nix::sys::statfs::fstatfs;
use nix::unistd::geteuid;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

/// Why something cannot be used, in a clause that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The clause.
    pub why: String,
    /// Whether it may be otherwise at another time: a full disk, too many open files.
    pub may_pass: bool,
    /// There is no such thing.
    pub missing: bool,
}

impl Unusable {
    fn refused(why: String) -> Self {
        Self { why, may_pass: false, missing: false }
    }

    /// What the kernel said.
    #[must_use]
    pub fn failed(what: &str, error: &io::Error) -> Self {
        let missing = error.kind() == io::ErrorKind::NotFound;
        Self { why: format!("{what}: {}", in_words(error)), may_pass: may_pass(error), missing }
    }
}

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
    /// Opens a directory and checks it. `what` is what it is called in refusals.
    ///
    /// # Errors
    /// A clause that names it and the reason.
    pub fn open(path: &Path, what: &str) -> Result<Self, Unusable> {
        let unusable = |path: &Path, error: &io::Error| cannot_be_opened(what, path, error);
        let path = path.canonicalize().map_err(|error| unusable(path, &error))?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        let fd = open(&path, flags, Mode::empty()).map_err(|errno| unusable(&path, &errno.into()))?;
        let told = fstat(&fd).map_err(|errno| unusable(&path, &errno.into()))?;
        check_owner(what, &path, told.st_uid, told.st_mode)?;
        check_parents(what, &path)?;
        let magic = fstatfs(&fd).map_err(|errno| unusable(&path, &errno.into()))?.filesystem_type().0;
        let overlay = check_file_system(what, &path, magic)? == OVERLAY;
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

    /// Opens a file in it, if it is what it should be; `None` where there is none. `kind` is what the file is called in
    /// refusals. It is never made here.
    ///
    /// # Errors
    /// A clause that names the file and the reason.
    pub fn open_file(&self, name: &str, kind: &str, access: OFlag) -> Result<Option<File>, Unusable> {
        let path = self.path.join(name);
        let refused = |why: &str| Unusable::refused(format!("the {kind} {} cannot be used: {why}", path.display()));
        let failed =
            |errno: Errno| Unusable::failed(&format!("the {kind} {} cannot be opened", path.display()), &errno.into());
        // Non-blocking, so that a pipe in its place does not hang us before it is refused.
        let flags = access | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
        let file = match openat(self, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP) => return Err(refused("it is a symbolic link")),
            Err(Errno::EISDIR | Errno::ENXIO | Errno::ENODEV) => return Err(refused("it is not a regular file")),
            Err(errno) => return Err(failed(errno)),
        };
        let told = fstat(&file).map_err(failed)?;
        if told.st_nlink == 0 {
            return Ok(None);
        }
        self.check(&told).map_err(|why| refused(&why))?;
        Ok(Some(file))
    }

    /// A regular file with one name, which nobody wrote who may not make files here.
    fn check(&self, told: &FileStat) -> Result<(), String> {
        if told.st_mode & libc::S_IFMT != libc::S_IFREG {
            return Err("it is not a regular file".into());
        }
        if told.st_nlink > 1 {
            return Err(format!("it has {} names (hard links)", told.st_nlink));
        }
        let trusted = [0, geteuid().as_raw(), self.owner].contains(&told.st_uid);
        if !trusted && !self.shared {
            return Err(format!("it belongs to user {}", told.st_uid));
        }
        if told.st_mode & libc::S_IWOTH != 0 {
            return Err("everybody may write it".into());
        }
        Ok(())
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn cannot_be_opened(what: &str, path: &Path, error: &io::Error) -> Unusable {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            Unusable { why: format!("the {what} {path} does not exist"), may_pass: false, missing: true }
        }
        io::ErrorKind::NotADirectory => Unusable::refused(format!("the {what} {path} is not a directory")),
        _ => Unusable::failed(&format!("the {what} {path} cannot be opened"), error),
    }
}

fn check_owner(what: &str, path: &Path, owner: u32, mode: u32) -> Result<(), Unusable> {
    let path = path.display();
    if mode & libc::S_IWOTH != 0 {
        // A directory like /tmp is meant to be so.
        let cure = if mode & libc::S_ISVTX == 0 { "chmod o-w it, or name another" } else { "name another" };
        return Err(Unusable::refused(format!(
            "the {what} {path} may be written by everybody, who could remove what is in it: {cure}"
        )));
    }
    if owner != 0 && owner != geteuid().as_raw() {
        return Err(Unusable::refused(format!(
            "the {what} {path} belongs to user {owner}, not to root or to user {}: name another",
            geteuid()
        )));
    }
    Ok(())
}

/// Who may write a directory above may put another in this one's place, unless the sticky bit keeps them from it.
fn check_parents(what: &str, path: &Path) -> Result<(), Unusable> {
    for parent in path.ancestors().skip(1) {
        let told = stat(parent).map_err(|errno| cannot_be_opened(what, parent, &errno.into()))?;
        if told.st_mode & libc::S_IWOTH != 0 && told.st_mode & libc::S_ISVTX == 0 {
            return Err(Unusable::refused(format!(
                "the {what} {} may be replaced by everybody, since they may write {}: chmod o-w that, or name \
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
fn check_file_system(what: &str, path: &Path, magic: libc::__fsword_t) -> Result<u32, Unusable> {
    let magic = magic as u32;
    if LOCAL.contains(&magic) {
        return Ok(magic);
    }
    let name = ELSEWHERE.iter().find(|(known, _)| *known == magic).map_or("unknown", |(_, name)| name);
    Err(Unusable::refused(format!(
        "the {what} {} is on a file system ({name}, type {magic:#x}) that is not known to be local: name a \
         directory on a local disk",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_refused_by_name_and_unknown_ones_too() {
        let refused = |magic| check_file_system("lock directory", Path::new("/d"), magic).unwrap_err().why;
        assert!(refused(0x6969).contains("(nfs, type 0x6969)"), "{}", refused(0x6969));
        assert!(refused(0xff53_4d42).contains("cifs"));
        assert!(refused(0x6573_5546).contains("fuse"));
        assert!(refused(0x1234_5678).contains("(unknown, type 0x12345678)"));
        assert_eq!(check_file_system("lock directory", Path::new("/d"), 0xef53), Ok(0xef53));
    }
}
