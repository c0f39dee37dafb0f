//! What holds for every lock name, store URL, duration and lease: any text is taken as it is meant or refused in words.

use clap::Parser;
use fenced::cli::{Cli, Command};
use fenced::name::LockName;
use fenced::settings::{self, Run, StoreUrl};
use fenced::timing::{Lease, Moment, Window, check, margin};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use proptest::prelude::*;
use std::time::Duration;

const IN_A_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/');

/// What these words of a command line come to, with no variable set.
fn typed(words: &[&str]) -> Result<Run, String> {
    let words = [&["fenced", "run"], words, &["true"]].concat();
    match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
        Command::Run(run) => settings::run(*run, &|_| None),
        other => panic!("{other:?}"),
    }
}

/// A refusal is one line, says which flag it is about, and repeats no password.
fn is_in_words(refusal: &str, flag: &str) -> bool {
    refusal.contains(flag) && !refusal.contains('\n') && !refusal.contains("secret")
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{1,255}", "\\PC{1,60}", "[./%:]{1,40}"].prop_filter("a name", |name| name.len() <= 255)
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9][a-z0-9.-]{0,20}".prop_map(String::from),
        any::<std::net::Ipv4Addr>().prop_map(|ip| ip.to_string()),
        any::<std::net::Ipv6Addr>().prop_map(|ip| format!("[{ip}]")),
    ]
}

proptest! {
    #[test]
    fn a_lock_name_is_taken_exactly_when_it_has_1_to_255_bytes_and_no_control_character(text in any::<String>()) {
        let fine = (1..=255).contains(&text.len()) && !text.chars().any(char::is_control);
        let parsed = LockName::parse(&text);
        prop_assert_eq!(parsed.is_ok(), fine);
        if let Err(why) = parsed {
            prop_assert!(!why.contains('\n'));
        }
    }

    #[test]
    fn an_encoded_name_is_one_word_that_decodes_to_the_name(text in name()) {
        let encoded = LockName::parse(&text).unwrap().encoded();
        prop_assert!(encoded.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-%".contains(&b)), "{}", encoded);
        prop_assert_eq!(percent_decode_str(&encoded).decode_utf8().unwrap(), text);
    }

    #[test]
    fn no_encoded_name_followed_by_a_slash_begins_the_keys_of_another(one in name(), other in name()) {
        prop_assume!(one != other);
        let key = |name: &str| format!("{}/", LockName::parse(name).unwrap().encoded());
        prop_assert!(!key(&one).starts_with(&key(&other)));
    }

    #[test]
    fn any_text_for_a_store_is_taken_or_refused_in_one_line(text in any::<String>(), after in "[ -~]{0,40}") {
        for text in [text, format!("etcd:{after}"), format!("etcds://{after}"), format!("file:{after}")] {
            // `etcd:` alone asks the environment, which has nothing to say here.
            if let Err(why) = typed(&["--lock", "a", "--store", &text]) {
                prop_assert!(!why.trim_end().contains('\n') || why.starts_with("error:"), "{}", why);
            }
        }
    }

    #[test]
    fn a_store_url_with_a_password_is_refused_without_repeating_it(user in "[a-z]{1,8}", host in host(), scheme in "etcds?") {
        let why = typed(&["--lock", "a", "--store", &format!("{scheme}://{user}:secret@{host}/p")]).unwrap_err();
        prop_assert!(is_in_words(&why, "--store"), "{}", why);
    }

    #[test]
    fn members_and_prefix_are_found_again(
        hosts in prop::collection::vec((host(), prop::option::of(1_u16..)), 1..5),
        prefix in prop::option::of("[a-z0-9_.-]{1,10}(/[a-z0-9_.-]{1,10}){0,3}"),
    ) {
        let written: Vec<_> = hosts
            .iter()
            .map(|(host, port)| port.map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
            .collect();
        let path = prefix.as_ref().map_or_else(String::new, |prefix| format!("/{prefix}"));
        let run = typed(&["--lock", "a", "--store", &format!("etcd://{}{path}", written.join(","))]).unwrap();
        let members = hosts.iter().map(|(host, port)| format!("{host}:{}", port.unwrap_or(2379))).collect();
        let prefix = if path.is_empty() { "/fenced/v1".to_owned() } else { path };
        prop_assert_eq!(run.store, StoreUrl::Etcd { members, prefix, tls: false });
    }

    #[test]
    fn any_directory_is_found_again(path in "(/[^/]{1,20}){1,4}", ascii in "(/[ -.0-~]{1,20}){1,4}") {
        for path in [path.replace('\0', "0"), ascii] {
            let encoded = utf8_percent_encode(&path, IN_A_PATH).to_string();
            let run = typed(&["--lock", "a", "--store", &format!("file://{encoded}")]).unwrap();
            prop_assert_eq!(run.store, StoreUrl::File { directory: Some(path.into()) });
        }
    }

    #[test]
    fn a_duration_is_read_as_it_is_written(ms in 1_u64..10_000_000_000, spaced in any::<bool>()) {
        let span = Duration::from_millis(ms);
        let written = humantime::format_duration(span).to_string();
        let written = if spaced { written } else { written.replace(' ', "") };
        prop_assert_eq!(typed(&["--lock", "a", "--store", "file:", "--wait", &written]).unwrap().wait, Some(span));
    }

    #[test]
    fn a_bare_number_is_refused_with_one_that_would_do(number in 1_u64..) {
        let why = typed(&["--lock", "a", "--wait", &number.to_string()]).unwrap_err();
        prop_assert!(is_in_words(&why, "--wait") && why.contains(&format!("{number}s")), "{}", why);
    }

    #[test]
    fn any_text_for_a_duration_is_taken_or_refused_in_words(text in any::<String>(), near in "-?[0-9]{0,20}(\\.[0-9])?[a-zµ ]{0,4}") {
        for flag in ["--wait", "--ttl", "--grace", "--jitter"] {
            for text in [&text, &near] {
                let given = format!("{flag}={text}");
                if let Err(why) = typed(&["--lock", "a", "--store", "file:", &given]) {
                    prop_assert!(is_in_words(&why, flag) || why.starts_with("error:"), "{}", why);
                }
            }
        }
    }

    #[test]
    fn the_moments_of_every_lease_that_is_allowed_are_in_order(ttl in 1_u64..400_000, grace in 0_u64..400_000, sent in any::<u64>()) {
        let (ttl, grace) = (Duration::from_millis(ttl), Duration::from_millis(grace));
        prop_assume!(check(ttl, grace).is_ok());
        let sent = Moment(sent / 2);
        let window = Window::of(Lease { sent, ttl }, grace);
        prop_assert!(sent < window.beat && window.beat + 2 * window.attempt <= window.stop_by, "{:?}", window);
        prop_assert_eq!(window.stop_by + grace, window.dead_by);
        prop_assert_eq!(window.dead_by + margin(ttl), window.expiry);
        prop_assert_eq!(window.expiry, sent + ttl);
    }

    #[test]
    fn what_a_refused_lease_is_told_to_use_is_allowed(ttl in 1_u64..300_000, grace in 0_u64..300_000) {
        let (ttl, grace) = (Duration::from_millis(ttl), Duration::from_millis(grace));
        if let Err(why) = check(ttl, grace) {
            let named = |flag: &str| {
                let rest = why.rsplit_once(&format!("use {flag} ")).or_else(|| why.rsplit_once(&format!("or {flag} ")))?.1;
                let end = rest.find(" or ")?;
                humantime::parse_duration(&rest[..end]).ok()
            };
            prop_assert!(named("--ttl").is_some() || named("--grace").is_some(), "{}", why);
            if let Some(longer) = named("--ttl") {
                prop_assert!(check(longer, grace).is_ok() || longer == Duration::from_secs(300), "{}", why);
            }
            if let Some(shorter) = named("--grace") {
                prop_assert!(check(ttl, shorter).is_ok(), "{}", why);
            }
        }
    }
}
