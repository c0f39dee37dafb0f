//! Whether a command can be found and executed, as far as that can be known before a lock is asked for.

use nix::unistd::{AccessFlags, access};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Why a command cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such file, or none in PATH.
    NotFound,
    /// There is one, but it cannot be executed.
    NotExecutable(&'static str),
}

/// The kernel's way of searching when PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Looks for `word` as `execvp(3)` would: a word with a slash is a path, another is searched for in `path`.
///
/// # Errors
/// Why it cannot be executed. A success is no promise: the file can change, and an interpreter can be missing.
pub fn check(word: &OsStr, path: Option<&OsStr>) -> Result<(), Refusal> {
    if Path::new(word).components().count() > 1 || word.as_encoded_bytes().contains(&b'/') {
        return look(Path::new(word));
    }
    let directories = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    let mut verdict = Err(Refusal::NotFound);
    for directory in std::env::split_paths(directories) {
        let candidate = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory }.join(word);
        match look(&candidate) {
            Ok(()) => return Ok(()),
            Err(Refusal::NotFound) => {}
            refused => verdict = refused,
        }
    }
    verdict
}

fn look(path: &Path) -> Result<(), Refusal> {
    let Ok(what) = std::fs::metadata(path) else {
        return Err(match access(path, AccessFlags::F_OK) {
            Err(nix::errno::Errno::EACCES) => Refusal::NotExecutable("permission denied"),
            _ => Refusal::NotFound,
        });
    };
    if what.is_dir() {
        return Err(Refusal::NotExecutable("is a directory"));
    }
    access(path, AccessFlags::X_OK).map_err(|_| Refusal::NotExecutable("permission denied"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file(directory: &Path, name: &str, mode: u32) -> PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_later_directory_of_the_path_can_have_the_command_that_an_earlier_one_cannot_run() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        file(first.path(), "job", 0o644);
        let path = std::env::join_paths([first.path(), second.path()]).unwrap();
        assert_eq!(check(OsStr::new("job"), Some(&path)), Err(Refusal::NotExecutable("permission denied")));
        file(second.path(), "job", 0o755);
        assert_eq!(check(OsStr::new("job"), Some(&path)), Ok(()));
    }

    #[test]
    fn a_word_with_a_slash_is_not_searched_for() {
        let directory = tempfile::tempdir().unwrap();
        let plain = file(directory.path(), "plain", 0o644);
        assert_eq!(check(plain.as_os_str(), None), Err(Refusal::NotExecutable("permission denied")));
        assert_eq!(check(directory.path().as_os_str(), None), Err(Refusal::NotExecutable("is a directory")));
        assert_eq!(check(OsStr::new("./no-such-file"), Some(OsStr::new("/bin"))), Err(Refusal::NotFound));
    }

    #[test]
    fn without_a_path_the_usual_directories_are_searched() {
        assert_eq!(check(OsStr::new("sh"), None), Ok(()));
        assert_eq!(check(OsStr::new("no-such-command"), None), Err(Refusal::NotFound));
    }
}
