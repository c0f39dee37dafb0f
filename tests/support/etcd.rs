//! Real etcd servers, one or three, of three versions. A dead test leaves none behind: each server dies with the thread
//! that started it.

use super::wait::obtain;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const START: Duration = Duration::from_secs(60);

/// A line of releases that the store must work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V34,
    V35,
    V37,
}

impl Version {
    /// Every version there is on this machine. `FENCED_TEST_ETCD_34` and `_35` name the old ones; in CI they must be
    /// there.
    pub fn all() -> Vec<Self> {
        [Self::V34, Self::V35, Self::V37].into_iter().filter(|v| v.binary().is_some()).collect()
    }

    fn binary(self) -> Option<PathBuf> {
        let (variable, fallback) = match self {
            Self::V37 => return Some(etcd_bin_vendored::etcd_bin_path().expect("an etcd for this platform").into()),
            Self::V34 => ("FENCED_TEST_ETCD_34", "/usr/bin/etcd"),
            Self::V35 => ("FENCED_TEST_ETCD_35", "/usr/local/bin/etcd-3.5"),
        };
        let path = std::env::var_os(variable).map_or_else(|| PathBuf::from(fallback), PathBuf::from);
        if path.exists() {
            return Some(path);
        }
        assert!(std::env::var_os("CI").is_none(), "{variable} must name an etcd of that version");
        None
    }
}

/// The etcdctl that `make setup-test` puts beside the server of 3.4, or the one that is installed.
pub fn etcdctl() -> PathBuf {
    let beside = std::env::var_os("FENCED_TEST_ETCD_34").map(|etcd| PathBuf::from(etcd).with_file_name("etcdctl"));
    beside.filter(|path| path.exists()).unwrap_or_else(|| "etcdctl".into())
}

/// How a cluster is started.
#[derive(Clone, Debug)]
pub struct Options {
    pub version: Version,
    pub members: usize,
    pub heartbeat_ms: u32,
    pub election_ms: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { version: Version::V37, members: 1, heartbeat_ms: 50, election_ms: 500 }
    }
}

/// A running cluster in a directory of its own.
pub struct Cluster {
    pub members: Vec<Member>,
    _dir: TempDir,
}

/// One server of a cluster.
pub struct Member {
    /// `host:port` for clients.
    pub address: String,
    version: Version,
    arguments: Vec<String>,
    log: PathBuf,
    process: Option<Child>,
}

impl Cluster {
    pub fn single(version: Version) -> Self {
        Self::start(&Options { version, ..Options::default() })
    }

    pub fn three(version: Version) -> Self {
        Self::start(&Options { version, members: 3, ..Options::default() })
    }

    /// Starts the servers and waits until each answers a linearizable read. Ports are free ones; when somebody else was
    /// faster, all is done again.
    pub fn start(options: &Options) -> Self {
        for _ in 0..5 {
            let mut cluster = Self::spawn(options);
            if cluster.members.iter_mut().all(Member::came_up) {
                return cluster;
            }
        }
        panic!("etcd does not start");
    }

    fn spawn(options: &Options) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let ports = free_ports(options.members * 2);
        let (client, peer) = ports.split_at(options.members);
        // Unlike any other server's: who was faster on a port would otherwise be taken for ours.
        let tag = fastrand::u64(..);
        let name = |n: usize| format!("m{n}-{tag:x}");
        let peers: Vec<_> = (0..peer.len()).map(|n| format!("{}=http://127.0.0.1:{}", name(n), peer[n])).collect();
        let members = (0..options.members).map(|n| {
            let arguments = [
                ("--name", name(n)),
                ("--data-dir", dir.path().join(name(n)).display().to_string()),
                ("--listen-client-urls", format!("http://127.0.0.1:{}", client[n])),
                ("--advertise-client-urls", format!("http://127.0.0.1:{}", client[n])),
                ("--listen-peer-urls", format!("http://127.0.0.1:{}", peer[n])),
                ("--initial-advertise-peer-urls", format!("http://127.0.0.1:{}", peer[n])),
                ("--initial-cluster", peers.join(",")),
                ("--heartbeat-interval", options.heartbeat_ms.to_string()),
                ("--election-timeout", options.election_ms.to_string()),
                ("--logger", "zap".into()),
                ("--log-level", "warn".into()),
            ];
            let mut arguments: Vec<_> =
                arguments.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect();
            arguments.extend((options.version != Version::V34).then(|| "--unsafe-no-fsync".to_owned()));
            let mut member = Member {
                address: format!("127.0.0.1:{}", client[n]),
                version: options.version,
                arguments,
                log: dir.path().join(format!("{}.log", name(n))),
                process: None,
            };
            member.launch();
            member
        });
        Self { members: members.collect(), _dir: dir }
    }

    /// Every member's address.
    pub fn addresses(&self) -> Vec<String> {
        self.members.iter().map(|m| m.address.clone()).collect()
    }

    /// The index of the member that leads now; asks a member that is not `but`.
    pub fn leader(&self, but: Option<usize>) -> usize {
        obtain(START, || {
            (0..self.members.len()).filter(|&n| Some(n) != but).find(|&n| self.members[n].leads() == Some(true))
        })
    }

    /// Runs Debian's etcdctl against the first member.
    pub fn etcdctl(&self, arguments: &[&str]) -> Output {
        self.etcdctl_command(arguments).output().expect("etcdctl is installed")
    }

    /// Debian's etcdctl against the first member, not yet started.
    pub fn etcdctl_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(etcdctl()).args(["--endpoints", &self.members[0].address]);
        command.env("ETCDCTL_API", "3").args(arguments).stdin(Stdio::null());
        command
    }
}

impl Member {
    fn launch(&mut self) {
        let log = File::options().create(true).append(true).open(&self.log).expect("a log file");
        let binary = self.version.binary().expect("this version of etcd");
        // setpriv: without unsafe code here, the server dies with the thread that started it, however that ends.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(binary)
            .args(&self.arguments)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log)
            .spawn()
            .expect("etcd starts");
        self.process = Some(child);
    }

    /// False when it died instead.
    fn came_up(&mut self) -> bool {
        let deadline = std::time::Instant::now() + START;
        while std::time::Instant::now() < deadline {
            if self.healthy() && self.is_itself() {
                return true;
            }
            if self.process.as_mut().is_none_or(|p| p.try_wait().ok().flatten().is_some()) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("etcd does not answer: {}", std::fs::read_to_string(&self.log).unwrap_or_default());
    }

    /// Whether it answers a linearizable read.
    pub fn healthy(&self) -> bool {
        self.http("GET", "/health", "").is_ok_and(|answer| answer.contains(r#""health":"true""#))
    }

    /// Whether what answers on its address is the server that was started, not somebody else's.
    fn is_itself(&self) -> bool {
        let name = format!("\"{}\"", self.arguments[1]);
        self.http("POST", "/v3/cluster/member/list", "{}").is_ok_and(|members| members.contains(&name))
    }

    /// Whether it says that it leads.
    pub fn leads(&self) -> Option<bool> {
        let answer = self.http("POST", "/v3/maintenance/status", "{}").ok()?;
        let status: serde_json::Value = serde_json::from_str(&answer).ok()?;
        let leader = status.get("leader")?.as_str()?;
        Some(leader != "0" && status.get("header")?.get("member_id")?.as_str()? == leader)
    }

    /// How many calls of this method were started on it.
    pub fn calls(&self, method: &str) -> u64 {
        let metrics = self.http("GET", "/metrics", "").expect("metrics");
        let wanted = format!("grpc_method=\"{method}\"");
        let lines = metrics.lines().filter(|l| l.starts_with("grpc_server_started_total") && l.contains(&wanted));
        lines.filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// The process id.
    pub fn pid(&self) -> Pid {
        let id = self.process.as_ref().expect("it runs").id();
        Pid::from_raw(i32::try_from(id).expect("a process id"))
    }

    /// SIGSTOP: it accepts connections and never answers.
    pub fn stop(&self) {
        kill(self.pid(), Signal::SIGSTOP).expect("it runs");
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        kill(self.pid(), Signal::SIGCONT).expect("it runs");
    }

    /// SIGKILL, reaped.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().ok();
            process.wait().ok();
        }
    }

    /// Starts it again with its data, and waits until it answers.
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
        assert!(self.came_up(), "{}", std::fs::read_to_string(&self.log).unwrap_or_default());
    }

    fn http(&self, method: &str, path: &str, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        let chunked = answer.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = body.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        Ok(if chunked { unchunk(&body) } else { body })
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let died = self.process.as_mut().is_some_and(|p| p.try_wait().ok().flatten().is_some());
        if died || std::thread::panicking() {
            eprintln!(
                "{} {:?}: {}",
                self.address,
                self.version,
                std::fs::read_to_string(&self.log).unwrap_or_default()
            );
        }
        self.kill();
    }
}

fn unchunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let Ok(size @ 1..) = usize::from_str_radix(size, 16) else { break };
        whole.push_str(rest.get(..size).unwrap_or_default());
        body = rest.get(size + 2..).unwrap_or_default();
    }
    whole
}

/// Ports that nobody uses at this moment, from below those that the kernel hands out to connections.
pub fn free_ports(count: usize) -> Vec<u16> {
    let mut held = Vec::new();
    while held.len() < count {
        held.extend(TcpListener::bind(("127.0.0.1", fastrand::u16(15_000..32_000))).ok());
    }
    held.iter().map(|l| l.local_addr().expect("an address").port()).collect()
}
