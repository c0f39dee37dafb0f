//! What contenders tell about themselves, in a file each beside the lock's. For people only: the kernel's locks say who
//! is in the queue, a file without a lock is ignored, and failing to write one does not matter.

use super::file::LockFile;
use super::queue::{Entry, FIRST};
use crate::name::LockName;
use crate::store::contract::{Contender, Failure, Queue};
use crate::sys::durable;
use crate::sys::ofd::{Kind, Span};
use nix::dir::Dir;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};

/// Of a command line; what is longer is cut.
const LONGEST_COMMAND: usize = 8 * 1024;
/// Of a file that is read.
const LONGEST_FILE: u64 = 64 * 1024;
/// More of a queue is not shown.
const MOST: usize = 4096;
/// How often the files that crashes left are removed, in numbers.
const SWEEP: i64 = 64;

#[derive(Serialize, Deserialize)]
struct Info {
    lock: String,
    #[serde(flatten)]
    contender: Contender,
}

/// Writes the file of a contender.
pub fn write(entry: &Entry, lock: &LockName, contender: &Contender) {
    let (directory, names) = (&entry.file.directory, &entry.file.names);
    if entry.number % SWEEP == 0 {
        sweep(entry);
    }
    let contender =
        Contender { token: Some(entry.number), command: shortened(&contender.command), ..contender.clone() };
    let Ok(text) = serde_json::to_vec(&Info { lock: lock.as_str().to_owned(), contender }) else { return };
    let name = names.info(entry.number);
    // One of that name is of an earlier lineage.
    durable::remove(directory, &name);
    let written = durable::fits(&text).and_then(|()| durable::create(directory, &name)?.write_all(&text));
    if written.is_err() {
        durable::remove(directory, &name);
    }
}

fn shortened(command: &[String]) -> Vec<String> {
    let mut room = LONGEST_COMMAND;
    let mut kept = Vec::new();
    for word in command {
        if word.len() > room {
            let beginning = word.char_indices().take_while(|(at, letter)| at + letter.len_utf8() <= room);
            kept.push(beginning.map(|(_, letter)| letter).chain(['…']).collect());
            break;
        }
        room -= word.len();
        kept.push(word.clone());
    }
    kept
}

/// Removes the file of a contender.
pub fn remove(entry: &Entry) {
    durable::remove(&entry.file.directory, &entry.file.names.info(entry.number));
}

/// Removes the files that crashed contenders have left, so that their number is bounded.
fn sweep(entry: &Entry) {
    let (directory, names) = (&entry.file.directory, &entry.file.names);
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let Ok(mut files) = Dir::openat(directory, ".", flags, Mode::empty()) else { return };
    for file in files.iter().flatten() {
        let Ok(name) = file.file_name().to_str() else { continue };
        let Some(number) = names.number_of_info(name) else { continue };
        let alive = (1..entry.number).contains(&number)
            && !matches!(entry.file.conflict(Kind::Read, super::queue::place(number)), Ok(None));
        if !alive {
            durable::remove(directory, name);
        }
    }
}

/// Who is in the queue of a lock file. Takes nothing.
///
/// # Errors
/// When the file cannot be looked at.
pub fn queue(file: &LockFile) -> Result<Queue, Failure> {
    let mut numbers = Vec::new();
    // The kernel gives the locks in no order: what was found splits the range.
    let mut ranges = vec![(FIRST + 1, i64::MAX)];
    while let Some((from, to)) = ranges.pop() {
        if from >= to || numbers.len() >= MOST {
            continue;
        }
        let Some(found) = file.conflict(Kind::Read, Span { start: from, len: to - from })? else { continue };
        let at = found.start.max(from);
        numbers.push(at - FIRST);
        ranges.push((from, at));
        // A stranger's lock may cover more than a byte: it counts once.
        ranges.push((if found.len == 0 { to } else { found.start.saturating_add(found.len) }, to));
    }
    numbers.sort_unstable();
    let mut contenders = numbers.into_iter().map(|number| read(file, number));
    Ok(Queue { holder: contenders.next(), waiters: contenders.collect(), lineage: None })
}

fn read(file: &LockFile, number: i64) -> Contender {
    let unknown = || Contender { token: Some(number), ..Contender::default() };
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let Ok(fd) = openat(&file.directory, file.names.info(number).as_str(), flags, Mode::empty()) else {
        return unknown();
    };
    let mut text = Vec::new();
    if File::from(fd).take(LONGEST_FILE).read_to_end(&mut text).is_err() {
        return unknown();
    }
    match serde_json::from_slice::<Info>(&text) {
        Ok(info) if info.contender.token == Some(number) => info.contender,
        _ => unknown(),
    }
}
