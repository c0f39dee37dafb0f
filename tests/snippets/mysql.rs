//! `MariaDB`, by the command line that `MySQL` has too.

use crate::bench::Bench;
use crate::rule::{Resource, TOKENS, holds_for, race};
use crate::server::{Server, has, program};
use crate::support::run::Ended;
use crate::text::Snippet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Mysql {
    bench: Bench,
    snippet: Snippet,
    _server: Server,
}

/// Where messages, character sets and the system tables are.
fn share() -> PathBuf {
    let unpacked = std::env::var("FENCED_TEST_RESOURCES").map(|dir| Path::new(&dir).join("root/usr/share/mysql"));
    unpacked.ok().filter(|path| path.is_dir()).unwrap_or_else(|| "/usr/share/mysql".into())
}

fn mariadbd(data: &Path) -> Command {
    let (mut command, share) = (program("mariadbd", true), share());
    command.args(["--no-defaults", "--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=8M"]);
    command.arg(format!("--datadir={}", data.display()));
    command.arg(format!("--lc-messages-dir={}", share.display()));
    command.arg(format!("--character-sets-dir={}", share.join("charsets").display()));
    command.current_dir(data);
    command
}

/// Makes the system tables and the database.
fn initialise(data: &Path) {
    let mut server = mariadbd(data).arg("--bootstrap").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut statements = String::from("create database mysql;\nuse mysql;\n");
    for file in ["mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"] {
        statements += &fs::read_to_string(share().join(file)).unwrap();
    }
    statements += "create database app;\n";
    server.stdin.take().unwrap().write_all(statements.as_bytes()).unwrap();
    let ended = server.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

impl Mysql {
    fn start() -> Option<Self> {
        if !has(&["mariadbd", "mysql"]) {
            return None;
        }
        let mut bench = Bench::new();
        let data = bench.directory("data");
        initialise(&data);
        let socket = bench.directory("s").join("s");
        let mut server = mariadbd(&data);
        server.args(["--skip-networking", "--skip-grant-tables"]).arg(format!("--socket={}", socket.display()));
        bench.env("MYSQL_UNIX_PORT", socket.to_string_lossy());
        let home = bench.work().to_string_lossy().into_owned();
        bench.env("HOME", home);
        let log = bench.root().join("log");
        let server = Server::start(server, log, || bench.run("mysql -e 'select 1'").code() == Some(0));
        let snippet = Snippet::of("mysql");
        for _again in 0..2 {
            bench.run(&format!("set -e\n{}", snippet.once())).exits(0);
        }
        bench.ask("mysql app -e 'create table report (word text); insert into report values (\"\")'");
        bench.ask("mysql app -e 'create table journal (n serial, token bigint)'");
        Some(Self { bench, snippet, _server: server })
    }

    fn select(&self, what: &str) -> String {
        self.bench.ask(&format!("mysql --batch --skip-column-names app -e \"select {what}\""))
    }
}

impl Resource for Mysql {
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
        self.bench.ask("mysql app -e 'delete from fence'");
    }

    fn start_afresh(&self, _: &dyn Fn(&str) -> Ended) {
        self.bench.run(&self.snippet.commented("mysql")).exits(0);
    }
}

#[test]
fn mysql_refuses_a_stale_writer_and_its_command_line_fails() {
    let Some(mysql) = Mysql::start() else { return };
    holds_for(&mysql);
}

#[test]
fn mysql_never_lets_a_lower_token_write_after_a_higher_and_a_failing_job_leaves_nothing() {
    let Some(mysql) = Mysql::start() else { return };
    mysql.bench.write("nightly.sql", "insert into journal (token) select token from fence;\n");
    let highest = race(&mysql, &TOKENS);
    let down = "count(*) from journal a join journal b on a.n < b.n and a.token > b.token";
    assert_eq!((mysql.select(down), mysql.token()), ("0".into(), highest.to_string()));

    let each_time = mysql.snippet.each_time();
    for job in ["insert into nosuch values (1);", "kill connection_id();", "syntax error"] {
        let job = format!("update report set word = 'half';\n{job}\nupdate report set word = 'rest';\n");
        mysql.bench.write("nightly.sql", &job);
        assert_eq!(mysql.bench.run_as(&each_time, "2000000", "a-1").code(), Some(1), "{job}");
        assert_eq!((mysql.word(), mysql.token()), (String::new(), highest.to_string()), "{job}");
    }
    fs::remove_file(mysql.bench.work().join("nightly.sql")).unwrap();
    assert_eq!(mysql.bench.run_as(&each_time, "2000000", "a-1").code(), Some(1));
    assert_eq!(mysql.token(), highest.to_string());
}
