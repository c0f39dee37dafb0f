//! Settings of TLS and users that make no sense are refused before a store is asked, by what mends them.

use crate::scene::{as_user, says, showing, trusting};
use crate::support::pki::Authority;
use crate::support::run::Run;

const TLS: &str = "etcds://127.0.0.1:1";

fn tls() -> Run {
    Run::new(&TLS).lock("a")
}

#[test]
fn files_that_cannot_be_read_or_hold_something_else_are_named() {
    let authority = Authority::new();
    let (empty, text) = (authority.file("empty", ""), authority.file("text", "hello\n"));
    let pair = authority.client("me");
    let (certificate, key) = (pair.certificate.to_str().unwrap(), pair.key.to_str().unwrap());
    says(tls().args(["--cacert", "/no/such/file"]), 125, &["--cacert", "/no/such/file", "no such file"]);
    for file in [&empty, &text] {
        let file = file.to_str().unwrap();
        says(tls().args(["--cacert", file]), 125, &["--cacert", file, "certificate"]);
        says(tls().args(["--cert", file, "--key", key]), 125, &["--cert", file, "certificate"]);
        says(tls().args(["--cert", certificate, "--key", file]), 125, &["--key", file, "key"]);
    }
    says(tls().args(["--cert", certificate, "--key", "/no/such/file"]), 125, &["--key", "/no/such/file"]);
    let other = authority.client("other");
    let mixed = tls().args(["--cert", certificate]).args(["--key".as_ref(), other.key.as_os_str()]);
    says(mixed, 125, &["--cert", "--key"]);
}

#[test]
fn what_needs_its_other_half_says_which() {
    let pair = Authority::new();
    let pair = pair.client("me");
    says(tls().args(["--cert".as_ref(), pair.certificate.as_os_str()]), 125, &["--cert", "--key"]);
    says(tls().args(["--key".as_ref(), pair.key.as_os_str()]), 125, &["--cert", "--key"]);
    says(tls().args(["--user", "ci"]), 125, &["--user", "--password-file", "FENCED_PASSWORD"]);
}

#[test]
fn a_system_that_trusts_nobody_is_told_apart_from_a_server_that_nobody_trusts() {
    let bare = tls().env("SSL_CERT_FILE", "/no/such/file").env("SSL_CERT_DIR", "/no/such/directory");
    says(bare, 125, &["--cacert", "authorities"]);
}

#[test]
fn a_plain_store_takes_no_certificates() {
    let authority = Authority::new();
    let plain = || Run::new(&"etcd://127.0.0.1:1").lock("a");
    says(trusting(plain(), &authority), 125, &["--cacert", "etcds://"]);
    says(showing(plain(), &authority.client("me")), 125, &["--cert", "etcds://"]);
}

#[test]
fn a_password_file_is_there_and_has_something_in_it() {
    let authority = Authority::new();
    let empty = authority.file("empty", "\n");
    says(as_user(tls(), "ci", &empty), 125, &["--password-file", "empty"]);
    says(as_user(tls(), "ci", "/no/such/file".as_ref()), 125, &["--password-file", "/no/such/file"]);
}

#[test]
fn etcdctl_s_variables_that_would_weaken_or_lack_something_are_refused() {
    let run = || Run::new(&"etcd:").lock("a").env("ETCDCTL_ENDPOINTS", "https://127.0.0.1:1");
    says(run().env("ETCDCTL_INSECURE_SKIP_TLS_VERIFY", "true"), 125, &["ETCDCTL_INSECURE_SKIP_TLS_VERIFY"]);
    says(run().env("ETCDCTL_USER", "ci"), 125, &["ETCDCTL_USER", "password"]);
    says(run().env("ETCDCTL_CERT", "/no/such/file"), 125, &["ETCDCTL_CERT", "--key"]);
    says(run().env("ETCDCTL_CACERT", "/no/such/file"), 125, &["/no/such/file", "no such file"]);
    let mixed = Run::new(&"etcd:").lock("a").env("ETCDCTL_ENDPOINTS", "https://127.0.0.1:1,http://127.0.0.1:2");
    says(mixed, 125, &["ETCDCTL_ENDPOINTS"]);
}
