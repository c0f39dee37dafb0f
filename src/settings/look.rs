//! What was said to a command that only looks at locks.

use super::access;
use super::given::{Environment, Given, pick};
use super::{Access, StoreUrl};
use crate::cli;
use crate::name::LockName;
use crate::token::{Lineage, Token};

/// A store, and how to get at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The store.
    pub url: StoreUrl,
    /// How to get at it.
    pub access: Access,
}

/// The settings of `fenced check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The lock.
    pub lock: LockName,
    /// The token that may be its holder's.
    pub token: Token,
    /// What the token may be compared in; not looked at where nobody said.
    pub lineage: Option<Lineage>,
    /// The store.
    pub store: Store,
}

/// Chooses the store.
///
/// # Errors
/// One clause that names the flag or variable to mend.
pub fn store(typed: cli::Store, environment: Environment) -> Result<Store, String> {
    let chosen = access::choose(typed, environment)?;
    Ok(Store { url: chosen.store, access: chosen.access })
}

/// Checks what was typed for `fenced check`.
///
/// # Errors
/// One clause that names the flag or variable to mend.
pub fn check(typed: cli::Check, environment: Environment) -> Result<Check, String> {
    let by_hand = typed.token.is_some();
    let lock = pick("--lock", typed.lock, "FENCED_LOCK", environment)?.ok_or("no lock: give --lock")?;
    let token = pick("--token", typed.token, "FENCED_TOKEN", environment)?.ok_or("no token: give --token")?;
    let lineage = match typed.lineage {
        Some(value) => Some(Given { source: "--lineage", value }),
        None if by_hand => None,
        None => pick("--lineage", None, "FENCED_LINEAGE", environment)?,
    };
    Ok(Check {
        lock: lock.as_a(LockName::parse)?,
        token: token.as_a(Token::parse)?,
        lineage: lineage.map(|given| given.as_a(super::gate::lineage)).transpose()?,
        store: store(typed.store, environment)?,
    })
}
