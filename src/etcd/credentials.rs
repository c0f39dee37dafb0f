//! What a cluster is shown: certificates and a password. Everything is read and checked once, before anything is asked.

use crate::settings::{Access, Password};
use crate::sys::error::in_words;
use etcd_client::{ConnectOptions, Identity, TlsOptions};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::fs;
use std::path::Path;

/// The longest password file that is read, in bytes: a wrong file may be endless.
const LONGEST: u64 = 64 * 1024;

/// Everything that a connection needs beside an address. The default is plain and has no user.
#[derive(Clone, Default)]
pub struct Credentials {
    tls: Option<TlsOptions>,
    user: Option<(String, String)>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|(name, _)| name);
        f.debug_struct("Credentials").field("tls", &self.tls.is_some()).field("user", &user).finish()
    }
}

impl Credentials {
    /// Reads the files that `access` names. The system's authorities are read only for TLS without a `cacert`.
    ///
    /// # Errors
    /// One clause that names the file and what is wrong with it.
    pub fn load(access: &Access, tls: bool) -> Result<Self, String> {
        let user = access.user.as_ref().map(|user| Ok::<_, String>((user.name.clone(), password(&user.password)?)));
        Ok(Self { tls: tls.then(|| options(access)).transpose()?, user: user.transpose()? })
    }

    /// The user's name.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_ref().map(|(name, _)| name.as_str())
    }

    /// Whether connections are by TLS.
    pub(super) fn speaks_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Where and how to connect to the member at `host:port`: with the user, or for a cluster without users.
    pub(super) fn connection(&self, address: &str, with_user: bool) -> (String, ConnectOptions) {
        let mut options = ConnectOptions::new().with_require_leader(true);
        if let Some((name, password)) = self.user.as_ref().filter(|_| with_user) {
            options = options.with_user(name.as_str(), password.as_str());
        }
        let Some(tls) = &self.tls else { return (format!("http://{address}"), options) };
        // An IPv6 address stands in a certificate without its brackets.
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
        (format!("https://{address}"), options.with_tls(tls.clone().domain_name(host)))
    }
}

fn options(access: &Access) -> Result<TlsOptions, String> {
    let roots = match &access.cacert {
        Some(path) => authorities(path)?,
        None => system_authorities()?,
    };
    let options = TlsOptions::new().trust_anchors(roots.roots);
    let Some((cert, key)) = &access.identity else { return Ok(options) };
    Ok(options.identity(identity(cert, key)?))
}

fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(certificates("--cacert", path)?);
    if usable == 0 {
        return Err(format!("--cacert {}: no certificate in it can be used", path.display()));
    }
    Ok(roots)
}

fn system_authorities() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable > 0 {
        return Ok(roots);
    }
    let why = found.errors.first().map_or_else(|| "install ca-certificates".to_owned(), ToString::to_string);
    Err(format!("the system has no certificates of authorities ({why}), use --cacert"))
}

fn certificates(flag: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read(flag, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(format!("{flag} {}: no certificate in PEM is in it", path.display())),
    }
}

/// The client's own certificate, checked to belong to its key.
fn identity(cert: &Path, key: &Path) -> Result<Identity, String> {
    let chain = certificates("--cert", cert)?;
    let text = read("--key", key)?;
    let private = PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        let encrypted = text.windows(9).any(|word| word == b"ENCRYPTED");
        let why = if encrypted { "it is encrypted, use one that is not" } else { "no private key in PEM is in it" };
        format!("--key {}: {why}", key.display())
    })?;
    CertifiedKey::from_der(chain, private, &ring::default_provider()).map_err(|why| match why {
        rustls::Error::InconsistentKeys(_) => {
            format!("--key {}: does not belong to the certificate in --cert {}", key.display(), cert.display())
        }
        other => format!("--cert {} and --key {}: {other}", cert.display(), key.display()),
    })?;
    Ok(Identity::from_pem(read("--cert", cert)?, text))
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|why| format!("{flag} {}: {}", path.display(), in_words(&why)))
}

/// The first line of the file, as editors leave it: without its end.
fn password(password: &Password) -> Result<String, String> {
    let path = match password {
        Password::Given(text) => return Ok(text.clone()),
        Password::File(path) => path,
    };
    let failed = |why: &str| format!("--password-file {}: {why}", path.display());
    let text = first_line(path).map_err(|why| failed(&in_words(&why)))?;
    let text = String::from_utf8(text).map_err(|_| failed("not UTF-8"))?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() { Err(failed("its first line is empty")) } else { Ok(text.to_owned()) }
}

fn first_line(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::{BufRead, BufReader, Read};
    let mut line = Vec::new();
    BufReader::new(fs::File::open(path)?.take(LONGEST)).read_until(b'\n', &mut line)?;
    Ok(line)
}
