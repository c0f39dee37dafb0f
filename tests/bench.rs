//! `make bench` works: every figure once, with the smallest numbers. How large a figure is, is not looked at.

mod support;

use std::path::Path;
use std::process::Command;
use support::etcd::{Version, etcdctl};

#[test]
fn the_benchmark_prints_a_row_for_each_figure() {
    if !Version::all().contains(&Version::V34) {
        return;
    }
    let fenced = Path::new(env!("CARGO_BIN_EXE_fenced"));
    let floor = fenced.with_file_name("examples").join("bench-floor");
    assert!(floor.exists(), "cargo build --examples makes what this test runs");
    let ctl = etcdctl();
    let output = Command::new("python3")
        .args(["-B", "benches", "--pairs=2", "--rounds=1", "--waiters=3", "--rest=1", "--kills=1"])
        .arg("--only=uncontended,memory,crowd,rest,kill")
        .arg("--fenced")
        .arg(fenced)
        .arg("--floor")
        .arg(floor)
        .arg("--etcd")
        .arg(ctl.parent().unwrap())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}\n{printed}");
    for figure in ["over `etcdctl lock`", "over the floor", "over `flock`", "memory", "3 waiters", "at rest", "dead"] {
        assert!(printed.lines().any(|line| line.starts_with("| ") && line.contains(figure)), "{figure}:\n{printed}");
    }
}
