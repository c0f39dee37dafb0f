//! One server: its process, and questions to it over plain HTTP.

use super::{Options, Place, START, Version};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// One server of a cluster.
pub struct Member {
    /// `host:port` for clients.
    pub address: String,
    /// `host:port` that speaks plainly: the same one, but for a server with TLS.
    pub control: String,
    version: Version,
    arguments: Vec<String>,
    log: PathBuf,
    process: Option<Child>,
}

impl Member {
    pub(super) fn launched(options: &Options, place: &Place, dir: &Path, peers: &str, state: &str) -> Self {
        let log = dir.join(format!("{}.log", place.name));
        let control = if options.tls.is_some() { place.control } else { place.client };
        let arguments = arguments(options, place, dir, peers, state);
        let (address, control) = (format!("127.0.0.1:{}", place.client), format!("127.0.0.1:{control}"));
        let mut member = Self { address, control, version: options.version, arguments, log, process: None };
        member.launch();
        member
    }

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
    pub(super) fn came_up(&mut self) -> bool {
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

    /// Whether what answers on its address is the server that was started, not somebody else's. From 3.7 on, one with
    /// users tells its name to none but them; only ours have any.
    fn is_itself(&self) -> bool {
        let name = format!("\"{}\"", self.arguments[1]);
        let known = |answer: String| answer.contains(&name) || answer.contains("user name is empty");
        self.http("POST", "/v3/cluster/member/list", "{}").is_ok_and(known)
    }

    /// Whether it is a learner that follows its leader.
    pub(super) fn learns(&self) -> bool {
        let metrics = self.http("GET", "/metrics", "").unwrap_or_default();
        ["etcd_server_is_learner 1", "etcd_server_has_leader 1"].iter().all(|line| metrics.contains(line))
    }

    /// Whether it says that it leads. From the metrics, which no user is asked for.
    pub fn leads(&self) -> Option<bool> {
        let metrics = self.http("GET", "/metrics", "").ok()?;
        let leads = |line: &str| line.strip_prefix("etcd_server_is_leader ").map(|value| value == "1");
        metrics.lines().find_map(leads)
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

    /// Starts it again with its data, and does not wait.
    pub fn relaunch(&mut self) {
        self.kill();
        self.launch();
    }

    /// Starts it again with its data, and waits until it answers.
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
        assert!(self.came_up(), "{}", std::fs::read_to_string(&self.log).unwrap_or_default());
    }

    fn http(&self, method: &str, path: &str, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.control)?;
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

fn arguments(options: &Options, place: &Place, dir: &Path, peers: &str, state: &str) -> Vec<String> {
    let here = |scheme: &str, port: u16| format!("{scheme}://127.0.0.1:{port}");
    let (client, listen) = if options.tls.is_some() {
        let client = here("https", place.client);
        (client.clone(), format!("{client},{}", here("http", place.control)))
    } else {
        (here("http", place.client), here("http", place.client))
    };
    let mut flags = vec![
        ("--name", place.name.clone()),
        ("--data-dir", dir.join(&place.name).display().to_string()),
        ("--listen-client-urls", listen),
        ("--advertise-client-urls", client),
        ("--listen-peer-urls", here("http", place.peer)),
        ("--initial-advertise-peer-urls", here("http", place.peer)),
        ("--initial-cluster", peers.to_owned()),
        ("--initial-cluster-state", state.to_owned()),
        ("--heartbeat-interval", options.heartbeat_ms.to_string()),
        ("--election-timeout", options.election_ms.to_string()),
        // The least: three servers that hash passwords would starve everything else here.
        ("--bcrypt-cost", "4".into()),
        ("--logger", "zap".into()),
        ("--log-level", "warn".into()),
    ];
    if let Some(tls) = &options.tls {
        flags.push(("--cert-file", tls.server.certificate.display().to_string()));
        flags.push(("--key-file", tls.server.key.display().to_string()));
        flags.extend(tls.clients.iter().map(|authority| ("--trusted-ca-file", authority.display().to_string())));
    }
    flags.extend(options.flags.iter().cloned());
    let mut words: Vec<_> = flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect();
    let asks = options.tls.as_ref().is_some_and(|tls| tls.clients.is_some());
    words.extend(asks.then(|| "--client-cert-auth".to_owned()));
    words.extend((options.version != Version::V34).then(|| "--unsafe-no-fsync".to_owned()));
    words
}
