//! What the files of a lock are called. The ending tells the kind, so that no lock's file is another lock's other file.

use super::record::hex;
use crate::name::LockName;
use hmac_sha256::Hash;

/// Encoded names up to here are file names as they are; 55 bytes are left for what is added.
const LONGEST: usize = 200;
/// What is kept of a longer one, before the hash of the whole name.
const KEPT: usize = 100;

/// The files of one lock, by name in the store's directory.
#[derive(Clone, Debug)]
pub struct Names {
    word: String,
}

impl Names {
    pub fn of(lock: &LockName) -> Self {
        let encoded = lock.encoded();
        // `..` is a path, and a leading dot hides a file; the names of temporary files begin with one.
        let visible = encoded.strip_prefix('.').map_or_else(|| encoded.clone(), |rest| format!("%2E{rest}"));
        if visible.len() <= LONGEST {
            return Self { word: visible };
        }
        let hash = hex(&Hash::hash(lock.as_str().as_bytes())[..16]);
        // `~` is in no encoded name.
        Self { word: format!("{}~{hash}", &visible[..KEPT]) }
    }

    /// The record, and the bytes that stand for the contenders.
    pub fn lock(&self) -> String {
        format!("{}.lock", self.word)
    }

    /// The keys of `--once` that are recorded.
    pub fn once(&self) -> String {
        format!("{}.once", self.word)
    }

    /// What contender `number` tells about itself.
    pub fn info(&self, number: i64) -> String {
        format!("{}.{number}.info", self.word)
    }

    /// The number of the contender of this lock whose info file is called so.
    pub fn number_of_info(&self, file: &str) -> Option<i64> {
        file.strip_prefix(&self.word)?.strip_prefix('.')?.strip_suffix(".info")?.parse().ok()
    }

    /// A name for a file that is not yet complete.
    pub fn temporary(&self) -> String {
        format!("{}{:016x}.tmp", self.temporary_prefix(), fastrand::u64(..))
    }

    /// Whether a file is a temporary one of this lock.
    pub fn is_temporary(&self, file: &str) -> bool {
        file.strip_prefix(&self.temporary_prefix())
            .and_then(|rest| rest.strip_suffix(".tmp"))
            .is_some_and(|id| id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()))
    }

    fn temporary_prefix(&self) -> String {
        format!(".{}.", self.word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Names {
        Names::of(&LockName::parse(name).unwrap())
    }

    #[test]
    fn dots_at_the_front_are_no_path_and_hide_nothing() {
        assert_eq!(of(".").lock(), "%2E.lock");
        assert_eq!(of("..").lock(), "%2E..lock");
        assert_eq!(of("%2E").lock(), "%252E.lock");
        assert_eq!(of("../etc").lock(), "%2E.%2Fetc.lock");
    }

    #[test]
    fn the_longest_names_fit_and_stay_apart() {
        for name in ["/".repeat(255), "é".repeat(127), "x".repeat(255)] {
            let names = of(&name);
            assert!(names.info(i64::MAX).len() <= 255 && names.temporary().len() <= 255, "{name}");
        }
        assert_ne!(of(&format!("{}a", "x".repeat(250))).lock(), of(&format!("{}b", "x".repeat(250))).lock());
        assert_eq!(of(&"x".repeat(200)).lock().len(), 205);
    }

    #[test]
    fn the_files_of_one_lock_are_never_those_of_another() {
        assert_eq!(of("a.5").number_of_info(&of("a.5").info(7)), Some(7));
        assert_eq!(of("a").number_of_info(&of("a.5").info(7)), None);
        assert_eq!(of("a").number_of_info(&of("a.b").info(7)), None);
        assert_eq!(of("a.7.info").lock(), "a.7.info.lock");
        assert!(of("a").is_temporary(&of("a").temporary()));
        assert!(!of("a").is_temporary(&of("a.b").temporary()));
        assert!(!of("a.0123456789abcdef").is_temporary(".a.0123456789abcdef.tmp"));
    }
}
