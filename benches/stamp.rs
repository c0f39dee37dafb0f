//! The command in the critical sections that `make bench` measures: writes down when it began and when it ended, by the
//! monotonic clock, and with what token. Small, so that its own start weighs little.
//!
//! usage: bench-stamp LOG [GATE]; with a named pipe as GATE, it ends when somebody opens that for writing.

use nix::time::{ClockId, clock_gettime};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};

fn main() -> Result<()> {
    let began = nanoseconds()?;
    let mut words = std::env::args_os().skip(1);
    let log = words.next().ok_or(Error::new(ErrorKind::InvalidInput, "usage: bench-stamp LOG [GATE]"))?;
    let mut log = OpenOptions::new().append(true).open(log)?;
    let token = std::env::var("FENCED_TOKEN").unwrap_or_default();
    // One write each: a line stays whole beside those of others.
    log.write_all(format!("{began} start {token}\n").as_bytes())?;
    words.next().map(File::open).transpose()?;
    log.write_all(format!("{} end {token}\n", nanoseconds()?).as_bytes())
}

fn nanoseconds() -> Result<i64> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(time.tv_sec() * 1_000_000_000 + time.tv_nsec())
}
