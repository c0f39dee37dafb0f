//! Redis.

use crate::bench::Bench;
use crate::rule::{Resource, TOKENS, holds_for};
use crate::server::{Server, has, program};
use crate::support::etcd::free_ports;
use crate::support::run::Ended;
use crate::support::wait::SOON;
use crate::text::Snippet;
use std::fs;

struct Redis {
    bench: Bench,
    snippet: Snippet,
    _server: Server,
}

impl Redis {
    fn start(flags: &[&str]) -> Option<Self> {
        if !has(&["redis-server", "redis-cli"]) {
            return None;
        }
        let mut bench = Bench::new();
        let port = free_ports(1)[0].to_string();
        let mut server = program("redis-server", false);
        server.args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--dir"]).arg(bench.root()).args(flags);
        bench.env("REDIS_URL", format!("redis://127.0.0.1:{port}"));
        let log = bench.root().join("log");
        let server = Server::start(server, log, || bench.run("redis-cli -u $REDIS_URL ping").stdout == "PONG\n");
        Some(Self { bench, snippet: Snippet::of("redis"), _server: server })
    }

    fn install(self) -> Self {
        for _again in 0..2 {
            self.bench.run(&format!("set -e\n{}", self.snippet.once())).exits(0);
        }
        self
    }

    fn ask(&self, command: &str) -> String {
        self.bench.ask(&format!("redis-cli -u $REDIS_URL {command}"))
    }
}

impl Resource for Redis {
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
        self.ask("get '{nightly}:report'")
    }

    fn token(&self) -> String {
        self.ask("hget '{nightly}:fence' token")
    }

    fn forget(&self) {
        self.ask("del '{nightly}:fence'");
    }

    fn start_afresh(&self, _: &dyn Fn(&str) -> Ended) {
        self.bench.run(&self.snippet.commented("redis-cli")).exits(0);
    }
}

#[test]
fn redis_refuses_a_stale_writer_and_its_command_line_fails() {
    let Some(redis) = Redis::start(&[]) else { return };
    holds_for(&redis.install());
}

#[test]
fn redis_keeps_the_word_of_the_highest_of_writers_at_the_same_time() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (redis, each_time) = (redis.install(), Snippet::of("redis").each_time());
    let start = |token: &u32| {
        let directory = redis.bench.directory(&token.to_string());
        fs::copy(redis.bench.work().join("fence.lua"), directory.join("fence.lua")).unwrap();
        fs::write(directory.join("report.json"), format!("by {token}")).unwrap();
        redis.bench.start_in(&directory, &each_time, &[("FENCED_TOKEN", &token.to_string()), ("FENCED_LINEAGE", "a")])
    };
    let writers: Vec<_> = TOKENS.iter().map(start).collect();
    for writer in writers {
        writer.wait(SOON * 6);
    }
    assert_eq!((redis.word(), redis.token()), ("by 12".into(), "12".into()));
    fs::remove_file(redis.bench.work().join("report.json")).ok();
    assert_ne!(redis.bench.run_as(&each_time, "13", "a").code(), Some(0), "without a report there is nothing to write");
    assert_eq!(redis.word(), "by 12");
}

#[test]
fn redis_in_a_cluster_has_both_keys_in_one_slot() {
    let Some(redis) = Redis::start(&["--cluster-enabled", "yes"]) else { return };
    redis.ask("cluster addslotsrange 0 16383");
    crate::support::wait::eventually(SOON, || redis.ask("cluster info").contains("cluster_state:ok"));
    let redis = redis.install();
    redis.put("in a cluster", "7", "a").exits(0);
    assert_eq!(redis.word(), "in a cluster");
    assert_ne!(redis.put("stale", "6", "a").code(), Some(0));
    assert_eq!(redis.word(), "in a cluster");
}
