//! What was said about doing a thing once: the key, with its placeholders filled in, and how it is kept.

use super::given::Given;
use super::values::positive;
use crate::cli;
use crate::name::LockName;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::time::Duration;

/// The default of `--once-keep`.
pub const DEFAULT_KEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// When a key is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// With the release, if the command exited 0: at least once.
    Success,
    /// Before the command starts: at most once.
    Start,
}

/// A run that is to succeed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Once {
    /// The key. Its rules are those of a lock's name.
    pub key: LockName,
    /// How long it is remembered.
    pub keep: Duration,
    /// When it is recorded.
    pub when: When,
}

/// What was typed, with placeholders filled in as of `now`.
///
/// # Errors
/// One clause that names the flag to mend.
pub fn once(typed: &cli::Run, now: Timestamp) -> Result<Option<Once>, String> {
    let Some(text) = &typed.once else { return Ok(None) };
    let zone = match &typed.once_tz {
        None => TimeZone::UTC,
        Some(name) => TimeZone::get(name)
            .map_err(|_| format!("--once-tz: {name:?} is no time zone of this system, use one like Europe/Berlin"))?,
    };
    let filled = fill(text, &now.to_zoned(zone)).map_err(|why| format!("--once: {why}"))?;
    let keep = typed.once_keep.clone().map(|value| Given { source: "--once-keep", value }.as_a(positive));
    Ok(Some(Once {
        key: LockName::parse(&filled).map_err(|why| format!("--once: {}", why.replace("a lock name", "a key")))?,
        keep: keep.transpose()?.unwrap_or(DEFAULT_KEEP),
        when: if typed.once_at.as_deref() == Some("start") { When::Start } else { When::Success },
    }))
}

/// Fills in `{date}`, `{hour}`, `{week}` and `{month}`.
fn fill(text: &str, now: &Zoned) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').ok_or_else(|| format!("{text:?} has a {{ without its }}"))?;
        filled.push_str(before);
        filled.push_str(&match name {
            "date" => now.strftime("%Y-%m-%d").to_string(),
            "hour" => now.strftime("%Y-%m-%dT%H").to_string(),
            "week" => now.strftime("%G-W%V").to_string(),
            "month" => now.strftime("%Y-%m").to_string(),
            _ => return Err(format!("{{{name}}} is none of {{date}}, {{hour}}, {{week}}, {{month}}")),
        });
        rest = behind;
    }
    if rest.contains('}') {
        return Err(format!("{text:?} has a }} without its {{"));
    }
    Ok(filled + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// Sunday, the last of week 53 of 2026 by ISO, which began in December.
    const NEW_YEAR: &str = "2027-01-03T23:30:00Z";

    fn typed(words: &[&str]) -> Result<Option<Once>, String> {
        let words = ["fenced", "run", "--lock", "a"].iter().chain(words).chain(&["true"]);
        let typed = cli::Cli::try_parse_from(words).map_err(|error| cli::one_line(&error))?;
        let cli::Command::Run(typed) = typed.command else { panic!("not a run") };
        once(&typed, NEW_YEAR.parse().unwrap())
    }

    fn key(words: &[&str]) -> String {
        typed(words).unwrap().unwrap().key.as_str().to_owned()
    }

    #[test]
    fn placeholders_become_those_of_the_start_in_utc_or_the_zone_that_was_named() {
        assert_eq!(key(&["--once", "a-{date}-{hour}-{week}-{month}"]), "a-2027-01-03-2027-01-03T23-2026-W53-2027-01");
        assert_eq!(key(&["--once", "{hour}", "--once-tz", "Europe/Berlin"]), "2027-01-04T00");
        assert_eq!(key(&["--once", "plain 100%"]), "plain 100%");
    }

    #[test]
    fn what_is_misspelt_is_refused_by_its_name() {
        for (words, expected) in [
            (&["--once", "{day}"][..], "--once"),
            (&["--once", "{date"], "--once"),
            (&["--once", "date}"], "--once"),
            (&["--once", ""], "--once"),
            (&["--once", "a", "--once-tz", "Middle/Earth"], "--once-tz"),
            (&["--once", "a", "--once-keep", "30"], "--once-keep"),
            (&["--once", "a", "--once-keep", "0"], "--once-keep"),
            (&["--once-at", "start"], "--once"),
            (&["--once", "a", "--once-at", "end"], "--once-at"),
        ] {
            let why = typed(words).unwrap_err();
            assert!(why.contains(expected) && !why.contains("lock name"), "{why}");
        }
    }

    #[test]
    fn a_key_is_kept_for_thirty_days_from_success_on_unless_told_otherwise() {
        let once = typed(&["--once", "a"]).unwrap().unwrap();
        assert_eq!((once.keep, once.when), (DEFAULT_KEEP, When::Success));
        let once = typed(&["--once", "a", "--once-keep", "2d", "--once-at", "start"]).unwrap().unwrap();
        assert_eq!((once.keep, once.when), (Duration::from_secs(2 * 86_400), When::Start));
    }
}
