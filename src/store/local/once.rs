//! Which keys of `--once` are recorded for a lock: a file of lines, replaced as a whole by whoever holds the lock.
//!
//! ```text
//! fenced once 1 / EXPIRY KEY … / sum, of all that, 16 hex digits of its SHA-256
//! ```
//! EXPIRY is in seconds of the wall clock since 1970.

use super::file::{LockFile, failure};
use super::record::hex;
use crate::name::LockName;
use crate::store::contract::{Failure, Once};
use crate::sys::directory::Directory;
use crate::sys::durable;
use hmac_sha256::Hash;
use nix::fcntl::OFlag;
use std::collections::BTreeMap;
use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

const TITLE: &str = "fenced once 1";
/// A longer file is not read.
const LONGEST: u64 = 16 * 1024 * 1024;

/// The keys, each with its expiry.
type Keys = BTreeMap<String, u64>;

/// Whether the key is recorded and not yet forgotten.
///
/// # Errors
/// `Refused` when the file cannot be trusted: a record that was lost would let a run be repeated.
pub fn is_recorded(directory: &Directory, name: &str, once: &Once) -> Result<bool, Failure> {
    let expiry = read(directory, name)?.get(&once.key.encoded()).copied();
    Ok(expiry.is_some_and(|expiry| expiry > now()))
}

/// Records the key, and forgets what has expired. Only by who holds the lock.
///
/// # Errors
/// As [`is_recorded`], and what the disk said.
pub fn record(file: &LockFile, once: &Once) -> Result<(), Failure> {
    let (directory, name) = (&file.directory, file.names.once());
    let now = now();
    let mut keys = read(directory, &name)?;
    keys.retain(|_, expiry| *expiry > now);
    keys.insert(once.key.encoded(), now.saturating_add(once.keep.as_secs().max(1)));
    let written = durable::replace(directory, &file.names.temporary(), &name, encode(&keys).as_bytes());
    written.map_err(|error| failure(&format!("{} cannot be written", directory.path.join(&name).display()), &error))
}

fn read(directory: &Directory, name: &str) -> Result<Keys, Failure> {
    let path = directory.path.join(name);
    let Some(file) = directory.open_file(name, "file of done runs", OFlag::O_RDONLY)? else { return Ok(Keys::new()) };
    let mut text = String::new();
    let read = file.take(LONGEST).read_to_string(&mut text);
    read.map_err(|error| failure(&format!("{} cannot be read", path.display()), &error))?;
    decode(&text).ok_or_else(|| {
        let path = path.display();
        Failure::Refused(format!("{path} is damaged; remove it, and what was done once may be done again"))
    })
}

fn encode(keys: &Keys) -> String {
    use std::fmt::Write;
    let mut body = format!("{TITLE}\n");
    for (key, expiry) in keys {
        let _ = writeln!(body, "{expiry} {key}");
    }
    format!("{body}sum {}\n", sum(&body))
}

fn decode(text: &str) -> Option<Keys> {
    let (body, rest) = text.rsplit_once("sum ")?;
    let lines = body.strip_prefix(TITLE)?.strip_prefix('\n')?.lines();
    if rest.strip_suffix('\n')? != sum(body) {
        return None;
    }
    lines
        .map(|line| {
            let (expiry, key) = line.split_once(' ')?;
            Some((LockName::decode(key)?.encoded(), expiry.parse().ok()?))
        })
        .collect()
}

fn sum(body: &str) -> String {
    hex(&Hash::hash(body.as_bytes())[..8])
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_lost_a_bit_or_a_byte_is_not() {
        let keys = Keys::from([("nightly-2026-12-01".to_owned(), 5), ("sum%20x".to_owned(), u64::MAX)]);
        let text = encode(&keys);
        assert_eq!(decode(&text), Some(keys));
        assert_eq!(decode(&encode(&Keys::new())), Some(Keys::new()));
        for at in 0..text.len() {
            assert_eq!(decode(&text[..at]), None, "the first {at} bytes");
            let mut flipped = text.clone().into_bytes();
            flipped[at] ^= 1;
            assert_eq!(String::from_utf8(flipped).ok().and_then(|text| decode(&text)), None, "byte {at}");
        }
    }
}
