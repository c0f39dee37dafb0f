//! Programs of Debian's that are unpacked and not installed (`make setup-test`): an sshd, a sudo. In a mount namespace of
//! their own they lie over the system, so that they find themselves where they were built for.

use super::processes;
use super::run::Running;
use super::wait::{SOON, until};
use nix::sys::signal::Signal;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The system with the tools in it.
pub struct Tools {
    scratch: TempDir,
    directory: PathBuf,
}

impl Tools {
    /// None where they are not to be had, which is not so in CI: without root, or without `FENCED_TEST_TOOLS`.
    pub fn new() -> Option<Self> {
        let directory = std::env::var_os("FENCED_TEST_TOOLS").map(PathBuf::from).filter(|path| path.is_dir());
        let directory = directory.filter(|_| nix::unistd::Uid::effective().is_root());
        assert!(directory.is_some() || std::env::var_os("CI").is_none(), "this test needs root and FENCED_TEST_TOOLS");
        let tools = Self { scratch: TempDir::new().unwrap(), directory: directory? };
        fs::create_dir(tools.path("etc")).unwrap();
        let users = fs::read_to_string("/etc/passwd").unwrap();
        fs::write(tools.path("etc/passwd"), users + "sshd:x:64999:65534::/run/sshd:/usr/sbin/nologin\n").unwrap();
        Some(tools)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The words before a command that is to find the tools.
    pub fn starter(&self) -> Vec<String> {
        let (tools, scratch) = (self.directory.display(), self.scratch.path().display());
        let script = format!(
            "mount -t overlay none -o lowerdir={tools}/usr:/usr /usr && \
             mount -t overlay none -o lowerdir={scratch}/etc:{tools}/etc:/etc /etc && \
             mount -t tmpfs none /run && mkdir /run/sshd && exec \"$@\""
        );
        ["unshare", "--mount", "sh", "-c", &script, "sh"].map(str::to_owned).to_vec()
    }

    /// Starts a server on a free port.
    pub fn sshd(self) -> Sshd {
        for name in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(self.path(name))
                .stdin(Stdio::null())
                .status();
            assert!(made.unwrap().success());
        }
        fs::copy(self.path("user.pub"), self.path("authorized")).unwrap();
        loop {
            let port = super::etcd::free_ports(1)[0];
            if let Some(server) = self.serve(port) {
                return Sshd { server, port, tools: self };
            }
        }
    }

    /// None when it ends, since somebody else has the port by now.
    fn serve(&self, port: u16) -> Option<Running> {
        let config = self.path("sshd_config");
        let at = self.scratch.path().display();
        let text = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/authorized\n\
             StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin prohibit-password\nAcceptEnv {}\n",
            processes::MARK
        );
        fs::write(&config, text).unwrap();
        let starter = self.starter();
        let mut command = Command::new(&starter[0]);
        command.args(&starter[1..]).args(["/usr/sbin/sshd", "-D", "-e", "-f"]).arg(&config).stdin(Stdio::null());
        let mut server = Running::start(command, processes::new_mark());
        let up = until(SOON, || {
            let up = TcpStream::connect(("127.0.0.1", port)).is_ok() && server.stderr().contains("Server listening");
            (up || server.ended().is_some()).then_some(up)
        });
        assert!(up.is_some(), "{}", server.stderr());
        up.filter(|&up| up).map(|_| server)
    }
}

/// A running sshd of root's; it ends with this.
pub struct Sshd {
    server: Running,
    port: u16,
    tools: Tools,
}

impl Sshd {
    /// The words before a remote command line. Who runs there has the mark of who runs them here.
    pub fn client(&self) -> Vec<String> {
        let key = self.tools.path("user");
        let words = [
            "ssh",
            "-F",
            "/dev/null",
            "-q",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            &format!("SendEnv={}", processes::MARK),
            "-p",
            &self.port.to_string(),
            "-i",
            &text(&key),
            "root@127.0.0.1",
        ];
        words.map(str::to_owned).to_vec()
    }
}

impl Drop for Sshd {
    /// It writes its title where its environment was, so that its mark is gone.
    fn drop(&mut self) {
        processes::signal(self.server.pid(), Signal::SIGKILL);
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
