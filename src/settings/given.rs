//! Where a value came from: a flag, else a variable. A refusal names it.

use std::ffi::OsString;

/// The environment as a function, so that this module reads none.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A value and what to call it in a refusal: the flag, or the variable that it came from.
pub(super) struct Given {
    pub source: &'static str,
    pub value: String,
}

impl Given {
    /// The value as `check` takes it; its refusal names the source.
    pub fn as_a<T>(&self, check: impl FnOnce(&str) -> Result<T, String>) -> Result<T, String> {
        check(&self.value).map_err(|why| format!("{}: {why}", self.source))
    }
}

/// What was typed, else the variable where it is set and not empty.
pub(super) fn pick(
    flag: &'static str,
    typed: Option<String>,
    variable: &'static str,
    environment: Environment,
) -> Result<Option<Given>, String> {
    match typed {
        Some(value) => Ok(Some(Given { source: flag, value })),
        None => from(variable, environment),
    }
}

/// The variable, where it is set and not empty.
pub(super) fn from(variable: &'static str, environment: Environment) -> Result<Option<Given>, String> {
    match environment(variable).filter(|value| !value.is_empty()).map(OsString::into_string) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(Given { source: variable, value })),
        Some(Err(_)) => Err(format!("{variable}: not UTF-8")),
    }
}
