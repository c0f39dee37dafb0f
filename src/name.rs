//! What a lock is called: the name a user types and the one word it becomes in a key or a file name.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt;

/// Everything but letters, digits and `._:-` is percent-encoded, `/` too: lock `a` never sees the keys of lock `a/b`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b':').remove(b'-');

/// A lock's name: UTF-8, 1 to 255 bytes, no control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockName(String);

impl LockName {
    /// The longest name, in bytes.
    pub const MAX: usize = 255;

    /// Checks a name as it was typed.
    ///
    /// # Errors
    /// A sentence when the name is empty, longer than [`LockName::MAX`] bytes or holds a control character.
    pub fn parse(typed: &str) -> Result<Self, String> {
        if typed.is_empty() {
            return Err("a lock name cannot be empty".into());
        }
        if typed.len() > Self::MAX {
            return Err(format!("a lock name has at most {} bytes, this one has {}", Self::MAX, typed.len()));
        }
        if typed.chars().any(char::is_control) {
            return Err("a lock name cannot hold control characters".into());
        }
        Ok(Self(typed.to_owned()))
    }

    /// The name as it was typed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as one word of `A-Za-z0-9._:-` and percent escapes.
    #[must_use]
    pub fn encoded(&self) -> String {
        utf8_percent_encode(&self.0, ENCODED).to_string()
    }
}

impl LockName {
    /// The name that [`LockName::encoded`] made this word of.
    #[must_use]
    pub fn decode(word: &str) -> Option<Self> {
        let name = percent_encoding::percent_decode_str(word).decode_utf8().ok()?;
        Self::parse(&name).ok().filter(|name| name.encoded() == word)
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_is_encoded_so_that_no_lock_contains_another() {
        assert_eq!(LockName::parse("deploy/prod").unwrap().encoded(), "deploy%2Fprod");
    }

    #[test]
    fn usual_names_are_their_own_word() {
        assert_eq!(LockName::parse("billing:nightly_v1.2-x").unwrap().encoded(), "billing:nightly_v1.2-x");
    }

    #[test]
    fn a_percent_sign_is_encoded_so_that_no_two_names_meet() {
        assert_eq!(LockName::parse("a%2Fb").unwrap().encoded(), "a%252Fb");
        assert_eq!(LockName::parse("é").unwrap().encoded(), "%C3%A9");
    }

    #[test]
    fn empty_long_and_control_characters_are_refused() {
        for bad in ["", "a\nb", "\u{7f}", "\u{9b}", &"x".repeat(256)] {
            assert!(LockName::parse(bad).is_err(), "{bad:?}");
        }
        assert!(LockName::parse(&"x".repeat(255)).is_ok());
    }
}
