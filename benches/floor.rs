//! The floor under `fenced run` on etcd: the calls that one uncontended run cannot do without, and the command, in one
//! process that does nothing else. The transactions have the form of fenced's own. A bench target, run by `make bench`.
//!
//! usage: bench-floor HOST:PORT COMMAND [ARG]...

use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, Error, GetOptions, LeaseGrantOptions, PutOptions, SortOrder,
    SortTarget, Txn, TxnOp,
};
// For nothing but to be linked with what fenced is linked with.
use fenced as _;
use std::io;
use std::process::{Command, exit};

const QUEUE: &str = "/floor/q/bench/";
/// As long as what fenced writes about a contender.
const VALUE: [u8; 120] = [b'x'; 120];

fn main() {
    let mut words = std::env::args().skip(1);
    let (Some(member), Some(program)) = (words.next(), words.next()) else {
        eprintln!("usage: bench-floor HOST:PORT COMMAND [ARG]...");
        exit(2);
    };
    let mut command = Command::new(program);
    command.args(words);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ran = runtime.map_err(Error::from).and_then(|runtime| runtime.block_on(run(&member, &mut command)));
    if let Err(why) = ran {
        eprintln!("bench-floor: {why}");
        exit(1);
    }
}

async fn run(member: &str, command: &mut Command) -> Result<(), Error> {
    let options = ConnectOptions::new().with_require_leader(true);
    let mut client = Client::connect([member], Some(options)).await?;
    let lease = fastrand::i64(1..=i64::MAX);
    client.lease_grant(30, Some(LeaseGrantOptions::new().with_id(lease))).await?;
    let own = format!("{QUEUE}{lease:x}");
    let entered = client.txn(enqueue(&own, lease)).await?;
    let revision = entered.header().map_or(0, etcd_client::ResponseHeader::revision);
    sure(entered.succeeded(), "somebody else holds the lock")?;
    sure(command.status()?.success(), "the command failed")?;
    sure(client.txn(release(&own, revision, lease)).await?.succeeded(), "the lock was lost")?;
    client.lease_revoke(lease).await?;
    Ok(())
}

fn sure(good: bool, what: &str) -> Result<(), Error> {
    if good { Ok(()) } else { Err(io::Error::other(what).into()) }
}

fn enqueue(own: &str, lease: i64) -> Txn {
    let put = || TxnOp::put(own, VALUE, Some(PutOptions::new().with_lease(lease)));
    let first = |order| {
        let one = GetOptions::new().with_prefix().with_sort(SortTarget::Create, order).with_limit(1);
        TxnOp::get(QUEUE, Some(one))
    };
    let behind = Txn::new()
        .when([Compare::create_revision(own, CompareOp::Equal, 0)])
        .and_then([first(SortOrder::Descend), put()])
        .or_else([TxnOp::get(own, None), first(SortOrder::Ascend)]);
    let nobody_there = Compare::create_revision(QUEUE, CompareOp::Equal, 0).with_prefix();
    Txn::new().when([nobody_there]).and_then([put()]).or_else([TxnOp::txn(behind)])
}

fn release(own: &str, revision: i64, lease: i64) -> Txn {
    let ours =
        [Compare::create_revision(own, CompareOp::Equal, revision), Compare::lease(own, CompareOp::Equal, lease)];
    Txn::new().when(ours).and_then([TxnOp::delete(own, None)]).or_else([TxnOp::get(own, None)])
}
