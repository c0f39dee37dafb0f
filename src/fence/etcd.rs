//! A gate in a key of the lock's own cluster, for what else lives there: a transaction can compare the key's value.

use super::register::{Admission, Mark, Register};
use crate::etcd::failure::Trouble;
use crate::etcd::members::{Limits, Members};
use crate::name::LockName;
use crate::store::contract::Failure;
use crate::token::{Lineage, Token};
use etcd_client::{Client, Compare, CompareOp, Txn, TxnOp};
use std::time::Duration;

/// What one member may take, and all of them.
const LIMITS: Limits = Limits { each: Duration::from_secs(1), all: Duration::from_secs(5) };
/// Stands where there is nothing yet.
const NONE: &str = "none";

/// A gate by its key.
#[derive(Debug)]
pub struct Gate<'a> {
    members: &'a Members,
    key: String,
}

/// What is there: the state, and the revision of the key that a change has to find unchanged.
struct Found {
    register: Result<Register, String>,
    revision: i64,
}

impl<'a> Gate<'a> {
    /// The gate at this key.
    #[must_use]
    pub fn new(members: &'a Members, key: String) -> Self {
        Self { members, key }
    }

    /// Makes a gate that begins with `register`.
    ///
    /// # Errors
    /// `Stale` when there is one already.
    pub async fn init(&self, register: &Register) -> Result<(), Failure> {
        if self.change(&encode(register), 0).await? {
            return Ok(());
        }
        Err(Failure::Stale(format!("gate etcd:{} is there already", self.key)))
    }

    /// Admits a writer, and remembers it before it may write.
    ///
    /// # Errors
    /// `Stale` when its token is refused, or the state is missing or damaged; nothing was written then.
    pub async fn admit(&self, mark: &Mark) -> Result<(), Failure> {
        let stale = |why: String| Failure::Stale(format!("gate etcd:{}: {why}", self.key));
        // Each turn but the last was overtaken by another writer, who got further.
        loop {
            let found = self.find().await?;
            let register = found.register.map_err(stale)?;
            match register.admit(mark).map_err(|refusal| stale(refusal.to_string()))? {
                Admission::AsIs => return Ok(()),
                Admission::After(next) if self.change(&encode(&next), found.revision).await? => return Ok(()),
                Admission::After(_) => {}
            }
        }
    }

    /// What it remembers.
    ///
    /// # Errors
    /// `Stale` when that is missing or damaged.
    pub async fn read(&self) -> Result<Register, Failure> {
        self.find().await?.register.map_err(|why| Failure::Stale(format!("gate etcd:{}: {why}", self.key)))
    }

    /// Remembers something else, whatever was there.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn write(&self, register: &Register) -> Result<(), Failure> {
        let put =
            async |mut client: Client| Ok(client.put(self.key.as_str(), encode(register), None).await.map(drop)?);
        self.members.insist(LIMITS, put).await.map_err(|trouble| failure(&trouble))
    }

    async fn find(&self) -> Result<Found, Failure> {
        let get = async |mut client: Client| Ok(client.get(self.key.as_str(), None).await?);
        let answer = self.members.insist(LIMITS, get).await.map_err(|trouble| failure(&trouble))?;
        if let Some(found) = answer.kvs().first() {
            return Ok(Found { register: self.decode(found.value()), revision: found.mod_revision() });
        }
        let why = format!("it has no state; if it never had one, make it: fenced gate init etcd:{}", self.key);
        Ok(Found { register: Err(why), revision: 0 })
    }

    /// Puts the value if the key is still of that revision; 0 is that of a key that is not there.
    async fn change(&self, value: &str, revision: i64) -> Result<bool, Failure> {
        let unchanged = Compare::mod_revision(self.key.as_str(), CompareOp::Equal, revision);
        let txn = Txn::new().when([unchanged]).and_then([TxnOp::put(self.key.as_str(), value, None)]);
        let change = async |mut client: Client| Ok(client.txn(txn.clone()).await?.succeeded());
        self.members.insist(LIMITS, change).await.map_err(|trouble| failure(&trouble))
    }

    fn decode(&self, value: &[u8]) -> Result<Register, String> {
        decode(value).ok_or_else(|| format!("it is damaged; fenced gate reset etcd:{} starts afresh", self.key))
    }
}

/// `TOKEN LINEAGE LOCK`, the token with 20 digits so that etcd, which compares bytes, orders it as a number.
fn encode(register: &Register) -> String {
    let lock = register.lock.as_ref().map_or_else(|| NONE.to_owned(), |lock| format!(":{}", lock.encoded()));
    match &register.highest {
        Some((token, lineage)) => format!("{:020} {lineage} {lock}", token.get()),
        None => format!("{NONE} {NONE} {lock}"),
    }
}

fn decode(value: &[u8]) -> Option<Register> {
    let mut words = std::str::from_utf8(value).ok()?.split(' ');
    let (token, lineage, lock) = (words.next()?, words.next()?, words.next()?);
    let highest = match (token, lineage) {
        (NONE, NONE) => None,
        _ if token.len() == 20 => Some((Token::parse(token.trim_start_matches('0')).ok()?, Lineage::new(lineage)?)),
        _ => return None,
    };
    let lock = match lock.strip_prefix(':') {
        Some(encoded) => Some(LockName::decode(encoded)?),
        None if lock == NONE => None,
        None => return None,
    };
    words.next().is_none().then_some(Register { highest, lock })
}

fn failure(trouble: &Trouble) -> Failure {
    match trouble {
        Trouble::Refused(why) => Failure::Refused(why.clone()),
        other => Failure::Unavailable(other.why().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_anything_else_is_damage() {
        let lock = LockName::parse("deploy/prod é").ok();
        let highest = Token::new(42).zip(Lineage::new("0a-1b"));
        let full = Register { highest, lock };
        assert_eq!(encode(&full), "00000000000000000042 0a-1b :deploy%2Fprod%20%C3%A9");
        for register in [Register::default(), Register { lock: None, ..full.clone() }, full] {
            assert_eq!(decode(encode(&register).as_bytes()), Some(register));
        }
        for bad in ["", "42 a none", "00000000000000000000 a none", "00000000000000000042 a none x", "none a none", "x"]
        {
            assert_eq!(decode(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
