//! TLS: the servers' certificate alone, both sides' certificates, and where the roots come from.

use crate::scene::{Users, on_every_version, showing, trusting, with_tls};
use crate::support::etcd::{CI, PASSWORD, Version};
use crate::support::pki::Authority;
use crate::support::run::Run;
use crate::support::wait::SOON;

const SHOW: &str = r#"echo "$FENCED_STORE $FENCED_TOKEN""#;

#[test]
fn servers_known_by_their_authority_are_used_by_address_and_by_name() {
    on_every_version(|version| {
        let authority = Authority::new();
        let cluster = with_tls(version, 1, authority.server(), None);
        let by_name = cluster.url().replace("127.0.0.1", "localhost");
        for url in [cluster.url(), by_name, format!("{}/team/a", cluster.url())] {
            let ended = trusting(Run::new(&url), &authority).lock("a").script(SHOW).output().exits(0);
            assert_eq!(ended.stderr, "");
            assert!(ended.stdout.starts_with("etcds://"), "{}", ended.stdout);
        }
    });
}

#[test]
fn without_an_authority_the_system_s_are_trusted() {
    let authority = Authority::new();
    let cluster = with_tls(Version::V37, 1, authority.server(), None);
    let run = || Run::new(&cluster.url()).lock("a").command(["true"]);
    let ended = run().env("SSL_CERT_FILE", &authority.certificate).output().exits(0);
    assert_eq!(ended.stderr, "");
    run().output().exits(69);
}

#[test]
fn both_sides_show_certificates() {
    on_every_version(|version| {
        let authority = Authority::new();
        let cluster = with_tls(version, 1, authority.server(), Some(&authority));
        let run = trusting(Run::new(&cluster.url()), &authority).lock("a");
        assert_eq!(showing(run, &authority.client("me")).command(["true"]).output().exits(0).stderr, "");
    });
}

#[test]
fn a_client_certificate_can_be_the_user() {
    on_every_version(|version| {
        let authority = Authority::new();
        let users = Users::on(with_tls(version, 1, authority.server(), Some(&authority)), "/fenced/v1/");
        let run = || trusting(Run::new(&users.cluster.url()), &authority).lock("a").command(["true"]);
        assert_eq!(showing(run(), &authority.client(CI)).output().exits(0).stderr, "");
        showing(run(), &authority.client("nobody")).output().exits(69);
    });
}

#[test]
fn flags_have_variables_and_the_command_finds_them_again() {
    let authority = Authority::new();
    let cluster = with_tls(Version::V37, 1, authority.server(), None);
    let inner = format!("{} run --lock b -- sh -c '{SHOW}'", crate::support::run::binary());
    let run = Run::bare().env("FENCED_STORE", cluster.url()).env("FENCED_CACERT", &authority.certificate).lock("a");
    let ended = run.script(&inner).output().exits(0);
    assert!(ended.stdout.starts_with("etcds://"), "{}", ended.stdout);
    assert_eq!(ended.stderr, "");
}

/// All of it at once: three members, certificates on both sides, a restricted user; the leader goes meanwhile.
#[test]
fn three_members_with_certificates_and_a_restricted_user_hold_a_lock_through_the_leader_s_death() {
    on_every_version(|version| {
        let authority = Authority::new();
        let mut users = Users::on(with_tls(version, 3, authority.server(), Some(&authority)), "/fenced/v1/");
        let client = authority.client("machine");
        let run = || showing(trusting(users.run(), &authority), &client).args(["--ttl", "10s", "--grace", "1s"]);
        let (holder, waiter) = (run().script("echo in; sleep 8"), run().args(["-v"]).command(["true"]));
        let holder = holder.spawn();
        holder.prints("in");
        let waiter = waiter.spawn();
        waiter.says("waiting");
        let leader = users.cluster.leader(None);
        users.cluster.members[leader].kill();
        let ended = holder.wait(SOON).exits(0);
        assert!(!ended.stderr.contains("stopping") && !ended.stderr.contains(PASSWORD), "{}", ended.stderr);
        waiter.wait(SOON).exits(0);
    });
}
