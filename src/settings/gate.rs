//! What was said of a gate: which one it is, and what is shown to it.

use super::given::{Environment, Given, from, pick};
use super::values::waiting;
use super::{DEFAULT_WAIT, access};
use crate::cli;
use crate::name::LockName;
use crate::settings::{Access, StoreUrl};
use crate::token::{Lineage, Token};
use std::path::PathBuf;
use std::time::Duration;

/// Which gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateName {
    /// A file.
    File(PathBuf),
    /// A key of the store's etcd cluster.
    Etcd(String),
    /// A shell command that gets the token in its environment and answers by its status.
    Command(String),
}

/// What is shown to a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The token.
    pub token: Token,
    /// What it may be compared in.
    pub lineage: Lineage,
    /// The lock it was granted for, where the environment tells.
    pub lock: Option<LockName>,
    /// Make a gate that is missing.
    pub init: bool,
    /// How long to wait while somebody else is inside; `None` is for ever.
    pub wait: Option<Duration>,
}

/// A token and its lineage to begin a gate with.
pub type Beginning = Option<(Token, Lineage)>;

impl GateName {
    /// Reads a gate: `file:PATH` or a bare path, `etcd:KEY`, `cmd:COMMAND`.
    ///
    /// # Errors
    /// A clause that says what it lacks.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.chars().any(|c| c == '\0') {
            return Err("a gate cannot hold a zero byte".into());
        }
        let (kind, rest) = match text.split_once(':') {
            Some((kind @ ("file" | "etcd" | "cmd"), rest)) => (kind, rest),
            _ => ("file", text),
        };
        match (kind, rest) {
            (_, "") => Err(format!("{text:?} names no gate, use file:PATH, etcd:KEY or cmd:COMMAND")),
            ("etcd", key) => Ok(Self::Etcd(key.into())),
            ("cmd", command) => Ok(Self::Command(command.into())),
            (_, path) => Ok(Self::File(path.into())),
        }
    }
}

/// The gates of `--fence`.
///
/// # Errors
/// One clause that names the gate, or says that the store has no place for it.
pub(super) fn fences(typed: &[String], store: &StoreUrl) -> Result<Vec<GateName>, String> {
    let named = |text: &String| {
        let gate = GateName::parse(text).map_err(|why| format!("--fence: {why}"))?;
        if matches!((&gate, store), (GateName::Etcd(_), StoreUrl::File { .. })) {
            return Err(format!("--fence {text}: the store is no etcd cluster, use a gate file:PATH"));
        }
        Ok(gate)
    };
    typed.iter().map(named).collect()
}

/// What a writer shows: flags, else what the run around it has exported.
///
/// # Errors
/// One clause that names the flag or variable to mend.
pub fn shown(typed: cli::Shown, environment: Environment) -> Result<Shown, String> {
    let by_hand = typed.token.is_some();
    let token = pick("--token", typed.token, "FENCED_TOKEN", environment)?;
    let token = token.ok_or("no token: run inside fenced run, or give --token and --lineage")?;
    let lineage = pick("--lineage", typed.lineage, "FENCED_LINEAGE", environment)?;
    let lineage = lineage.ok_or("no lineage: run inside fenced run, or give --lineage")?;
    let wait = pick("--wait", typed.wait, "FENCED_WAIT", environment)?;
    let lock = if by_hand { None } else { from("FENCED_LOCK", environment)? };
    Ok(Shown {
        token: token.as_a(Token::parse)?,
        lineage: lineage.as_a(self::lineage)?,
        lock: lock.map(|given| given.as_a(LockName::parse)).transpose()?,
        init: typed.init,
        wait: wait.map_or(Ok(Some(DEFAULT_WAIT)), |given| given.as_a(waiting))?,
    })
}

/// What a gate is to begin with.
///
/// # Errors
/// One clause that names the flag to mend.
pub fn beginning(token: Option<String>, lineage: Option<String>) -> Result<Beginning, String> {
    let token = token.map(|value| Given { source: "--token", value }.as_a(Token::parse)).transpose()?;
    let lineage = lineage.map(|value| Given { source: "--lineage", value }.as_a(self::lineage)).transpose()?;
    Ok(token.zip(lineage))
}

pub(super) fn lineage(text: &str) -> Result<Lineage, String> {
    Lineage::new(text).ok_or_else(|| format!("{text:?} is no lineage: at most 64 of A-Za-z0-9._:-"))
}

/// The cluster that `etcd:KEY` is in.
///
/// # Errors
/// One clause that names the flag or variable to mend, or says that no cluster was chosen.
pub fn cluster(typed: cli::Store, environment: Environment) -> Result<(StoreUrl, Access), String> {
    let chosen = access::choose(typed, environment)?;
    if matches!(chosen.store, StoreUrl::File { .. }) {
        return Err("--store: a gate etcd:KEY wants an etcd store, use etcd://HOST:2379".into());
    }
    Ok((chosen.store, chosen.access))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn typed(token: Option<&str>, lineage: Option<&str>) -> cli::Shown {
        let own = |text: Option<&str>| text.map(ToOwned::to_owned);
        cli::Shown { token: own(token), lineage: own(lineage), init: false, wait: None }
    }

    fn shown_by(typed: cli::Shown, variables: &[(&str, &str)]) -> Result<Shown, String> {
        shown(typed, &|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value)))
    }

    const AROUND: [(&str, &str); 3] = [("FENCED_TOKEN", "7"), ("FENCED_LINEAGE", "a"), ("FENCED_LOCK", "nightly")];

    #[test]
    fn gates_have_three_kinds_and_a_bare_path_is_a_file() {
        assert_eq!(GateName::parse("/srv/gate"), Ok(GateName::File("/srv/gate".into())));
        assert_eq!(GateName::parse("file:a:b"), Ok(GateName::File("a:b".into())));
        assert_eq!(GateName::parse("etcd:/gates/x:y"), Ok(GateName::Etcd("/gates/x:y".into())));
        assert_eq!(GateName::parse("cmd:ssh db gate"), Ok(GateName::Command("ssh db gate".into())));
        for bad in ["", "file:", "etcd:", "cmd:", "a\0b"] {
            assert!(GateName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_run_around_shows_its_own_token_and_lock() {
        let shown = shown_by(typed(None, None), &AROUND).unwrap();
        assert_eq!((shown.token.get(), shown.lineage.as_str(), shown.lock.unwrap().as_str()), (7, "a", "nightly"));
    }

    #[test]
    fn a_token_that_was_typed_is_not_taken_for_the_surrounding_locks() {
        let shown = shown_by(typed(Some("9"), Some("b")), &AROUND).unwrap();
        assert_eq!((shown.token.get(), shown.lineage.as_str(), shown.lock), (9, "b", None));
    }

    #[test]
    fn a_token_that_is_missing_or_misspelt_is_refused_by_its_name() {
        for (typed, variables, expected) in [
            (typed(None, None), &[][..], "--token"),
            (typed(Some("7"), None), &[], "--lineage"),
            (typed(Some("007"), Some("a")), &[], "--token"),
            (typed(None, None), &[("FENCED_TOKEN", "-1"), ("FENCED_LINEAGE", "a")], "FENCED_TOKEN"),
            (typed(None, None), &[("FENCED_TOKEN", "1"), ("FENCED_LINEAGE", "a b")], "FENCED_LINEAGE"),
        ] {
            let why = shown_by(typed, variables).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }
}
