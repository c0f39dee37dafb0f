//! Under a service manager: descriptors, watchdog, notifications and signals as systemd gives them.

use crate::bash;
use crate::support::etcd::{Cluster, Version};
use crate::support::processes;
use crate::support::run::{Ended, LocalStore, Run, Running, binary};
use crate::support::wait::SOON;
use nix::sys::signal::Signal;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

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

/// Has a command write its pid and its parent's, and sends the stop signal as systemd does: to all of the processes, or
/// to the main one. fenced does not run meanwhile: however busy the machine is, it finds all of it at once.
fn stopped_by_systemd(store: &LocalStore, whole: bool, command: &str) -> Ended {
    let others = if whole { "$guard $command" } else { "" };
    let script = format!(
        "echo systemd >/proc/$$/comm; : >out
        \"$F\" run --store \"$S\" --lock a -- bash -c '{command}' >out 2>&1 &
        fenced=$!
        until read command guard <out; do sleep 0.01; done
        kill -STOP $fenced; until grep -q ') T' /proc/$fenced/stat; do sleep 0.01; done
        for pid in {others} $fenced; do kill -TERM $pid; kill -CONT $pid; done
        wait $fenced; rc=$?; cat out; exit $rc"
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]).env("F", binary()).env("S", store.to_string()).env_remove("FENCED_HELD");
    command.current_dir(store.path()).stdin(Stdio::null());
    Running::start(command, processes::new_mark()).wait(SOON)
}

/// Counts stop signals, and ends some time after the first.
const COUNTING: &str = "trap \"n=x\\$n; echo term\" TERM; echo $$ $PPID; until [ \"$n\" ]; do sleep 0.05; done; \
    for i in 1 2 3 4 5 6; do sleep 0.05; done; exit 5";

#[test]
fn a_stop_signal_to_fenced_alone_reaches_the_command_once() {
    let store = LocalStore::new();
    let ended = stopped_by_systemd(&store, false, COUNTING).exits(5);
    assert!(ended.stdout.matches("term").count() == 1 && !ended.stdout.contains("fenced"), "{ended:?}");
}

#[test]
fn a_stop_signal_to_every_process_of_the_unit_reaches_the_command_once() {
    let store = LocalStore::new();
    for _ in 0..5 {
        let ended = stopped_by_systemd(&store, true, COUNTING).exits(5);
        assert!(ended.stdout.matches("term").count() == 1 && !ended.stdout.contains("fenced"), "{ended:?}");
    }
}

#[test]
fn a_unit_that_is_stopped_as_a_whole_ends_by_the_stop_signal_and_frees_the_lock() {
    let store = LocalStore::new();
    let ended = stopped_by_systemd(&store, true, "setsid sleep 1039 & echo $$ $PPID; exec sleep 1040").exits(143);
    assert!(ended.stdout.contains("background processes") && ended.stdout.lines().count() == 2, "{ended:?}");
    Run::new(&store).lock("a").args(["-n"]).command(["true"]).output().exits(0);
}

#[test]
fn a_signal_to_everything_of_fenceds_name_still_reaches_the_command() {
    let store = LocalStore::new();
    let run = Run::new(&store).lock("a").script("trap 'echo term; exit 5' TERM; echo in; sleep 60 & wait").spawn();
    run.prints("in");
    for pid in [run.guard(), run.pid()] {
        processes::signal(pid, Signal::SIGTERM);
    }
    assert_eq!(run.wait(SOON).exits(5).stdout, "in\nterm\n");
}

#[test]
fn a_unit_that_was_told_to_stop_and_is_then_killed_as_a_whole_leaves_nothing_and_frees_the_lock() {
    let cluster = Cluster::single(Version::V37);
    let local = LocalStore::new();
    let etcd = format!("etcd://{}", cluster.members[0].address);
    for (store, wait) in [(local.to_string(), "5s"), (etcd, "20s")] {
        let script = "trap 'echo told' TERM; (trap '' TERM; setsid sleep 1011) & echo in; while :; do sleep 0.05; done";
        let mut run = Run::new(&store).lock("a").args(["--ttl", "2s", "--grace", "300ms"]).script(script).spawn();
        run.prints("in");
        run.signal(Signal::SIGTERM);
        run.prints("told");
        assert!(run.ended().is_none(), "fenced made a KILL of the TERM");
        let unit = run.tree();
        assert!(unit.len() >= 4, "{unit:?}");
        for pid in unit {
            processes::signal(pid, Signal::SIGKILL);
        }
        run.gone(SOON);
        Run::new(&store).lock("a").args(["--wait", wait]).command(["true"]).output().exits(0);
    }
}
