//! The fencing token and the lineage it may be compared in.

use std::fmt;

/// A fencing token: 1 to 2^63-1, greater than every token granted before it for the same lock in the same lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(i64);

impl Token {
    /// The token of that number, if it is one.
    #[must_use]
    pub fn new(number: i64) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// Reads a token as it is written: decimal, 1 to 2^63-1, without sign, spaces or leading zeros.
    ///
    /// # Errors
    /// A clause that says how a token is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
        let number = if plain { text.parse().ok().and_then(Self::new) } else { None };
        number
            .ok_or_else(|| format!("{text:?} is no token: a decimal from 1 to {}, no sign, no leading zero", i64::MAX))
    }

    /// The token as a number, 1 to 2^63-1.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Tokens compare only inside one lineage: a store that started afresh would hand out small tokens again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage(String);

impl Lineage {
    /// The longest lineage, in bytes.
    pub const MAX: usize = 64;

    /// Checks a lineage: an opaque word of 1 to 64 of `A-Za-z0-9._:-`.
    #[must_use]
    pub fn new(word: &str) -> Option<Self> {
        let fits = (1..=Self::MAX).contains(&word.len());
        let plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b));
        (fits && plain).then(|| Self(word.to_owned()))
    }

    /// The lineage as a word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_below_are_no_tokens() {
        assert!(Token::new(0).is_none());
        assert!(Token::new(-1).is_none());
        assert_eq!(Token::new(i64::MAX).unwrap().to_string(), "9223372036854775807");
    }

    #[test]
    fn a_token_is_written_in_one_way_only() {
        for good in ["1", "2147483648", "9007199254740993", "9223372036854775807"] {
            assert_eq!(Token::parse(good).unwrap().to_string(), good);
        }
        for bad in ["", "0", "007", "-1", "+1", "1e3", " 1", "1 ", "1.0", "0x10", "９", "9223372036854775808"] {
            assert!(Token::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_lineage_is_one_plain_word() {
        assert!(Lineage::new("0123456789abcdef-0123456789abcdef").is_some());
        for bad in ["", "a b", "a/b", &"x".repeat(65)] {
            assert!(Lineage::new(bad).is_none(), "{bad:?}");
        }
    }
}
