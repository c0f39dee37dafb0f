//! What comes between the grant and the command: whether the run was done already, and the gates of `--fence`, made ready
//! before anything is asked.

use crate::etcd::credentials::Credentials;
use crate::etcd::members::Members;
use crate::fence::register::Mark;
use crate::fence::{command, etcd, file};
use crate::guard::terms::Deadlines;
use crate::hold::driver;
use crate::hold::event::{GATES, Readiness};
use crate::settings::gate::GateName;
use crate::settings::once::When;
use crate::settings::{Run, StoreUrl};
use crate::store::contract::{Failure, Grant, Store};
use crate::sys::clock;
use crate::timing::Window;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;

/// A gate, as far as it can be made ready while the process is small.
pub(super) enum Ready {
    File(PathBuf),
    Etcd(String),
    Command(command::Gate),
}

/// What one run has to do.
pub(super) struct Before<'a, S> {
    pub store: &'a S,
    pub gates: &'a [Ready],
    pub settings: &'a Run,
}

impl<S: Store> driver::Before for Before<'_, S> {
    fn prepare(&self, grant: Grant) -> Pin<Box<dyn Future<Output = Result<Readiness, Failure>> + '_>> {
        Box::pin(async {
            if self.store.recall().await? {
                return Ok(Readiness::Done);
            }
            show(self.gates, self.settings, grant).await?;
            if self.settings.once.as_ref().is_some_and(|once| once.when == When::Start) {
                self.store.record().await?;
            }
            Ok(Readiness::Go)
        })
    }
}

/// Forks what has to be forked.
pub(super) fn prepare(gates: &[GateName]) -> io::Result<Vec<Ready>> {
    let ready = |gate: &GateName| {
        Ok(match gate {
            GateName::File(path) => Ready::File(path.clone()),
            GateName::Etcd(key) => Ready::Etcd(key.clone()),
            GateName::Command(script) => Ready::Command(command::Gate::prepare(script)?),
        })
    };
    gates.iter().map(ready).collect()
}

/// Shows the gates a grant, one after the other, until one refuses.
async fn show(gates: &[Ready], settings: &Run, grant: Grant) -> Result<(), Failure> {
    let window = grant.lease.map_or(Window::UNBOUNDED, |lease| Window::of(lease, settings.grace));
    let until = (clock::now() + GATES).min(window.stop_by);
    let mark = Mark { token: grant.token, lineage: grant.lineage, lock: Some(settings.lock.clone()) };
    for gate in gates {
        match gate {
            Ready::File(path) => {
                let gate = file::Gate::open(path)?;
                gate.enter().await?;
                gate.admit(&mark)?;
            }
            Ready::Etcd(key) => {
                let members = cluster(settings, key)?;
                etcd::Gate::new(&members, key.clone()).admit(&mark).await?;
            }
            Ready::Command(gate) => gate.admit(&mark, Deadlines { stop_by: until, dead_by: until }).await?,
        }
    }
    Ok(())
}

/// The lock's own cluster.
fn cluster(settings: &Run, key: &str) -> Result<Members, Failure> {
    let StoreUrl::Etcd { members, tls, .. } = &settings.store else {
        return Err(Failure::Refused(format!("--fence etcd:{key}: the store is no etcd cluster")));
    };
    let credentials = Credentials::load(&settings.access, *tls).map_err(Failure::Refused)?;
    Ok(Members::new(members, credentials, format!("the key {key}")))
}
