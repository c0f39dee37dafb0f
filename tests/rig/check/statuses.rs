//! How a run ended is what happened to it.

use crate::history::{Class, Finish, History, Run, StatusLine};

pub fn statuses(history: &History) -> Vec<String> {
    let mut wrong = Vec::new();
    let first_fault = history.events.iter().find_map(|event| match event.what {
        crate::history::What::Fault { .. } => Some(event.at),
        _ => None,
    });
    for run in history.runs.values() {
        let Some(finish) = &run.finished else {
            wrong.push(format!("run {} never ended", run.id));
            continue;
        };
        if run.hung {
            wrong.push(format!("run {} hung", run.id));
        }
        let disturbed = first_fault.is_some_and(|at| at <= finish.at);
        if let Some(line) = &finish.line {
            wrong.extend(told(run, finish, line, disturbed).map(|why| format!("run {}: {why}: {finish:?}", run.id)));
        } else if finish.signal.is_none() {
            wrong.push(format!("run {} ended with {:?} and left no status line", run.id, finish.status));
        } else if run.faults.is_empty() && !was_late(history, run, finish) {
            wrong.push(format!("run {} died of signal {:?} that nobody sent", run.id, finish.signal));
        }
        if finish.status == Some(0)
            && let Some(why) = no_success(history, run)
        {
            wrong.push(format!("run {}: success was reported, but {why}", run.id));
        }
    }
    wrong
}

/// On the local store a waiter that does not run for a second after its wait is killed, lest it hold up those behind it.
fn was_late(history: &History, run: &Run, finish: &Finish) -> bool {
    let waited = run.local && run.granted.is_none() && finish.signal == Some(9);
    waited && history.longest_stall(run.asked, finish.at) >= 1_000_000_000
}

/// Why an exit status of 0 is a lie.
fn no_success(history: &History, run: &Run) -> Option<String> {
    let Some((ended, code)) = run.ended else { return Some("the command never came to its end".into()) };
    if code != 0 {
        return Some(format!("the command ended with {code}"));
    }
    let token = run.token()?;
    let other = history.of_lock(&run.lock).find(|other| {
        other.id != run.id
            && other.token().is_some_and(|theirs| theirs > token)
            && other.started.is_some_and(|(at, _)| at < ended)
    });
    other.map(|other| format!("run {} had the lock before the command ended", other.id))
}

fn told(run: &Run, finish: &Finish, line: &StatusLine, disturbed: bool) -> Option<String> {
    let StatusLine { outcome, exit_code, .. } = line;
    if *exit_code != finish.status {
        return Some("the status line names another status than the one it ended with".into());
    }
    let started = run.started.is_some();
    let expected = match outcome.as_str() {
        "exited" => match run.ended {
            Some((_, code)) => finish.status == Some(code),
            None => false,
        },
        "signaled" => finish.signal.is_some() && hit(run),
        "busy" => !started && finish.status == Some(75),
        "unavailable" => !started && finish.status == Some(69) && disturbed,
        "lost" => finish.status == Some(76) && disturbed,
        "interrupted" => !started && finish.signal.is_some() && hit(run),
        // Its guard was killed before it had anything to start.
        "error" => !started && finish.status == Some(125) && hit(run),
        _ => false,
    };
    (!expected)
        .then(|| format!("{outcome} does not fit what happened (started {:?}, ended {:?})", run.started, run.ended))
}

fn hit(run: &Run) -> bool {
    run.faults.iter().any(|(_, class, _)| matches!(class, Class::Plain | Class::Frozen | Class::Beheaded))
}
