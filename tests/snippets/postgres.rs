//! `PostgreSQL`.

use crate::bench::Bench;
use crate::rule::{Resource, TOKENS, holds_for, race};
use crate::server::{Server, has, program};
use crate::support::run::Ended;
use crate::text::Snippet;

struct Postgres {
    bench: Bench,
    snippet: Snippet,
    _server: Server,
}

impl Postgres {
    fn start() -> Option<Self> {
        if !has(&["postgres", "initdb", "psql"]) {
            return None;
        }
        let mut bench = Bench::new();
        let (sockets, data) = (bench.directory("s"), bench.directory("data").join("pg"));
        let made = program("initdb", true)
            .args(["--no-sync", "--auth", "trust", "--username", "me", "--locale", "C", "--encoding", "UTF8", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let mut postgres = program("postgres", true);
        postgres.arg("-D").arg(&data).args(["-c", "listen_addresses=", "-c", "fsync=off", "-k"]).arg(&sockets);
        for (name, value) in [("PGHOST", &*sockets.to_string_lossy()), ("PGUSER", "me"), ("PGDATABASE", "postgres")] {
            bench.env(name, value);
        }
        let log = bench.root().join("log");
        let server = Server::start(postgres, log, || bench.run("psql -X -c 'select 1'").code() == Some(0));
        let snippet = Snippet::of("postgres");
        for _again in 0..2 {
            bench.run(&format!("set -e\n{}", snippet.once())).exits(0);
        }
        bench.ask("psql -X -c 'create table report (word text); create table journal (n bigserial, token bigint)'");
        bench.ask("psql -X -c \"insert into report values ('')\"");
        Some(Self { bench, snippet, _server: server })
    }

    fn select(&self, what: &str) -> String {
        self.bench.ask(&format!("psql -X -At -c \"select {what}\""))
    }
}

impl Resource for Postgres {
    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn snippet(&self) -> &Snippet {
        &self.snippet
    }

    fn next(&self, word: &str) {
        self.bench.write("nightly.sql", &format!("update report set word = '{word}';\n"));
    }

    fn word(&self) -> String {
        self.select("word from report")
    }

    fn token(&self) -> String {
        self.select("token from fence where resource = 'nightly'")
    }

    fn forget(&self) {
        self.bench.ask("psql -X -c 'delete from fence'");
    }

    fn start_afresh(&self, _: &dyn Fn(&str) -> Ended) {
        self.bench.run(&self.snippet.commented("psql")).exits(0);
    }
}

#[test]
fn postgres_refuses_a_stale_writer_and_its_command_line_fails() {
    let Some(postgres) = Postgres::start() else { return };
    holds_for(&postgres);
}

#[test]
fn postgres_never_lets_a_lower_token_write_after_a_higher_and_a_failing_job_leaves_nothing() {
    let Some(postgres) = Postgres::start() else { return };
    postgres.bench.write("nightly.sql", "insert into journal (token) select token from fence;\n");
    let highest = race(&postgres, &TOKENS);
    assert_eq!(postgres.token(), highest.to_string());
    let down = "count(*) from (select token < lag(token) over (order by n) as down from journal) j where down";
    assert_eq!(
        postgres.select(down),
        "0",
        "{}",
        postgres.select("string_agg(token::text, ' ' order by n) from journal")
    );

    postgres.bench.write("nightly.sql", "update report set word = 'half';\nselect 1 / 0;\n");
    assert_eq!(postgres.bench.run_as(&postgres.snippet.each_time(), "2000000", "a-1").code(), Some(3));
    std::fs::remove_file(postgres.bench.work().join("nightly.sql")).unwrap();
    assert_ne!(postgres.bench.run_as(&postgres.snippet.each_time(), "2000000", "a-1").code(), Some(0));
    assert_eq!((postgres.word(), postgres.token()), (String::new(), highest.to_string()));
}
