//! etcd: a lock of the same cluster, and a fence for a lock that is kept elsewhere.

use crate::bench::Bench;
use crate::rule::{Resource, holds_for};
use crate::support::etcd::{Cluster, Version, etcdctl};
use crate::support::run::Ended;
use crate::support::wait::SOON;
use crate::text::Snippet;
use std::collections::HashMap;
use std::os::unix::fs::symlink;
use std::process::Command;

struct Etcd {
    bench: Bench,
    snippet: Snippet,
    _cluster: Cluster,
}

impl Etcd {
    fn start(version: Version) -> Self {
        let (mut bench, cluster) = (Bench::new(), Cluster::single(version));
        bench.env("ETCDCTL_ENDPOINTS", cluster.addresses().join(","));
        bench.env("ETCDCTL_API", "3");
        for place in ["chosen", "real"] {
            let client = etcdctl();
            let client = if client.is_absolute() { client } else { "/usr/bin/etcdctl".into() };
            symlink(client, bench.root().join(place).join("etcdctl")).unwrap();
        }
        Self { bench, snippet: Snippet::of("etcd"), _cluster: cluster }
    }

    fn get(&self, key: &str) -> String {
        self.bench.ask(&format!("etcdctl get --print-value-only {key}"))
    }
}

/// There is an etcdctl, as everywhere where `make setup-test` was run.
fn has_client() -> bool {
    let found = Command::new(etcdctl()).arg("version").output().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "no etcdctl");
    found
}

impl Resource for Etcd {
    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn snippet(&self) -> &Snippet {
        &self.snippet
    }

    fn next(&self, word: &str) {
        self.bench.write("report.txt", word);
    }

    fn word(&self) -> String {
        self.get("app/report")
    }

    fn token(&self) -> String {
        let value = self.get("fence/nightly");
        let (_, token) = value.split_once(' ').unwrap();
        assert_eq!(token.len(), 20, "{value}");
        token.trim_start_matches('0').to_owned()
    }

    fn forget(&self) {
        self.bench.ask("etcdctl del fence/nightly");
    }

    fn start_afresh(&self, fenced: &dyn Fn(&str) -> Ended) {
        self.bench.run(&self.snippet.commented("etcdctl")).exits(0);
        fenced(&self.snippet.once()).exits(0);
    }
}

#[test]
fn etcd_with_a_fence_refuses_a_stale_writer_and_its_command_line_fails() {
    if !has_client() {
        return;
    }
    let etcd = Etcd::start(Version::V37);
    etcd.bench.run_as(&etcd.snippet.once(), "5", "a-1").exits(0);
    etcd.bench.run_as(&etcd.snippet.once(), "5", "b-2").exits(77);
    holds_for(&etcd);
}

#[test]
fn etcd_with_the_lock_itself_lets_only_its_holder_write_on_every_version() {
    if !has_client() {
        return;
    }
    for version in Version::all() {
        let etcd = Etcd::start(version);
        let line = etcd.snippet.section("A. ");
        etcd.next("by fenced");
        etcd.bench.run_fenced(&line).exits(0);
        assert_eq!(etcd.word(), "by fenced");

        let holder = etcd.bench.work().join("holder");
        let hold = "fenced run --store etcd: --lock nightly -- sh -c 'env >part; mv part holder; read line'";
        let mut command = Command::new("sh");
        command.args(["-c", hold]).current_dir(etcd.bench.work()).stdin(std::process::Stdio::piped());
        command.env("PATH", format!("{}:{}", etcd.bench.root().join("real").display(), crate::server::path()));
        command.env("ETCDCTL_ENDPOINTS", etcd.bench.ask("echo $ETCDCTL_ENDPOINTS"));
        let running = crate::support::run::Running::start(command, crate::support::processes::new_mark());
        crate::support::wait::eventually(SOON, || holder.exists());
        let text = std::fs::read_to_string(holder).unwrap();
        let variables: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
        let (key, token) = (variables["FENCED_KEY"], variables["FENCED_TOKEN"].parse::<u64>().unwrap());
        let put = |word: &str, key: &str, token: u64| {
            etcd.next(word);
            let variables = [("FENCED_KEY", key), ("FENCED_TOKEN", &token.to_string())];
            etcd.bench.start_in(&etcd.bench.work(), &line, &variables).wait(SOON)
        };
        put("by the holder", key, token).exits(0);
        put("refused", key, token - 1).exits(77);
        put("refused", key, token + 1).exits(77);
        put("refused", &format!("{key}0"), token).exits(77);
        assert_eq!(etcd.word(), "by the holder", "{version:?}");
        drop(running);
        etcd.bench.ask("etcdctl del --prefix /fenced/v1");
        put("refused", key, token).exits(77);
        assert_eq!(etcd.word(), "by the holder", "{version:?}");
    }
}
