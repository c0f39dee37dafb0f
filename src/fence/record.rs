//! A gate's state as text of one sector, which people can read and no crash can leave half written.
//!
//! ```text
//! fenced gate 1 / token N / lineage WORD / lock NAME / sum, of all that, 16 hex digits of its SHA-256
//! ```

use super::register::Register;
use crate::name::LockName;
use crate::token::{Lineage, Token};
use hmac_sha256::Hash;

/// What a disk writes whole.
pub const SECTOR: usize = 512;
const TITLE: &str = "fenced gate 1";
/// Stands where there is nothing yet. No token, lineage or lock is written so: a lock's name follows a colon.
const NONE: &str = "none";

/// The state as it is kept: lines, and line ends up to a sector.
pub fn encode(register: &Register) -> [u8; SECTOR] {
    let (token, lineage) = match &register.highest {
        Some((token, lineage)) => (token.to_string(), lineage.to_string()),
        None => (NONE.to_owned(), NONE.to_owned()),
    };
    let lock = register.lock.as_ref().map_or_else(|| NONE.to_owned(), |lock| format!(":{lock}"));
    let body = format!("{TITLE}\ntoken {token}\nlineage {lineage}\nlock {lock}\n");
    let text = format!("{body}sum {}\n", sum(&body));
    let mut sector = [b'\n'; SECTOR];
    sector[..text.len()].copy_from_slice(text.as_bytes());
    sector
}

/// Reads the whole of a state.
///
/// # Errors
/// A clause that says what is wrong with it. Nothing is guessed or taken for zero: a gate that forgot lets old writers in.
pub fn decode(bytes: &[u8]) -> Result<Register, String> {
    let damaged = |how: &str| format!("it is damaged ({how})");
    if bytes.len() != SECTOR {
        return Err(damaged(&format!("it has {} bytes instead of {SECTOR}", bytes.len())));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is no text"))?;
    if !text.starts_with(&format!("{TITLE}\n")) {
        return Err(damaged("it does not begin as a gate of this version"));
    }
    let (body, rest) = text.rsplit_once("sum ").ok_or_else(|| damaged("it has no checksum"))?;
    if rest.trim_end_matches('\n') != sum(body) {
        return Err(damaged("its checksum does not fit"));
    }
    let mut lines = body.lines().skip(1);
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let (Some(token), Some(lineage), Some(lock)) = (field("token"), field("lineage"), field("lock")) else {
        return Err(damaged("a line is missing"));
    };
    let highest = match (token, lineage) {
        (NONE, NONE) => None,
        _ => Some((Token::parse(token)?, Lineage::new(lineage).ok_or_else(|| damaged("its lineage is no word"))?)),
    };
    let lock = match lock.strip_prefix(':') {
        Some(name) => Some(LockName::parse(name)?),
        None if lock == NONE => None,
        None => return Err(damaged("its lock is no name")),
    };
    Ok(Register { highest, lock })
}

fn sum(body: &str) -> String {
    let digest = Hash::hash(body.as_bytes());
    format!("{:016x}", digest[..8].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest() -> Register {
        let lineage = Lineage::new(&"x".repeat(Lineage::MAX)).unwrap();
        let lock = LockName::parse(&"é".repeat(LockName::MAX / 2)).unwrap();
        Register { highest: Token::new(i64::MAX).map(|token| (token, lineage)), lock: Some(lock) }
    }

    #[test]
    fn what_is_written_is_read_and_the_longest_fits_into_a_sector() {
        for register in [Register::default(), longest(), Register { lock: None, ..longest() }] {
            assert_eq!(decode(&encode(&register)), Ok(register));
        }
    }

    #[test]
    fn a_lock_may_have_any_name() {
        for name in ["none", "sum 1", "token 5", ":"] {
            let register = Register { lock: Some(LockName::parse(name).unwrap()), ..Register::default() };
            assert_eq!(decode(&encode(&register)), Ok(register), "{name}");
        }
    }

    #[test]
    fn a_state_that_lost_a_bit_or_a_byte_is_never_read() {
        let whole = encode(&longest());
        for at in 0..whole.len() {
            let mut flipped = whole;
            flipped[at] ^= 1;
            assert!(decode(&flipped).is_err(), "byte {at}");
            assert!(decode(&whole[..at]).is_err(), "the first {at} bytes");
        }
        assert!(decode(&[0; SECTOR]).is_err());
    }
}
