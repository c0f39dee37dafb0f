//! Where the store is when nobody said, and its URL.

use crate::store::contract::Failure;
use crate::sys::directory::Directory;
use crate::sys::error::in_words;
use nix::unistd::{User, geteuid};
use std::fs::DirBuilder;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Opens the store's directory.
///
/// # Errors
/// A sentence that names it and what mends it.
pub fn open(path: &Path) -> Result<Directory, Failure> {
    Directory::open(path, "lock directory").map_err(|unusable| {
        if !unusable.missing {
            return unusable.into();
        }
        let quoted = path.display().to_string().replace('\'', r"'\''");
        Failure::Refused(format!("{}, make it with: mkdir -p -m 700 -- '{quoted}'", unusable.why))
    })
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
