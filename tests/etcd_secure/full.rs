//! A database that is full takes nothing in, but a lock goes to who waits already, and is given back, all the same.

use crate::scene::{on_every_version, says};
use crate::support::etcd::{Cluster, Options, Version, ask};
use crate::support::run::Run;
use crate::support::wait::{SOON, eventually};
use etcd_client::{AlarmAction, AlarmOptions, AlarmType};

const QUOTA: usize = 1 << 20;

fn small(version: Version) -> Cluster {
    let flags = vec![("--quota-backend-bytes", QUOTA.to_string())];
    Cluster::start(&Options { version, flags, ..Options::default() })
}

/// Writes until the server says that it is full, and has raised its alarm.
fn fill(cluster: &Cluster) {
    let address = &cluster.members[0].control;
    ask(address, async |mut client| {
        for n in 0..100 {
            if client.put(format!("ballast/{n}"), vec![0; QUOTA / 10], None).await.is_err() {
                return Ok(());
            }
        }
        panic!("it takes all");
    });
    let alarms = || {
        ask(address, async |mut client| client.alarm(AlarmAction::Get, AlarmType::Nospace, None).await).alarms().len()
    };
    eventually(SOON, || alarms() == 1);
}

fn run(cluster: &Cluster) -> Run {
    Run::new(&cluster.url()).lock("a").args(["--ttl", "3s", "--grace", "300ms"])
}

fn keys(cluster: &Cluster, what: &str) -> i64 {
    let options = etcd_client::GetOptions::new().with_prefix().with_count_only();
    ask(&cluster.members[0].control, async |mut client| client.get(what, Some(options)).await).count()
}

#[test]
fn a_holder_goes_on_and_gives_the_lock_to_a_waiter_while_nobody_can_join() {
    on_every_version(|version| {
        let cluster = small(version);
        let holder = run(&cluster).script("echo in; sleep 6").spawn();
        holder.prints("in");
        let waiter = run(&cluster).args(["-v", "--wait", "20s"]).command(["true"]).spawn();
        waiter.says("waiting");
        fill(&cluster);
        let address = &cluster.members[0].address;
        says(run(&cluster).args(["-n"]), 69, &[address, "database", "full"]);
        let ended = holder.wait(SOON).exits(0);
        assert_eq!(ended.stderr, "", "{version:?}");
        waiter.wait(SOON).exits(0);
        assert_eq!(keys(&cluster, "/fenced/v1/"), 0);
    });
}

#[test]
fn space_that_is_made_again_lets_a_newcomer_in() {
    let cluster = small(Version::V37);
    fill(&cluster);
    let newcomer = run(&cluster).args(["-v", "--wait", "30s"]).command(["true"]).spawn();
    newcomer.says("full");
    let address = &cluster.members[0].control;
    ask(address, async |mut client| {
        let revision = client.get("x", None).await?.header().expect("a header").revision();
        client.delete("ballast/", Some(etcd_client::DeleteOptions::new().with_prefix())).await?;
        client.compact(revision + 1, None).await?;
        client.defragment().await?;
        let raised = client.alarm(AlarmAction::Get, AlarmType::Nospace, None).await?;
        for alarm in raised.alarms() {
            let mut whose = AlarmOptions::new();
            whose.with_member(alarm.member_id());
            client.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(whose)).await?;
        }
        Ok(())
    });
    newcomer.wait(SOON).exits(0);
}
