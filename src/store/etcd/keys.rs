//! Where a contender's key stands and what it says: pure, no I/O.

use crate::name::LockName;
use crate::store::contract::{Contender, Queue};
use crate::token::Lineage;
use etcd_client::KeyValue;
use hmac_sha256::Hash;
use serde::{Deserialize, Serialize};

/// How much of a command is kept in the store: a key's value is for people, and etcd refuses requests over 1.5 MB.
const COMMAND_BYTES: usize = 4096;

/// The keys under which contenders for one lock queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    /// Ends in `/`. Nothing but contenders lives under it, so `etcdctl lock` and Go's `concurrency.Mutex` share it.
    pub queue: String,
}

impl Keys {
    pub fn new(prefix: &str, lock: &LockName) -> Self {
        Self { queue: format!("{prefix}/q/{}/", lock.encoded()) }
    }

    /// The key of the contender with this lease.
    pub fn of(&self, lease: i64) -> String {
        format!("{}{lease:x}", self.queue)
    }
}

/// A key's value. Others' values may hold anything: whatever is not understood is left out, never trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Value {
    /// Who asked the holder to leave, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evict: Option<String>,
    #[serde(flatten)]
    pub contender: Contender,
}

impl Value {
    pub fn encode(contender: &Contender) -> Vec<u8> {
        let mut contender = contender.clone();
        contender.command = shortened(contender.command);
        let value = Self { evict: None, contender };
        serde_json::to_vec(&value).unwrap_or_default()
    }

    pub fn decode(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }
}

fn shortened(command: Vec<String>) -> Vec<String> {
    let mut left = COMMAND_BYTES;
    let mut kept = Vec::new();
    for word in command {
        if word.len() > left {
            let end = (0..=left).rev().find(|&n| word.is_char_boundary(n)).unwrap_or(0);
            kept.push(format!("{}…", &word[..end]));
            break;
        }
        left -= word.len();
        kept.push(word);
    }
    kept
}

/// Why a key that a linearizable read showed is not, or no longer, the one that stands for our place.
///
/// # Errors
/// The reason: gone, made anew, or under another lease.
pub(super) fn still_ours(key: Option<&KeyValue>, revision: i64, lease: i64) -> Result<(), String> {
    let Some(key) = key else {
        return Err("the lock's key is gone from the store: its lease ended, or somebody removed it".into());
    };
    if key.create_revision() != revision {
        return Err("the lock's key was removed and made anew by somebody else".into());
    }
    if key.lease() != lease {
        return Err("the lock's key was moved to another lease by somebody else".into());
    }
    Ok(())
}

/// The queue as people see it, from its keys in the order of their creation.
pub(super) fn queue(keys: &[KeyValue], lineage: Option<Lineage>) -> Queue {
    let mut contenders = keys.iter().map(|key| {
        let mut contender = Value::decode(key.value()).contender;
        contender.token = Some(key.create_revision());
        contender
    });
    Queue { holder: contenders.next(), waiters: contenders.collect(), lineage }
}

/// What tokens of this cluster and prefix may be compared in.
pub(super) fn lineage(cluster: u64, prefix: &str) -> Option<Lineage> {
    let digest = Hash::hash(prefix.as_bytes());
    let half = digest.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))?;
    Lineage::new(&format!("{cluster:016x}-{half:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(name: &str) -> Keys {
        Keys::new("/fenced/v1", &LockName::parse(name).unwrap())
    }

    #[test]
    fn a_contenders_key_is_named_by_its_lease_as_etcdctl_does_it() {
        assert_eq!(keys("billing:nightly").of(0x2b), "/fenced/v1/q/billing:nightly/2b");
    }

    #[test]
    fn no_lock_has_its_keys_among_those_of_another() {
        let (outer, inner) = (keys("a"), keys("a/b"));
        assert!(!inner.of(1).starts_with(&outer.queue), "{} {}", inner.of(1), outer.queue);
        assert!(!keys("ab").queue.starts_with(&outer.queue));
    }

    #[test]
    fn a_value_says_who_contends() {
        let contender = Contender { host: "a".into(), pid: 7, command: vec!["x".into()], ..Contender::default() };
        let value = Value::decode(&Value::encode(&contender));
        assert_eq!(value, Value { evict: None, contender });
    }

    #[test]
    fn values_of_others_are_read_as_far_as_they_go() {
        for foreign in ["", "x", "{}", "[1]", "{\"pid\":\"x\"}"] {
            assert_eq!(Value::decode(foreign.as_bytes()), Value::default(), "{foreign}");
        }
        assert_eq!(Value::decode(br#"{"evict":"by root","new":1}"#).evict.as_deref(), Some("by root"));
    }

    #[test]
    fn a_command_of_any_length_fits_into_a_request() {
        let huge = Contender { command: vec!["é".repeat(3000), "tail".into()], ..Contender::default() };
        let kept = Value::decode(&Value::encode(&huge)).contender.command;
        assert_eq!(kept.len(), 1);
        assert!(kept[0].len() <= COMMAND_BYTES + '…'.len_utf8() && kept[0].ends_with('…'));
    }

    #[test]
    fn the_lineage_names_cluster_and_prefix_in_sixteen_digits_each() {
        let known = lineage(0xcdf8_1818_1d99_0a1e, "/fenced/v1").unwrap();
        assert_eq!(known.as_str(), "cdf818181d990a1e-290ed822fede54fa");
        assert_ne!(lineage(1, "/a"), lineage(1, "/b"));
        assert!(lineage(1, "/a").unwrap().as_str().starts_with("0000000000000001-"));
    }
}
