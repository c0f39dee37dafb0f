//! `fenced snippet`: what to put at a resource so that it checks the token, and the strict command line that uses it.

use crate::cli::{self, Resource};
use crate::exit::{self, Ending};
use crate::report::Reporter;
use crate::settings::Chatter;
use crate::sys::error::in_words;
use std::io::{self, Write};

/// Runs `fenced snippet` and says how the process shall end.
#[must_use]
pub fn run(typed: &cli::Snippet) -> Ending {
    match io::stdout().write_all(text(typed.resource).as_bytes()) {
        Ok(()) => Ending::Status(0),
        Err(error) => {
            Reporter::new(Chatter::Normal).error(&format!("stdout: {}", in_words(&error)));
            Ending::Status(exit::ERROR)
        }
    }
}

/// A shell script in numbered sections: what is done once, what is done each time, and how to start afresh.
fn text(resource: Resource) -> &'static str {
    match resource {
        Resource::Postgres => include_str!("../snippets/postgres.sh"),
        Resource::Mysql => include_str!("../snippets/mysql.sh"),
        Resource::Sqlite => include_str!("../snippets/sqlite.sh"),
        Resource::Redis => include_str!("../snippets/redis.sh"),
        Resource::Etcd => include_str!("../snippets/etcd.sh"),
        Resource::S3 => include_str!("../snippets/s3.sh"),
        Resource::Http => include_str!("../snippets/http.sh"),
    }
}
