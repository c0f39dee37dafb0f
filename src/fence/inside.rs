//! A gate as a store: to be inside it is to hold it, so that a command runs there as under any lock, guard and all.

use super::file::Gate;
use super::register::Mark;
use crate::name::LockName;
use crate::store::contract::{Failure, Grant, Interruption, Place, Queue, Released, Remark, Store};
use crate::timing::Lease;
use std::future::pending;
use std::os::fd::{AsFd, BorrowedFd};

/// One writer that wants inside a gate. The gate's state is what its token was admitted by.
#[derive(Debug)]
pub struct Inside {
    gate: Gate,
    mark: Mark,
    name: LockName,
}

impl Inside {
    /// A writer with this token. `name` is what the gate is called when there is something to say.
    #[must_use]
    pub fn new(gate: Gate, mark: Mark, name: LockName) -> Self {
        Self { gate, mark, name }
    }

    /// From inside: the token decides.
    fn admitted(&self) -> Result<Grant, Failure> {
        self.gate.admit(&self.mark).inspect_err(|_| self.gate.leave())?;
        let Mark { token, lineage, .. } = self.mark.clone();
        Ok(Grant { token, lineage, lease: None, confirm: false, key: None })
    }
}

impl Store for Inside {
    fn lock(&self) -> &LockName {
        &self.name
    }

    fn url(&self) -> String {
        format!("gate file:{}", self.gate.path().display())
    }

    async fn contend(&self) -> Result<Place, Failure> {
        Ok(if self.gate.try_enter()? { Place::Granted(self.admitted()?) } else { Place::Waiting })
    }

    async fn granted(&self) -> Result<Grant, Failure> {
        self.gate.enter().await?;
        self.admitted()
    }

    async fn renew(&self) -> Result<Lease, Failure> {
        Err(Failure::Refused("a gate has no lease".into()))
    }

    async fn interrupted(&self) -> Interruption {
        pending().await
    }

    async fn remark(&self) -> Remark {
        pending().await
    }

    async fn recall(&self) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn record(&self) -> Result<(), Failure> {
        Ok(())
    }

    async fn release(&self, _done: bool) -> Result<Released, Failure> {
        let ours = self.gate.is_in_place();
        self.gate.leave();
        let why = || format!("gate {} was removed or replaced meanwhile", self.gate.path().display());
        Ok(if ours? { Released::Ours } else { Released::NotOurs(why()) })
    }

    async fn withdraw(&self) -> Result<(), Failure> {
        self.gate.leave();
        Ok(())
    }

    async fn inspect(&self) -> Result<Queue, Failure> {
        Ok(Queue::default())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.gate.as_fd())
    }
}
