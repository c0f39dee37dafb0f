//! Under a service manager: descriptors, watchdog, notifications and signals as systemd gives them.

use crate::bash;
use crate::support::run::{LocalStore, Run};
use crate::support::wait::SOON;
use std::os::unix::net::UnixDatagram;

/// Executes the words after it as a service manager does that hands over two descriptors and expects a sign of life.
const MANAGED: &str = "exec 3</etc/hostname 4</dev/null; \
    LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=one:two LISTEN_PIDFDID=1 WATCHDOG_PID=$$ WATCHDOG_USEC=3000000 \
    SYSTEMD_EXEC_PID=$$ exec \"$F\" run --store \"$S\" --lock a --";

#[test]
fn descriptors_and_watchdog_that_a_service_manager_handed_over_are_the_commands() {
    let store = LocalStore::new();
    let probe = "[ $LISTEN_PID = $$ ] && [ $WATCHDOG_PID = $$ ] && [ $SYSTEMD_EXEC_PID = $$ ] && echo mine; \
                 echo $LISTEN_FDS $LISTEN_FDNAMES $WATCHDOG_USEC ${LISTEN_PIDFDID-none}; \
                 readlink /proc/$$/fd/3 /proc/$$/fd/4; [ -e /proc/$$/fd/5 ] || echo no more";
    let ended = bash(&store, &format!("{MANAGED} sh -c '{probe}'")).wait(SOON).exits(0);
    assert_eq!(ended.stdout, "mine\n2 one:two 3000000 none\n/etc/hostname\n/dev/null\nno more\n");
}

#[test]
fn systemds_own_library_finds_the_descriptors_and_the_watchdog_inside_the_command() {
    let store = LocalStore::new();
    let probe = "import ctypes; lib = ctypes.CDLL(\"libsystemd.so.0\"); usec = ctypes.c_uint64(); \
                 print(lib.sd_listen_fds(0), lib.sd_watchdog_enabled(0, ctypes.byref(usec)), usec.value)";
    let ended = bash(&store, &format!("{MANAGED} python3 -c '{probe}'")).wait(SOON).exits(0);
    assert_eq!(ended.stdout, "2 1 3000000\n");
}

#[test]
fn what_was_handed_over_to_another_process_is_not_the_commands() {
    let store = LocalStore::new();
    let script = "LISTEN_PID=$PPID LISTEN_PIDFDID=1 LISTEN_FDS=1 exec \"$F\" run --store \"$S\" --lock a -- \
                  sh -c 'echo $LISTEN_PID $LISTEN_PIDFDID $LISTEN_FDS'";
    let ended = bash(&store, script).wait(SOON).exits(0);
    assert_eq!(ended.stdout, format!("{} 1 1\n", std::process::id()));
}

#[test]
fn the_notification_socket_is_the_commands_and_fenced_itself_sends_nothing() {
    let store = LocalStore::new();
    let path = store.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let notify = "import ctypes; print(ctypes.CDLL('libsystemd.so.0').sd_notify(0, b'READY=1'))";
    let ended = Run::new(&store).lock("a").env("NOTIFY_SOCKET", &path).command(["python3", "-c", notify]).output();
    assert_eq!(ended.exits(0).stdout, "1\n");
    let mut buffer = [0; 64];
    assert_eq!(socket.recv(&mut buffer).unwrap(), 7);
    assert_eq!(&buffer[..7], b"READY=1");
    assert!(socket.recv(&mut buffer).is_err(), "{:?}", String::from_utf8_lossy(&buffer));
}
