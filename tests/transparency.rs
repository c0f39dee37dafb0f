//! The command cannot tell that it is wrapped: what it gets, what it says, and what reaches it.

mod support;

use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use support::run::{Ended, LocalStore, Run, Running, bash, binary};
use support::wait::{SOON, eventually};
use support::{processes, wait};

fn both(store: &LocalStore, prelude: &str, probe: &str) -> (Ended, Ended) {
    let wrapped = bash(store, &format!("{prelude} \"$F\" run --store \"$S\" --lock a -- sh -c '{probe}'")).wait(SOON);
    let bare = bash(store, &format!("{prelude} sh -c '{probe}'")).wait(SOON);
    (wrapped, bare)
}

#[test]
fn arguments_arrive_byte_for_byte() {
    let store = LocalStore::new();
    let strange = std::ffi::OsString::from_vec(b"\xff \n'\"$x".to_vec());
    let words =
        ["printf".into(), "%s|".into(), strange, "--lock".into(), "-n".into(), String::new().into(), "--".into()];
    let run = Run::new(&store).lock("a").command(&words).into_std().output().unwrap();
    assert_eq!(run.stdout, b"\xff \n'\"$x|--lock|-n||--|");
}

#[test]
fn descriptors_signals_mask_limits_and_directory_are_those_that_fenced_was_given() {
    let store = LocalStore::new();
    let probe = "ls /proc/self/fd | tr \"\\n\" \" \"; grep -E \"^Sig(Ign|Blk|Cgt)|^NoNewPrivs\" /proc/self/status; \
                 umask; ulimit -n; ulimit -c; nice; pwd; cat /proc/self/oom_score_adj; cut -d\" \" -f 41 /proc/self/stat";
    for prelude in [
        "exec 5</dev/null 9>/dev/null; umask 027; ulimit -n 900; cd /usr;",
        "trap '' HUP PIPE USR1;",
        "trap '' CHLD;",
        "nice -n 3",
        "cd /; env --block-signal=USR2,TERM",
        "cd /; env --ignore-signal=INT,QUIT",
    ] {
        let (wrapped, bare) = both(&store, prelude, probe);
        let kept = |ended: &Ended| ended.stdout.replace("1000 ", "").replace("500 ", "");
        assert_eq!(kept(&wrapped), kept(&bare), "{prelude} {wrapped:?}");
        assert!(!bare.stdout.is_empty() && wrapped.stderr.is_empty(), "{wrapped:?}");
    }
}

#[test]
fn descriptors_that_were_closed_stay_closed() {
    let store = LocalStore::new();
    for closed in ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"] {
        let seen = store.path().join("seen");
        let probe = format!("for f in 0 1 2; do test -e /proc/$$/fd/$f || echo $f >> {}; done", seen.display());
        let run = bash(&store, &format!("exec {closed}; \"$F\" run --store \"$S\" --lock a -- sh -c '{probe}'"));
        assert_eq!(run.wait(SOON).code(), Some(0), "{closed}");
        let is_closed = |c: &&str| closed.contains(&format!("{c}<&-")) || closed.contains(&format!("{c}>&-"));
        let want = ["0", "1", "2"].iter().filter(|c| is_closed(c)).fold(String::new(), |all, c| all + c + "\n");
        assert_eq!(fs::read_to_string(&seen).unwrap(), want, "{closed}");
        fs::remove_file(seen).unwrap();
    }
}

#[test]
fn the_command_reads_fenceds_input_and_readers_see_the_end_of_its_output_at_once() {
    let store = LocalStore::new();
    let run = bash(&store, "echo hello | \"$F\" run --store \"$S\" --lock a -- tr a-z A-Z | cat; echo end");
    assert_eq!(run.wait(SOON).stdout, "HELLO\nend\n");
    let run = bash(&store, "\"$F\" run --store \"$S\" --lock a -- sh -c 'exec >&-; sleep 30' | (cat; echo end)");
    run.prints("end");
}

#[test]
fn the_environment_is_inherited_and_the_variables_of_an_outer_lock_are_replaced() {
    let store = LocalStore::new();
    let ended = Run::new(&store)
        .lock("a b")
        .env("FENCED_TOKEN", "99")
        .env("FENCED_KEY", "/old")
        .env("FENCED_PASSWORD", "secret")
        .env("FENCED_WAIT", "7s")
        .env("MINE", "x")
        .script("env | grep -E '^(FENCED_|MINE)' | sort")
        .output()
        .exits(0);
    let names: Vec<&str> = ended
        .stdout
        .lines()
        .map(|line| line.split('=').next().unwrap())
        .filter(|name| !name.ends_with("MARK"))
        .collect();
    let want = [
        "FENCED_HELD",
        "FENCED_LINEAGE",
        "FENCED_LOCK",
        "FENCED_OWNER",
        "FENCED_STORE",
        "FENCED_TOKEN",
        "FENCED_WAIT",
        "MINE",
    ];
    assert_eq!(names, want);
    assert!(
        ended.stdout.contains("FENCED_LOCK=a b\n") && ended.stdout.contains("FENCED_TOKEN=1\n"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains(&format!("FENCED_HELD={store} a%20b\n")), "{}", ended.stdout);
}

#[test]
fn a_nested_run_of_a_lock_that_is_held_is_refused_and_of_another_is_not() {
    let store = LocalStore::new();
    let nested = |inner: &str| {
        let script =
            format!("{} run --lock {inner} -n -- sh -c 'echo token $FENCED_TOKEN lock $FENCED_LOCK'", binary());
        Run::new(&store).lock("a").script(&script).output()
    };
    let ended = nested("a").exits(125);
    assert!(ended.stderr.contains("lock a") && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    let ended = nested("b").exits(0);
    assert_eq!(ended.stdout, "token 1 lock b\n");
}

#[test]
fn signals_to_fenced_reach_the_command_once_and_are_never_escalated() {
    let store = LocalStore::new();
    for signal in ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "ALRM", "WINCH"] {
        let script = format!(
            "n=0; trap 'n=$((n+1)); echo got $n' {signal}; echo in; while [ $n -lt 2 ]; do sleep 0.05; done; sleep 0.2; exit 9"
        );
        let run = Run::new(&store).lock("a").args(["--grace", "0"]).script(&script).spawn();
        run.prints("in");
        let number: Signal = format!("SIG{signal}").parse().unwrap();
        run.signal(number);
        run.prints("got 1");
        run.signal(number);
        let ended = run.wait(SOON).exits(9);
        assert_eq!(ended.stdout, "in\ngot 1\ngot 2\n", "{signal}");
    }
}

#[test]
fn a_signal_that_ends_the_command_ends_fenced_as_its_senders() {
    let store = LocalStore::new();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1] {
        let run = Run::new(&store).lock("a").script("echo in; exec sleep 60").spawn();
        run.prints("in");
        run.signal(signal);
        assert_eq!(run.wait(SOON).signal(), Some(signal as i32));
    }
}

#[test]
fn a_real_time_signal_is_passed_on_and_died_of() {
    let store = LocalStore::new();
    let run = bash(&store, "exec \"$F\" run --store \"$S\" --lock a -- sh -c 'echo in; exec sleep 60'");
    run.prints("in");
    let sent = Command::new("kill").args(["-40", &run.pid().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(run.wait(SOON).signal(), Some(40));
}

#[test]
fn a_signal_from_inside_the_commands_own_tree_is_not_sent_back() {
    let store = LocalStore::new();
    let script = "trap 'echo echoed' USR1; up=$(awk '/^PPid/{print $2}' /proc/$PPID/status); kill -USR1 $up; sleep 0.3; echo end";
    let ended = Run::new(&store).lock("a").script(script).output().exits(0);
    assert_eq!(ended.stdout, "end\n");
}

#[test]
fn a_group_signal_without_a_terminal_reaches_the_command_once() {
    let store = LocalStore::new();
    let script = "trap 'echo got' USR1; echo in; for i in 1 2 3 4 5 6; do sleep 0.1; done";
    let mut command = Run::new(&store).lock("a").script(script).into_std();
    command.process_group(0);
    let run = Running::start(command, processes::new_mark());
    run.prints("in");
    nix::sys::signal::killpg(nix::unistd::Pid::from_raw(run.pid()), Signal::SIGUSR1).unwrap();
    assert_eq!(run.wait(SOON).exits(0).stdout, "in\ngot\n");
}

#[test]
fn a_full_pipe_on_stderr_stops_nothing() {
    let store = LocalStore::new();
    let script = "mkfifo p; exec 3<>p; dd if=/dev/zero bs=4096 count=16 >&3 2>/dev/null; timeout 20 \"$F\" run -v --store \"$S\" --lock a -- true 2>&3; echo rc $?";
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", script]).env("F", binary()).env("S", store.to_string()).current_dir(directory.path());
    let ended = Running::start(command, processes::new_mark()).wait(SOON);
    assert_eq!(ended.stdout, "rc 0\n");
}

#[test]
fn a_plain_file_on_stderr_is_appended_to_where_it_stands() {
    let store = LocalStore::new();
    let ended = bash(
        &store,
        "(echo before; \"$F\" run -v --store \"$S\" --lock a -- sh -c 'echo within >&2'; echo after) 2>&1 >&2",
    )
    .wait(SOON);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!((lines.first(), lines.last()), (Some(&"before"), Some(&"after")), "{ended:?}");
    assert!(lines.contains(&"within"));
}

#[test]
fn fenced_itself_writes_nothing_to_stdout_and_on_success_nothing_to_stderr() {
    let store = LocalStore::new();
    let ended = Run::new(&store).lock("a").command(["true"]).output().exits(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}

#[test]
fn nothing_of_fenced_outlives_a_run() {
    let store = LocalStore::new();
    let mut run = Run::new(&store).lock("a").script("echo in; sleep 0.1").spawn();
    run.prints("in");
    let guard = run.guard();
    eventually(SOON, || run.ended().is_some());
    assert!(!processes::is_alive(guard), "the guard outlived fenced");
}

#[test]
fn only_one_thread_of_fenced_is_left_while_the_command_runs() {
    let store = LocalStore::new();
    let holder = Run::new(&store).lock("a").script("echo in; sleep 0.3").spawn();
    holder.prints("in");
    let run = Run::new(&store).lock("a").script("echo in; sleep 60").spawn();
    run.prints("in");
    let threads = |pid: i32| fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    eventually(SOON, || threads(run.pid()) == 1 && threads(run.guard()) == 1);
    assert!(wait::throughout(std::time::Duration::from_millis(200), || threads(run.pid()) == 1));
}

#[test]
fn a_command_that_outlives_its_input_with_nohup_keeps_its_ignored_hang_up() {
    let store = LocalStore::new();
    let run = bash(
        &store,
        "exec nohup \"$F\" run --store \"$S\" --lock a -- sh -c 'echo in; sleep 0.5; echo end' 2>/dev/null",
    );
    run.prints("in");
    run.signal(Signal::SIGHUP);
    assert_eq!(run.wait(SOON).exits(0).stdout, "in\nend\n");
}

#[test]
fn ignored_signals_do_not_end_the_waiting_either() {
    let store = LocalStore::new();
    let holder = Run::new(&store).lock("a").script("echo in; read x").stdin(Stdio::piped()).spawn();
    holder.prints("in");
    let waiter = bash(&store, "exec nohup \"$F\" run -v --store \"$S\" --lock a -- echo in 2>&1");
    waiter.prints("waiting");
    waiter.signal(Signal::SIGHUP);
    waiter.signal(Signal::SIGWINCH);
    drop(holder);
    assert_eq!(waiter.wait(SOON).code(), Some(0));
}

#[test]
fn only_signals_that_end_a_program_end_the_waiting_for_background_processes() {
    let store = LocalStore::new();
    let run = Run::new(&store)
        .lock("a")
        .args(["--on-exit", "wait"])
        .script("(sleep 60; echo late) & echo $$; exit 4")
        .spawn();
    run.prints("\n");
    eventually(SOON, || !processes::is_alive(run.stdout().trim().parse().unwrap()));
    run.signal(Signal::SIGWINCH);
    run.signal(Signal::SIGCONT);
    assert!(wait::throughout(std::time::Duration::from_millis(300), || processes::is_alive(run.guard())));
    run.signal(Signal::SIGTERM);
    assert_eq!(run.wait(SOON).signal(), Some(Signal::SIGTERM as i32));
}
