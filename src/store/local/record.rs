//! The 80 bytes of a lock's file: which lock, which lineage, and the last number that was given out.
//!
//! ```text
//! 0 magic 8 | 8 lineage 16 | 24 number 8, big-endian | 32 SHA-256 of the name 32 | 64 SHA-256 of all that, first 16
//! ```

use crate::name::LockName;
use hmac_sha256::Hash;

const MAGIC: [u8; 8] = *b"fenced1\n";
/// The last number that can be given out: its byte of the file is the last one that can be locked.
const LAST: i64 = i64::MAX - super::queue::FIRST;

/// What a lock's file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Random, made with the file.
    pub lineage: [u8; 16],
    /// The last number that was given out; 0 before the first.
    pub number: i64,
    /// Of the lock's full name.
    name: [u8; 32],
}

impl Record {
    /// Of a new file.
    pub fn new(lock: &LockName, lineage: [u8; 16]) -> Self {
        Self { lineage, number: 0, name: hash(lock.as_str().as_bytes()) }
    }

    /// The same with the next number.
    ///
    /// # Errors
    /// A clause when there is none.
    pub fn next(&self) -> Result<Self, String> {
        if self.number >= LAST {
            return Err("its numbers are used up".into());
        }
        Ok(Self { number: self.number + 1, ..self.clone() })
    }

    pub fn encode(&self) -> [u8; 80] {
        let mut bytes = [0; 80];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(&self.lineage);
        bytes[24..32].copy_from_slice(&self.number.to_be_bytes());
        bytes[32..64].copy_from_slice(&self.name);
        let sum = hash(&bytes[..64]);
        bytes[64..].copy_from_slice(&sum[..16]);
        bytes
    }

    /// Reads the whole of a lock's file.
    ///
    /// # Errors
    /// A clause that says what is wrong with it. Nothing is ever guessed: a number too low would be granted again.
    pub fn decode(bytes: &[u8], lock: &LockName) -> Result<Self, String> {
        let Ok(bytes) = <&[u8; 80]>::try_from(bytes) else {
            return Err(damaged("it does not have 80 bytes"));
        };
        if bytes[..8] != MAGIC {
            return Err(damaged("it does not begin as one of this version"));
        }
        if bytes[64..] != hash(&bytes[..64])[..16] {
            return Err(damaged("its checksum does not fit"));
        }
        let mut record = Self::new(lock, [0; 16]);
        if bytes[32..64] != record.name {
            return Err("it belongs to a lock of another name".into());
        }
        record.lineage.copy_from_slice(&bytes[8..24]);
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[24..32]);
        record.number = i64::from_be_bytes(number);
        if record.number < 0 {
            return Err(damaged("its number is below zero"));
        }
        Ok(record)
    }
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    Hash::hash(bytes)
}

fn damaged(how: &str) -> String {
    format!("it is damaged: {how}; when nobody uses the lock, remove it: tokens then begin anew in another lineage")
}

/// Bytes in hex digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> LockName {
        LockName::parse("a").unwrap()
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        let record = Record { number: 0x0102_0304_0506_0708, ..Record::new(&lock(), [7; 16]) };
        assert_eq!(Record::decode(&record.encode(), &lock()), Ok(record));
    }

    #[test]
    fn a_flipped_bit_anywhere_is_noticed() {
        let good = Record::new(&lock(), [7; 16]).next().unwrap().encode();
        for at in 0..good.len() * 8 {
            let mut bad = good;
            bad[at / 8] ^= 1 << (at % 8);
            assert!(Record::decode(&bad, &lock()).is_err(), "bit {at}");
        }
    }

    #[test]
    fn a_record_of_any_other_length_is_refused() {
        let good = Record::new(&lock(), [7; 16]).encode();
        for length in 0..good.len() {
            assert!(Record::decode(&good[..length], &lock()).is_err(), "{length}");
        }
        assert!(Record::decode(&[good.as_slice(), &[0]].concat(), &lock()).is_err());
        assert!(Record::decode(&[0; 80], &lock()).is_err());
    }

    #[test]
    fn a_record_of_another_lock_is_refused() {
        let other = Record::new(&LockName::parse("b").unwrap(), [7; 16]).encode();
        assert!(Record::decode(&other, &lock()).unwrap_err().contains("another name"));
    }

    #[test]
    fn the_numbers_end_where_the_bytes_of_a_file_end() {
        let record = |number| Record { number, ..Record::new(&lock(), [7; 16]) };
        assert_eq!(record(LAST - 1).next().unwrap().number + super::super::queue::FIRST, i64::MAX);
        assert!(record(LAST).next().is_err());
        assert!(record(i64::MAX).next().is_err());
        assert!(Record::decode(&record(-1).encode(), &lock()).is_err());
    }
}
