//! A service that does what the snippet asks of it.

use crate::bench::Bench;
use crate::rule::{Resource, holds_for};
use crate::server::has;
use crate::service::{Answer, Request, serve};
use crate::support::run::Ended;
use crate::text::Snippet;
use fenced::token::{Lineage, Token};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct State {
    fence: Option<(String, u64)>,
    word: String,
    /// What it answers without looking.
    broken: Option<u16>,
}

fn handle(state: &mut State, request: &Request) -> Answer {
    let status = |number: u16| (number, Vec::new(), Vec::new());
    if let Some(number) = state.broken {
        return (number, vec![("Location".into(), "/elsewhere".into())], Vec::new());
    }
    let token = request.header("fencing-token").and_then(|text| Token::parse(text).ok());
    let lineage = request.header("fencing-lineage").and_then(Lineage::new);
    let (Some(token), Some(lineage)) = (token, lineage) else { return status(428) };
    let token = token.get().unsigned_abs();
    match &state.fence {
        Some((known, highest)) if *highest == 0 || (known == lineage.as_str() && *highest <= token) => {
            state.fence = Some((lineage.to_string(), token));
            state.word = String::from_utf8_lossy(&request.body).into_owned();
            status(204)
        }
        _ => status(412),
    }
}

struct Http {
    bench: Bench,
    snippet: Snippet,
    state: Arc<Mutex<State>>,
}

impl Http {
    fn start() -> Self {
        let fence = Some((String::new(), 0));
        let state = Arc::new(Mutex::new(State { fence, ..State::default() }));
        let mut bench = Bench::new();
        bench.env("REPORT_URL", format!("http://{}/report", serve(Arc::clone(&state), handle)));
        Self { bench, snippet: Snippet::of("http"), state }
    }
}

impl Resource for Http {
    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn snippet(&self) -> &Snippet {
        &self.snippet
    }

    fn next(&self, word: &str) {
        self.bench.write("report.json", word);
    }

    fn word(&self) -> String {
        self.state.lock().unwrap().word.clone()
    }

    fn token(&self) -> String {
        self.state.lock().unwrap().fence.as_ref().unwrap().1.to_string()
    }

    fn forget(&self) {
        self.state.lock().unwrap().fence = None;
    }

    fn start_afresh(&self, _: &dyn Fn(&str) -> Ended) {
        self.state.lock().unwrap().fence = Some((String::new(), 0));
    }
}

#[test]
fn http_refuses_a_stale_writer_and_its_command_line_fails() {
    if has(&["curl"]) {
        holds_for(&Http::start());
    }
}

#[test]
fn http_takes_nothing_but_a_2xx_for_a_success() {
    if !has(&["curl"]) {
        return;
    }
    let http = Http::start();
    for status in [302, 304, 404, 412, 428, 500, 503] {
        http.state.lock().unwrap().broken = Some(status);
        assert_ne!(http.put("lost", "7", "a").code(), Some(0), "{status}");
    }
    http.state.lock().unwrap().broken = None;
    std::fs::remove_file(http.bench.work().join("report.json")).unwrap();
    assert_ne!(http.bench.run_as(&http.snippet.each_time(), "7", "a").code(), Some(0), "no report");
    assert_eq!(http.word(), "");
}
