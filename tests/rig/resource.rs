//! What the lock protects: a file of accepted writes, one line each, of which the last one is the state. Behind its gate
//! no token is accepted that is lower than the last one's.

use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// One accepted write, or a token that was made known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub token: i64,
    pub value: u64,
    pub run: u64,
    pub written: bool,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    /// A token as high as this one was here already.
    Refused(i64),
}

/// The resource as one process sees it.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    pub path: &'a Path,
    /// Without it every write is accepted, as by a resource that knows nothing of tokens.
    pub gate: bool,
}

impl Resource<'_> {
    /// The state.
    pub fn read(&self) -> Record {
        last(&mut self.locked())
    }

    /// Makes the token known without changing the value: from then on no older holder can write. To read first would let
    /// an older one write between the reading and the writing.
    pub fn advance(&self, token: i64, run: u64) -> Outcome {
        self.accept(token, |state| Record { token, run, written: false, ..state })
    }

    /// Writes a value.
    pub fn write(&self, token: i64, value: u64, run: u64) -> Outcome {
        self.accept(token, |_| Record { token, value, run, written: true })
    }

    fn accept(&self, token: i64, next: impl FnOnce(Record) -> Record) -> Outcome {
        let mut file = self.locked();
        let state = last(&mut file);
        if self.gate && token < state.token {
            return Outcome::Refused(state.token);
        }
        let Record { token, value, run, written } = next(state);
        let line = format!("{token:020} {value:020} {run:020} {}\n", u8::from(written));
        file.write_all(line.as_bytes()).expect("the resource can be written");
        file.sync_data().expect("the resource can be synced");
        Outcome::Accepted
    }

    fn locked(&self) -> Flock<File> {
        let file = File::options().read(true).append(true).create(true).open(self.path).expect("the resource opens");
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno).expect("the resource can be locked")
    }
}

const LINE: u64 = 65;

fn last(file: &mut File) -> Record {
    let length = file.metadata().expect("the resource is there").len();
    if length == 0 {
        return Record::default();
    }
    file.seek(SeekFrom::Start(length - LINE)).expect("a whole line");
    let mut line = String::new();
    file.read_to_string(&mut line).expect("a whole line");
    parse(line.trim_end()).expect("a whole line")
}

fn parse(line: &str) -> Option<Record> {
    let mut words = line.split(' ');
    let record = Record {
        token: words.next()?.parse().ok()?,
        value: words.next()?.parse().ok()?,
        run: words.next()?.parse().ok()?,
        written: words.next()? == "1",
    };
    Some(record)
}

/// All that was ever accepted, in order.
pub fn accepted(path: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| parse(line).unwrap_or_else(|| panic!("{line:?} in the resource"))).collect()
}

#[test]
fn a_gate_refuses_the_token_that_is_lower_and_takes_the_one_that_is_equal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("resource");
    let gated = Resource { path: &path, gate: true };
    assert_eq!(gated.advance(9, 1), Outcome::Accepted);
    assert_eq!(gated.write(10, 1, 2), Outcome::Accepted);
    assert_eq!(gated.write(9, 1, 1), Outcome::Refused(10));
    assert_eq!(gated.write(10, 2, 2), Outcome::Accepted);
    assert_eq!(gated.read(), Record { token: 10, value: 2, run: 2, written: true });
    assert_eq!(Resource { gate: false, ..gated }.advance(9, 1), Outcome::Accepted);
    assert_eq!(accepted(&path).iter().map(|record| record.token).collect::<Vec<_>>(), [9, 10, 10, 9]);
}
