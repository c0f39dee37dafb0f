//! Watches on single keys: hints that something happened, never the truth about what holds.

use super::keys::Value;
use super::renew::Scope;
use super::store::EtcdStore;
use crate::etcd::failure::Trouble;
use crate::store::contract::{Failure, Interruption};
use etcd_client::{Client, Event, EventType, WatchOptions, WatchResponse, WatchStream};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// So long nobody watches: a shorter run finds a loss at its release, and saves the store a watch.
const SHORT: Duration = Duration::from_millis(20);
/// A stream that lived this long was a good one: the next trouble is a new one.
const GOOD: Duration = Duration::from_secs(5);

/// One stream of watches that the store has confirmed.
#[derive(Debug)]
pub(super) struct Watching {
    stream: WatchStream,
    /// What arrived while the confirmations were awaited.
    early: Vec<Event>,
}

impl Watching {
    /// Watches these keys from a revision on (0: from now) and waits until each watch is confirmed: what is read after
    /// that misses nothing.
    pub async fn open(mut client: Client, keys: &[Vec<u8>], from: i64) -> Result<Self, Trouble> {
        let options = || Some(WatchOptions::new().with_start_revision(from));
        let [first, others @ ..] = keys else { return Err(Trouble::unavailable("nothing to watch")) };
        let stream = client.watch(first.clone(), options()).await?;
        let mut watching = Self { stream, early: Vec::new() };
        for key in others {
            watching.stream.watch(key.clone(), options()).await?;
        }
        let mut confirmed = 0;
        while confirmed < keys.len() {
            let message = watching.message().await?;
            confirmed += usize::from(message.created());
            watching.early.extend_from_slice(message.events());
        }
        Ok(watching)
    }

    /// The next events. An error ends the stream: a compacted watch says so and would stay silent afterwards.
    pub async fn events(&mut self) -> Result<Vec<Event>, Trouble> {
        while self.early.is_empty() {
            let message = self.message().await?;
            self.early.extend_from_slice(message.events());
        }
        Ok(std::mem::take(&mut self.early))
    }

    async fn message(&mut self) -> Result<WatchResponse, Trouble> {
        let message = self.stream.message().await?.ok_or_else(|| Trouble::unavailable("it ended the watch"))?;
        if message.canceled() && message.created() {
            // Never begun: the login is not good any more. 3.5 calls that "permission denied", and a user who may read
            // the key may watch it.
            return Err(Trouble::LoggedOut(format!("it refused the watch: {}", message.cancel_reason())));
        }
        if message.canceled() {
            let why = if message.compact_revision() > 0 { "compacted" } else { message.cancel_reason() };
            return Err(Trouble::unavailable(format!("it ended the watch: {why}")));
        }
        Ok(message)
    }
}

/// Pauses between attempts to watch: 100 ms doubling to 2 s, with full jitter.
#[derive(Debug, Default)]
pub(super) struct Pace {
    failures: u32,
}

impl Pace {
    /// How long to pause after a stream that began at `since` broke.
    pub fn after(&mut self, since: Instant) -> Duration {
        if since.elapsed() >= GOOD {
            self.failures = 0;
        }
        let ceiling = Duration::from_secs(2).min(Duration::from_millis(100) * 2_u32.pow(self.failures.min(5)));
        self.failures += 1;
        ceiling.mul_f64(fastrand::f64())
    }
}

impl EtcdStore {
    /// See [`Store::interrupted`](crate::store::contract::Store::interrupted).
    ///
    /// The watch starts right after the revision at which our key was last seen to be ours, so that nothing is missed
    /// between that answer and the watch, without a read. On a busy store that makes the events of its first 100 ms
    /// up to 100 ms late; a missed one would cost a beat.
    pub(super) async fn watch_own(&self) -> Interruption {
        sleep(SHORT).await;
        let mut pace = Pace::default();
        let mut moves = self.members.moves();
        loop {
            let since = Instant::now();
            let from = self.standing.get().seen + 1;
            let own = [self.own().into_bytes()];
            let opened = self.members.call(self.round(), async |client| Watching::open(client, &own, from).await).await;
            moves.borrow_and_update();
            let watched = match opened {
                Ok(mut watching) => tokio::select! {
                    said = self.interruption(&mut watching) => said,
                    _ = moves.changed() => continue,
                },
                Err(_) => None,
            };
            if let Some(interruption) = watched {
                return interruption;
            }
            // Where the history is gone, a read tells the same and gives the next watch its start.
            if let Err(Failure::Lost(why)) = self.look(Scope::Own).await {
                return Interruption::Lost(why);
            }
            sleep(pace.after(since)).await;
        }
    }

    /// The first event that means something to a holder; `None` when the stream broke.
    async fn interruption(&self, watching: &mut Watching) -> Option<Interruption> {
        let lease = self.standing.get().lease;
        while let Ok(events) = watching.events().await {
            for event in &events {
                // The next watch starts behind it: an eviction is told once.
                let told = event.kv().map_or(0, etcd_client::KeyValue::mod_revision);
                self.note(|s| s.seen = s.seen.max(told));
                if let Some(interruption) = meaning(event, lease) {
                    return Some(interruption);
                }
            }
        }
        None
    }
}

/// What an event on our own key means while we hold.
fn meaning(event: &Event, lease: i64) -> Option<Interruption> {
    if event.event_type() == EventType::Delete {
        let why = "the store deleted the lock's key: its lease ended, or somebody removed it";
        return Some(Interruption::Lost(why.into()));
    }
    let key = event.kv()?;
    if key.lease() != lease {
        return Some(Interruption::Lost("the lock's key was moved to another lease by somebody else".into()));
    }
    Value::decode(key.value()).evict.map(Interruption::Evicted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_two_seconds_and_no_further() {
        let mut pace = Pace::default();
        for n in 0..100 {
            let pause = pace.after(Instant::now());
            let ceiling = if n < 5 { Duration::from_millis(100 << n) } else { Duration::from_secs(2) };
            assert!(pause <= ceiling, "{n}: {pause:?}");
        }
    }
}
