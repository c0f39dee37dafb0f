use super::*;

const GRACE: Duration = Duration::from_secs(10);
const STATUS: i32 = 0x0700;

/// Seconds after boot.
fn at(seconds: u64) -> Moment {
    Moment(seconds * 1_000_000_000)
}

fn until(stop_by: u64, dead_by: u64) -> Deadlines {
    Deadlines { stop_by: at(stop_by), dead_by: at(dead_by) }
}

/// Running since second 100, to be stopped at 120 and dead at 130.
fn running(on_exit: OnExit) -> Plan {
    let mut plan = Plan::new(GRACE, on_exit);
    assert_eq!(plan.step(at(100), Event::Forked(until(120, 130))), []);
    plan
}

fn told(report: Report) -> Vec<Action> {
    vec![Action::Tell(report)]
}

const EVENTS: [Event; 13] = [
    Event::Forked(Deadlines { stop_by: Moment(u64::MAX - 2), dead_by: Moment(u64::MAX - 1) }),
    Event::NotForked(libc::EAGAIN),
    Event::Executed(77),
    Event::NotExecuted(libc::ENOENT),
    Event::Renewed(Deadlines { stop_by: Moment(u64::MAX - 2), dead_by: Moment(u64::MAX - 1) }),
    Event::Stop,
    Event::Kill,
    Event::Signal(15),
    Event::Abandoned,
    Event::Paused(20),
    Event::Ended(STATUS),
    Event::Empty,
    Event::Tick,
];

/// Every state that events lead to, for each way to treat what outlives the command.
fn reached() -> Vec<Plan> {
    let mut plans = vec![];
    for on_exit in [OnExit::Kill, OnExit::Wait, OnExit::Leave] {
        let mut some = vec![Plan::new(GRACE, on_exit)];
        for _ in 0..4 {
            for plan in some.clone() {
                for event in EVENTS.into_iter().chain([Event::Forked(until(120, 130))]) {
                    for second in [101, 121, 131] {
                        let mut next = plan;
                        let _ = next.step(at(second), event);
                        if some.iter().all(|known| format!("{known:?}") != format!("{next:?}")) {
                            some.push(next);
                        }
                    }
                }
            }
        }
        plans.extend(some);
    }
    plans
}

fn alive(plan: &Plan) -> bool {
    !matches!(plan.state, State::Idle | State::Done)
}

#[test]
fn before_its_start_nothing_is_due_and_an_order_to_end_is_done_at_once() {
    let idle = Plan::new(GRACE, OnExit::Kill);
    assert_eq!((idle.deadline(), idle.dead_by()), (None, None));
    for event in [Event::Stop, Event::Kill] {
        let mut plan = idle;
        assert_eq!(plan.step(at(1), event), told(Report::Clear));
        assert_eq!(plan.state(), State::Done);
    }
    for event in [Event::Empty, Event::Tick, Event::Signal(15), Event::Renewed(until(1, 2)), Event::Ended(0)] {
        let mut plan = idle;
        assert_eq!(plan.step(at(1), event), []);
        assert_eq!(plan.state(), State::Idle);
    }
}

#[test]
fn a_guard_that_was_never_started_goes_silently_with_fenced() {
    let mut plan = Plan::new(GRACE, OnExit::Kill);
    assert_eq!(plan.step(at(1), Event::Abandoned), []);
    assert_eq!(plan.state(), State::Done);
}

#[test]
fn a_command_that_cannot_be_forked_or_executed_is_reported_and_that_is_all() {
    let mut plan = Plan::new(GRACE, OnExit::Kill);
    assert_eq!(plan.step(at(1), Event::NotForked(libc::ETIME)), told(Report::NotStarted { errno: libc::ETIME }));
    assert_eq!(plan.state(), State::Done);
    for state in [State::Running, State::Stopping(at(9)), State::Killing(None)] {
        let mut plan = running(OnExit::Kill);
        plan.state = state;
        assert_eq!(
            plan.step(at(1), Event::NotExecuted(libc::EACCES)),
            told(Report::NotStarted { errno: libc::EACCES })
        );
        assert_eq!(plan.step(at(1), Event::Ended(127 << 8)), []);
        assert_eq!(plan.state(), State::Done);
    }
}

#[test]
fn a_command_that_ends_alone_is_reported_and_the_certificate_follows() {
    for on_exit in [OnExit::Kill, OnExit::Wait] {
        let mut plan = running(on_exit);
        assert_eq!(plan.step(at(101), Event::Executed(77)), told(Report::Started { pid: 77 }));
        assert_eq!(plan.step(at(102), Event::Ended(STATUS)), told(Report::Ended { status: STATUS }));
        assert_eq!(plan.step(at(102), Event::Empty), told(Report::Clear));
        assert_eq!(plan.state(), State::Done);
    }
}

#[test]
fn what_outlives_the_command_has_a_moment_then_is_named_and_stopped_and_killed_after_the_grace() {
    let mut plan = running(OnExit::Kill);
    let _ = plan.step(at(105), Event::Ended(STATUS));
    assert_eq!(plan.deadline(), Some(at(105) + SETTLE));
    assert_eq!(plan.step(at(105), Event::Tick), []);
    assert_eq!(plan.step(at(106), Event::Tick), [Action::TellLingering, Action::Stop]);
    assert_eq!(plan.deadline(), Some(at(116)));
    assert_eq!(plan.step(at(116), Event::Tick), [Action::Kill]);
    assert_eq!(plan.step(at(116), Event::Empty), told(Report::Clear));
}

#[test]
fn what_outlives_the_command_is_waited_for_and_renewed_until_the_lease_ends() {
    let mut plan = running(OnExit::Wait);
    let _ = plan.step(at(105), Event::Ended(STATUS));
    assert_eq!(plan.state(), State::Waiting);
    assert_eq!(plan.step(at(119), Event::Renewed(until(140, 150))), []);
    assert_eq!(plan.step(at(130), Event::Tick), []);
    assert_eq!(plan.step(at(140), Event::Tick), [Action::Stop, Action::Tell(Report::Overdue)]);
    assert_eq!(plan.step(at(150), Event::Tick), [Action::Kill]);
}

#[test]
fn what_outlives_the_command_is_named_and_left_alone() {
    let mut plan = running(OnExit::Leave);
    let ended = Action::Tell(Report::Ended { status: STATUS });
    let clear = Action::Tell(Report::Clear);
    assert_eq!(plan.step(at(105), Event::Ended(STATUS)), [ended, Action::TellLingering, clear]);
    assert_eq!((plan.state(), plan.deadline()), (State::Done, None));
}

#[test]
fn with_leave_too_a_lease_that_ends_before_the_command_ends_the_whole_tree() {
    let mut plan = running(OnExit::Leave);
    assert_eq!(plan.step(at(120), Event::Tick), [Action::Stop, Action::Tell(Report::Overdue)]);
    assert_eq!(plan.step(at(121), Event::Ended(STATUS)), told(Report::Ended { status: STATUS }));
    assert_eq!(plan.step(at(130), Event::Tick), [Action::Kill]);
}

#[test]
fn at_stop_by_the_tree_is_stopped_and_at_dead_by_it_is_killed() {
    let mut plan = running(OnExit::Kill);
    assert_eq!((plan.deadline(), plan.dead_by()), (Some(at(120)), Some(at(130))));
    assert_eq!(plan.step(at(119), Event::Tick), []);
    assert_eq!(plan.step(at(120), Event::Tick), [Action::Stop, Action::Tell(Report::Overdue)]);
    assert_eq!((plan.deadline(), plan.dead_by()), (Some(at(130)), Some(at(130))));
    assert_eq!(plan.step(at(129), Event::Tick), []);
    assert_eq!(plan.step(at(130), Event::Tick), [Action::Kill]);
    assert_eq!(plan.dead_by(), None);
}

#[test]
fn whoever_wakes_after_dead_by_kills_without_a_stop_signal() {
    for on_exit in [OnExit::Kill, OnExit::Wait, OnExit::Leave] {
        let mut plan = running(on_exit);
        assert_eq!(plan.step(at(500), Event::Tick), [Action::Kill, Action::Tell(Report::Overdue)]);
    }
}

#[test]
fn whatever_lives_is_killed_at_dead_by_and_at_no_time_later() {
    for plan in reached().into_iter().filter(alive) {
        let killing = matches!(plan.state, State::Killing(_));
        let mut next = plan;
        let actions = next.step(plan.deadlines.dead_by, Event::Tick);
        assert!(killing || actions.contains(&Action::Kill), "{plan:?}");
        assert!(matches!(next.state, State::Killing(_)), "{plan:?}");
    }
}

#[test]
fn no_event_moves_the_kill_past_dead_by() {
    for plan in reached().into_iter().filter(alive) {
        match plan.state {
            State::Killing(_) => {}
            _ => assert!(plan.deadline().unwrap() <= plan.deadlines.dead_by, "{plan:?}"),
        }
    }
}

#[test]
fn after_a_tick_the_deadline_is_in_the_future() {
    for plan in reached() {
        for second in [101, 110, 120, 121, 130, 131, 500] {
            let mut next = plan;
            let _ = next.step(at(second), Event::Tick);
            assert!(next.deadline().is_none_or(|due| due > at(second)), "{plan:?} at {second}");
        }
    }
}

#[test]
fn a_renewal_moves_the_deadlines_and_an_older_one_does_not_move_them_back() {
    let mut plan = running(OnExit::Kill);
    assert_eq!(plan.step(at(110), Event::Renewed(until(140, 150))), []);
    assert_eq!(plan.step(at(111), Event::Renewed(until(130, 140))), []);
    assert_eq!((plan.deadline(), plan.dead_by()), (Some(at(140)), Some(at(150))));
}

#[test]
fn a_renewal_revives_nothing_once_the_stop_began() {
    for event in [Event::Stop, Event::Kill, Event::Abandoned] {
        let mut plan = running(OnExit::Kill);
        let _ = plan.step(at(110), event);
        let before = (plan.state(), plan.deadline(), plan.dead_by());
        assert_eq!(plan.step(at(111), Event::Renewed(until(500, 510))), []);
        assert_eq!((plan.state(), plan.deadline(), plan.dead_by()), before);
    }
}

#[test]
fn an_ordered_stop_is_followed_by_the_kill_after_the_grace_or_at_dead_by() {
    for event in [Event::Stop, Event::Abandoned] {
        let mut early = running(OnExit::Kill);
        assert_eq!(early.step(at(105), event), [Action::Stop]);
        assert_eq!(early.state(), State::Stopping(at(115)));
        let mut late = running(OnExit::Kill);
        assert_eq!(late.step(at(125), event), [Action::Stop]);
        assert_eq!(late.state(), State::Stopping(at(130)));
    }
}

#[test]
fn when_fenced_is_gone_what_outlived_the_command_is_stopped_at_once() {
    for on_exit in [OnExit::Kill, OnExit::Wait] {
        let mut plan = running(on_exit);
        let _ = plan.step(at(105), Event::Ended(STATUS));
        assert_eq!(plan.step(at(105), Event::Abandoned), [Action::Stop]);
    }
}

#[test]
fn a_second_stop_sends_no_second_signal_and_gives_no_second_grace() {
    for event in [Event::Stop, Event::Abandoned] {
        let mut plan = running(OnExit::Kill);
        let _ = plan.step(at(105), Event::Stop);
        assert_eq!(plan.step(at(110), event), []);
        assert_eq!(plan.state(), State::Stopping(at(115)));
    }
}

#[test]
fn an_order_to_kill_kills_from_every_state_where_something_lives_once() {
    for plan in reached().into_iter().filter(alive) {
        let killing = matches!(plan.state, State::Killing(_));
        let mut next = plan;
        assert_eq!(next.step(at(101), Event::Kill) == [Action::Kill], !killing, "{plan:?}");
        assert_eq!(next.step(at(101), Event::Kill), []);
    }
}

#[test]
fn without_deadlines_nothing_ends_by_itself_and_a_stop_still_has_its_grace() {
    let mut plan = Plan::new(GRACE, OnExit::Kill);
    let never = Deadlines { stop_by: Moment::NEVER, dead_by: Moment::NEVER };
    let _ = plan.step(at(100), Event::Forked(never));
    assert_eq!((plan.deadline(), plan.dead_by()), (None, None));
    assert_eq!(plan.step(at(1_000_000), Event::Tick), []);
    assert_eq!(plan.step(at(1_000_000), Event::Stop), [Action::Stop]);
    assert_eq!((plan.deadline(), plan.dead_by()), (Some(at(1_000_010)), None));
    assert_eq!(plan.step(at(1_000_010), Event::Tick), [Action::Kill]);
}

#[test]
fn what_survives_the_kill_is_reported_once_after_the_margin_and_the_kill_goes_on() {
    let mut plan = running(OnExit::Kill);
    let _ = plan.step(at(130), Event::Tick);
    assert_eq!(plan.state(), State::Killing(Some(at(130) + LEAST_MARGIN)));
    assert_eq!(plan.step(at(130), Event::Tick), []);
    assert_eq!(plan.step(at(131), Event::Tick), [Action::TellUnkillable]);
    assert_eq!(plan.step(at(200), Event::Tick), []);
    assert_eq!(plan.state(), State::Killing(None));
    assert_eq!(plan.step(at(201), Event::Empty), told(Report::Clear));
}

#[test]
fn a_kill_while_the_lease_lasts_is_given_longer_before_its_survivors_are_called_unkillable() {
    let mut plan = running(OnExit::Kill);
    let _ = plan.step(at(105), Event::Kill);
    assert_eq!(plan.state(), State::Killing(Some(at(105) + PATIENCE + LEAST_MARGIN)));
    let mut plan = running(OnExit::Kill);
    let _ = plan.step(at(129), Event::Kill);
    assert_eq!(plan.state(), State::Killing(Some(at(130) + LEAST_MARGIN)));
}

#[test]
fn a_signal_is_forwarded_until_the_command_is_reaped_and_never_after() {
    for plan in reached() {
        let forwards = alive(&plan) && plan.unreaped && !matches!(plan.state, State::Killing(_));
        let mut next = plan;
        assert_eq!(next.step(at(101), Event::Signal(10)) == [Action::Forward(10)], forwards, "{plan:?}");
    }
    let mut plan = running(OnExit::Wait);
    let _ = plan.step(at(101), Event::Ended(STATUS));
    assert_eq!(plan.step(at(102), Event::Signal(15)), []);
}

#[test]
fn a_pause_is_reported_until_the_kill() {
    let mut plan = running(OnExit::Kill);
    assert_eq!(plan.step(at(101), Event::Paused(20)), told(Report::Paused { signal: 20 }));
    let _ = plan.step(at(102), Event::Stop);
    assert_eq!(plan.step(at(103), Event::Paused(20)), told(Report::Paused { signal: 20 }));
    let _ = plan.step(at(104), Event::Kill);
    assert_eq!(plan.step(at(104), Event::Paused(20)), []);
}

#[test]
fn the_end_of_the_command_is_reported_in_every_state_and_once() {
    for plan in reached().into_iter().filter(|plan| alive(plan) && plan.unreaped) {
        let mut next = plan;
        let actions = next.step(at(101), Event::Ended(STATUS));
        assert_eq!(actions[0], Action::Tell(Report::Ended { status: STATUS }), "{plan:?}");
        assert_eq!(next.step(at(101), Event::Ended(STATUS)), []);
    }
}

#[test]
fn the_certificate_ends_every_state_where_something_lived() {
    for plan in reached().into_iter().filter(alive) {
        let mut next = plan;
        assert_eq!(next.step(at(101), Event::Empty), told(Report::Clear), "{plan:?}");
        assert_eq!(next.state(), State::Done);
    }
}

#[test]
fn when_all_is_done_nothing_happens_any_more() {
    for event in EVENTS {
        let mut plan = running(OnExit::Kill);
        plan.state = State::Done;
        assert_eq!(plan.step(at(500), event), []);
        assert_eq!((plan.state(), plan.deadline()), (State::Done, None));
    }
}
