//! A directory in which a user pastes what was printed, with the clients of the resource within reach.

use crate::server;
use crate::support::processes::new_mark;
use crate::support::run::{Ended, LocalStore, Running, binary};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Some clients are slow to start.
const LONG: Duration = Duration::from_secs(180);

/// Stands where `fenced` is looked for: the command with the token that the test chose.
const CHOSEN: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";

/// A user's place: a working directory and an environment.
pub struct Bench {
    root: TempDir,
    environment: Vec<(String, String)>,
    pub store: LocalStore,
}

impl Bench {
    pub fn new() -> Self {
        let root = TempDir::new().unwrap();
        // Servers that run as nobody keep their files in there.
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for directory in ["chosen", "real", "work"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        let chosen = root.path().join("chosen/fenced");
        fs::write(&chosen, CHOSEN).unwrap();
        fs::set_permissions(chosen, fs::Permissions::from_mode(0o755)).unwrap();
        symlink(binary(), root.path().join("real/fenced")).unwrap();
        Self { root, environment: Vec::new(), store: LocalStore::new() }
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// A directory for a server's files, which nobody may write to.
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.root().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        path
    }

    pub fn env(&mut self, name: &str, value: impl Into<String>) {
        self.environment.push((name.into(), value.into()));
    }

    /// The working directory.
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.work().join(name), text).unwrap();
    }

    /// The script, with `fenced` being what the test chose.
    pub fn start(&self, script: &str, token: &str, lineage: &str) -> Running {
        self.start_in(&self.work(), script, &[("FENCED_TOKEN", token), ("FENCED_LINEAGE", lineage)])
    }

    pub fn start_in(&self, directory: &Path, script: &str, variables: &[(&str, &str)]) -> Running {
        let mut command = self.shell("chosen", directory, script);
        command.envs(variables.iter().copied());
        Running::start(command, new_mark())
    }

    /// The script to its end, with a token.
    #[track_caller]
    pub fn run_as(&self, script: &str, token: &str, lineage: &str) -> Ended {
        self.start(script, token, lineage).wait(LONG)
    }

    /// The script to its end, without a token.
    #[track_caller]
    pub fn run(&self, script: &str) -> Ended {
        self.start_in(&self.work(), script, &[]).wait(LONG)
    }

    /// The script to its end, with the real fenced and a local store.
    #[track_caller]
    pub fn run_fenced(&self, script: &str) -> Ended {
        let mut command = self.shell("real", &self.work(), script);
        command.env("FENCED_STORE", self.store.to_string());
        Running::start(command, new_mark()).wait(LONG)
    }

    fn shell(&self, which: &str, directory: &Path, script: &str) -> Command {
        let mut command = Command::new("sh");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"FENCED_")) {
            command.env_remove(name);
        }
        command.args(["-c", script]).current_dir(directory).stdin(std::process::Stdio::null());
        command.env("PATH", format!("{}:{}", self.root().join(which).display(), server::path()));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What a script prints, which must succeed.
    #[track_caller]
    pub fn ask(&self, script: &str) -> String {
        self.run(script).exits(0).stdout.trim().to_owned()
    }
}
