//! What these tests share: clusters with users, and runs that know a password.

use crate::support::etcd::{Access, CI, Cluster, Options, PASSWORD, Tls, Version};
use crate::support::pki::{Authority, Pair};
use crate::support::run::{Ended, Run};
use etcd_client::{Client, Error, GetOptions};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// What the restricted user may read and write.
pub const PREFIX: &str = "/fenced/v1/";

/// Does the same on every version at once.
pub fn on_every_version(check: impl Fn(Version) + Sync) {
    std::thread::scope(|scope| {
        let check = &check;
        let started: Vec<_> =
            Version::all().into_iter().map(|version| (version, scope.spawn(move || check(version)))).collect();
        for (version, thread) in started {
            assert!(thread.join().is_ok(), "on {version:?}");
        }
    });
}

/// A cluster with users, and the restricted one's password in a file.
pub struct Users {
    pub cluster: Cluster,
    pub access: Access,
    files: TempDir,
}

impl Users {
    /// One member that the restricted user may use below [`PREFIX`], started with these flags.
    pub fn single(version: Version, flags: Vec<(&'static str, String)>) -> Self {
        Self::on(Cluster::start(&Options { version, flags, ..Options::default() }), PREFIX)
    }

    pub fn on(cluster: Cluster, prefix: &str) -> Self {
        let access = Access::enable(&cluster, prefix);
        Self { cluster, access, files: tempfile::tempdir().unwrap() }
    }

    /// A file with a line of its own.
    pub fn file(&self, name: &str, line: &str) -> PathBuf {
        let path = self.files.path().join(name);
        fs::write(&path, format!("{line}\n")).unwrap();
        path
    }

    /// A run of lock `a` as the restricted user.
    pub fn run(&self) -> Run {
        self.run_at(&self.cluster.url())
    }

    /// The same by another address or below another prefix.
    pub fn run_at(&self, url: &str) -> Run {
        as_user(Run::new(&url), CI, &self.file("password", PASSWORD)).lock("a")
    }

    /// What the lock's queue holds, as root reads it.
    pub fn queue(&self) -> Vec<etcd_client::KeyValue> {
        self.below("/fenced/v1/q/a/")
    }

    /// All keys that begin so, as root reads them.
    pub fn below(&self, prefix: &str) -> Vec<etcd_client::KeyValue> {
        self.access.as_root(async |mut client: Client| -> Result<_, Error> {
            let found = client.get(prefix, Some(GetOptions::new().with_prefix())).await?;
            Ok(found.kvs().to_vec())
        })
    }
}

/// The run as a user whose password is in a file.
pub fn as_user(run: Run, name: &str, file: &std::path::Path) -> Run {
    run.args(["--user", name]).args(["--password-file".as_ref(), file.as_os_str()])
}

/// The run trusting an authority.
pub fn trusting(run: Run, authority: &Authority) -> Run {
    run.args(["--cacert".as_ref(), authority.certificate.as_os_str()])
}

/// The run showing a client certificate.
pub fn showing(run: Run, pair: &Pair) -> Run {
    run.args(["--cert".as_ref(), pair.certificate.as_os_str(), "--key".as_ref(), pair.key.as_os_str()])
}

/// A cluster whose clients see this certificate, and show one of an authority if one is named.
pub fn with_tls(version: Version, members: usize, server: Pair, clients: Option<&Authority>) -> Cluster {
    let tls = Tls { server, clients: clients.map(|authority| authority.certificate.clone()) };
    Cluster::start(&Options { version, members, tls: Some(tls), ..Options::default() })
}

/// Asserts that a run ended so, and said why in one line that has all these words. The line is printed for who reads
/// along.
#[track_caller]
pub fn says(run: Run, code: i32, words: &[&str]) -> String {
    said(&run.command(["true"]).output(), code, words)
}

#[track_caller]
pub fn said(ended: &Ended, code: i32, words: &[&str]) -> String {
    eprintln!("{} {}", ended.code().unwrap_or(-1), ended.stderr.trim_end());
    assert_eq!(ended.code(), Some(code), "{}", ended.stderr);
    assert!(ended.stderr.starts_with("fenced: ") && ended.stderr.ends_with('\n'), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "no {word:?} in {}", ended.stderr);
    }
    assert!(!ended.stderr.contains(PASSWORD));
    ended.stderr.clone()
}
