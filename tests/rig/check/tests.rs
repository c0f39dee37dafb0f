//! Each check over histories made by hand: a good one passes, and each bad one is found.

use super::*;
use crate::history::{Class, Event, RunId, StatusLine, What};

const MS: u64 = 1_000_000;

/// A history in the making; all times are in milliseconds.
#[derive(Clone, Default)]
struct Story(Vec<Event>);

impl Story {
    fn then(mut self, at: u64, run: RunId, what: What) -> Self {
        self.0.push(Event { at: at * MS, run, what });
        self
    }

    /// A run of lock `a` whose command lives from `start` to `end` and exits 0.
    fn run(self, run: RunId, token: i64, start: u64, end: u64) -> Self {
        self.begins(run, token, start).then(end, run, What::Ended { code: 0 }).finishes(
            run,
            end + 5,
            0,
            "exited",
            token,
        )
    }

    fn begins(self, run: RunId, token: i64, start: u64) -> Self {
        self.then(start - 10, run, What::Asked { lock: "a".into(), local: false })
            .then(start - 1, run, What::Granted { token })
            .then(start, run, What::Started { token })
    }

    fn finishes(self, run: RunId, at: u64, status: i32, outcome: &str, token: i64) -> Self {
        let line = StatusLine {
            outcome: outcome.into(),
            exit_code: Some(status),
            token: Some(token),
            ..StatusLine::default()
        };
        self.then(at, run, What::Finished { status: Some(status), signal: None, line: Some(line) })
    }

    fn fault(self, at: u64, run: RunId, class: Class, text: &str) -> Self {
        self.then(at, run, What::Fault { class, text: text.into() })
    }

    fn told(&self) -> History {
        History::of(self.0.clone())
    }
}

fn good() -> Story {
    Story::default().run(1, 5, 100, 200).run(2, 7, 210, 300).run(3, 9, 320, 400)
}

#[track_caller]
fn finds(wrong: &[String], what: &str) {
    assert!(wrong.iter().any(|line| line.contains(what)), "{what:?} is not in {wrong:?}");
}

#[test]
fn a_history_in_which_nothing_went_wrong_passes_every_check() {
    let history = good().then(500, 0, What::Healed).run(4, 11, 510, 600).told();
    let (wrong, excused) = overlaps(&history, "a", Terms::default());
    assert_eq!((wrong, excused), (vec![], vec![]));
    let none: Vec<String> = Vec::new();
    assert_eq!(tokens(&history, "a"), none);
    assert_eq!(queue(&history, "a"), none);
    assert_eq!(statuses(&history), none);
    assert_eq!(survivors(&history, Terms::default()), none);
    assert_eq!(turns(&history, Duration::from_secs(1)), none);
}

#[test]
fn a_token_that_is_given_twice_or_falls_is_found() {
    finds(&tokens(&good().run(4, 9, 410, 500).told(), "a"), "both have token 9");
    finds(&tokens(&good().run(4, 8, 410, 500).told(), "a"), "started after");
    finds(&tokens(&good().run(4, 0, 410, 500).told(), "a"), "0 for a token");
}

#[test]
fn a_token_that_fenced_tells_otherwise_than_the_command_had_it_is_found() {
    let story = good().begins(4, 11, 410).then(420, 4, What::Ended { code: 0 }).finishes(4, 430, 0, "exited", 12);
    finds(&tokens(&story.told(), "a"), "had token 11");
}

#[test]
fn two_commands_at_one_time_are_found_whichever_began_first() {
    for token in [4, 11] {
        let (wrong, excused) = overlaps(&good().run(4, token, 390, 500).told(), "a", Terms::default());
        finds(&wrong, "began while");
        assert_eq!(excused, []);
    }
}

#[test]
fn a_command_that_outlives_two_others_is_found_twice() {
    let (wrong, _) = overlaps(&good().then(390, 1, What::Beat).told(), "a", Terms::default());
    assert_eq!(wrong.len(), 2, "{wrong:?}");
}

#[test]
fn an_overlap_is_excused_by_what_was_done_to_the_one_that_should_have_been_over_and_by_nothing_else() {
    let overlapping = || good().run(4, 11, 390, 500);
    let excused = |story: Story| overlaps(&story.told(), "a", Terms::default()).0.is_empty();
    assert!(excused(overlapping().fault(330, 3, Class::Frozen, "")));
    assert!(excused(overlapping().fault(330, 0, Class::MemberFrozen, "")));
    assert!(excused(overlapping().fault(330, 0, Class::Revoked, "")));
    assert!(!excused(overlapping().fault(330, 3, Class::Plain, "")));
    assert!(!excused(overlapping().fault(330, 4, Class::Frozen, "")));
    assert!(!excused(overlapping().fault(450, 3, Class::Frozen, "")));
    assert!(!excused(overlapping().fault(310, 0, Class::Revoked, "")));
}

#[test]
fn an_early_revocation_excuses_no_command_that_goes_on_and_on() {
    let story = good().fault(330, 0, Class::MemberFrozen, "").run(4, 11, 390, 3000).then(1500, 3, What::Beat);
    finds(&overlaps(&story.told(), "a", Terms::default()).0, "began while");
}

#[test]
fn what_was_stopped_did_not_live_meanwhile() {
    let story = good().fault(330, 3, Class::Frozen, "").run(4, 11, 410, 9000);
    let (wrong, excused) = overlaps(&story.clone().then(8000, 3, What::Beat).told(), "a", Terms::default());
    assert_eq!((wrong, excused.len(), excused[0].ns), (vec![], 1, 0));
    let (wrong, _) = overlaps(&story.then(7000, 3, What::Beat).then(8000, 3, What::Beat).told(), "a", Terms::default());
    finds(&wrong, "for 1000 ms");
}

#[test]
fn a_stale_write_a_lost_one_and_one_that_nobody_made_are_found() {
    let tried = |story: Story, run, value, accepted| {
        story.then(150, run, What::Trying { value }).then(151, run, What::Wrote { value, accepted })
    };
    let story = tried(tried(good(), 1, 1, true), 2, 2, true);
    let record = |token, value, run| Record { token, value, run, written: true };
    let known = |token, value, run| Record { written: false, ..record(token, value, run) };
    let fine = [known(5, 0, 1), record(5, 1, 1), known(7, 1, 2), record(7, 2, 2)];
    assert_eq!(writes(&story.told(), "a", &fine), Vec::<String>::new());
    finds(&writes(&story.told(), "a", &[fine[2], fine[1]]), "stale write");
    finds(&writes(&story.told(), "a", &[fine[0], fine[1], fine[2], record(7, 1, 2)]), "a write was lost");
    finds(&writes(&story.told(), "a", &fine[..3]), "told that 2 is written, and it is not");
    finds(&writes(&story.told(), "a", &[fine[0], fine[1], fine[2], fine[3], record(7, 3, 2)]), "nobody tried");
}

#[test]
fn one_that_overtakes_a_waiter_is_found_unless_the_waiter_had_to_queue_again() {
    let story = || {
        let waiter =
            Story::default().then(50, 1, What::Asked { lock: "a".into(), local: false }).then(60, 1, What::Waiting);
        waiter.run(2, 5, 90, 200).begins(1, 6, 210)
    };
    finds(&queue(&story().told(), "a"), "entered first");
    assert_eq!(queue(&story().then(70, 1, What::Retrying).told(), "a"), Vec::<String>::new());
}

#[test]
fn a_success_without_an_end_or_with_another_holder_meanwhile_is_found() {
    let lied = good().begins(4, 11, 410).finishes(4, 500, 0, "exited", 11);
    finds(&statuses(&lied.told()), "never came to its end");
    let shared = Story::default().run(1, 5, 100, 200).run(2, 7, 150, 300);
    finds(&statuses(&shared.told()), "had the lock before");
    let failed = good().begins(4, 11, 410).then(450, 4, What::Ended { code: 7 }).finishes(4, 500, 0, "exited", 11);
    finds(&statuses(&failed.told()), "ended with 7");
}

#[test]
fn a_status_that_does_not_fit_is_found() {
    let asked = || good().then(410, 4, What::Asked { lock: "a".into(), local: false });
    let ran = || good().begins(4, 11, 420);
    for (story, fits) in [
        (asked().finishes(4, 500, 75, "busy", 11), true),
        (ran().finishes(4, 500, 75, "busy", 11), false),
        (asked().fault(450, 0, Class::Plain, "cut").finishes(4, 500, 69, "unavailable", 11), true),
        (asked().finishes(4, 500, 69, "unavailable", 11), false),
        (ran().fault(450, 0, Class::Plain, "cut").finishes(4, 500, 76, "lost", 11), true),
        (ran().finishes(4, 500, 76, "lost", 11), false),
        (ran().then(450, 4, What::Ended { code: 7 }).finishes(4, 500, 7, "exited", 11), true),
        (ran().then(450, 4, What::Ended { code: 7 }).finishes(4, 500, 8, "exited", 11), false),
        (asked().finishes(4, 500, 125, "error", 11), false),
    ] {
        assert_eq!(statuses(&story.told()).is_empty(), fits, "{:?}", statuses(&story.told()));
    }
    let contrary = StatusLine { outcome: "busy".into(), exit_code: Some(75), ..StatusLine::default() };
    let story = asked().then(500, 4, What::Finished { status: Some(0), signal: None, line: Some(contrary) });
    finds(&statuses(&story.told()), "another status");
}

#[test]
fn a_run_that_hangs_never_ends_or_dies_of_nothing_is_found() {
    finds(&statuses(&good().begins(4, 11, 410).told()), "never ended");
    finds(&statuses(&good().run(4, 11, 410, 500).then(500, 4, What::Hung).told()), "hung");
    let died = What::Finished { status: None, signal: Some(9), line: None };
    finds(&statuses(&good().begins(4, 11, 410).then(500, 4, died.clone()).told()), "nobody sent");
    let waiter = || good().then(410, 4, What::Asked { lock: "a".into(), local: true }).then(4500, 4, died.clone());
    finds(&statuses(&waiter().told()), "nobody sent");
    assert_eq!(statuses(&waiter().then(4400, 0, What::Stall { ns: 3000 * MS }).told()), Vec::<String>::new());
    let killed = good().begins(4, 11, 410).fault(490, 4, Class::Plain, "SIGKILL").then(500, 4, died);
    assert_eq!(statuses(&killed.told()), Vec::<String>::new());
}

#[test]
fn a_process_that_outlives_fenced_is_found_sooner_when_fenced_ended_by_itself() {
    let survived = |story: Story| !survivors(&story.told(), Terms::default()).is_empty();
    assert!(survived(good().then(450, 3, What::Beat)));
    let killed = || {
        let died = What::Finished { status: None, signal: Some(9), line: None };
        good().begins(4, 11, 410).fault(490, 4, Class::Plain, "SIGKILL").then(500, 4, died)
    };
    assert!(!survived(killed().then(900, 4, What::Beat)));
    assert!(survived(killed().then(1500, 4, What::Beat)));
}

#[test]
fn a_waiter_that_waits_on_though_all_is_well_is_found() {
    let second = Duration::from_secs(1);
    let healed = good().then(500, 0, What::Healed);
    finds(&turns(&healed.clone().told(), second), "nobody asked");
    let stood = healed.clone().then(510, 4, What::Asked { lock: "a".into(), local: false });
    let stood = stood.then(1650, 0, What::Stall { ns: 400 * MS }).then(1700, 4, What::Started { token: 11 });
    assert_eq!(turns(&stood.told(), second), Vec::<String>::new());
    let late = healed.clone().then(510, 4, What::Asked { lock: "a".into(), local: false });
    finds(&turns(&late.clone().told(), second), "never had its turn");
    finds(&turns(&late.then(1600, 4, What::Started { token: 11 }).told(), second), "waited 1090 ms");
}
