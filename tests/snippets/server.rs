//! Servers and clients of the resources: the installed ones, or those that `make setup-test` unpacked.

use crate::support::wait::until;
use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a server may take to come up on a busy machine.
const START: Duration = Duration::from_secs(60);

/// Where programs are looked for: `PATH`, where Debian keeps those that are no commands of users, what was unpacked.
pub fn path() -> String {
    let mut path = vec![env::var("PATH").unwrap_or_default(), "/usr/sbin".into()];
    let debian = |root: &str| format!("{root}/usr/lib/postgresql");
    let versions = std::fs::read_dir(debian("")).into_iter().flatten().flatten();
    path.extend(versions.map(|version| version.path().join("bin").display().to_string()));
    path.extend(env::var("FENCED_TEST_RESOURCES").ok().map(|unpacked| format!("{unpacked}/bin")));
    path.join(":")
}

/// Whether these programs are there. In CI they must be.
pub fn has(programs: &[&str]) -> bool {
    let path = path();
    let lacks = |name: &&&str| !path.split(':').any(|directory| Path::new(directory).join(name).is_file());
    let missing: Vec<_> = programs.iter().filter(lacks).collect();
    assert!(missing.is_empty() || env::var_os("CI").is_none(), "make setup-test brings {missing:?}");
    if !missing.is_empty() {
        eprintln!("left out, for want of {missing:?} (make setup-test)");
    }
    missing.is_empty()
}

/// A program that dies with the thread that started it; as nobody where it refuses to run as root.
pub fn program(name: &str, as_nobody: bool) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if as_nobody && nix::unistd::Uid::effective().is_root() {
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    }
    command.arg(name).env("PATH", path()).stdin(Stdio::null());
    command
}

/// A running server, killed when it is dropped.
pub struct Server(Child);

impl Server {
    /// Starts it and waits until it answers. What it prints goes to `log`.
    pub fn start(mut command: Command, log: PathBuf, answers: impl Fn() -> bool) -> Self {
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        let mut server = Self(child);
        let up = until(START, || (server.0.try_wait().unwrap().is_some() || answers()).then_some(()));
        let lives = server.0.try_wait().unwrap().is_none();
        assert!(up.is_some() && lives, "{command:?}: {}", std::fs::read_to_string(log).unwrap_or_default());
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
