//! The rule of a gate, as one list of behaviours for every resource.

use crate::bench::Bench;
use crate::support::run::Ended;
use crate::support::wait::SOON;
use crate::text::Snippet;

/// A resource on which the snippet was installed as printed.
pub trait Resource {
    fn bench(&self) -> &Bench;
    fn snippet(&self) -> &Snippet;
    /// Makes the command line write this word.
    fn next(&self, word: &str);
    /// What is there.
    fn word(&self) -> String;
    /// The highest token that was accepted, as it is kept.
    fn token(&self) -> String;
    /// Removes the fence.
    fn forget(&self);
    /// Starts afresh as printed. `fenced` runs what is to be run under the lock.
    fn start_afresh(&self, fenced: &dyn Fn(&str) -> Ended);

    /// The command line as printed, writing `word` with this token.
    fn put(&self, word: &str, token: &str, lineage: &str) -> Ended {
        self.next(word);
        self.bench().run_as(&self.snippet().each_time(), token, lineage)
    }
}

/// Every behaviour, one after the other on one resource that has accepted nothing yet.
pub fn holds_for(resource: &impl Resource) {
    let accepted = |word: &str, token: &str| {
        let ended = resource.put(word, token, "a-1").exits(0);
        unchanged(resource, word, token, &format!("{ended:?}"));
    };
    accepted("first", "9");
    accepted("higher, though less as text", "40");
    accepted("equal", "40");
    let why = refused(resource, "9", "a-1");
    assert!(["stale", "412"].iter().any(|word| why.contains(word)), "{why}");
    let why = refused(resource, "50", "b-2");
    assert!(["lineage", "412"].iter().any(|word| why.contains(word)), "{why}");
    for lineage in ["A-1", "", "a'1", "a 1"] {
        refused(resource, "50", lineage);
    }
    let beyond = ["9223372036854775808", "9999999999999999999", "99999999999999999999"];
    for no_token in ["", "0", "-50", "+50", "5e1", "050", "5 0", "x"].iter().chain(&beyond) {
        refused(resource, no_token, "a-1");
    }
    unchanged(resource, "equal", "40", "something was written");
    accepted("beyond doubles", "9007199254740993");
    refused(resource, "9007199254740992", "a-1");
    unchanged(resource, "beyond doubles", "9007199254740993", "something was written");
    accepted("the last", "9223372036854775807");

    resource.start_afresh(&|script| resource.bench().run_as(script, "1", "b-2"));
    resource.put("afresh", "3", "b-2").exits(0);
    unchanged(resource, "afresh", "3", "nothing was written");
    real_runs(resource);

    resource.forget();
    let before = resource.word();
    refused(resource, "2000", "b-2");
    assert_eq!(resource.word(), before, "there is no fence");
}

fn unchanged(resource: &impl Resource, word: &str, token: &str, why: &str) {
    assert_eq!((resource.word(), resource.token()), (word.to_owned(), token.to_owned()), "{why}");
}

/// Has the command line refused, and returns what it said.
fn refused(resource: &impl Resource, token: &str, lineage: &str) -> String {
    let ended = resource.put("refused", token, lineage);
    assert!(ended.code().is_some_and(|code| code != 0), "token {token} of {lineage}: {ended:?}");
    ended.stdout + &ended.stderr
}

/// With fenced itself: its token is accepted, and the client's refusal is its exit status.
fn real_runs(resource: &impl Resource) {
    let (bench, each_time) = (resource.bench(), resource.snippet().each_time());
    resource.start_afresh(&|script| bench.run_fenced(script));
    let token = bench.run_fenced("fenced run --lock nightly -- sh -c 'echo \"$FENCED_TOKEN\"'").exits(0).stdout;
    let token = token.trim().parse::<u64>().unwrap() + 1;
    resource.next("by fenced");
    bench.run_fenced(&each_time).exits(0);
    assert_eq!((resource.word(), resource.token()), ("by fenced".to_owned(), token.to_string()));
    let lineage = bench.run_fenced("fenced run --lock nightly -- sh -c 'echo \"$FENCED_LINEAGE\"'").stdout;
    resource.put("by a later one", "1000", lineage.trim()).exits(0);
    resource.next("too late");
    let ended = bench.run_fenced(&each_time);
    assert!(!matches!(ended.code(), None | Some(0 | 125..)), "{ended:?}");
    assert_eq!(resource.word(), "by a later one");
}

/// Writers at the same time, each with its token; all end, and some are refused.
pub fn race(resource: &impl Resource, tokens: &[u32]) -> u32 {
    let each_time = resource.snippet().each_time();
    let (bench, base) = (resource.bench(), 1_000_000_u32);
    let start = |token: &u32| bench.start(&each_time, &(base + token).to_string(), "a-1");
    let writers: Vec<_> = tokens.iter().map(start).collect();
    let ended: Vec<_> = writers.into_iter().map(|writer| writer.wait(SOON * 6)).collect();
    let highest = tokens.iter().max().unwrap();
    let last = tokens.iter().zip(&ended).find(|(token, _)| *token == highest).unwrap();
    assert_eq!(last.1.code(), Some(0), "the highest is refused by nobody: {last:?}");
    base + highest
}

/// A hundred words would do as well; these come in no order, and neighbours differ.
pub const TOKENS: [u32; 12] = [7, 2, 11, 9, 1, 12, 4, 10, 3, 8, 6, 5];
