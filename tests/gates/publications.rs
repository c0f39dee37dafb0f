//! `fenced publish`: what readers see, also while fifty publish at once.

use crate::scene::{Place, remembered, showing};
use crate::support::run::Run;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn publish(source: &str, destination: &str, token: i64) -> Run {
    showing(&["publish"], token).args([source, destination])
}

#[test]
fn a_first_publication_wants_a_gate_and_a_stale_one_changes_nothing() {
    let place = Place::new();
    let (source, destination) = (place.at("source"), place.at("site"));
    fs::write(&source, "two").unwrap();
    assert!(publish(&source, &destination, 2).output().exits(77).stderr.contains("gate init"));
    publish(&source, &destination, 2).args(["--init"]).output().exits(0);
    fs::write(&source, "one").unwrap();
    publish(&source, &destination, 1).output().exits(77);
    assert_eq!(fs::read_to_string(&destination).unwrap(), "two");
}

#[test]
fn another_gate_may_stand_for_many_destinations() {
    let place = Place::new();
    let (gate, source) = (place.gate("g"), place.at("source"));
    fs::write(&source, "x").unwrap();
    publish(&source, &place.at("one"), 5).args(["--gate", &gate]).output().exits(0);
    publish(&source, &place.at("two"), 4).args(["--gate", &gate]).output().exits(77);
    assert!(!place.path("two").exists() && !place.path(".one.fence").exists());
}

#[test]
fn readers_never_see_an_older_version_after_a_newer_one_and_the_newest_stays() {
    let place = Place::new();
    let destination = place.at("site");
    Run::of(["gate", "init"]).args([place.at(".site.fence")]).output().exits(0);
    let mut tokens: Vec<i64> = (1..=50).collect();
    fastrand::shuffle(&mut tokens);
    let over = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen: Vec<i64> = Vec::new();
            while !over.load(Ordering::Relaxed) {
                // Each version is its token, over and over: half a file would not parse.
                if let Ok(text) = fs::read_to_string(&destination) {
                    let mut words = text.split_ascii_whitespace().map(|word| word.parse().expect("a whole word"));
                    let first = words.next().expect("not empty");
                    assert!(words.all(|word: i64| word == first) && text.len() > 10_000, "half a file");
                    seen.push(first);
                }
            }
            seen
        });
        thread::scope(|scope| {
            for token in tokens {
                let source = place.at(&format!("source-{token}"));
                fs::write(&source, format!("{token:03} ").repeat(5_000)).unwrap();
                let publish = publish(&source, &destination, token);
                scope.spawn(move || assert!(matches!(publish.output().code(), Some(0 | 77))));
            }
        });
        over.store(true, Ordering::Relaxed);
        reader.join().expect("a reader that saw whole files only")
    });
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(seen.last(), Some(&50), "the newest is lost");
    assert_eq!(remembered(&place.at(".site.fence")), 50);
}

#[test]
fn a_directory_is_whole_at_every_moment() {
    let place = Place::new();
    let (source, destination) = (place.path("source"), place.at("site"));
    for token in 1..=5 {
        fs::create_dir_all(source.join("deep")).unwrap();
        fs::write(source.join("deep/page"), token.to_string()).unwrap();
        publish(&source.display().to_string(), &destination, token).args(["--init"]).output().exits(0);
        assert_eq!(fs::read_to_string(place.path("site/deep/page")).unwrap(), token.to_string());
    }
}
