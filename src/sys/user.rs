//! What a user is called: for people, never to decide anything.

use nix::unistd::{Uid, User};
use std::fs::read_to_string;

/// The name of a user, or its number where it has none.
///
/// `/etc/passwd` is looked at first: asking the C library starts all the machinery by which it could be configured to ask
/// others.
#[must_use]
pub fn name(uid: Uid) -> String {
    let local = read_to_string("/etc/passwd").ok().and_then(|table| listed(&table, &uid.to_string()));
    let name = local.or_else(|| User::from_uid(uid).ok().flatten().map(|user| user.name));
    name.unwrap_or_else(|| uid.to_string())
}

/// The name in the first line with this number. Lines that begin with a sign refer to other tables and name nobody.
fn listed(table: &str, uid: &str) -> Option<String> {
    let mut names = table.lines().filter(|line| !line.starts_with(['+', '-', '#'])).filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    names.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_its_whole_number() {
        let table =
            "root:x:0:0:root:/root:/bin/sh\n+@admins:x:7:7::/:\nbroken\n:x:7::\neve:x:70:7::/:\nadam:x:7:7::/:\n";
        assert_eq!(listed(table, "0").as_deref(), Some("root"));
        assert_eq!(listed(table, "7").as_deref(), Some("adam"));
        assert_eq!(listed(table, "8"), None);
    }

    #[test]
    fn this_user_is_called_what_the_system_calls_it_and_an_unknown_one_by_its_number() {
        let me = Uid::effective();
        let known = User::from_uid(me).ok().flatten().map_or_else(|| me.to_string(), |user| user.name);
        assert_eq!(name(me), known);
        assert_eq!(name(Uid::from_raw(4_000_000_123)), "4000000123");
    }
}
