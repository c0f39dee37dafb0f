//! The values that flags and variables hold, each refused with an example that would do.

use super::{DEFAULT_TTL, OnExit};
use crate::timing::show;
use nix::sys::signal::Signal;
use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("{text} has no unit, use {text}s or {text}ms"));
    }
    humantime::parse_duration(text)
        .map_err(|why| format!("{text:?} is no duration ({why}), use one like 30s, 500ms or '1m 30s'"))
}

pub(super) fn positive(text: &str) -> Result<Duration, String> {
    let span = duration(text)?;
    if span.is_zero() { Err(format!("cannot be zero, use {} or so", show(DEFAULT_TTL))) } else { Ok(span) }
}

pub(super) fn waiting(text: &str) -> Result<Option<Duration>, String> {
    if text == "forever" { Ok(None) } else { duration(text).map(Some) }
}

pub(super) fn background(text: &str) -> Result<OnExit, String> {
    match text {
        "kill" => Ok(OnExit::Kill),
        "wait" => Ok(OnExit::Wait),
        "leave" => Ok(OnExit::Leave),
        _ => Err(format!("{text:?} is none of kill, wait, leave")),
    }
}

pub(super) fn stop_signal(text: &str) -> Result<i32, String> {
    let upper = text.to_ascii_uppercase();
    let by_name = || Signal::from_str(&format!("SIG{}", upper.trim_start_matches("SIG"))).ok();
    let by_number = || text.parse().ok().and_then(|n: i32| Signal::try_from(n).ok());
    let signal =
        by_name().or_else(by_number).ok_or_else(|| format!("{text:?} is no signal, use one like TERM or INT"))?;
    match signal {
        Signal::SIGSTOP | Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU | Signal::SIGCONT => {
            Err(format!("{text} pauses or continues a process, use one that ends it, like TERM or INT"))
        }
        _ => Ok(signal as i32),
    }
}

pub(super) fn command(words: Vec<OsString>, shell: bool) -> Result<Vec<OsString>, String> {
    if words.first().is_none_or(|word| word.is_empty()) {
        return Err("the command is empty, name one after the options".into());
    }
    if !shell {
        return Ok(words);
    }
    if words.len() > 1 {
        return Err("--shell takes the command as one string, quote it".into());
    }
    Ok([OsString::from("/bin/sh"), "-c".into()].into_iter().chain(words).collect())
}
