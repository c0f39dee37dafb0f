//! What a user should know of the cluster, though the lock works: said once, beside everything else.

use super::store::EtcdStore;
use crate::store::contract::Remark;
use std::future::pending;

/// The first release of each line that looks again whether a lease is still there before it answers a renewal, by etcd's
/// CHANGELOG: before, one that was just revoked could be renewed in word only. (fenced reads its key as well.)
const SOUND: [(u32, u32, u32); 3] = [(3, 4, 38), (3, 5, 23), (3, 6, 5)];

/// What was remarked already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remarked {
    version: bool,
    no_users: bool,
}

impl EtcdStore {
    /// See [`Store::remark`](crate::store::contract::Store::remark).
    pub(super) async fn next_remark(&self) -> Remark {
        tokio::select! {
            remark = self.version_remark() => remark,
            remark = self.user_remark() => remark,
        }
    }

    async fn user_remark(&self) -> Remark {
        if !self.remarked.get().no_users && self.members.heard().wait_for(|heard| heard.no_users).await.is_ok() {
            self.remarked.set(Remarked { no_users: true, ..self.remarked.get() });
            let user = self.members.user().unwrap_or_default();
            return Remark::Warning(format!("--user {user}: the store has no authentication, so the user is left out"));
        }
        pending().await
    }

    /// Asked for only when something was answered: what the lock needs comes first.
    async fn version_remark(&self) -> Remark {
        let due = self.contention.curious && !self.remarked.get().version;
        if due && self.members.heard().wait_for(|heard| heard.answer).await.is_ok() {
            let status = async |mut client: etcd_client::Client| Ok(client.status().await?);
            let answer = self.members.call(self.round(), status).await;
            self.remarked.set(Remarked { version: true, ..self.remarked.get() });
            if let Some(fault) = answer.ok().and_then(|status| lease_faults(status.version())) {
                return Remark::Detail(format!("store {}: {fault}", self.members.preferred()));
            }
        }
        pending().await
    }
}

/// What is wrong with the leases of a version, where something is known to be.
fn lease_faults(version: &str) -> Option<String> {
    let mut numbers = version.split(['.', '-', '+']).map(|part| part.parse::<u32>().ok());
    let (major, minor, patch) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let sound = SOUND.into_iter().find(|line| (line.0, line.1) == (major, minor));
    let old = SOUND[0];
    match sound {
        Some((_, _, first)) if patch < first => {
            let fault = "it can answer the renewal of a lease that is gone";
            Some(format!("etcd {version} has a known fault of leases ({fault}), use {major}.{minor}.{first} or later"))
        }
        None if (major, minor) < (old.0, old.1) => Some(format!("etcd {version} is older than fenced was tested with")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_with_known_faults_of_leases_are_named_with_the_first_that_has_none() {
        for (version, sound) in [("3.4.23", "3.4.38"), ("3.5.1", "3.5.23"), ("3.6.0-rc.1", "3.6.5")] {
            assert!(lease_faults(version).is_some_and(|fault| fault.contains(sound)), "{version}");
        }
        assert!(lease_faults("3.3.27").is_some());
    }

    #[test]
    fn other_releases_are_not() {
        for version in ["3.4.38", "3.5.23", "3.6.5", "3.7.2", "4.0.0", "", "x", "3.5"] {
            assert_eq!(lease_faults(version), None, "{version}");
        }
    }
}
