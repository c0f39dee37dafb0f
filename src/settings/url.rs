//! Store URLs, taken apart.

use super::{DEFAULT_PORT, DEFAULT_PREFIX};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Where the lock is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// An etcd cluster.
    Etcd {
        /// Members as `host:port`, in the order given.
        members: Vec<String>,
        /// The key prefix, without a slash at its end.
        prefix: String,
        /// Whether the members are spoken to by TLS.
        tls: bool,
    },
    /// A local directory; `None` is the user's default one.
    File {
        /// The directory, absolute.
        directory: Option<PathBuf>,
    },
}

/// What a store URL says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A store.
    Store(StoreUrl),
    /// `etcd:` alone: whatever etcdctl would use.
    AsEtcdctl,
}

/// Takes a store URL apart.
pub(super) fn store_url(text: &str) -> Result<Named, String> {
    if text.chars().any(char::is_control) {
        return Err("a store URL cannot hold control characters".into());
    }
    let (scheme, rest) = text
        .split_once(':')
        .ok_or_else(|| format!("{text:?} is no store URL, use etcd://HOST:{DEFAULT_PORT} or file:///DIR"))?;
    match scheme {
        "file" => file_url(rest).map(Named::Store),
        "etcd" if rest.is_empty() => Ok(Named::AsEtcdctl),
        "etcd" | "etcds" => etcd_url(scheme, rest).map(Named::Store),
        _ => Err(format!("{scheme}: is no store that fenced knows, use etcd://HOST:{DEFAULT_PORT} or file:///DIR")),
    }
}

fn file_url(rest: &str) -> Result<StoreUrl, String> {
    let path = match rest {
        "" => return Ok(StoreUrl::File { directory: None }),
        _ if rest.starts_with("///") => &rest[2..],
        _ if rest.starts_with('/') && !rest.starts_with("//") => rest,
        _ => return Err(format!("file:{rest} names no absolute directory, use file:///DIR (three slashes)")),
    };
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(path).collect();
    if bytes.contains(&0) {
        return Err("a directory cannot hold a zero byte".into());
    }
    Ok(StoreUrl::File { directory: Some(PathBuf::from(OsString::from_vec(bytes))) })
}

fn etcd_url(scheme: &str, rest: &str) -> Result<StoreUrl, String> {
    if rest.contains('@') {
        return Err("a store URL holds no user or password, use --user and --password-file".into());
    }
    let none = || format!("{scheme}:{rest} names no host, use {scheme}://HOST:{DEFAULT_PORT}");
    let authority = rest.strip_prefix("//").ok_or_else(none)?;
    let (hosts, path) = authority.split_once('/').unwrap_or((authority, ""));
    let members = hosts
        .split(',')
        .map(|host| {
            member(host).ok_or_else(|| {
                if host.is_empty() { none() } else { format!("{host:?} is no HOST or HOST:PORT of an etcd member") }
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let path = path.trim_end_matches('/');
    if let Some(strange) = path.chars().find(|c| "?#% ".contains(*c)) {
        return Err(format!("the key prefix of {rest:?} holds {strange:?}, a store URL has none"));
    }
    let prefix = if path.is_empty() { DEFAULT_PREFIX.to_owned() } else { format!("/{path}") };
    Ok(StoreUrl::Etcd { members, prefix, tls: scheme == "etcds" })
}

/// A member as `host:port`, an IPv6 address in brackets; no user, query or fragment.
pub(super) fn member(host: &str) -> Option<String> {
    let (name, port) = match host.rfind(':') {
        Some(colon) if !host.ends_with(']') => (&host[..colon], host[colon + 1..].parse().ok()?),
        _ => (host, DEFAULT_PORT),
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-' || b == b'_';
    let valid = match name.strip_prefix('[').and_then(|v6| v6.strip_suffix(']')) {
        Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.bytes().all(plain),
    };
    (valid && port != 0).then(|| format!("{name}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_urls_are_taken_apart() {
        let etcd = |members: &[&str], prefix: &str| StoreUrl::Etcd {
            members: members.iter().map(|&m| m.into()).collect(),
            prefix: prefix.into(),
            tls: false,
        };
        for (text, url) in [
            ("etcd://h", etcd(&["h:2379"], "/fenced/v1")),
            ("etcd://h:1,[::1]:2,10.0.0.1/", etcd(&["h:1", "[::1]:2", "10.0.0.1:2379"], "/fenced/v1")),
            ("etcd://h/team/locks/", etcd(&["h:2379"], "/team/locks")),
            ("etcds://h", StoreUrl::Etcd { members: vec!["h:2379".into()], prefix: "/fenced/v1".into(), tls: true }),
            ("file:", StoreUrl::File { directory: None }),
            ("file:///var/lock%20s", StoreUrl::File { directory: Some("/var/lock s".into()) }),
            ("file:/var/locks", StoreUrl::File { directory: Some("/var/locks".into()) }),
        ] {
            assert_eq!(store_url(text), Ok(Named::Store(url)), "{text}");
        }
        assert_eq!(store_url("etcd:"), Ok(Named::AsEtcdctl));
    }

    #[test]
    fn store_urls_that_make_no_sense_are_refused() {
        for bad in [
            "",
            "etcd",
            "etcd:h",
            "etcds:",
            "etcds:u:secret@h",
            "etcd:u:secret@h",
            "etcd://",
            "etcd:///p",
            "etcd://,h",
            "etcd://h:0",
            "etcd://h:x",
            "etcd://u@h",
            "etcd://h?x",
            "etcd://h/p?x=1",
            "etcd://h/p q",
            "etcd://u:secret@h/p",
            "etcd://h:70000",
            "etcd://[::1",
            "etcd://[zz]",
            "etcd://h\n",
            "file:x",
            "file://h/d",
            "file:///a%00b",
            "zookeeper://h",
            "/var/lock",
            "http://h:2379",
        ] {
            let why = store_url(bad).expect_err(bad);
            assert!(!why.contains('\n') && !why.contains("secret"), "{bad}: {why}");
        }
    }
}
