//! Carries out a schedule, and writes into the journal what it did and to whom.

use crate::history::{Class, RunId, What};
use crate::schedule::{Act, Part, Step, Who};
use crate::support::etcd::Member;
use crate::support::processes::{self, marked};
use crate::support::proxy::{Mode, Proxy};
use crate::world::{Current, World};
use etcd_client::{AlarmAction, AlarmOptions, AlarmType, Client, DeleteOptions, GetOptions};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What a question of the nemesis to a member may take: it has more to do.
const PATIENCE: Duration = Duration::from_secs(2);

/// The nemesis of one world.
pub struct Nemesis<'a> {
    world: &'a mut World,
    stopped: BTreeSet<usize>,
    dead: BTreeSet<usize>,
}

impl<'a> Nemesis<'a> {
    pub fn of(world: &'a mut World) -> Self {
        Self { world, stopped: BTreeSet::new(), dead: BTreeSet::new() }
    }

    /// Carries out the steps at their time and heals everything at the end. No run begins after that, unless `going_on`.
    pub fn carry_out(mut self, steps: &[Step], length: Duration) {
        let began = Instant::now();
        for step in steps {
            std::thread::sleep(step.after.saturating_sub(began.elapsed()));
            self.perform(&step.act);
        }
        std::thread::sleep(length.saturating_sub(began.elapsed()));
        self.heal();
    }

    /// Everything works again.
    pub fn heal(&mut self) {
        self.perform(&Act::Network { worker: None, member: None, mode: Mode::Pass });
        self.perform(&Act::Thaw);
        self.perform(&Act::Restart);
        self.perform(&Act::Continue);
        if let Some(cluster) = &self.world.cluster {
            cluster.leader(None);
        }
        self.world.shared.journal.note(0, What::Healed);
    }

    pub fn perform(&mut self, act: &Act) {
        match act {
            Act::Network { worker, member, mode } => {
                for proxy in self.proxies(*worker, *member) {
                    proxy.set(*mode);
                }
                self.note(0, Class::Plain, act);
            }
            Act::LoseOpenReplies { worker } => {
                for proxy in self.proxies(Some(*worker), None) {
                    proxy.drop_replies_of_open_connections();
                }
                self.note(0, Class::Plain, act);
            }
            Act::LoseReply { worker, nth } => {
                for proxy in self.proxies(Some(*worker), None) {
                    proxy.lose_reply(*nth);
                }
                self.note(0, Class::Plain, act);
            }
            Act::Reset { worker, nth } => {
                for proxy in self.proxies(Some(*worker), None) {
                    match nth {
                        Some(nth) => proxy.reset_one(*nth),
                        None => proxy.reset(),
                    }
                }
                self.note(0, Class::Plain, act);
            }
            Act::Stop(_) | Act::Thaw | Act::Kill(_) | Act::Restart | Act::Compact | Act::Defragment(_) => {
                self.on_members(act);
            }
            Act::Signal { worker, parts, signal } => self.signal(*worker, parts, *signal, act),
            Act::Continue => {
                for pid in self.world.shared.everything() {
                    processes::signal(pid, Signal::SIGCONT);
                }
                self.note(0, Class::Plain, act);
            }
            Act::Spin { threads, span } => {
                spin(*threads, *span);
                self.note(0, Class::Plain, act);
            }
            Act::Revoke => self.revoke(act),
            Act::Write { rate, span } => {
                let address = self.members()[0].control.clone();
                write(address, *rate, *span);
                self.note(0, Class::Plain, act);
            }
            Act::Fill | Act::MakeRoom => {
                self.note(0, Class::Plain, act);
                let address = self.members()[0].control.clone();
                if matches!(act, Act::Fill) {
                    ask(&address, fill);
                } else {
                    ask(&address, make_room);
                }
            }
        }
    }

    fn note(&self, run: RunId, class: Class, act: &Act) {
        self.world.shared.journal.note(run, What::Fault { class, text: format!("{act:?}") });
    }

    fn proxies(&self, worker: Option<usize>, member: Option<usize>) -> impl Iterator<Item = &Proxy> {
        let rows = self.world.shared.proxies.iter().enumerate().filter(move |(n, _)| worker.is_none_or(|w| w == *n));
        rows.flat_map(move |(_, row)| {
            row.iter().enumerate().filter(move |(n, _)| member.is_none_or(|m| m == *n)).map(|(_, proxy)| proxy)
        })
    }

    fn on_members(&mut self, act: &Act) {
        if self.world.cluster.is_none() {
            return;
        }
        // Before it is done, so that nothing that comes of it is earlier than its cause.
        let class = if matches!(act, Act::Stop(_) | Act::Thaw) { Class::MemberFrozen } else { Class::Plain };
        self.note(0, class, act);
        let at = match act {
            Act::Stop(who) | Act::Kill(who) | Act::Defragment(who) => self.member(*who),
            _ => None,
        };
        match (act, at) {
            (Act::Stop(_), Some(at)) => {
                self.members()[at].stop();
                self.stopped.insert(at);
            }
            (Act::Kill(_), Some(at)) => {
                self.members()[at].kill();
                self.dead.insert(at);
            }
            (Act::Defragment(_), Some(at)) => {
                let address = self.members()[at].control.clone();
                ask(&address, async |mut client| client.defragment().await.map(drop));
            }
            (Act::Thaw, _) => {
                for at in std::mem::take(&mut self.stopped) {
                    self.members()[at].thaw();
                }
            }
            (Act::Restart, _) => self.restart(),
            (Act::Compact, _) => {
                let Some(at) = self.member(Who::Follower) else { return };
                let address = self.members()[at].control.clone();
                ask(&address, async |mut client| {
                    let now = client.get("x", None).await?.header().map_or(0, etcd_client::ResponseHeader::revision);
                    client.compact(now, None).await.map(drop)
                });
            }
            _ => {}
        }
    }

    /// Those that were killed start again; without a majority none would answer before the others are there too.
    fn restart(&mut self) {
        let dead = std::mem::take(&mut self.dead);
        for at in dead {
            self.members()[at].relaunch();
        }
    }

    fn members(&mut self) -> &mut Vec<Member> {
        &mut self.world.cluster.as_mut().expect("a cluster").members
    }

    /// Of the members that can answer. The only member is both.
    fn member(&mut self, who: Who) -> Option<usize> {
        let (stopped, dead) = (self.stopped.clone(), self.dead.clone());
        let members = self.members();
        let able = (0..members.len()).filter(|n| !stopped.contains(n) && !dead.contains(n));
        let mut leading: Vec<_> = able.map(|n| (n, members[n].leads() == Some(true))).collect();
        leading.sort_by_key(|&(_, leads)| leads == matches!(who, Who::Follower));
        leading.first().map(|&(n, _)| n)
    }

    fn signal(&self, worker: usize, parts: &[Part], signal: Signal, act: &Act) {
        // Locked, so that nobody reaps the wrapper meanwhile and its number stays its own.
        let slot = self.world.shared.slot(worker);
        let Some(current) = *slot else { return };
        let pids: Vec<_> = parts.iter().flat_map(|part| self.part(current, *part)).collect();
        let class = match signal {
            Signal::SIGSTOP if parts.contains(&Part::Descendants) => Class::Frozen,
            Signal::SIGKILL if parts.contains(&Part::Fenced) && parts.contains(&Part::Guard) => Class::Beheaded,
            _ => Class::Plain,
        };
        self.note(current.run, class, act);
        if parts.contains(&Part::Group) {
            let _ = killpg(Pid::from_raw(current.pid), signal);
        }
        for pid in pids {
            processes::signal(pid, signal);
        }
    }

    fn part(&self, current: Current, part: Part) -> Vec<i32> {
        // A sidecar is a child of fenced as well.
        let named = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let guard = || processes::children(current.pid).into_iter().find(|&pid| named(pid).starts_with("fenced"));
        let command = || guard().and_then(|guard| processes::children(guard).first().copied());
        match part {
            Part::Fenced => vec![current.pid],
            Part::Guard => guard().into_iter().collect(),
            Part::Command => command().into_iter().collect(),
            Part::Group => Vec::new(),
            Part::Descendants => {
                let (guard, command) = (guard(), command());
                let mut all = marked(&self.world.shared.mark_of(current.run).1);
                all.retain(|&pid| pid != current.pid && Some(pid) != guard && Some(pid) != command);
                all
            }
        }
    }

    fn revoke(&mut self, act: &Act) {
        let locks = self.world.shared.journal.read().locks();
        self.note(0, Class::Revoked, act);
        if let Some(store) = &self.world.shared.local {
            for lock in locks {
                let _ = std::fs::remove_file(store.path().join(format!("{lock}.lock")));
            }
            return;
        }
        let Some(at) = self.member(Who::Leader) else { return };
        let address = self.members()[at].control.clone();
        ask(&address, async |mut client| {
            let found = client.get("/fenced/", Some(GetOptions::new().with_prefix())).await?;
            let oldest = found.kvs().iter().min_by_key(|key| key.create_revision());
            match oldest {
                Some(key) => client.lease_revoke(key.lease()).await.map(drop),
                None => Ok(()),
            }
        });
    }
}

/// Asks a member something; a nemesis does not mind to be refused.
fn ask(address: &str, question: impl AsyncFnOnce(Client) -> Result<(), etcd_client::Error>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let asked = async { question(Client::connect([address], None).await?).await };
    let _ = runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await });
}

/// Writes until the server takes nothing more.
async fn fill(mut client: Client) -> Result<(), etcd_client::Error> {
    for n in 0..10_000 {
        client.put(format!("ballast/{n}"), vec![0; 100_000], None).await?;
    }
    Ok(())
}

async fn make_room(mut client: Client) -> Result<(), etcd_client::Error> {
    let deleted = client.delete("ballast/", Some(DeleteOptions::new().with_prefix())).await?;
    client.compact(deleted.header().map_or(0, etcd_client::ResponseHeader::revision), None).await?;
    client.defragment().await?;
    let alarms = client.alarm(AlarmAction::Get, AlarmType::Nospace, None).await?;
    for alarm in alarms.alarms() {
        let mut member = AlarmOptions::new();
        member.with_member(alarm.member_id());
        client.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(member)).await?;
    }
    Ok(())
}

/// A thread that writes other keys, for so long.
fn write(address: String, rate: u32, span: Duration) {
    let end = Instant::now() + span;
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let Ok(mut client) = Client::connect([address], None).await else { return };
            let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate);
            for n in 0_u32.. {
                ticks.tick().await;
                if Instant::now() >= end || client.put(format!("elsewhere/{}", n % 1000), "x", None).await.is_err() {
                    return;
                }
            }
        });
    });
}

/// Threads that only compute, for so long.
fn spin(threads: usize, span: Duration) {
    let end = Instant::now() + span;
    for _ in 0..threads {
        std::thread::spawn(move || while Instant::now() < end {});
    }
}
