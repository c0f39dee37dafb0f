//! A store that cannot be reached: one line, each member with its own reason, and what mends it.

use crate::scene::{on_every_version, said, says, showing, trusting, with_tls};
use crate::support::etcd::{Cluster, Version, free_ports};
use crate::support::pki::Authority;
use crate::support::proxy::{Mode, Proxy};
use crate::support::run::Run;

fn nobody() -> String {
    format!("127.0.0.1:{}", free_ports(1)[0])
}

fn at(members: &[&str]) -> Run {
    Run::new(&format!("etcd://{}", members.join(","))).lock("a").args(["-n"])
}

#[test]
fn each_member_has_its_own_reason() {
    let cluster = Cluster::single(Version::V37);
    let hung = Proxy::before(&cluster.members[0].address);
    hung.set(Mode::Hold);
    let refusing = nobody();
    let members = ["nosuch.invalid:2379", &refusing, &hung.address];
    let line = says(at(&members), 69, &[]);
    let reason = |member: &str| {
        let (_, rest) = line.split_once(&format!("{member}: ")).unwrap_or_else(|| panic!("no {member} in {line}"));
        rest.split(';').next().unwrap().to_owned()
    };
    assert!(reason(members[0]).contains("name"), "{line}");
    assert!(reason(members[1]).contains("connection refused"), "{line}");
    assert!(reason(members[2]).contains("no answer within"), "{line}");
    assert!(line.starts_with("fenced: store etcd://") && line.contains("/fenced/v1: "), "{line}");
}

#[test]
fn a_host_that_is_not_known_is_named() {
    says(at(&["nosuch.invalid:2379"]), 69, &["nosuch.invalid:2379: ", "name", "not found"]);
}

#[test]
fn a_server_that_takes_requests_and_never_answers_is_told_from_one_that_refuses() {
    let cluster = Cluster::single(Version::V37);
    cluster.members[0].stop();
    says(at(&[&cluster.members[0].address]), 69, &[&cluster.members[0].address, "no answer within"]);
    let refusing = nobody();
    says(at(&[&refusing]), 69, &[&refusing, "connection refused"]);
}

#[test]
fn tls_and_plain_are_told_apart_in_both_directions() {
    on_every_version(|version| {
        let authority = Authority::new();
        let secret = with_tls(version, 1, authority.server(), None);
        let address = secret.members[0].address.clone();
        says(at(&[&address]), 69, &[&address, "TLS", "etcds://"]);
        let open = secret.members[0].control.clone();
        let run = Run::new(&format!("etcds://{open}")).lock("a").args(["-n"]);
        says(trusting(run, &authority), 69, &[&open, "plain HTTP", "etcd://"]);
    });
}

#[test]
fn what_is_no_etcd_at_all_is_told_so() {
    let web = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = web.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for stream in web.incoming().take(200) {
            let Ok(mut stream) = stream else { continue };
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    says(at(&[&address]), 69, &[&address, "no etcd server"]);
}

#[test]
fn a_certificate_that_is_not_good_is_said_to_be_what_it_is() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let run = |cluster: &Cluster| Run::new(&cluster.url()).lock("a").args(["-n"]);
    let good = with_tls(Version::V37, 1, ours.server(), None);
    says(trusting(run(&good), &theirs), 69, &[&good.members[0].address, "certificate", "--cacert"]);
    says(run(&good).env("SSL_CERT_FILE", &theirs.certificate), 69, &["certificate", "--cacert"]);
    let expired = with_tls(Version::V37, 1, ours.expired(), None);
    says(trusting(run(&expired), &ours), 69, &[&expired.members[0].address, "certificate", "expired"]);
    let elsewhere = with_tls(Version::V37, 1, ours.elsewhere(), None);
    let line = says(trusting(run(&elsewhere), &ours), 69, &[&elsewhere.members[0].address, "certificate", "127.0.0.1"]);
    assert!(!line.contains("--cacert"), "another authority would not mend it: {line}");
    let at = |members: [&Cluster; 2]| {
        let members = members.map(|cluster| cluster.members[0].address.clone()).join(",");
        trusting(Run::new(&format!("etcds://{members}")).lock("a").args(["-n"]), &ours)
    };
    says(at([&expired, &elsewhere]), 69, &["expired", "another name", ": its certificate", "; "]);
    assert_eq!(at([&expired, &good]).command(["true"]).output().exits(0).stderr, "");
}

#[test]
fn an_authority_s_own_certificate_does_not_pass_for_a_server_s() {
    let authority = Authority::new();
    let cluster = with_tls(Version::V37, 1, authority.itself(), None);
    let run = trusting(Run::new(&cluster.url()).lock("a").args(["-n"]), &authority);
    let line = says(run, 69, &["certificate", "authority"]);
    assert!(!line.contains("OtherError"), "{line}");
}

#[test]
fn a_client_certificate_that_is_wanted_is_asked_for() {
    on_every_version(|version| {
        let (ours, theirs) = (Authority::new(), Authority::new());
        let cluster = with_tls(version, 1, ours.server(), Some(&ours));
        let run = || trusting(Run::new(&cluster.url()).lock("a").args(["-n"]), &ours);
        let address = &cluster.members[0].address;
        says(run(), 69, &[address, "client certificate", "--cert"]);
        says(showing(run(), &theirs.client("me")), 69, &[address, "certificate", "--cert"]);
    });
}

#[test]
fn a_cluster_without_a_quorum_is_told_from_one_that_is_gone() {
    let mut cluster = Cluster::three(Version::V37);
    for gone in [1, 2] {
        cluster.members[gone].kill();
    }
    let addresses = cluster.addresses();
    let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
    let line = says(at(&addresses), 69, &addresses);
    assert_eq!(line.matches("connection refused").count(), 2, "{line}");
    assert!(line.contains("leader") || line.contains("quorum") || line.contains("majority"), "{line}");
    let alone = says(at(&addresses[..1]), 69, &addresses[..1]);
    assert!(alone.contains("leader") || alone.contains("quorum") || alone.contains("majority"), "{alone}");
}

#[test]
fn a_member_that_only_learns_is_named_and_passed_over() {
    on_every_version(|version| {
        let mut cluster = Cluster::single(version);
        let learner = cluster.add_learner().address.clone();
        says(at(&[&learner]), 69, &[&learner, "learner"]);
        let voter = cluster.members[0].address.clone();
        assert_eq!(at(&[&learner, &voter]).command(["true"]).output().exits(0).stderr, "");
    });
}

#[test]
fn a_version_with_known_lease_bugs_is_named_once_and_only_to_who_asks() {
    on_every_version(|version| {
        let cluster = Cluster::single(version);
        let run = || Run::new(&cluster.url()).lock("a").command(["true"]);
        assert_eq!(run().output().exits(0).stderr, "");
        let told = run().args(["-v"]).output().exits(0).stderr;
        let (known, mended) = match version {
            Version::V34 => ("3.4.23", "3.4.38"),
            Version::V35 => ("3.5.1", "3.5.23"),
            Version::V37 => {
                assert!(!told.contains("3.7"), "{told}");
                return;
            }
        };
        let lines: Vec<_> = told.lines().filter(|line| line.contains(known)).collect();
        assert!(lines.len() == 1 && lines[0].contains("lease") && lines[0].contains(mended), "{told}");
    });
}

#[test]
fn the_status_line_has_the_reason_too() {
    let authority = Authority::new();
    let status = authority.file("status", "");
    let ended = at(&[&nobody()]).args(["--status-file"]).args([&status]).command(["true"]).output();
    said(&ended, 69, &["connection refused"]);
    let line: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(status).unwrap()).unwrap();
    assert_eq!((line["outcome"].as_str(), line["exit_code"].as_i64()), (Some("unavailable"), Some(69)), "{line}");
    assert!(line["reason"].as_str().unwrap().contains("connection refused"), "{line}");
}
