//! A directory with gates in it, and tokens to show them.

use crate::support::run::{LocalStore, Run};
use serde_json::Value;
use std::path::PathBuf;

pub struct Place(LocalStore);

impl Place {
    pub fn new() -> Self {
        Self(LocalStore::new())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A path as an argument.
    pub fn at(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A new gate.
    pub fn gate(&self, name: &str) -> String {
        Run::of(["gate", "init"]).args([self.at(name)]).output().exits(0);
        self.at(name)
    }
}

/// A subcommand that shows this token of lineage `a`.
#[expect(clippy::needless_pass_by_value, reason = "numbers and text alike")]
pub fn showing(words: &[&str], token: impl ToString) -> Run {
    Run::of(words).args(["--token", &token.to_string(), "--lineage", "a"])
}

/// The token that a gate remembers; 0 for none.
pub fn remembered(gate: &str) -> i64 {
    let shown = Run::of(["gate", "show", "--json"]).args([gate]).output().exits(0).stdout;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    shown["token"].as_i64().unwrap_or(0)
}
