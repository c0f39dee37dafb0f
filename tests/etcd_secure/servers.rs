//! The servers of these tests are what they are taken for.

use crate::support::etcd::{Access, CI, Cluster, Options, PASSWORD, Tls, Version, etcdctl};
use crate::support::pki::Authority;
use std::process::{Command, Output};

fn etcdctl_with(cluster: &Cluster, flags: &[&str]) -> Output {
    let url = format!("https://{}", cluster.members[0].address);
    Command::new(etcdctl())
        .args(["--endpoints", &url, "--command-timeout", "1s", "--dial-timeout", "1s"])
        .args(flags)
        .args(["get", "/fenced/v1/a"])
        .output()
        .unwrap()
}

#[test]
fn a_server_with_tls_wants_what_it_was_told_to_want() {
    for version in Version::all() {
        let (ours, theirs) = (Authority::new(), Authority::new());
        let tls = Tls { server: ours.server(), clients: Some(ours.certificate.clone()) };
        let cluster = Cluster::start(&Options { version, tls: Some(tls), ..Options::default() });
        let (ca, client, stranger) = (ours.certificate.to_str().unwrap(), ours.client("me"), theirs.client("me"));
        let pair = [client.certificate.to_str().unwrap(), client.key.to_str().unwrap()];
        let wrong = [stranger.certificate.to_str().unwrap(), stranger.key.to_str().unwrap()];
        for (works, flags) in [
            (true, vec!["--cacert", ca, "--cert", pair[0], "--key", pair[1]]),
            (false, vec!["--cacert", ca]),
            (false, vec!["--cert", pair[0], "--key", pair[1]]),
            (false, vec!["--cacert", ca, "--cert", wrong[0], "--key", wrong[1]]),
        ] {
            let output = etcdctl_with(&cluster, &flags);
            assert_eq!(output.status.success(), works, "{version:?} {flags:?} {output:?}");
        }
    }
}

#[test]
fn a_server_with_users_lets_each_do_what_it_may_and_can_be_asked_and_restarted_by_the_tests() {
    for version in Version::all() {
        let mut cluster = Cluster::single(version);
        let access = Access::enable(&cluster, "/fenced/v1/");
        access.change();
        let user = format!("{CI}:{PASSWORD}");
        for (works, arguments) in [
            (true, vec!["--user", &user, "put", "/fenced/v1/a", "x"]),
            (false, vec!["--user", &user, "put", "/fenced/v2/a", "x"]),
            (false, vec!["--user", "ci:wrong", "put", "/fenced/v1/a", "x"]),
            (false, vec!["put", "/fenced/v1/a", "x"]),
        ] {
            let output = cluster.etcdctl(&arguments);
            assert_eq!(output.status.success(), works, "{version:?} {arguments:?} {output:?}");
        }
        cluster.members[0].restart();
        assert_eq!((cluster.members[0].healthy(), cluster.members[0].leads()), (true, Some(true)), "{version:?}");
    }
}

#[test]
fn a_learner_has_the_data_and_refuses_to_read_it_for_a_client() {
    for version in Version::all() {
        let mut cluster = Cluster::single(version);
        let learner = cluster.add_learner().address.clone();
        let refused = Command::new(etcdctl()).args(["--endpoints", &learner, "get", "a"]).output().unwrap();
        assert!(String::from_utf8_lossy(&refused.stderr).contains("rpc not supported for learner"), "{refused:?}");
    }
}
