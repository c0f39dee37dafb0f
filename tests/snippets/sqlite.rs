//! `SQLite`, by its command line.

use crate::bench::Bench;
use crate::rule::{Resource, TOKENS, holds_for, race};
use crate::server::has;
use crate::support::run::Ended;
use crate::text::Snippet;

struct Sqlite {
    bench: Bench,
    snippet: Snippet,
}

impl Sqlite {
    fn start() -> Option<Self> {
        if !has(&["sqlite3"]) {
            return None;
        }
        let (bench, snippet) = (Bench::new(), Snippet::of("sqlite"));
        for _again in 0..2 {
            bench.run(&format!("set -e\n{}", snippet.once())).exits(0);
        }
        bench.ask("sqlite3 app.db 'create table report (word); create table journal (n integer primary key, token)'");
        bench.ask("sqlite3 app.db \"insert into report values ('')\"");
        Some(Self { bench, snippet })
    }

    fn select(&self, what: &str) -> String {
        self.bench.ask(&format!("sqlite3 app.db \"select {what}\""))
    }
}

impl Resource for Sqlite {
    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn snippet(&self) -> &Snippet {
        &self.snippet
    }

    fn next(&self, word: &str) {
        self.bench.write("nightly.sql", &format!("update report set word = '{word}'; -- its end"));
    }

    fn word(&self) -> String {
        self.select("word from report")
    }

    fn token(&self) -> String {
        self.select("token from fence where resource = 'nightly'")
    }

    fn forget(&self) {
        self.bench.ask("sqlite3 app.db 'delete from fence'");
    }

    fn start_afresh(&self, _: &dyn Fn(&str) -> Ended) {
        self.bench.run(&self.snippet.commented("sqlite3")).exits(0);
    }
}

#[test]
fn sqlite_refuses_a_stale_writer_and_its_command_line_fails() {
    let Some(sqlite) = Sqlite::start() else { return };
    holds_for(&sqlite);
}

#[test]
fn sqlite_never_lets_a_lower_token_write_after_a_higher_and_a_failing_job_leaves_nothing() {
    let Some(sqlite) = Sqlite::start() else { return };
    sqlite.bench.write("nightly.sql", "insert into journal (token) select token from fence;\n");
    let highest = race(&sqlite, &TOKENS);
    let down = "count(*) from journal a join journal b on a.n < b.n and a.token > b.token";
    assert_eq!((sqlite.select(down), sqlite.token()), ("0".into(), highest.to_string()));

    let each_time = sqlite.snippet.each_time();
    for job in ["insert into nosuch values (1);", "syntax error;", ".read nosuch.sql"] {
        let job = format!("update report set word = 'half';\n{job}\nupdate report set word = 'rest';\n");
        sqlite.bench.write("nightly.sql", &job);
        assert_ne!(sqlite.bench.run_as(&each_time, "2000000", "a-1").code(), Some(0), "{job}");
        assert_eq!((sqlite.word(), sqlite.token()), (String::new(), highest.to_string()), "{job}");
    }
    std::fs::remove_file(sqlite.bench.work().join("nightly.sql")).unwrap();
    assert_ne!(sqlite.bench.run_as(&each_time, "2000000", "a-1").code(), Some(0));
    assert_eq!(sqlite.token(), highest.to_string());
}
