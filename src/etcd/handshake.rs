//! What TLS says when a connection does not come about, in words.

use rustls::{AlertDescription, CertificateError, Error};

/// Why a member cannot be spoken to by TLS. None of it gets better by asking again.
pub(super) fn in_words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => certificate(why),
        Error::AlertReceived(alert) => refusal(*alert),
        // The answer is no TLS record at all.
        Error::InvalidMessage(_) => "it does not speak TLS here, use etcd:// if it speaks plain HTTP".into(),
        Error::PeerIncompatible(_) => "it speaks no version of TLS that fenced does (1.2 and 1.3)".into(),
        Error::NoApplicationProtocol => "it does not speak HTTP/2, so it is no etcd server".into(),
        other => format!("TLS failed: {other}"),
    }
}

fn certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired (or this machine's clock is wrong)".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet (or this machine's clock is wrong)".into()
        }
        CertificateError::NotValidForName => "its certificate is for another name than the one in --store".into(),
        CertificateError::NotValidForNameContext { presented, .. } => format!(
            "its certificate is for another name than the one in --store: it is for {}",
            if presented.is_empty() { "none".into() } else { presented.join(", ") }
        ),
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "its certificate is signed by nobody that is trusted here, see --cacert".into()
        }
        CertificateError::Revoked => "its certificate was revoked".into(),
        other => format!("its certificate cannot be used: {other}"),
    }
}

/// The member ended the handshake: most often because of the client's certificate, or the lack of one.
fn refusal(alert: AlertDescription) -> String {
    use AlertDescription as A;
    match alert {
        A::CertificateRequired => "it wants a client certificate, see --cert and --key".into(),
        A::BadCertificate | A::UnknownCA | A::CertificateUnknown | A::UnsupportedCertificate | A::AccessDenied => {
            "it wants a client certificate that it trusts, see --cert and --key".into()
        }
        A::CertificateExpired => "it says that the client certificate has expired, see --cert".into(),
        A::CertificateRevoked => "it says that the client certificate was revoked, see --cert".into(),
        A::UnrecognisedName => "it has no certificate for the name in --store".into(),
        A::ProtocolVersion => "it speaks no version of TLS that fenced does (1.2 and 1.3)".into(),
        other => format!("it ended the TLS handshake: {other:?}"),
    }
}
