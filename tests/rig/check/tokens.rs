//! Tokens are unique, and greater than all that were granted before: the order of the tokens is that of the starts.

use crate::history::History;

pub fn tokens(history: &History, lock: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut granted: Vec<_> = history.of_lock(lock).filter_map(|run| Some((run.token()?, run))).collect();
    granted.sort_by_key(|(token, run)| (*token, run.id));
    for pair in granted.windows(2) {
        let [(token, first), (next, second)] = pair else { continue };
        if token == next {
            wrong.push(format!("{lock}: runs {} and {} both have token {token}", first.id, second.id));
        }
        // Who is told by fenced and who by the command may differ; each is compared with its like.
        let began = |at: Option<(u64, i64)>, then: Option<(u64, i64)>| at.zip(then).is_some_and(|(a, b)| a.0 > b.0);
        if began(first.started, second.started) {
            wrong.push(format!(
                "{lock}: run {} with token {token} started after run {} with token {next}",
                first.id, second.id
            ));
        }
    }
    for (token, run) in &granted {
        let told = run.finished.as_ref().and_then(|finish| finish.line.as_ref()?.token);
        let said = run.granted.map(|(_, token)| token);
        if told.is_some_and(|told| told != *token) || said.is_some_and(|said| said != *token) {
            wrong.push(format!("{lock}: run {} had token {token}, said {said:?} and told {told:?}", run.id));
        }
        if *token <= 0 {
            wrong.push(format!("{lock}: run {} has {token} for a token", run.id));
        }
    }
    wrong
}
