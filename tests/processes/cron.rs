//! Under cron: no terminal, hardly an environment, a directory that may be gone.

use crate::support::etcd::{Cluster, Version};
use crate::support::run::LocalStore;
use crate::support::wait::SOON;
use crate::{bash, is_root};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// What tells where it is, without anything of the environment.
const PROBE: &str =
    "-- sh -c '[ \"$HOME$USER$LANG\" ] || echo bare; test -t 0 || echo none; readlink /proc/self/cwd; exit 3'";

#[test]
fn a_run_needs_no_environment_terminal_or_directory_on_any_store() {
    let local = LocalStore::new();
    let cluster = Cluster::single(Version::V37);
    for store in [local.to_string(), format!("etcd://{}", cluster.members[0].address)] {
        let line = format!(
            "cd {}; mkdir gone; cd gone; rmdir ../gone; exec env -i setsid -w \"$F\" run --store {store} --lock a {PROBE}",
            local.path().display()
        );
        let ended = bash(&local, &line).wait(SOON).exits(3);
        let gone = local.path().join("gone (deleted)");
        assert_eq!(ended.stdout, format!("bare\nnone\n{}\n", gone.display()), "{store}");
        let line = format!("exec env -i \"$F\" run --store {store} --lock a no-such-command");
        let ended = bash(&local, &line).wait(SOON).exits(127);
        assert_eq!(ended.stderr, "fenced: no-such-command: not found\n");
    }
}

#[test]
fn the_default_directory_of_a_user_does_not_depend_on_the_environment() {
    if !is_root() {
        return;
    }
    let local = LocalStore::new();
    let home = local.path().join("home").display().to_string();
    fs::write(local.path().join("passwd"), format!("root:x:0:0::/root:/bin/sh\njob:x:12345:12345::{home}:/bin/sh\n"))
        .unwrap();
    fs::create_dir(&home).unwrap();
    chown(&home, Some(12345), Some(12345)).unwrap();
    fs::set_permissions(local.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let users =
        [("", "/var/lib/fenced"), ("setpriv --reuid 12345 --regid 12345 --clear-groups", ".local/state/fenced")];
    for (user, directory) in users {
        for environment in ["env -i", "env HOME=/nowhere XDG_STATE_HOME=/nowhere"] {
            let line = format!(
                "exec unshare --mount sh -c 'mount -t tmpfs none /var/lib && mount --bind {}/passwd /etc/passwd && \
                 exec {user} {environment} \"$F\" run --store file: --lock a -- sh -c \"echo \\$FENCED_STORE; exit 3\"'",
                local.path().display()
            );
            let ended = bash(&local, &line).wait(SOON).exits(3);
            let directory = Path::new(&home).join(directory);
            let want = format!("file://{}\n", directory.display());
            assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (want.as_str(), ""));
        }
    }
}
