//! A certificate authority for one test: certificates that are good, and each kind that is not.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose as Usage, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What servers in these tests are reached by.
const HERE: [&str; 2] = ["127.0.0.1", "localhost"];

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug)]
pub struct Pair {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// An authority, and the files of all that it signed; they go when it is dropped.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: TempDir,
    /// Its own certificate: what `--cacert` takes.
    pub certificate: PathBuf,
}

impl Authority {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut params = names(&HERE);
        params.distinguished_name.push(DnType::CommonName, format!("authority {:x}", fastrand::u32(..)));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        let certificate = write(dir.path(), "ca.pem", &issuer.pem());
        Self { issuer, dir, certificate }
    }

    /// For a server on this machine.
    pub fn server(&self) -> Pair {
        self.sign("server", &HERE, Usage::ServerAuth, |_| {})
    }

    /// For a server on this machine, but its time is over.
    pub fn expired(&self) -> Pair {
        self.sign("expired", &HERE, Usage::ServerAuth, |params| {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        })
    }

    /// For a server of another name.
    pub fn elsewhere(&self) -> Pair {
        self.sign("elsewhere", &["db9.example.org"], Usage::ServerAuth, |_| {})
    }

    /// The authority's own, as a server shows it that made do with `openssl req -x509`.
    pub fn itself(&self) -> Pair {
        Pair { certificate: self.certificate.clone(), key: self.file("ca.key", &self.issuer.key().serialize_pem()) }
    }

    /// For a client; etcd takes the name for a user's if it has such a user.
    pub fn client(&self, name: &str) -> Pair {
        self.sign(name, &[], Usage::ClientAuth, |_| {})
    }

    /// A file in the authority's directory, readable by its owner only.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        write(self.dir.path(), name, text)
    }

    fn sign(&self, name: &str, hosts: &[&str], usage: Usage, change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let mut params = names(hosts);
        params.distinguished_name.push(DnType::CommonName, name);
        // Servers are clients too: a member of etcd that serves HTTP calls itself.
        params.extended_key_usages = vec![Usage::ClientAuth, usage];
        params.extended_key_usages.dedup();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        Pair {
            certificate: self.file(&format!("{name}.pem"), &signed.pem()),
            key: self.file(&format!("{name}.key"), &key.serialize_pem()),
        }
    }
}

fn names(hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    CertificateParams::new(hosts).expect("names of hosts")
}

fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join(name);
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
    path
}
