//! The command's environment: what fenced inherited, what is set for this lock, and whom a service manager means.

use crate::sys::inherited;
use nix::errno::Errno;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// By these a service manager tells one process that descriptors or a watchdog are for it (`sd_listen_fds(3)`,
/// `sd_watchdog_enabled(3)`, `systemd.exec(5)`); whoever finds another process id in them takes them for a stranger's.
const ADDRESSES: [&[u8]; 3] = [b"LISTEN_PID", b"WATCHDOG_PID", b"SYSTEMD_EXEC_PID"];
/// A finer address than `LISTEN_PID`, and optional: it is checked where it is there.
const FINE_ADDRESS: &[u8] = b"LISTEN_PIDFDID";

/// The inherited variables, byte for byte and in order, without those that are removed or set; then those that are set.
///
/// # Errors
/// `EINVAL` when a name or a value that is set holds a NUL.
pub fn compose(set: &[(OsString, OsString)], remove: &[OsString]) -> nix::Result<Vec<CString>> {
    let is_replaced = |variable: &CString| {
        let name = OsStr::from_bytes(name(variable));
        remove.iter().any(|removed| removed == name) || set.iter().any(|(set, _)| set == name)
    };
    let mut variables = inherited::variables();
    variables.retain(|variable| !is_replaced(variable));
    for (name, value) in set {
        variables.push(line(name.as_bytes(), value.as_bytes())?);
    }
    Ok(variables)
}

/// What was meant for the process `from` is meant for the process `to`, which runs in its place.
pub fn readdress(variables: &mut Vec<CString>, from: i32, to: i32) {
    let (from, to) = (from.to_string().into_bytes(), to.to_string().into_bytes());
    let mut listens = false;
    for variable in variables.iter_mut() {
        let Some(at) = ADDRESSES.iter().position(|address| line(address, &from).as_ref() == Ok(variable)) else {
            continue;
        };
        if let Ok(line) = line(ADDRESSES[at], &to) {
            *variable = line;
            listens |= at == 0;
        }
    }
    if listens {
        variables.retain(|variable| name(variable) != FINE_ADDRESS);
    }
}

fn name(variable: &CString) -> &[u8] {
    variable.to_bytes().split(|&byte| byte == b'=').next().unwrap_or_default()
}

fn line(name: &[u8], value: &[u8]) -> nix::Result<CString> {
    CString::new([name, b"=", value].concat()).map_err(|_| Errno::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn lines(text: &[&str]) -> Vec<CString> {
        text.iter().map(|line| CString::new(*line).unwrap()).collect()
    }

    #[test]
    fn a_variable_is_replaced_by_its_whole_name_only() {
        let (home, path) = (std::env::var("HOME").unwrap_or_default(), "PATH".into());
        let kept = compose(&[("PAT".into(), "a".into())], &["HOM".into(), path]).unwrap();
        assert!(!kept.iter().any(|line| name(line) == b"PATH"));
        assert_eq!(kept.last(), lines(&["PAT=a"]).first());
        assert!(home.is_empty() || kept.contains(&lines(&[&format!("HOME={home}")])[0]));
    }

    #[test]
    fn what_is_set_comes_once_and_what_is_inherited_stays() {
        let variables = compose(&[("PATH".into(), OsString::from_vec(b"/\xff".to_vec()))], &[]).unwrap();
        let paths: Vec<_> = variables.iter().filter(|line| line.to_bytes().starts_with(b"PATH=")).collect();
        assert_eq!(paths, [&CString::new(b"PATH=/\xff".to_vec()).unwrap()]);
        assert!(variables.len() >= std::env::vars_os().filter(|(name, _)| name != "PATH").count());
    }

    #[test]
    fn a_value_with_a_nul_is_an_error() {
        assert_eq!(compose(&[("A".into(), "b\0c".into())], &[]).unwrap_err(), Errno::EINVAL);
    }

    #[test]
    fn what_a_service_manager_addressed_to_fenced_is_the_commands() {
        let given = ["LISTEN_FDS=2", "LISTEN_PID=77", "LISTEN_PIDFDID=9", "LISTEN_FDNAMES=a:b", "WATCHDOG_PID=77"];
        let mut variables = lines(&given);
        readdress(&mut variables, 77, 99);
        let want = ["LISTEN_FDS=2", "LISTEN_PID=99", "LISTEN_FDNAMES=a:b", "WATCHDOG_PID=99"];
        assert_eq!(variables, lines(&want));
    }

    #[test]
    fn what_was_addressed_to_another_process_stays_its_own() {
        let given = ["LISTEN_PID=78", "LISTEN_PIDFDID=9", "WATCHDOG_PID=770", "SYSTEMD_EXEC_PID=", "MY_LISTEN_PID=77"];
        let mut variables = lines(&given);
        readdress(&mut variables, 77, 99);
        assert_eq!(variables, lines(&given));
    }
}
