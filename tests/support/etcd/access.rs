//! Users of a cluster: `root`, and `ci`, who may read and write below one prefix and nothing else.

use super::super::wait::SOON;
use super::Cluster;
use etcd_client::{Client, ConnectOptions, Error, Permission, PermissionType};

/// The restricted user.
pub const CI: &str = "ci";

/// The restricted user's password; nothing else in a test looks like it.
pub const PASSWORD: &str = "correct-horse:battery=staple";

const ROOT: &str = "root";
const ROOT_PASSWORD: &str = "toor";

/// What root does on a cluster with users.
pub struct Access {
    address: String,
}

impl Access {
    /// Turns users on. `ci` may read and write what begins with `prefix`, which ends with a slash.
    pub fn enable(cluster: &Cluster, prefix: &str) -> Self {
        let address = cluster.members[0].control.clone();
        block_on(async {
            let mut client = Client::connect([&address], None).await?;
            client.user_add(ROOT, ROOT_PASSWORD, None).await?;
            client.user_grant_role(ROOT, ROOT).await?;
            client.role_add(CI).await?;
            client.role_grant_permission(CI, Permission::read_write(prefix).with_prefix()).await?;
            client.user_add(CI, PASSWORD, None).await?;
            client.user_grant_role(CI, CI).await?;
            client.auth_enable().await.map(|_| ())
        });
        Self { address }
    }

    /// Does something as root.
    pub fn as_root<T>(&self, question: impl AsyncFnOnce(Client) -> Result<T, Error>) -> T {
        let options = ConnectOptions::new().with_user(ROOT, ROOT_PASSWORD);
        block_on(async { question(Client::connect([&self.address], Some(options)).await?).await })
    }

    /// Changes something about the users, and gives `ci` the password that it has: signed tokens given out before are
    /// then of an old revision, and opaque ones of `ci` are forgotten.
    pub fn change(&self) {
        let name = format!("somebody-{:x}", fastrand::u32(..));
        self.as_root(async |mut client| {
            client.user_add(name, "x", None).await?;
            client.user_change_password(CI, PASSWORD).await
        });
    }

    /// Grants `ci` one kind of access to what begins with this prefix.
    pub fn grant(&self, kind: PermissionType, prefix: &str) {
        let permission = Permission::new(kind, prefix).with_prefix();
        self.as_root(async |mut client| client.role_grant_permission(CI, permission).await);
    }
}

/// Does something with a client of a server without users, `host:port` as it speaks plainly.
pub fn ask<T>(address: &str, question: impl AsyncFnOnce(Client) -> Result<T, Error>) -> T {
    block_on(async { question(Client::connect([address], None).await?).await })
}

fn block_on<T>(asked: impl Future<Output = Result<T, Error>>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let answer = runtime.block_on(async { tokio::time::timeout(SOON, asked).await });
    answer.expect("the server answers in time").expect("the server does it")
}
