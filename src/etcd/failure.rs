//! What went wrong with an etcd call, in words that a user can act on, classed by what the caller does next.

use super::handshake;
use etcd_client::Error;
use std::error::Error as StdError;
use std::io;

/// Why a member did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No answer, or none that can be trusted: another member or another time may do better.
    Unavailable {
        /// One clause.
        why: String,
        /// Whether the member may have got the request, and so may have done it.
        sent: Sent,
    },
    /// Asking this member again will not help; one that is set up in another way may do better.
    Refused(String),
    /// The token of the user's login is not (or no longer) good: log in again.
    LoggedOut(String),
    /// The user may not do this.
    Denied,
    /// A lease of that id exists already: with an id of our own choosing it is ours.
    LeaseExists,
    /// The member does not know the lease. As the answer to a transaction this is certain; from a keepalive it is not:
    /// a leader that was frozen and thawed says it of live leases.
    LeaseUnknown,
}

/// Whether a request that failed may have been carried out all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It never left.
    Never,
    /// Nobody knows.
    Perhaps,
}

/// The codes of gRPC that decide something here.
const PERMISSION_DENIED: i32 = 7;
const UNIMPLEMENTED: i32 = 12;
const UNAUTHENTICATED: i32 = 16;

/// A connection that came about and ended. Before the first answer it can mean that the two speak different things.
pub(super) const CLOSED: &str = "connection closed";
/// As [`CLOSED`].
pub(super) const RESET: &str = "connection reset";

/// The database takes nothing in any more.
const FULL: &str = "its database is full (etcdctl alarm list)";

/// What a cluster says to a login when it has no users.
const NO_USERS: &str = "authentication is not enabled";

impl Trouble {
    /// No answer that can be trusted; the request may have been carried out.
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable { why: why.into(), sent: Sent::Perhaps }
    }

    /// The clause for people.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Unavailable { why, .. } | Self::Refused(why) | Self::LoggedOut(why) => why,
            Self::Denied => "permission denied",
            Self::LeaseExists => "the lease exists already",
            Self::LeaseUnknown => "the lease is not known",
        }
    }

    /// Whether the failed request may have been carried out.
    #[must_use]
    pub fn ambiguous(&self) -> bool {
        matches!(self, Self::Unavailable { sent: Sent::Perhaps, .. })
    }

    /// Whether the member takes nothing in, since its database is full. It may have done what it was asked all the same.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Unavailable { why, .. } if why == FULL)
    }

    /// What a server said, by its code and its message.
    fn answer(code: i32, message: &str) -> Self {
        let said = message.trim_start_matches("etcdserver: ");
        match said {
            "lease already exists" => return Self::LeaseExists,
            "requested lease not found" => return Self::LeaseUnknown,
            "too large lease TTL" => {
                return Self::Refused("the store refuses a lease that long, use a shorter --ttl".into());
            }
            "request is too large" => {
                return Self::Refused("the request is too large for the store, shorten --note or the command".into());
            }
            _ => {}
        }
        if said.contains("user name is empty") {
            return Self::LoggedOut("it wants a user and a password, see --user and --password-file".into());
        }
        if said.contains("authentication failed") || said.contains("invalid user ID or password") {
            return Self::Refused("the user or the password is wrong, see --user and --password-file".into());
        }
        if code == UNAUTHENTICATED
            || said == "invalid auth token"
            || said.contains("revision of auth store is old")
            || said.contains("revision in header is old")
        {
            return Self::LoggedOut("it does not accept the token of its own login".into());
        }
        if code == PERMISSION_DENIED || said == "permission denied" {
            return Self::Denied;
        }
        if code == UNIMPLEMENTED || said.contains("grpc-status header missing") {
            return Self::unavailable("not an etcd server");
        }
        let plain = match said {
            "mvcc: database space exceeded" => FULL,
            "no leader" => "its cluster has no leader: too few members are up",
            "rpc not supported for learner" => {
                "it is a learner, which serves no locks, name a voting member in --store"
            }
            "request timed out" => "it got no answer from its cluster",
            said if said.contains("timed out") => "it got no answer from its cluster",
            "" => "it failed without a reason",
            other => other,
        };
        Self::unavailable(plain)
    }

    /// What the connection came to, by the errors that led to it.
    fn transport(error: &(dyn StdError + 'static)) -> Self {
        let chain = || std::iter::successors(Some(error), |&e| e.source());
        if chain().any(|e| e.to_string().contains("dns error")) {
            return Self::Unavailable { why: "the host name was not found".into(), sent: Sent::Never };
        }
        let alert = || chain().find_map(|e| handshake::alert(&e.to_string()));
        if let Some(why) = chain().find_map(tls_error).map(handshake::in_words).or_else(alert) {
            return Self::Refused(why);
        }
        if let Some(io) = chain().find_map(|e| e.downcast_ref::<io::Error>()) {
            return Self::io(io);
        }
        let last = chain().last().map(ToString::to_string).unwrap_or_default();
        let foreign = ["http2 error", "frame with invalid size", "PROTOCOL_ERROR", "FRAME_SIZE_ERROR"];
        if foreign.iter().any(|sign| last.contains(sign)) {
            return Self::Refused("it wants TLS (use etcds://), or is no etcd server".into());
        }
        Self::unavailable(if last.is_empty() { "the connection failed".into() } else { last })
    }

    fn io(error: &io::Error) -> Self {
        let (why, sent) = match error.kind() {
            io::ErrorKind::ConnectionRefused => ("connection refused".into(), Sent::Never),
            io::ErrorKind::HostUnreachable => ("host unreachable".into(), Sent::Never),
            io::ErrorKind::NetworkUnreachable => ("network unreachable".into(), Sent::Never),
            io::ErrorKind::ConnectionReset => (RESET.into(), Sent::Perhaps),
            io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => (CLOSED.into(), Sent::Perhaps),
            _ => (error.to_string().to_lowercase(), Sent::Perhaps),
        };
        Self::Unavailable { why, sent }
    }
}

/// An I/O error hides what it was made from to those who walk along its sources.
fn tls_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let inside = || error.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref();
    error.downcast_ref().or_else(inside)
}

/// Whether a login failed because the cluster has no users.
#[must_use]
pub(super) fn has_no_users(error: &Error) -> bool {
    matches!(error, Error::GRpcStatus(status) if status.message().contains(NO_USERS))
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::GRpcStatus(status) => match status.source() {
                Some(source) => Self::transport(source),
                None => Self::answer(i32::from(status.code()), status.message()),
            },
            Error::TransportError(ref inner) => Self::transport(inner),
            Error::IoError(ref inner) => Self::io(inner),
            Error::LeaseKeepAliveError(ref why) if why == "lease not found" => Self::LeaseUnknown,
            Error::InvalidUri(why) => Self::Refused(format!("a member's address cannot be used: {why}, see --store")),
            Error::InvalidArgs(why) => Self::Refused(format!("{why}, see --store")),
            other => Self::unavailable(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(message: &str) -> Trouble {
        Trouble::answer(2, message)
    }

    #[test]
    fn the_answers_that_a_protocol_step_rests_on_are_told_apart() {
        assert_eq!(answer("etcdserver: lease already exists"), Trouble::LeaseExists);
        assert_eq!(answer("etcdserver: requested lease not found"), Trouble::LeaseUnknown);
        assert_eq!(Trouble::from(Error::LeaseKeepAliveError("lease not found".into())), Trouble::LeaseUnknown);
    }

    #[test]
    fn a_leader_that_lost_its_place_and_whatever_is_unheard_of_is_unavailable_and_may_have_acted() {
        for said in
            ["lease is not a primary lessor", "etcdserver: leader changed", "etcdserver: request timed out", "x"]
        {
            assert!(answer(said).ambiguous(), "{said}");
        }
    }

    #[test]
    fn credentials_are_refused_with_the_flag_that_mends_them() {
        let Trouble::Refused(why) = answer("etcdserver: authentication failed, invalid user ID or password") else {
            panic!("not refused")
        };
        assert!(why.contains("--user"), "{why}");
        assert_eq!(Trouble::answer(PERMISSION_DENIED, "etcdserver: permission denied"), Trouble::Denied);
    }

    #[test]
    fn a_login_that_is_no_longer_good_is_told_from_one_that_never_was() {
        for said in ["user name is empty", "invalid auth token", "revision of auth store is old"] {
            assert!(matches!(answer(&format!("etcdserver: {said}")), Trouble::LoggedOut(_)), "{said}");
        }
        assert!(matches!(Trouble::answer(UNAUTHENTICATED, "whatever it says"), Trouble::LoggedOut(_)));
    }

    #[test]
    fn a_refused_connection_never_carried_the_request() {
        let refused = Error::IoError(io::ErrorKind::ConnectionRefused.into());
        assert_eq!(
            Trouble::from(refused),
            Trouble::Unavailable { why: "connection refused".into(), sent: Sent::Never }
        );
        assert!(Trouble::from(Error::IoError(io::ErrorKind::ConnectionReset.into())).ambiguous());
    }
}
