//! What can be typed after `fenced snippet`.

use clap::{Args, ValueEnum};

/// `fenced snippet`.
#[derive(Debug, Args)]
pub struct Snippet {
    /// What is written to
    #[arg(value_name = "RESOURCE")]
    pub resource: Resource,
}

/// What a snippet is for.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[expect(missing_docs, reason = "the names say it, and would stand in the help text")]
pub enum Resource {
    Postgres,
    Mysql,
    Sqlite,
    Redis,
    Etcd,
    S3,
    Http,
}
