//! Exit statuses and the status line, as the README's table has them.

mod support;

use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use support::run::{LocalStore, Run};
use support::wait::SOON;

fn status_of(run: Run) -> (Option<i32>, Value) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("status");
    let ended = run.args(["--status-file".as_ref(), file.as_os_str()]).output();
    let line = fs::read_to_string(file).unwrap();
    assert!(line.ends_with('\n') && line.lines().count() == 1, "{line:?}");
    (ended.code(), serde_json::from_str(&line).unwrap())
}

#[test]
fn every_status_of_the_command_is_fenceds_own() {
    let store = LocalStore::new();
    for code in (0..=255).step_by(5).chain([1, 7, 69, 75, 76, 77, 124, 125, 126, 127]) {
        let ended = Run::new(&store).lock("a").script(&format!("exit {code}")).output().exits(code);
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn a_command_that_died_of_a_signal_is_died_after() {
    let store = LocalStore::new();
    for signal in [Signal::SIGTERM, Signal::SIGKILL, Signal::SIGSEGV, Signal::SIGHUP, Signal::SIGUSR1] {
        let ended = Run::new(&store).lock("a").script(&format!("kill -{} $$", signal as i32)).output();
        assert_eq!(ended.signal(), Some(signal as i32), "{ended:?}");
        assert!(!ended.status.to_string().contains("core dumped"), "{ended:?}");
    }
}

#[test]
fn a_held_lock_is_75_or_what_the_user_chose() {
    let store = LocalStore::new();
    let holder = Run::new(&store).lock("a").script("echo in; sleep 60").spawn();
    holder.prints("in");
    let busy = || Run::new(&store).lock("a").command(["true"]);
    let ended = busy().args(["--no-wait"]).output().exits(75);
    assert!(ended.stderr.contains("fenced: lock a: held by ") && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    busy().args(["--wait", "200ms"]).output().exits(75);
    busy().args(["--wait", "0"]).output().exits(75);
    busy().args(["-n", "-E", "11"]).output().exits(11);
    let ended = busy().args(["-n", "-E", "0"]).output().exits(0);
    assert_eq!(ended.stderr, "", "who asked for 0 asked for silence");
}

#[test]
fn giving_up_leaves_nothing_behind_in_the_queue() {
    let store = LocalStore::new();
    let holder = Run::new(&store).lock("a").script("echo in; read x").stdin(std::process::Stdio::piped()).spawn();
    holder.prints("in");
    Run::new(&store).lock("a").args(["--wait", "100ms"]).command(["true"]).output().exits(75);
    drop(holder);
    Run::new(&store).lock("a").args(["--wait", "5s"]).command(["true"]).output().exits(0);
}

#[test]
fn a_command_that_is_not_found_is_127_and_one_that_cannot_run_is_126_without_taking_the_lock() {
    let store = LocalStore::new();
    let ended = Run::new(&store).lock("a").command(["no-such-command-here"]).output().exits(127);
    assert_eq!(ended.stderr, "fenced: no-such-command-here: not found\n");
    Run::new(&store).lock("a").command(["/etc/passwd"]).output().exits(126);
    Run::new(&store).lock("a").command(["/"]).output().exits(126);
    assert_eq!(fs::read_dir(store.path()).unwrap().count(), 0, "the store was not touched");
}

#[test]
fn a_command_whose_interpreter_is_missing_is_127_and_gives_the_lock_back() {
    let store = LocalStore::new();
    let script = store.path().with_extension("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    Run::new(&store).lock("a").command([&script]).output().exits(127);
    fs::write(&script, "exit 3\n").unwrap();
    Run::new(&store).lock("a").args(["-n"]).command([&script]).output().exits(3);
    fs::remove_file(script).unwrap();
}

#[test]
fn a_directory_that_is_not_there_is_69_and_named() {
    let ended =
        Run::bare().args(["--store", "file:///no/such/directory"]).lock("a").command(["true"]).output().exits(69);
    assert!(ended.stderr.contains("/no/such/directory") && ended.stderr.lines().count() == 1, "{}", ended.stderr);
}

#[test]
fn a_signal_that_ends_the_waiting_is_died_of() {
    let store = LocalStore::new();
    let holder = Run::new(&store).lock("a").script("echo in; sleep 60").spawn();
    holder.prints("in");
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1] {
        let waiter = Run::new(&store).lock("a").args(["-v"]).command(["true"]).spawn();
        waiter.says("waiting");
        waiter.signal(signal);
        let ended = waiter.wait(SOON);
        assert_eq!(ended.signal(), Some(signal as i32), "{ended:?}");
    }
}

#[test]
fn the_status_line_tells_how_a_run_ended() {
    let store = LocalStore::new();
    let run = || Run::new(&store).lock("a");
    let (code, line) = status_of(run().script("exit 7"));
    assert_eq!((code, &line["outcome"], &line["exit_code"]), (Some(7), &"exited".into(), &7.into()));
    assert_eq!((&line["lock"], &line["token"], &line["signal"]), (&"a".into(), &1.into(), &Value::Null));
    assert!(line["lineage"].is_string() && line["waited_ms"].is_u64() && line["held_ms"].is_u64(), "{line}");
    assert_eq!(line["store"], store.to_string());
    let (_, line) = status_of(run().script("kill -TERM $$"));
    assert_eq!(
        (&line["outcome"], &line["exit_code"], &line["signal"]),
        (&"signaled".into(), &Value::Null, &"TERM".into())
    );
    let (_, line) = status_of(run().command(["no-such-command-here"]));
    assert_eq!((&line["outcome"], &line["exit_code"], &line["token"]), (&"error".into(), &127.into(), &Value::Null));
    let holder = run().script("echo in; sleep 60").spawn();
    holder.prints("in");
    let (_, line) = status_of(run().args(["-n"]).command(["true"]));
    assert_eq!((&line["outcome"], &line["exit_code"]), (&"busy".into(), &75.into()));
    assert!(line["reason"].as_str().unwrap().starts_with("held by "), "{line}");
    let (_, line) = status_of(Run::bare().args(["--store", "file:///no/such"]).lock("a").command(["true"]));
    assert_eq!((&line["outcome"], &line["exit_code"]), (&"unavailable".into(), &69.into()));
}

#[test]
fn the_status_line_can_go_to_a_descriptor_and_the_command_does_not_get_it() {
    let store = LocalStore::new();
    let script =
        "exec 7>status; exec \"$0\" run --store \"$1\" --lock a --status-fd 7 -- sh -c 'test ! -e /proc/self/fd/7'";
    let binary = assert_cmd::cargo::cargo_bin!("fenced");
    let directory = tempfile::tempdir().unwrap();
    let status = std::process::Command::new("bash")
        .args(["-c".as_ref(), script.as_ref(), binary.as_os_str(), store.to_string().as_ref()])
        .current_dir(directory.path())
        .status()
        .unwrap();
    assert!(status.success());
    let line: Value = serde_json::from_str(&fs::read_to_string(directory.path().join("status")).unwrap()).unwrap();
    assert_eq!(line["outcome"], "exited");
}

#[test]
fn a_status_file_that_cannot_be_opened_is_125_before_the_store_is_asked() {
    let store = LocalStore::new();
    for options in [["--status-file", "/no/such/file"], ["--status-fd", "77"], ["--status-fd", "-1"]] {
        let flag = format!("{}={}", options[0], options[1]);
        let ended = Run::new(&store).lock("a").args([flag]).command(["true"]).output().exits(125);
        assert!(ended.stderr.contains(options[0]), "{}", ended.stderr);
    }
    assert_eq!(fs::read_dir(store.path()).unwrap().count(), 0);
}
