//! Real etcd servers, one or three, of three versions. A dead test leaves none behind: each server dies with the thread
//! that started it.

mod access;
mod member;

pub use access::{Access, CI, PASSWORD, ask};
pub use member::Member;

use super::pki::Pair;
use super::wait::obtain;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
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
    /// TLS for clients. The servers then have a plain address besides, for the tests' own questions.
    pub tls: Option<Tls>,
    /// Further flags of the servers.
    pub flags: Vec<(&'static str, String)>,
}

impl Default for Options {
    fn default() -> Self {
        let (version, members) = (Version::V37, 1);
        Self { version, members, heartbeat_ms: 50, election_ms: 500, tls: None, flags: Vec::new() }
    }
}

/// What servers show to clients, and whom clients must be known to.
#[derive(Clone, Debug)]
pub struct Tls {
    pub server: Pair,
    /// The authority of the clients, when they have to show a certificate.
    pub clients: Option<PathBuf>,
}

/// A running cluster in a directory of its own.
pub struct Cluster {
    pub members: Vec<Member>,
    options: Options,
    /// What the members know of each other.
    peers: Vec<String>,
    dir: TempDir,
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
        let places: Vec<_> = (0..options.members).map(|n| Place::new(&format!("m{n}"))).collect();
        let mut cluster = Self {
            members: Vec::new(),
            options: options.clone(),
            peers: places.iter().map(Place::peer).collect(),
            dir,
        };
        for place in places {
            cluster.launch(&place, "new");
        }
        cluster
    }

    fn launch(&mut self, place: &Place, state: &str) {
        let member = Member::launched(&self.options, place, self.dir.path(), &self.peers.join(","), state);
        self.members.push(member);
    }

    /// Adds a member that learns and does not vote; it stays one.
    pub fn add_learner(&mut self) -> &Member {
        let place = Place::new("learner");
        let (name, url) = place.peer().split_once('=').map(|(n, u)| (n.to_owned(), u.to_owned())).expect("a peer");
        let added = self.etcdctl(&["member", "add", &name, "--learner", "--peer-urls", &url]);
        assert!(added.status.success(), "{added:?}");
        self.peers.push(place.peer());
        self.launch(&place, "existing");
        let learner = self.members.last().expect("it was added");
        obtain(START, || learner.learns().then_some(()));
        learner
    }

    /// As `--store` takes it, without a prefix.
    pub fn url(&self) -> String {
        let scheme = if self.options.tls.is_some() { "etcds" } else { "etcd" };
        format!("{scheme}://{}", self.addresses().join(","))
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
        command.args(["--pdeathsig", "KILL"]).arg(etcdctl()).args(["--endpoints", &self.members[0].control]);
        command.env("ETCDCTL_API", "3").args(arguments).stdin(Stdio::null());
        command
    }
}

/// Ports that nobody uses at this moment, from below those that the kernel hands out to connections.
pub fn free_ports(count: usize) -> Vec<u16> {
    let mut held = Vec::new();
    while held.len() < count {
        held.extend(TcpListener::bind(("127.0.0.1", fastrand::u16(15_000..32_000))).ok());
    }
    held.iter().map(|l| l.local_addr().expect("an address").port()).collect()
}

/// Where a member will be found: a name unlike any other server's, since who was faster on a port would otherwise be
/// taken for ours, and its ports.
struct Place {
    name: String,
    client: u16,
    peer: u16,
    control: u16,
}

impl Place {
    fn new(name: &str) -> Self {
        let ports = free_ports(3);
        let name = format!("{name}-{:x}", fastrand::u64(..));
        Self { name, client: ports[0], peer: ports[1], control: ports[2] }
    }

    fn peer(&self) -> String {
        format!("{}=http://127.0.0.1:{}", self.name, self.peer)
    }
}
