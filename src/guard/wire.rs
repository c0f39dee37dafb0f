//! The messages between fenced and its guard, as bytes. Both ends are the same program, so there is no version; a
//! message that does not decode is ignored.

use super::terms::{Deadlines, Report};
use crate::timing::Moment;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The longest order, in bytes: what a socket's default buffer takes with room to spare.
pub const LONGEST_ORDER: usize = 192 * 1024;
/// The longest report, in bytes.
pub const LONGEST_REPORT: usize = 16 * 1024;
/// How many processes one report names at most.
pub const MOST_NAMES: usize = 64;

/// What fenced tells the guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start the command.
    Start {
        /// Variables that are set, over the inherited ones.
        set: Vec<(OsString, OsString)>,
        /// Inherited variables that are removed.
        remove: Vec<OsString>,
        /// When it must be gone.
        deadlines: Deadlines,
    },
    /// The deadlines moved.
    Renewed(Deadlines),
    /// Forward this signal.
    Signal(i32),
    /// End the tree with the stop signal, then SIGKILL.
    Stop,
    /// End the tree with SIGKILL.
    Kill,
}

const START: u8 = 1;
const RENEWED: u8 = 2;
const SIGNAL: u8 = 3;
const STOP: u8 = 4;
const KILL: u8 = 5;

const STARTED: u8 = 11;
const NOT_STARTED: u8 = 12;
const PAUSED: u8 = 13;
const ENDED: u8 = 14;
const LINGERING: u8 = 15;
const OVERDUE: u8 = 16;
const UNKILLABLE: u8 = 17;
const CLEAR: u8 = 18;
const SIGNALED: u8 = 19;

impl Order {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Start { set, remove, deadlines } => {
                let mut out = Writer::new(START).deadlines(*deadlines).number(set.len());
                out = set.iter().fold(out, |out, (name, value)| out.text(name.as_bytes()).text(value.as_bytes()));
                out = out.number(remove.len());
                remove.iter().fold(out, |out, name| out.text(name.as_bytes())).0
            }
            Self::Renewed(deadlines) => Writer::new(RENEWED).deadlines(*deadlines).0,
            Self::Signal(signal) => Writer::new(SIGNAL).integer(*signal).0,
            Self::Stop => Writer::new(STOP).0,
            Self::Kill => Writer::new(KILL).0,
        }
    }

    /// From bytes; none unless they are exactly one order.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&tag, rest) = bytes.split_first()?;
        let mut rest = Reader(rest);
        let order = match tag {
            START => {
                let deadlines = rest.deadlines()?;
                let set = rest.list(|rest| Some((rest.text()?, rest.text()?)))?;
                let remove = rest.list(Reader::text)?;
                Self::Start { set, remove, deadlines }
            }
            RENEWED => Self::Renewed(rest.deadlines()?),
            SIGNAL => Self::Signal(rest.integer()?),
            STOP => Self::Stop,
            KILL => Self::Kill,
            _ => return None,
        };
        rest.0.is_empty().then_some(order)
    }
}

/// A report as bytes; names beyond [`MOST_NAMES`] are left out.
pub fn encode(report: &Report) -> Vec<u8> {
    match report {
        Report::Started { pid } => Writer::new(STARTED).integer(*pid).0,
        Report::NotStarted { errno } => Writer::new(NOT_STARTED).integer(*errno).0,
        Report::Paused { signal } => Writer::new(PAUSED).integer(*signal).0,
        Report::Signaled { signal, sender } => Writer::new(SIGNALED).integer(*signal).integer(*sender).0,
        Report::Ended { status } => Writer::new(ENDED).integer(*status).0,
        Report::Lingering(names) => Writer::new(LINGERING).names(names).0,
        Report::Overdue => Writer::new(OVERDUE).0,
        Report::Unkillable(names) => Writer::new(UNKILLABLE).names(names).0,
        Report::Clear => Writer::new(CLEAR).0,
        // Nobody can report this of himself; an empty message would be taken for it.
        Report::Gone => Vec::new(),
    }
}

/// A report from bytes; none unless they are exactly one.
pub fn decode(bytes: &[u8]) -> Option<Report> {
    let (&tag, rest) = bytes.split_first()?;
    let mut rest = Reader(rest);
    let report = match tag {
        STARTED => Report::Started { pid: rest.integer()? },
        NOT_STARTED => Report::NotStarted { errno: rest.integer()? },
        PAUSED => Report::Paused { signal: rest.integer()? },
        SIGNALED => Report::Signaled { signal: rest.integer()?, sender: rest.integer()? },
        ENDED => Report::Ended { status: rest.integer()? },
        LINGERING => Report::Lingering(rest.names()?),
        OVERDUE => Report::Overdue,
        UNKILLABLE => Report::Unkillable(rest.names()?),
        CLEAR => Report::Clear,
        _ => return None,
    };
    rest.0.is_empty().then_some(report)
}

struct Writer(Vec<u8>);

impl Writer {
    fn new(tag: u8) -> Self {
        Self(vec![tag])
    }

    fn integer(mut self, value: i32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Counts and lengths; one that does not fit is over every limit anyway.
    fn number(mut self, value: usize) -> Self {
        self.0.extend(u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
        self
    }

    fn deadlines(mut self, Deadlines { stop_by, dead_by }: Deadlines) -> Self {
        self.0.extend(stop_by.0.to_le_bytes());
        self.0.extend(dead_by.0.to_le_bytes());
        self
    }

    fn text(self, text: &[u8]) -> Self {
        let mut this = self.number(text.len());
        this.0.extend(text);
        this
    }

    fn names(self, names: &[String]) -> Self {
        let some = &names[..names.len().min(MOST_NAMES)];
        some.iter().fold(self.number(some.len()), |out, name| out.text(name.as_bytes()))
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn integer(&mut self) -> Option<i32> {
        Some(i32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn number(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.take(4)?.try_into().ok()?)).ok()
    }

    fn moment(&mut self) -> Option<Moment> {
        Some(Moment(u64::from_le_bytes(self.take(8)?.try_into().ok()?)))
    }

    fn deadlines(&mut self) -> Option<Deadlines> {
        Some(Deadlines { stop_by: self.moment()?, dead_by: self.moment()? })
    }

    fn text(&mut self) -> Option<OsString> {
        let length = self.number()?;
        Some(OsStr::from_bytes(self.take(length)?).to_owned())
    }

    /// The count is not trusted with memory: every item must be there.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.number()?).map(|_| item(self)).collect()
    }

    fn names(&mut self) -> Option<Vec<String>> {
        self.list(|rest| Some(rest.text()?.to_string_lossy().into_owned()))
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Deadlines = Deadlines { stop_by: Moment(7), dead_by: Moment::NEVER };

    fn orders() -> Vec<Order> {
        let odd = OsStr::from_bytes(b"\xff=\n").to_owned();
        vec![
            Order::Start { set: vec![], remove: vec![], deadlines: LATER },
            Order::Start {
                set: vec![("A".into(), odd), ("FENCED_HELD".into(), "x".repeat(100_000).into())],
                remove: vec!["B".into(), OsString::new()],
                deadlines: LATER,
            },
            Order::Renewed(LATER),
            Order::Signal(15),
            Order::Stop,
            Order::Kill,
        ]
    }

    fn reports() -> Vec<Report> {
        vec![
            Report::Started { pid: 77 },
            Report::NotStarted { errno: libc::ENOENT },
            Report::Paused { signal: libc::SIGTSTP },
            Report::Signaled { signal: libc::SIGTERM, sender: 1 },
            Report::Ended { status: 0x0f00 },
            Report::Lingering(vec!["sleep (3)".into(), "ä (4)".into()]),
            Report::Overdue,
            Report::Unkillable(vec![]),
            Report::Clear,
        ]
    }

    #[test]
    fn every_order_comes_back_as_it_was_sent() {
        for order in orders() {
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
    }

    #[test]
    fn every_report_comes_back_as_it_was_sent() {
        for report in reports() {
            assert_eq!(decode(&encode(&report)), Some(report));
        }
    }

    #[test]
    fn a_message_that_is_cut_short_or_too_long_is_none() {
        for bytes in orders().iter().map(Order::encode) {
            let cuts = (0..bytes.len().min(200)).chain(bytes.len().saturating_sub(200)..bytes.len());
            cuts.for_each(|end| assert_eq!(Order::decode(&bytes[..end]), None));
            assert_eq!(Order::decode(&[&bytes[..], b"x"].concat()), None);
        }
        for bytes in reports().iter().map(encode) {
            (0..bytes.len()).for_each(|end| assert_eq!(decode(&bytes[..end]), None));
            assert_eq!(decode(&[&bytes[..], b"x"].concat()), None);
        }
    }

    #[test]
    fn a_count_that_promises_more_than_there_is_takes_no_memory() {
        let mut bytes = Writer::new(START).deadlines(LATER).0;
        bytes.extend(u32::MAX.to_le_bytes());
        assert_eq!(Order::decode(&bytes), None);
        assert_eq!(Order::decode(&[99]), None);
    }

    #[test]
    fn the_longest_list_of_names_fits_into_one_report() {
        let names = vec!["n".repeat(80); 5_000];
        let bytes = encode(&Report::Unkillable(names));
        assert!(bytes.len() < LONGEST_REPORT);
        assert!(matches!(decode(&bytes), Some(Report::Unkillable(some)) if some.len() == MOST_NAMES));
    }
}
