//! The machine's table, sentence by sentence. Times are seconds after the first tick; the lease is 30 s, the grace 5 s:
//! beat at 8.13, stop at 24.4, dead by 29.4.

use super::event::{Action, Event, FIRST_ANSWER, Phase, Readiness, Setup};
use super::machine::{GUARD_PATIENCE, Machine};
use crate::exit::Verdict;
use crate::guard::terms::{Deadlines, Report};
use crate::report::Notice;
use crate::settings::OnExit;
use crate::store::contract::{Failure, Grant, Interruption, Place, Released};
use crate::timing::{Lease, Moment};
use crate::token::{Lineage, Token};
use std::time::Duration;

const TTL: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(5);

fn at(seconds: f64) -> Moment {
    Moment(1_000_000_000_000) + Duration::from_secs_f64(seconds)
}

fn setup() -> Setup {
    Setup {
        delay: Duration::ZERO,
        wait: Some(Duration::from_secs(60)),
        grace: GRACE,
        on_exit: OnExit::Kill,
        prepares: false,
        seed: 7,
    }
}

fn lease(sent: f64) -> Lease {
    Lease { sent: at(sent), ttl: TTL }
}

fn grant(sent: f64) -> Grant {
    Grant {
        token: Token::new(7).unwrap(),
        lineage: Lineage::new("lineage").unwrap(),
        lease: Some(lease(sent)),
        confirm: false,
        key: None,
    }
}

fn kernel_grant() -> Grant {
    Grant { lease: None, ..grant(0.0) }
}

fn lost() -> Failure {
    Failure::Lost("key deleted".into())
}

fn unavailable() -> Failure {
    Failure::Unavailable("no answer".into())
}

fn refused() -> Failure {
    Failure::Refused("permission denied".into())
}

/// A machine and what it said at each step.
struct Play {
    machine: Machine,
    said: Vec<Action>,
}

impl Play {
    fn new(setup: Setup) -> Self {
        Self { machine: Machine::new(setup, at(0.0)), said: Vec::new() }
    }

    fn step(mut self, seconds: f64, event: Event) -> Self {
        self.said = self.machine.step(at(seconds), event);
        self
    }

    fn joining() -> Self {
        Self::new(setup()).step(0.0, Event::Tick)
    }

    fn waiting() -> Self {
        Self::joining().step(0.1, Event::Contended(Ok(Place::Waiting)))
    }

    fn confirming() -> Self {
        Self::joining().step(0.1, Event::Contended(Ok(Place::Granted(Grant { confirm: true, ..grant(0.0) }))))
    }

    fn preparing() -> Self {
        let gated = Setup { prepares: true, ..setup() };
        Self::new(gated).step(0.0, Event::Tick).step(0.1, Event::Contended(Ok(Place::Granted(grant(0.0)))))
    }

    fn starting() -> Self {
        Self::joining().step(0.1, Event::Contended(Ok(Place::Granted(grant(0.0)))))
    }

    fn running() -> Self {
        Self::starting().step(0.2, Event::Guard(Report::Started { pid: 9 }))
    }

    fn running_with(setup: Setup) -> Self {
        Self::new(setup)
            .step(0.0, Event::Tick)
            .step(0.1, Event::Contended(Ok(Place::Granted(grant(0.0)))))
            .step(0.2, Event::Guard(Report::Started { pid: 9 }))
    }

    fn clearing() -> Self {
        Self::running().step(1.0, Event::Guard(Report::Ended { status: 0 }))
    }

    fn stopping() -> Self {
        Self::running().step(2.0, Event::Interrupted(Interruption::Evicted("by root".into())))
    }

    fn killing() -> Self {
        Self::running().step(2.0, Event::Interrupted(Interruption::Lost("key deleted".into())))
    }

    fn releasing() -> Self {
        Self::clearing().step(1.1, Event::Guard(Report::Clear))
    }

    fn withdrawing() -> Self {
        Self::waiting().step(61.0, Event::Tick)
    }

    fn done() -> Self {
        Self::releasing().step(1.2, Event::Released(Ok(Released::Ours)))
    }

    fn has(&self, action: &Action) -> bool {
        self.said.contains(action)
    }

    fn verdict(&self) -> &Verdict {
        let finish = self.said.iter().find_map(|action| match action {
            Action::Finish(verdict) => Some(verdict),
            _ => None,
        });
        finish.expect("the run has not ended")
    }
}

#[test]
fn nothing_is_asked_of_the_store_before_the_jitter_is_over() {
    let play = Play::new(Setup { delay: Duration::from_secs(3), ..setup() }).step(0.0, Event::Tick);
    assert!(play.said.is_empty());
    assert_eq!(play.machine.deadline(), at(3.0));
    let play = play.step(3.0, Event::Tick);
    assert_eq!(play.said, [Action::Contend]);
    assert_eq!(play.machine.wait_until(), at(63.0), "the waiting clock starts after the delay");
}

#[test]
fn a_signal_ends_the_delay_without_a_word_to_the_store() {
    let play = Play::new(Setup { delay: Duration::from_secs(3), ..setup() }).step(1.0, Event::Signal(15));
    assert_eq!(play.said, [Action::Finish(Verdict::Interrupted(15))]);
}

#[test]
fn a_free_lock_starts_the_command_with_the_deadlines_of_its_lease() {
    let play = Play::starting();
    assert!(play.has(&Action::Start(Deadlines { stop_by: at(24.4), dead_by: at(29.4) })));
}

#[test]
fn a_lock_of_the_kernel_has_no_deadlines_and_is_never_renewed() {
    let play = Play::joining().step(0.1, Event::Contended(Ok(Place::Granted(kernel_grant()))));
    assert!(play.has(&Action::Start(Deadlines { stop_by: Moment::NEVER, dead_by: Moment::NEVER })));
    let play = play.step(0.2, Event::Guard(Report::Started { pid: 9 }));
    assert_eq!(play.machine.deadline(), Moment::NEVER);
}

#[test]
fn an_assumed_lease_is_renewed_before_the_command_starts() {
    let play = Play::confirming();
    assert!(play.has(&Action::Renew));
    let play = play.step(0.2, Event::Renewed(Ok(lease(0.15))));
    assert!(matches!(play.said[..], [Action::Start(_)]));
}

#[test]
fn a_grant_whose_beat_has_passed_is_renewed_before_the_command_starts() {
    let play = Play::waiting().step(9.0, Event::Granted(Ok(grant(0.0))));
    assert!(play.has(&Action::Renew));
    assert_eq!(play.machine.phase(), Phase::Confirming);
}

#[test]
fn a_grant_that_cannot_be_confirmed_is_given_back_and_nothing_starts() {
    let play = Play::confirming().step(2.0, Event::Renewed(Err(unavailable())));
    assert!(play.said.is_empty());
    let play = play.step(24.4, Event::Tick);
    assert_eq!(play.said, [Action::Withdraw]);
    let play = play.step(24.5, Event::Withdrawn(Ok(())));
    assert!(matches!(play.verdict(), Verdict::Unavailable(why) if why.contains("no answer")));
}

#[test]
fn a_grant_lost_before_the_start_is_no_lost_run() {
    let play = Play::confirming().step(0.2, Event::Renewed(Err(lost()))).step(0.3, Event::Withdrawn(Ok(())));
    assert!(matches!(play.verdict(), Verdict::Unavailable(_)));
}

#[test]
fn gates_are_shown_the_token_before_the_command_starts() {
    let play = Play::preparing();
    assert!(play.has(&Action::Prepare) && !play.has(&Action::Renew));
    assert!(matches!(play.step(1.0, Event::Prepared(Ok(Readiness::Go))).said[..], [Action::Start(_)]));
}

#[test]
fn gates_that_took_long_cost_a_renewal_before_the_command_starts() {
    let play = Play::preparing().step(9.0, Event::Prepared(Ok(Readiness::Go)));
    assert_eq!((play.said, play.machine.phase()), (vec![Action::Renew], Phase::Confirming));
}

#[test]
fn a_gate_that_refuses_ends_the_run_before_the_command_starts() {
    let play = Play::preparing().step(1.0, Event::Prepared(Err(Failure::Stale("stale".into()))));
    assert_eq!(play.said, [Action::Withdraw]);
    assert_eq!(play.step(1.1, Event::Withdrawn(Ok(()))).verdict(), &Verdict::Refused("stale".into()));
}

#[test]
fn gates_that_do_not_answer_by_the_lease_or_at_all_make_the_store_unavailable() {
    assert_eq!(Play::preparing().machine.deadline(), at(24.4));
    for event in [Event::Tick, Event::Prepared(Err(unavailable()))] {
        let play = Play::preparing().step(24.4, event).step(24.5, Event::Withdrawn(Ok(())));
        assert!(matches!(play.verdict(), Verdict::Unavailable(_)));
    }
    let play = Play::preparing().step(2.0, Event::Interrupted(Interruption::Lost("gone".into())));
    assert!(matches!(play.step(2.1, Event::Withdrawn(Ok(()))).verdict(), Verdict::Unavailable(_)));
}

#[test]
fn a_held_lock_without_waiting_is_busy_at_once() {
    let play = Play::new(Setup { wait: Some(Duration::ZERO), ..setup() })
        .step(0.0, Event::Tick)
        .step(0.1, Event::Contended(Ok(Place::Waiting)));
    assert_eq!(play.said, [Action::Withdraw]);
    assert!(matches!(play.step(0.2, Event::Withdrawn(Ok(()))).verdict(), Verdict::Busy(_)));
}

#[test]
fn a_slow_first_answer_has_five_seconds_even_without_waiting() {
    let play = Play::new(Setup { wait: Some(Duration::ZERO), ..setup() }).step(0.0, Event::Tick);
    assert_eq!(play.machine.deadline(), at(0.0) + FIRST_ANSWER);
    let play = play.step(4.9, Event::Contended(Ok(Place::Granted(grant(4.8)))));
    assert_eq!(play.machine.phase(), Phase::Starting);
}

#[test]
fn the_end_of_the_wait_is_busy_while_the_store_answers() {
    let play = Play::withdrawing().step(61.1, Event::Withdrawn(Ok(())));
    assert!(matches!(play.verdict(), Verdict::Busy(_)));
}

#[test]
fn the_end_of_the_wait_is_an_outage_when_the_store_cannot_even_take_the_withdrawal() {
    let play = Play::withdrawing().step(61.1, Event::Withdrawn(Err(unavailable())));
    assert!(matches!(play.verdict(), Verdict::Unavailable(_)));
}

#[test]
fn an_outage_at_the_end_of_the_wait_is_never_busy_though_the_lock_was_seen_held() {
    let play = Play::waiting()
        .step(30.0, Event::Granted(Err(unavailable())))
        .step(61.0, Event::Tick)
        .step(61.1, Event::Withdrawn(Ok(())));
    assert_eq!(play.verdict(), &Verdict::Unavailable("no answer".into()));
}

#[test]
fn an_outage_that_ended_before_the_wait_did_is_busy() {
    let play = Play::waiting().step(30.0, Event::Granted(Err(unavailable()))).step(33.0, Event::Tick);
    assert_eq!(play.said, [Action::Contend]);
    let play = play
        .step(33.1, Event::Contended(Ok(Place::Waiting)))
        .step(61.0, Event::Tick)
        .step(61.1, Event::Withdrawn(Ok(())));
    assert!(matches!(play.verdict(), Verdict::Busy(_)));
}

#[test]
fn a_place_that_was_lost_while_waiting_is_asked_for_again() {
    let play = Play::waiting().step(30.0, Event::Granted(Err(lost()))).step(33.0, Event::Tick);
    assert_eq!(play.said, [Action::Contend]);
}

#[test]
fn retries_back_off_and_never_beyond_two_seconds() {
    let mut play = Play::joining();
    let mut now = 0.0;
    for _ in 0..20 {
        play = play.step(now, Event::Contended(Err(unavailable())));
        let pause = play.machine.deadline().since(at(now)).as_secs_f64();
        assert!(pause <= 2.0, "{pause}");
        now += pause + 0.001;
        play = play.step(now, Event::Tick);
        assert_eq!(play.said, [Action::Contend], "at {now}");
    }
}

#[test]
fn a_refusal_ends_the_waiting_at_once() {
    for play in [
        Play::joining().step(0.1, Event::Contended(Err(refused()))),
        Play::waiting().step(0.2, Event::Granted(Err(refused()))),
    ] {
        assert_eq!(play.said, [Action::Withdraw]);
        assert!(matches!(play.step(0.3, Event::Withdrawn(Ok(()))).verdict(), Verdict::Unavailable(_)));
    }
}

#[test]
fn a_grant_that_comes_after_the_wait_has_ended_is_given_back() {
    let play = Play::waiting().step(61.0, Event::Granted(Ok(grant(60.9))));
    assert_eq!(play.said, [Action::Withdraw]);
}

#[test]
fn a_signal_while_waiting_leaves_the_queue_and_is_died_of() {
    for play in [Play::joining(), Play::waiting(), Play::preparing(), Play::confirming()] {
        let play = play.step(0.5, Event::Signal(2));
        assert_eq!(play.said, [Action::Withdraw]);
        assert_eq!(play.step(0.6, Event::Withdrawn(Err(unavailable()))).verdict(), &Verdict::Interrupted(2));
    }
}

#[test]
fn a_person_is_told_the_holder_once_after_two_seconds() {
    let play = Play::waiting();
    assert_eq!(play.machine.deadline(), at(2.0));
    let play = play.step(2.0, Event::Tick);
    assert_eq!(play.said, [Action::Hint]);
    assert_eq!(play.machine.deadline(), at(60.0));
}

#[test]
fn a_command_that_cannot_be_executed_gives_the_grant_back() {
    for (errno, status) in [(libc::ENOENT, 127), (libc::EACCES, 126), (libc::ENOEXEC, 126)] {
        let play = Play::starting().step(0.2, Event::Guard(Report::NotStarted { errno }));
        assert_eq!(play.said, [Action::Withdraw]);
        let play = play.step(0.3, Event::Withdrawn(Ok(())));
        assert!(matches!(play.verdict(), Verdict::NotExecuted(s, _) if *s == status), "{errno}");
    }
}

#[test]
fn a_machine_out_of_processes_is_fenceds_own_failure() {
    let play = Play::starting().step(0.2, Event::Guard(Report::NotStarted { errno: libc::EAGAIN }));
    assert!(matches!(play.step(0.3, Event::Withdrawn(Ok(()))).verdict(), Verdict::Error(_)));
}

#[test]
fn a_renewal_is_due_at_the_beat_and_asked_for_once() {
    let play = Play::running();
    let beat = play.machine.deadline();
    assert!(beat > at(6.0) && beat <= at(8.14), "{beat:?}");
    let play = play.step(8.14, Event::Tick);
    assert_eq!(play.said, [Action::Renew]);
    assert!(play.step(8.2, Event::Tick).said.is_empty());
}

#[test]
fn a_renewal_counts_from_when_it_was_sent_not_from_when_it_was_answered() {
    let play = Play::running().step(8.14, Event::Tick).step(10.1, Event::Renewed(Ok(lease(8.14))));
    assert_eq!(play.said, [Action::Extend(Deadlines { stop_by: at(8.14 + 24.4), dead_by: at(8.14 + 29.4) })]);
}

#[test]
fn the_first_failed_renewal_is_told_once_and_so_is_the_recovery() {
    let play = Play::running().step(8.14, Event::Tick).step(10.4, Event::Renewed(Err(unavailable())));
    let told = Action::Tell(Notice::Jeopardy("no answer".into(), Duration::from_secs(14)));
    assert_eq!(play.said, [told]);
    let play = play.step(10.4, Event::Tick);
    assert_eq!(play.said, [Action::Renew], "a failed attempt is followed by the next at once");
    let play = play.step(12.4, Event::Renewed(Err(unavailable())));
    assert!(play.said.is_empty());
    let play = play.step(12.4, Event::Tick).step(12.5, Event::Renewed(Ok(lease(12.4))));
    assert!(play.has(&Action::Tell(Notice::Recovered)));
}

#[test]
fn attempts_that_fail_at_once_stay_apart() {
    let play = Play::running().step(8.14, Event::Tick).step(8.141, Event::Renewed(Err(unavailable())));
    assert_eq!(play.machine.deadline(), at(8.14 + 0.3));
    assert!(play.step(8.2, Event::Tick).said.is_empty());
}

#[test]
fn a_store_that_refuses_renewals_is_asked_until_the_deadline() {
    let play = Play::running().step(8.14, Event::Tick).step(8.2, Event::Renewed(Err(refused())));
    assert_eq!(play.machine.phase(), Phase::Running);
    assert_eq!(play.step(9.0, Event::Tick).said, [Action::Renew]);
}

#[test]
fn without_a_renewal_the_command_is_stopped_in_time_and_the_run_is_lost() {
    let play = Play::running().step(8.14, Event::Tick).step(24.4, Event::Tick);
    assert!(play.has(&Action::Stop));
    let play = play
        .step(25.0, Event::Guard(Report::Ended { status: 0 }))
        .step(25.1, Event::Guard(Report::Clear))
        .step(25.2, Event::Released(Ok(Released::Ours)));
    assert!(matches!(play.verdict(), Verdict::Lost(_)), "an exit status of 0 does not make it a success");
}

#[test]
fn a_renewal_that_is_answered_after_the_stop_began_revives_nothing() {
    for phase in [
        Play::running().step(24.4, Event::Renewed(Ok(lease(24.3)))),
        Play::running().step(24.4, Event::Guard(Report::Overdue)).step(24.5, Event::Renewed(Ok(lease(24.3)))),
    ] {
        assert!(!phase.said.iter().any(|action| matches!(action, Action::Extend(_))));
        let play = phase.step(24.6, Event::Tick);
        assert_eq!(play.machine.phase(), Phase::Stopping);
    }
}

#[test]
fn a_definite_loss_kills_without_grace() {
    for event in [Event::Renewed(Err(lost())), Event::Interrupted(Interruption::Lost("key deleted".into()))] {
        for play in [Play::starting(), Play::running(), Play::clearing(), Play::stopping()] {
            let play = play.step(3.0, event.clone());
            assert!(play.has(&Action::Kill), "{event:?}");
            assert_eq!(play.machine.phase(), Phase::Killing);
        }
    }
}

#[test]
fn an_evicted_run_gets_its_grace_and_is_lost() {
    let play = Play::stopping();
    assert!(play.has(&Action::Stop));
    let play = play.step(3.0, Event::Guard(Report::Clear));
    assert!(matches!(play.said[..], [Action::Release(_)]));
    assert!(matches!(play.step(3.1, Event::Released(Ok(Released::Ours))).verdict(), Verdict::Lost(_)));
}

#[test]
fn the_lock_is_released_only_when_nothing_is_left() {
    let play = Play::running().step(1.0, Event::Guard(Report::Ended { status: 0 }));
    assert!(play.said.is_empty(), "the command ended, its tree may live");
    let play = play.step(1.1, Event::Guard(Report::Lingering(vec!["sleep (12)".into()])));
    assert_eq!(play.said, [Action::Tell(Notice::Ending(vec!["sleep (12)".into()]))]);
    assert_eq!(play.step(1.2, Event::Guard(Report::Clear)).said, [Action::Release(true)]);
}

#[test]
fn the_lease_is_kept_while_background_processes_end() {
    let play = Play::running_with(Setup { on_exit: OnExit::Wait, ..setup() })
        .step(1.0, Event::Guard(Report::Ended { status: 0 }))
        .step(8.14, Event::Tick);
    assert_eq!(play.said, [Action::Renew]);
    let play = play.step(8.2, Event::Renewed(Ok(lease(8.14))));
    assert!(matches!(play.said[..], [Action::Extend(_)]));
}

#[test]
fn a_signal_ends_the_waiting_for_background_processes() {
    let play = Play::running_with(Setup { on_exit: OnExit::Wait, ..setup() })
        .step(1.0, Event::Guard(Report::Ended { status: 0 }))
        .step(2.0, Event::Signal(15));
    assert_eq!(play.said, [Action::Stop]);
    let play = play.step(3.0, Event::Guard(Report::Clear)).step(3.1, Event::Released(Ok(Released::Ours)));
    assert_eq!(play.verdict(), &Verdict::Signaled(15));
}

#[test]
fn every_status_of_the_command_is_the_verdict() {
    for status in 0..=255u8 {
        let play = Play::running()
            .step(1.0, Event::Guard(Report::Ended { status: i32::from(status) << 8 }))
            .step(1.1, Event::Guard(Report::Clear))
            .step(1.2, Event::Released(Ok(Released::Ours)));
        assert_eq!(play.verdict(), &Verdict::Exited(status));
    }
    let play = Play::running()
        .step(1.0, Event::Guard(Report::Ended { status: libc::SIGSEGV }))
        .step(1.1, Event::Guard(Report::Clear))
        .step(1.2, Event::Released(Ok(Released::Ours)));
    assert_eq!(play.verdict(), &Verdict::Signaled(libc::SIGSEGV));
}

#[test]
fn a_release_that_finds_another_holder_is_a_lost_run() {
    for answer in [Ok(Released::NotOurs("key of another lease".into())), Err(lost())] {
        let play = Play::releasing().step(1.2, Event::Released(answer));
        assert!(matches!(play.verdict(), Verdict::Lost(_)));
    }
}

#[test]
fn an_unanswered_release_inside_the_lease_is_a_warning() {
    let play = Play::releasing().step(3.0, Event::Released(Err(unavailable())));
    assert!(play.has(&Action::Tell(Notice::ReleaseUnanswered("no answer".into()))));
    assert_eq!(play.verdict(), &Verdict::Exited(0));
}

#[test]
fn an_unanswered_release_of_a_tree_that_died_too_late_is_a_lost_run() {
    let play = Play::running()
        .step(1_000.0, Event::Guard(Report::Ended { status: 0 }))
        .step(1_000.1, Event::Guard(Report::Clear))
        .step(1_002.0, Event::Released(Err(unavailable())));
    assert!(matches!(play.verdict(), Verdict::Lost(_)), "the machine slept through its lease");
}

#[test]
fn a_tree_that_died_too_late_is_no_loss_when_the_store_says_that_the_lock_was_ours_throughout() {
    let play = Play::running()
        .step(1_000.0, Event::Guard(Report::Ended { status: 0 }))
        .step(1_000.1, Event::Guard(Report::Clear))
        .step(1_002.0, Event::Released(Ok(Released::Ours)));
    assert_eq!(play.verdict(), &Verdict::Exited(0));
}

#[test]
fn the_guards_death_is_a_lost_run_and_its_tree_is_taken_over() {
    for play in [Play::starting(), Play::running(), Play::clearing(), Play::stopping(), Play::killing()] {
        let play = play.step(3.0, Event::Guard(Report::Gone));
        assert!(play.has(&Action::TakeOver));
        let play = play.step(3.1, Event::TakenOver(vec![]));
        assert!(matches!(play.said[..], [Action::Release(_)]));
        assert!(matches!(play.step(3.2, Event::Released(Ok(Released::Ours))).verdict(), Verdict::Lost(_)));
    }
}

#[test]
fn the_guards_death_before_the_start_is_fenceds_own_failure() {
    for play in [Play::joining(), Play::waiting(), Play::preparing(), Play::confirming()] {
        let play = play.step(0.5, Event::Guard(Report::Gone)).step(0.6, Event::Withdrawn(Ok(())));
        assert!(matches!(play.verdict(), Verdict::Error(_)));
    }
}

#[test]
fn a_guard_that_says_nothing_after_a_kill_is_taken_over_from() {
    let play = Play::killing();
    assert_eq!(play.machine.deadline(), at(2.0) + GUARD_PATIENCE);
    assert_eq!(play.step(2.5, Event::Tick).said, [Action::TakeOver]);
    let play = Play::stopping();
    assert_eq!(play.machine.deadline(), at(2.0) + GRACE + GUARD_PATIENCE);
}

#[test]
fn a_grace_never_reaches_past_the_lease() {
    let play = Play::running().step(28.0, Event::Tick);
    assert!(play.has(&Action::Stop));
    assert_eq!(play.machine.deadline(), at(29.4) + GUARD_PATIENCE);
}

#[test]
fn what_cannot_be_killed_is_named_and_the_lock_is_not_released() {
    for play in [Play::clearing(), Play::stopping(), Play::killing()] {
        let play = play.step(3.0, Event::Guard(Report::Unkillable(vec!["sudo (12)".into()])));
        assert!(play.has(&Action::Tell(Notice::Unkillable(vec!["sudo (12)".into()]))));
        assert!(matches!(play.verdict(), Verdict::Lost(_)));
        assert!(!play.said.iter().any(|action| matches!(action, Action::Release(_))));
    }
}

#[test]
fn signals_reach_the_command_and_are_never_escalated() {
    let mut play = Play::running();
    for _ in 0..3 {
        play = play.step(1.0, Event::Signal(15));
        assert!(play.has(&Action::Forward(15)) && !play.has(&Action::Stop) && !play.has(&Action::Kill));
    }
    assert_eq!(play.machine.phase(), Phase::Running);
}

#[test]
fn a_command_that_stops_itself_takes_fenced_along() {
    assert_eq!(Play::running().step(1.0, Event::Guard(Report::Paused { signal: 20 })).said, [Action::Pause(20)]);
}

/// Every event in one spelling at least.
fn all_events() -> Vec<Event> {
    let mut events =
        vec![Event::Tick, Event::Signal(15), Event::TakenOver(vec![]), Event::TakenOver(vec!["x (1)".into()])];
    for failure in [lost(), unavailable(), refused()] {
        events.push(Event::Contended(Err(failure.clone())));
        events.push(Event::Granted(Err(failure.clone())));
        events.push(Event::Renewed(Err(failure.clone())));
        events.push(Event::Prepared(Err(failure.clone())));
        events.push(Event::Released(Err(failure.clone())));
        events.push(Event::Withdrawn(Err(failure)));
    }
    events.push(Event::Contended(Ok(Place::Waiting)));
    events.push(Event::Contended(Ok(Place::Granted(grant(2.9)))));
    events.push(Event::Granted(Ok(grant(2.9))));
    events.push(Event::Renewed(Ok(lease(2.9))));
    events.push(Event::Released(Ok(Released::Ours)));
    events.push(Event::Released(Ok(Released::NotOurs(String::new()))));
    events.push(Event::Withdrawn(Ok(())));
    events.push(Event::Prepared(Ok(Readiness::Go)));
    events.push(Event::Prepared(Err(Failure::Stale(String::new()))));
    events.push(Event::Interrupted(Interruption::Lost(String::new())));
    events.push(Event::Interrupted(Interruption::Evicted(String::new())));
    for report in [
        Report::Started { pid: 9 },
        Report::NotStarted { errno: 2 },
        Report::Paused { signal: 20 },
        Report::Ended { status: 0 },
        Report::Lingering(vec![]),
        Report::Overdue,
        Report::Unkillable(vec![]),
        Report::Clear,
        Report::Gone,
    ] {
        events.push(Event::Guard(report));
    }
    events
}

/// Where each (phase, event) pair may lead, besides staying where it is.
#[test]
fn every_pair_of_phase_and_event_leads_only_where_the_diagram_says() {
    use Phase::{
        Clearing, Confirming, Delayed, Done, Joining, Killing, Preparing, Releasing, Running, Starting, Stopping,
        Waiting, Withdrawing,
    };
    type Row = (fn() -> Play, Phase, &'static [Phase]);
    let rows: [Row; 13] = [
        (|| Play::new(Setup { delay: Duration::from_secs(9), ..setup() }), Delayed, &[Joining, Done]),
        (Play::joining, Joining, &[Waiting, Confirming, Starting, Withdrawing]),
        (Play::waiting, Waiting, &[Joining, Confirming, Starting, Withdrawing]),
        (Play::preparing, Preparing, &[Starting, Confirming, Withdrawing]),
        (Play::confirming, Confirming, &[Starting, Withdrawing]),
        (Play::starting, Starting, &[Running, Clearing, Stopping, Killing, Withdrawing, Done, Releasing]),
        (Play::running, Running, &[Clearing, Stopping, Killing, Done, Releasing]),
        (Play::clearing, Clearing, &[Stopping, Killing, Releasing, Done]),
        (Play::stopping, Stopping, &[Killing, Releasing, Done]),
        (Play::killing, Killing, &[Releasing, Done]),
        (Play::releasing, Releasing, &[Done]),
        (Play::withdrawing, Withdrawing, &[Done]),
        (Play::done, Done, &[]),
    ];
    for (play, phase, next) in rows {
        assert_eq!(play().machine.phase(), phase);
        for event in all_events() {
            let after = play().step(62.0, event.clone()).machine.phase();
            let early = play().step(3.0, event.clone()).machine.phase();
            for reached in [after, early] {
                assert!(reached == phase || next.contains(&reached), "{phase:?} --{event:?}--> {reached:?}");
            }
        }
    }
}

#[test]
fn after_the_end_nothing_is_said_any_more() {
    for event in all_events() {
        assert!(Play::done().step(3.0, event).said.is_empty());
    }
}
