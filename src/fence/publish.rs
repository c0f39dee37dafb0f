//! Publishing a file or a directory: readers see the old or the new, whole, and never an older one after a newer.
//!
//! Inside the gate: staged beside the destination and flushed, remembered by the gate, and only then given its name.
//! A directory is published as a symbolic link to a copy, since only a link can be replaced at one stroke.

use super::file::Gate;
use super::register::Mark;
use crate::store::contract::Failure;
use crate::sys::directory::{Directory, Unusable};
use crate::sys::durable;
use crate::token::Token;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// How the name of a staged file or directory ends.
const STAGED: &str = ".staged";
/// How the name of the link to a staged directory ends, until it gets the destination's.
const LINK: &str = ".link";

/// Where to publish to.
#[derive(Debug)]
pub struct Destination {
    directory: Directory,
    name: String,
}

impl Destination {
    /// The destination at this path, in a directory that can be trusted.
    ///
    /// # Errors
    /// A clause that names the path.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let named = path.file_name().and_then(|name| name.to_str());
        let name = named.ok_or_else(|| Failure::Refused(format!("{}: not a name to publish to", path.display())))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { directory: Directory::open(parent, "destination's directory")?, name: name.to_owned() })
    }

    /// The gate that belongs to it unless another is named.
    #[must_use]
    pub fn gate(&self) -> PathBuf {
        self.directory.path.join(format!(".{}.fence", self.name))
    }

    fn path(&self) -> PathBuf {
        self.directory.path.join(&self.name)
    }

    /// What a staged file or directory is called.
    fn staged(&self, version: &str) -> String {
        format!(".{}.{version}{STAGED}", self.name)
    }

    fn is_staged(&self, name: &str) -> bool {
        let version = name.strip_prefix('.').and_then(|rest| rest.strip_prefix(&self.name)?.strip_prefix('.'));
        let version = version.and_then(|rest| rest.strip_suffix(STAGED).or_else(|| rest.strip_suffix(LINK)));
        // A token and eight hex digits: nobody else's file is called so.
        version.and_then(|rest| rest.split_once('-')).is_some_and(|(token, random)| {
            Token::parse(token).is_ok() && random.len() == 8 && random.bytes().all(|b| b.is_ascii_hexdigit())
        })
    }

    /// From inside the gate: publishes `source`, if the token is accepted.
    ///
    /// # Errors
    /// `Stale` when it is not; then nothing was written. Otherwise nothing was published, but the gate may remember the
    /// token.
    pub fn publish(&self, source: &Path, gate: &Gate, mark: &Mark) -> Result<(), Failure> {
        gate.would_admit(mark)?;
        let before = fs::read_link(self.path()).ok().and_then(|link| link.into_os_string().into_string().ok());
        let version = self.staged(&format!("{}-{:08x}", mark.token, fastrand::u32(..)));
        let revealed = self.stage(source, &version).and_then(|staged| {
            gate.admit(mark)?;
            self.reveal(&staged)
        });
        // The version before may still have readers in it.
        let in_use = if revealed.is_ok() { vec![Some(version), before] } else { vec![before] };
        self.sweep(&in_use.into_iter().flatten().collect::<Vec<_>>());
        revealed
    }

    /// Makes the copy, and for a directory a link to it; returns what is to get the destination's name.
    fn stage(&self, source: &Path, version: &str) -> Result<String, Failure> {
        let told = fs::metadata(source).map_err(|error| failed(source, "be read", &error))?;
        let copied = self.directory.path.join(version);
        if told.is_file() {
            self.refuse_directory("a file")?;
            copy(source, &copied).map_err(|error| failed(&copied, "be written", &error))?;
            return Ok(version.to_owned());
        }
        if !told.is_dir() {
            return Err(Failure::Refused(format!("{}: neither a file nor a directory", source.display())));
        }
        self.refuse_directory("a symbolic link to one")?;
        copy_tree(source, &copied)?;
        let link = version.replace(STAGED, LINK);
        let path = self.directory.path.join(&link);
        symlink(version, &path).map_err(|error| failed(&path, "be made", &error))?;
        Ok(link)
    }

    /// Neither a file nor a link takes the place of a directory at one stroke.
    fn refuse_directory(&self, wanted: &str) -> Result<(), Failure> {
        let path = self.path();
        match fs::symlink_metadata(&path) {
            Ok(told) if told.is_dir() => Err(Failure::Refused(format!(
                "{}: it is a directory and cannot be replaced at one stroke, it has to be {wanted}; move it away first",
                path.display()
            ))),
            _ => Ok(()),
        }
    }

    fn reveal(&self, staged: &str) -> Result<(), Failure> {
        let path = self.path();
        let done = fs::rename(self.directory.path.join(staged), &path);
        let flushed = done.and_then(|()| durable::flush_directory(&self.directory));
        flushed.map_err(|error| failed(&path, "be replaced", &error))
    }

    /// Removes what is staged but for what is named: earlier versions, and what a publication that was killed has left.
    /// Only who is inside the gate stages, so nothing else is in use.
    fn sweep(&self, in_use: &[String]) {
        let Ok(entries) = fs::read_dir(&self.directory.path) else { return };
        for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
            if self.is_staged(&name) && !in_use.contains(&name) {
                let path = self.directory.path.join(&name);
                let is_tree = fs::symlink_metadata(&path).is_ok_and(|told| told.is_dir());
                let _ = if is_tree { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            }
        }
    }
}

/// Copies a file with its mode, and flushes it.
fn copy(source: &Path, target: &Path) -> io::Result<()> {
    fs::copy(source, target)?;
    fs::File::open(target)?.sync_all()
}

/// Copies a directory with all that is in it: files, directories and symbolic links, with their modes, flushed. The
/// directories get their modes and are flushed last, when they are complete.
fn copy_tree(source: &Path, target: &Path) -> Result<(), Failure> {
    for entry in WalkDir::new(source) {
        let entry = entry.map_err(|error| Failure::Refused(format!("{}: {error}", source.display())))?;
        let Ok(below) = entry.path().strip_prefix(source) else { continue };
        let to = target.join(below);
        let kind = entry.file_type();
        let done = if kind.is_dir() || below.as_os_str().is_empty() {
            fs::create_dir(&to)
        } else if kind.is_symlink() {
            fs::read_link(entry.path()).and_then(|link| symlink(link, &to))
        } else if kind.is_file() {
            copy(entry.path(), &to)
        } else {
            Err(io::Error::other("neither a file, a directory nor a symbolic link"))
        };
        done.map_err(|error| failed(entry.path(), "be copied", &error))?;
    }
    for entry in WalkDir::new(target).contents_first(true).into_iter().flatten().filter(|e| e.file_type().is_dir()) {
        let below = entry.path().strip_prefix(target).unwrap_or(Path::new(""));
        let done = fs::metadata(source.join(below))
            .and_then(|told| fs::set_permissions(entry.path(), told.permissions()))
            .and_then(|()| fs::File::open(entry.path())?.sync_all());
        done.map_err(|error| failed(entry.path(), "be written", &error))?;
    }
    Ok(())
}

fn failed(path: &Path, be: &str, error: &io::Error) -> Failure {
    Unusable::failed(&format!("{} cannot {be}", path.display()), error).into()
}
