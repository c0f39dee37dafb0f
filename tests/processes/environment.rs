//! What the command gets and what its readers see, byte for byte and in time.

use crate::support::run::{LocalStore, Run, Running};
use crate::{bash, binary};
use std::process::{Command, Stdio};

/// Executes the words after it with an environment that no shell would make.
const STRANGE: &str = r#"
import ctypes, sys, os
words = [os.fsencode(word) for word in sys.argv[1:]]
lines = [b"A=1", b"A=2", b"no equals", b"=x", b"", b"FENCED_TOKEN=9", b"FENCED_TOKEN=8", b"FENCED_KEY", b"PATH=/usr/bin:/bin", b"B=\xff\n"]
array = lambda items: (ctypes.c_char_p * (len(items) + 1))(*items, None)
ctypes.CDLL(None).execve(words[0], array(words), array(lines))
"#;

#[test]
fn the_environment_arrives_byte_for_byte_in_its_order_but_for_fenceds_own_variables() {
    let store = LocalStore::new();
    let probe = "import sys; sys.stdout.buffer.write(open('/proc/self/environ', 'rb').read())";
    let python = String::from_utf8(
        Command::new("python3").args(["-c", "import sys; print(sys.executable, end='')"]).output().unwrap().stdout,
    )
    .unwrap();
    let output = Command::new(&python)
        .args([
            "-c",
            STRANGE,
            &binary(),
            "run",
            "--store",
            &store.to_string(),
            "--lock",
            "a",
            "--",
            &python,
            "-c",
            probe,
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let inherited = b"A=1\0A=2\0no equals\0=x\0\0PATH=/usr/bin:/bin\0B=\xff\n\0";
    assert_eq!(&output.stdout[..inherited.len()], inherited, "{:?}", String::from_utf8_lossy(&output.stdout));
    let set = String::from_utf8_lossy(&output.stdout[inherited.len()..]).into_owned();
    assert!(
        set.split_terminator('\0').all(|line| line.starts_with("FENCED_")) && set.contains("FENCED_TOKEN=1\0"),
        "{set}"
    );
    assert!(!set.contains("FENCED_KEY"), "{set}");
}

#[test]
fn an_environment_of_megabytes_or_of_many_outer_locks_starts_or_is_refused_in_words() {
    let store = LocalStore::new();
    let mut run = Run::new(&store).lock("a").script("echo ${#BIG1} ${#BIG9}");
    for n in 0..10 {
        run = run.env(format!("BIG{n}"), "y".repeat(100_000));
    }
    assert_eq!(run.output().exits(0).stdout, "100000 100000\n");
    let held = |length: usize| {
        let outer = "file:///outer a\n".repeat(length / 16);
        Run::new(&store).lock("a").env("FENCED_HELD", outer).command(["true"]).output()
    };
    held(100_000).exits(0);
    let ended = held(131_040).exits(126);
    assert_eq!(ended.stderr, "fenced: true: argument list too long\n");
    Run::new(&store).lock("a").args(["-n"]).command(["true"]).output().exits(0);
}

#[test]
fn what_a_process_substitution_writes_after_the_command_is_not_cut() {
    let store = LocalStore::new();
    let run = Run::new(&store).lock("a").command(["bash", "-c", "exec > >(sleep 0.03; cat); echo all of it"]);
    let ended = run.output().exits(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("all of it\n", ""));
}

#[test]
fn a_reader_sees_the_end_of_the_output_while_background_processes_without_it_are_waited_for() {
    let store = LocalStore::new();
    let script =
        "\"$F\" run --store \"$S\" --lock a --on-exit wait -- sh -c 'sleep 1010 >&- 2>&- & echo out' | (cat; echo end)";
    let run: Running = bash(&store, script);
    run.prints("out\nend\n");
    assert!(run.tree().len() >= 3, "nothing was waited for");
}
