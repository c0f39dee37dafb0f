//! Users and passwords: where they come from, what they need, and clusters that know none.

use crate::scene::{Users, as_user, on_every_version, says, showing, trusting, with_tls};
use crate::support::etcd::{CI, Cluster, PASSWORD, Version};
use crate::support::pki::Authority;
use crate::support::run::Run;
use crate::support::wait::SOON;

#[test]
fn a_role_on_the_prefix_alone_suffices_for_the_whole_life_of_a_lock() {
    on_every_version(|version| {
        for (path, prefix) in [("", "/fenced/v1/"), ("/team/a", "/team/a/")] {
            let users = Users::on(Cluster::single(version), prefix);
            let url = format!("{}{path}", users.cluster.url());
            let run = || users.run_at(&url).args(["--ttl", "3s", "--grace", "300ms"]);
            let holder = run().script("echo in; sleep 4").spawn();
            holder.prints("in");
            let waiter = run().args(["-v"]).command(["true"]).spawn();
            waiter.says("waiting");
            let busy = run().args(["-n"]).command(["true"]).output().exits(75);
            assert!(busy.stderr.contains("held by"), "{}", busy.stderr);
            assert_eq!(holder.wait(SOON).exits(0).stderr, "");
            waiter.wait(SOON).exits(0);
            let left = users.below("");
            assert!(left.is_empty(), "{left:?}");
        }
    });
}

#[test]
fn a_password_comes_from_a_file_or_a_variable_and_the_file_wins() {
    let users = Users::single(Version::V37, Vec::new());
    let file = users.file("file", PASSWORD);
    let run = || Run::new(&users.cluster.url()).lock("a").command(["true"]);
    for (name, run) in [
        ("flags", as_user(run(), CI, &file)),
        ("flag and variable", run().args(["--user", CI]).env("FENCED_PASSWORD", PASSWORD)),
        ("variables", run().env("FENCED_USER", CI).env("FENCED_PASSWORD", PASSWORD)),
        ("a variable for the file", run().env("FENCED_USER", CI).env("FENCED_PASSWORD_FILE", &file)),
        ("the flag before the variable", as_user(run(), CI, &file).env("FENCED_PASSWORD", "wrong")),
    ] {
        let ended = run.output();
        assert_eq!((ended.code(), ended.stderr.as_str()), (Some(0), ""), "{name}");
    }
}

#[test]
fn etcdctl_s_variables_alone_are_enough() {
    let authority = Authority::new();
    let users = Users::on(with_tls(Version::V37, 3, authority.server(), Some(&authority)), "/fenced/v1/");
    let client = authority.client("machine");
    let run = |endpoints: String| {
        let run = Run::new(&"etcd:").lock("a").env("ETCDCTL_ENDPOINTS", endpoints);
        let run = run.env("ETCDCTL_CACERT", &authority.certificate).env("ETCDCTL_CERT", &client.certificate);
        run.env("ETCDCTL_KEY", &client.key).script(r#"echo "$FENCED_STORE""#)
    };
    let with_scheme = users.cluster.addresses().iter().map(|a| format!("https://{a}")).collect::<Vec<_>>().join(",");
    let bare = users.cluster.addresses().join(",");
    for endpoints in [with_scheme.clone(), bare] {
        let both = run(endpoints.clone()).env("ETCDCTL_USER", format!("{CI}:{PASSWORD}"));
        let apart = run(endpoints).env("ETCDCTL_USER", CI).env("ETCDCTL_PASSWORD", PASSWORD);
        for run in [both, apart] {
            let ended = run.output().exits(0);
            assert_eq!(ended.stderr, "");
            assert!(ended.stdout.starts_with("etcds://"), "{}", ended.stdout);
            assert!(users.cluster.addresses().iter().all(|a| ended.stdout.contains(a.as_str())), "{}", ended.stdout);
        }
    }
    let flags = run(with_scheme).env("ETCDCTL_USER", "nobody:nothing");
    as_user(flags, CI, &users.file("file", PASSWORD)).output().exits(0);
}

#[test]
fn a_run_inside_one_by_etcdctl_s_variables_gets_at_the_store_by_them_too() {
    let users = Users::single(Version::V37, Vec::new());
    let inner = format!("{} run --store etcd: --lock b -- echo inside", crate::support::run::binary());
    let run = || Run::new(&"etcd:").lock("a").env("ETCDCTL_ENDPOINTS", &users.cluster.members[0].address);
    let both = run().env("ETCDCTL_USER", format!("{CI}:{PASSWORD}"));
    let apart = run().env("ETCDCTL_USER", CI).env("ETCDCTL_PASSWORD", PASSWORD);
    for run in [apart, both] {
        let ended = run.script(&inner).output().exits(0);
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("inside\n", ""));
    }
}

#[test]
fn etcdctl_s_variables_do_not_touch_a_store_that_was_named() {
    let cluster = Cluster::single(Version::V37);
    let run = Run::new(&cluster.url()).lock("a").command(["true"]);
    let run = run.env("ETCDCTL_ENDPOINTS", "nosuch.invalid:1").env("ETCDCTL_USER", "x:y").env("ETCDCTL_CACERT", "/no");
    assert_eq!(run.output().exits(0).stderr, "");
}

#[test]
fn a_user_on_a_cluster_without_any_is_a_warning() {
    on_every_version(|version| {
        let cluster = Cluster::single(version);
        let run = Run::new(&cluster.url()).lock("a").args(["--user", CI]).env("FENCED_PASSWORD", PASSWORD);
        says(run, 0, &["--user", "authentication"]);
    });
}

#[test]
fn who_is_wrong_or_nobody_or_may_not_is_told_what_to_mend() {
    on_every_version(|version| {
        let users = Users::single(version, Vec::new());
        let (right, wrong) = (users.file("right", PASSWORD), users.file("wrong", "wrong"));
        let run = || Run::new(&users.cluster.url()).lock("a");
        let address = users.cluster.members[0].address.clone();
        says(run(), 69, &[&address, "user", "--user", "--password-file"]);
        says(as_user(run(), CI, &wrong), 69, &[&address, "password", "--user", "--password-file"]);
        says(as_user(run(), "nobody", &right), 69, &[&address, "--user", "--password-file"]);
        let elsewhere = users.run_at(&format!("{}/team/a", users.cluster.url()));
        says(elsewhere, 69, &[CI, "/team/a/", "readwrite"]);
        let by_variable = Run::new(&"etcd:").lock("a").env("ETCDCTL_ENDPOINTS", &address);
        says(by_variable.env("ETCDCTL_USER", format!("{CI}:wrong")), 69, &[&address, "password", "wrong"]);
    });
}

#[test]
fn who_may_only_read_is_told_that_it_does_not_suffice() {
    use etcd_client::PermissionType::Read;
    let users = Users::single(Version::V37, Vec::new());
    users.access.grant(Read, "/team/a/");
    let run = users.run_at(&format!("{}/team/a", users.cluster.url()));
    says(run, 69, &[CI, "/team/a/", "readwrite"]);
}

#[test]
fn a_certificate_whose_name_is_no_user_is_told_so() {
    let authority = Authority::new();
    let users = Users::on(with_tls(Version::V37, 1, authority.server(), Some(&authority)), "/fenced/v1/");
    let run = showing(trusting(Run::new(&users.cluster.url()), &authority).lock("a"), &authority.client("machine"));
    says(run, 69, &["/fenced/v1/", "--user"]);
}

#[test]
fn a_run_logs_in_once_and_asks_nothing_that_the_lock_does_not_need() {
    let users = Users::single(Version::V37, Vec::new());
    let asked = || ["Authenticate", "Status", "LeaseGrant", "Txn"].map(|method| users.cluster.members[0].calls(method));
    let before = asked();
    assert_eq!(users.run().command(["true"]).output().exits(0).stderr, "");
    let after = asked();
    let calls: Vec<_> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(calls, [1, 0, 1, 2], "enqueued and released");
}

#[test]
fn users_of_a_cluster_without_a_quorum_are_told_so() {
    let mut users = Users::on(Cluster::three(Version::V37), "/fenced/v1/");
    for gone in [1, 2] {
        users.cluster.members[gone].kill();
    }
    let line = says(users.run().args(["-n"]), 69, &["connection refused"]);
    assert!(line.contains("leader"), "{line}");
}
