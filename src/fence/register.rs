//! The rule, once: what a gate remembers, and what it says to a token. Equal is accepted, lower and foreign is not, and
//! higher must be on disk before its write can be seen.

use crate::name::LockName;
use crate::token::{Lineage, Token};
use std::fmt;

/// What a writer shows: its token, what that may be compared in, and for which lock it was granted, where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The token.
    pub token: Token,
    /// Its lineage.
    pub lineage: Lineage,
    /// Its lock; a writer at the far end of a connection may not know it.
    pub lock: Option<LockName>,
}

/// What a gate remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Register {
    /// The highest token that was accepted, and its lineage; nothing before the first.
    pub highest: Option<(Token, Lineage)>,
    /// The lock whose tokens are accepted, once one was named.
    pub lock: Option<LockName>,
}

/// What to do with a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Nothing has to be remembered.
    AsIs,
    /// This has to be remembered before the write can be seen.
    After(Register),
}

/// Why a token is not accepted. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A later grant was here.
    Stale {
        /// What was shown.
        shown: Token,
        /// What was accepted before.
        highest: Token,
    },
    /// The tokens cannot be compared: the store began afresh, or it is another one.
    Foreign {
        /// What was shown.
        shown: Lineage,
        /// What was accepted before.
        known: Lineage,
    },
    /// The token was granted for another lock.
    OtherLock {
        /// What was shown.
        shown: LockName,
        /// What was accepted before.
        known: LockName,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { shown, highest } => write!(f, "token {shown} is stale, {highest} was accepted already"),
            Self::Foreign { shown, known } => write!(
                f,
                "lineage {shown} is not {known}, so tokens cannot be compared; if the store began afresh on purpose, \
                 reset the gate (fenced gate reset)"
            ),
            Self::OtherLock { shown, known } => write!(
                f,
                "the token is of lock {shown}, but the gate is for lock {known}; if that is meant, reset the gate \
                 (fenced gate reset)"
            ),
        }
    }
}

impl Register {
    /// Whether a writer may write.
    ///
    /// # Errors
    /// Why it may not.
    pub fn admit(&self, mark: &Mark) -> Result<Admission, Refusal> {
        if let (Some(known), Some(shown)) = (&self.lock, &mark.lock)
            && known != shown
        {
            return Err(Refusal::OtherLock { shown: shown.clone(), known: known.clone() });
        }
        match &self.highest {
            Some((_, known)) if *known != mark.lineage => {
                return Err(Refusal::Foreign { shown: mark.lineage.clone(), known: known.clone() });
            }
            Some((highest, _)) if mark.token < *highest => {
                return Err(Refusal::Stale { shown: mark.token, highest: *highest });
            }
            _ => {}
        }
        let lock = self.lock.clone().or_else(|| mark.lock.clone());
        let next = Self { highest: Some((mark.token, mark.lineage.clone())), lock };
        Ok(if next == *self { Admission::AsIs } else { Admission::After(next) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(token: i64, lineage: &str) -> Mark {
        let lock = Some(LockName::parse("nightly").unwrap());
        Mark { token: Token::new(token).unwrap(), lineage: Lineage::new(lineage).unwrap(), lock }
    }

    fn after(mark: &Mark) -> Register {
        Register { highest: Some((mark.token, mark.lineage.clone())), lock: mark.lock.clone() }
    }

    #[test]
    fn an_empty_gate_accepts_the_first_token_and_remembers_its_lineage() {
        let first = mark(7, "a");
        assert_eq!(Register::default().admit(&first), Ok(Admission::After(after(&first))));
    }

    #[test]
    fn an_equal_token_is_accepted_and_a_higher_one_remembered() {
        let register = after(&mark(7, "a"));
        assert_eq!(register.admit(&mark(7, "a")), Ok(Admission::AsIs));
        assert_eq!(register.admit(&mark(8, "a")), Ok(Admission::After(after(&mark(8, "a")))));
    }

    #[test]
    fn a_lower_token_is_refused_and_both_are_named() {
        let refusal = after(&mark(i64::MAX, "a")).admit(&mark(i64::MAX - 1, "a")).unwrap_err().to_string();
        assert!(refusal.contains("9223372036854775806") && refusal.contains("9223372036854775807"), "{refusal}");
    }

    #[test]
    fn tokens_beyond_what_a_double_can_tell_apart_are_told_apart() {
        assert!(after(&mark(9_007_199_254_740_993, "a")).admit(&mark(9_007_199_254_740_992, "a")).is_err());
    }

    #[test]
    fn a_token_of_another_lineage_is_refused_however_high_it_is() {
        let refusal = after(&mark(7, "a")).admit(&mark(8, "b")).unwrap_err();
        assert!(matches!(refusal, Refusal::Foreign { .. }) && refusal.to_string().contains("gate reset"), "{refusal}");
    }

    #[test]
    fn a_token_of_another_lock_is_refused_and_one_of_an_unnamed_lock_is_not() {
        let register = after(&mark(7, "a"));
        let other = Mark { lock: Some(LockName::parse("other").unwrap()), ..mark(8, "a") };
        assert!(matches!(register.admit(&other), Err(Refusal::OtherLock { .. })));
        let unnamed = Mark { lock: None, ..mark(8, "a") };
        assert_eq!(register.admit(&unnamed), Ok(Admission::After(after(&mark(8, "a")))), "the lock is kept");
    }
}
