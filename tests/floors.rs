//! The layout that ARCHITECTURE.md describes holds: imports go down only, and unsafe code stays in its two places.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The rooms (top-level modules) of each floor, lowest first. A room uses floors below its own and no neighbour.
const FLOORS: &[&[&str]] = &[
    &["cli", "exit", "name", "timing", "token"],
    &["settings", "sys"],
    &["etcd"],
    &["guard", "report", "store"],
    &["fence", "hold"],
    &["commands"],
    &["lib", "main"],
];

/// Where `unsafe` may stand: below a directory, or in a file.
const UNSAFE: &[&str] = &["sys/", "guard/spawn.rs"];

#[test]
fn every_import_goes_down_and_unsafe_stays_in_its_two_places() {
    let files = sources();
    assert!(files.len() > 10, "found only {} files", files.len());
    let wrong: Vec<String> = files.iter().flat_map(|(path, text)| violations(path, text)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_room_of_the_table_exists() {
    let rooms: BTreeSet<String> = sources().iter().map(|(path, _)| room(path).to_owned()).collect();
    let table: BTreeSet<String> = FLOORS.iter().flat_map(|floor| floor.iter()).map(ToString::to_string).collect();
    assert_eq!(rooms, table);
}

#[test]
fn an_import_from_above_is_found() {
    found("store/local/mod.rs", "use crate::hold::machine::Phase;", "store uses hold, which is not below it");
    found("token.rs", "fn f() -> crate::settings::OnExit { todo() }", "token uses settings, which is not below it");
}

#[test]
fn an_import_from_a_neighbour_is_found() {
    found("guard/wire.rs", "use crate::{timing::Moment, store::contract};", "guard uses store, which is not below it");
}

#[test]
fn an_import_from_above_is_found_inside_nested_groups_and_tests() {
    let nested = "use crate::{\n    token::{Lineage, Token},\n    commands::{self, run},\n};";
    found("hold/mod.rs", nested, "hold uses commands, which is not below it");
    found("name.rs", "#[cfg(test)]\nmod tests { use crate::report; }", "name uses report, which is not below it");
}

#[test]
fn a_way_out_of_a_room_by_super_is_found() {
    found("report.rs", "use super::store::contract;", "report uses store, which is not below it");
    found("guard/wire.rs", "use super::super::store::contract;", "guard uses store, which is not below it");
    found("report.rs", "mod tests { use super::super::hold; }", "report uses hold, which is not below it");
}

#[test]
fn a_room_that_no_floor_has_is_found() {
    found("drawer.rs", "", "drawer stands on no floor");
    found("hold/mod.rs", "use crate::drawer::x;", "hold uses drawer, which is not below it");
}

#[test]
fn unsafe_outside_its_places_is_found() {
    found("store/local/mod.rs", "fn f() { unsafe { g() } }", "unsafe code outside sys/, guard/spawn.rs");
    found("guard/serve.rs", "unsafe extern \"C\" fn f() {}", "unsafe code outside sys/, guard/spawn.rs");
}

#[test]
fn what_is_allowed_passes() {
    let clean = [
        ("guard/spawn.rs", "use crate::sys::clock; fn f() { unsafe { g() } }"),
        ("sys/clock.rs", "use crate::timing::Moment; fn f() { unsafe { g() } }"),
        ("store/etcd/mod.rs", "use crate::store::contract::Store; use super::contract; use crate::etcd::members;"),
        ("report.rs", "mod tests { use super::*; use super::Line; }"),
        ("main.rs", "use fenced::commands; fn main() { fenced::cli::command(); }"),
        (
            "hold/mod.rs",
            "// use crate::commands\n/* unsafe /* crate::main */ */ const A: &str = \"unsafe crate::commands::x\";",
        ),
        (
            "hold/mod.rs",
            "const A: &str = r#\"crate::commands \"unsafe\" \"#; const B: char = '\"'; fn f<'a>(_: &'a str) {}",
        ),
        ("hold/mod.rs", "pub(crate) fn f() {}\n#![expect(unsafe_code)]"),
    ];
    for (path, text) in clean {
        assert_eq!(violations(path, text), Vec::<String>::new(), "{path}: {text}");
    }
}

#[track_caller]
fn found(path: &str, text: &str, expected: &str) {
    let wrong = violations(path, text);
    assert!(wrong.iter().any(|line| line == &format!("{path}: {expected}")), "{wrong:?}");
}

/// What is wrong in one file, one line each. `path` is relative to `src`.
fn violations(path: &str, text: &str) -> Vec<String> {
    let own = room(path);
    let Some(floor) = floor_of(own) else {
        return vec![format!("{path}: {own} stands on no floor")];
    };
    let words = words(text);
    let allowed = |used: &str| used == own || floor_of(used).is_some_and(|below| below < floor);
    let mut wrong: Vec<String> = rooms_used(path, &words)
        .into_iter()
        .filter(|used| !allowed(used))
        .map(|used| format!("{path}: {own} uses {used}, which is not below it"))
        .collect();
    let may_be_unsafe = UNSAFE.iter().any(|place| path == *place || (place.ends_with('/') && path.starts_with(place)));
    if !may_be_unsafe && words.iter().any(|word| word == "unsafe") {
        wrong.push(format!("{path}: unsafe code outside {}", UNSAFE.join(", ")));
    }
    wrong
}

/// The top-level module that a file belongs to.
fn room(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

fn floor_of(room: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&room))
}

/// How many modules stand above the items of a file: 1 for `report.rs` and `store/mod.rs`, 2 for `guard/wire.rs`.
fn depth(path: &str) -> usize {
    let last = path.rsplit('/').next().unwrap_or(path);
    let parts = path.split('/').count();
    match last {
        "lib.rs" | "main.rs" => 0,
        "mod.rs" => parts - 1,
        _ => parts,
    }
}

/// The rooms that a file names by a path from the crate's root: `crate::…`, `fenced::…` in main, or enough `super::`.
fn rooms_used(path: &str, words: &[String]) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let (mut braces, mut inner) = (0_usize, Vec::new());
    for (at, word) in words.iter().enumerate() {
        match word.as_str() {
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                if inner.last() == Some(&braces) {
                    inner.pop();
                }
            }
            "mod" if words.get(at + 2).is_some_and(|next| next == "{") => inner.push(braces),
            "crate" => named(&words[at + 1..], &mut used),
            "fenced" if path == "main.rs" => named(&words[at + 1..], &mut used),
            "super" if at < 2 || words[at - 2] != "super" => {
                let chain = words[at..].chunks(2).take_while(|pair| pair[0] == "super").count();
                if chain >= depth(path) + inner.len() {
                    named(&words[at + 2 * chain - 1..], &mut used);
                }
            }
            _ => {}
        }
    }
    used
}

/// The first names after a path's root: one after `::`, each of the outermost ones after `::{`.
fn named(rest: &[String], used: &mut BTreeSet<String>) {
    if rest.first().is_none_or(|word| word != "::") {
        return;
    }
    if rest.get(1).is_none_or(|word| word != "{") {
        used.extend(rest.get(1).filter(|word| is_module(word)).cloned());
        return;
    }
    let mut open = 0_usize;
    for pair in rest[1..].windows(2) {
        match pair[0].as_str() {
            "{" => open += 1,
            "}" => open -= 1,
            _ => {}
        }
        if open == 0 {
            return;
        }
        if open == 1 && matches!(pair[0].as_str(), "{" | ",") && is_module(&pair[1]) {
            used.insert(pair[1].clone());
        }
    }
}

/// Modules are lowercase words; types and `*` at the root belong to no room.
fn is_module(word: &str) -> bool {
    word != "self" && word.starts_with(|c: char| c.is_ascii_lowercase())
}

/// The text as words: identifiers, `::`, and single other characters; without comments, strings and characters.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = skipped(rest).unwrap_or_else(|| {
            let length = if first.is_alphanumeric() || first == '_' {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            if !first.is_whitespace() {
                words.push(rest[..length].to_owned());
            }
            length
        });
        rest = &rest[length..];
    }
    words
}

/// The length of the comment, string, character or lifetime at the start of the text, if there is one.
fn skipped(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    let raw = text.strip_prefix('b').or_else(|| text.strip_prefix('c')).unwrap_or(text);
    let prefix = text.len() - raw.len();
    if let Some(after) = raw.strip_prefix('r') {
        let hashes = after.len() - after.trim_start_matches('#').len();
        if after[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = 1 + hashes + 1;
            return Some(prefix + raw[body..].find(&end).map_or(raw.len(), |at| body + at + end.len()));
        }
    }
    if raw.starts_with('"') {
        return Some(prefix + quoted(raw, '"'));
    }
    let mut chars = raw.strip_prefix('\'')?.chars();
    let (first, second) = (chars.next()?, chars.next()?);
    let is_char = first == '\\' || second == '\'';
    Some(prefix + if is_char { quoted(raw, '\'') } else { 1 })
}

fn block_comment(text: &str) -> usize {
    let (mut open, mut at) = (0_usize, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (open, at) = (open + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (open, at) = (open - 1, at + 2);
            if open == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of what stands between two `quote`s at the start of the text, both included.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Every file of `src`, by its path relative to it.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut files, mut open) = (Vec::new(), vec![root.clone()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                files.push((relative, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files
}
