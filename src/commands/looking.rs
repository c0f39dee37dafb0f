//! Looking at locks without taking part.

use crate::etcd::credentials::Credentials;
use crate::name::LockName;
use crate::settings::StoreUrl;
use crate::settings::look::Store as Where;
use crate::store::contract::{Contender, Failure, Queue, Store};
use crate::store::etcd::{Cluster, Contention, EtcdStore};
use crate::store::local::{self, Local};
use std::time::Duration;

/// Who holds a lock and who waits for it.
pub(super) fn queue(place: &Where, lock: &LockName) -> Result<Queue, Failure> {
    match &place.url {
        StoreUrl::Etcd { members, prefix, tls } => {
            let credentials = Credentials::load(&place.access, *tls).map_err(Failure::Refused)?;
            let (members, prefix) = (members.clone(), prefix.clone());
            let cluster = Cluster { members, prefix, tls: *tls, credentials };
            look(|| EtcdStore::new(cluster, lock.clone(), observer()))
        }
        StoreUrl::File { directory } => {
            let directory = match directory {
                Some(directory) => directory.clone(),
                None => local::default_directory().map_err(Failure::Refused)?,
            };
            if !directory.exists() {
                return Ok(Queue::default());
            }
            look(|| Local::open(&directory, lock.clone(), Contender::default(), None))
        }
    }
}

/// Nobody who contends.
fn observer() -> Contention {
    Contention {
        contender: Contender::default(),
        ttl: Duration::from_secs(30),
        grace: Duration::ZERO,
        curious: false,
        once: None,
    }
}

fn look<S: Store>(open: impl FnOnce() -> Result<S, Failure>) -> Result<Queue, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Unavailable(format!("runtime: {error}")))?;
    let found = runtime.block_on(async { open()?.inspect().await });
    runtime.shutdown_background();
    found
}
