//! The options of the store, which every subcommand that asks one takes.

use clap::{Args, ValueHint};

/// Which store, for every subcommand.
#[derive(Debug, Args)]
pub struct Store {
    /// `etcd://HOST:2379,HOST:2379[/PREFIX]`, `etcds://…` for TLS, `etcd:` to take everything from ETCDCTL_*, `file:` or `file:///DIR` [default: file:] [env: FENCED_STORE]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,

    /// Who signed the members' certificates (PEM) [default: the system's authorities] [env: FENCED_CACERT]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cacert: Option<String>,

    /// The client's own certificate (PEM), with --key [env: FENCED_CERT]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cert: Option<String>,

    /// The private key of --cert (PEM, not encrypted) [env: FENCED_KEY_FILE]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: Option<String>,

    /// A user of the etcd cluster, with --password-file or FENCED_PASSWORD [env: FENCED_USER]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// The password, on the first line of this file [env: FENCED_PASSWORD_FILE]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub password_file: Option<String>,
}
