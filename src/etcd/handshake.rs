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
            if presented.is_empty() { "none (a common name alone does not count)".into() } else { names(presented) }
        ),
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "its certificate is signed by nobody that is trusted here, see --cacert".into()
        }
        CertificateError::Other(_) if why.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority (CA:TRUE), it needs one that an authority signed".into()
        }
        CertificateError::Revoked => "its certificate was revoked".into(),
        other => format!("its certificate cannot be used: {other}"),
    }
}

/// Names as rustls lists them, `DnsName("db1")`, without their kind.
fn names(presented: &[String]) -> String {
    let bare = |name: &String| {
        let inside = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        inside.unwrap_or(name).trim_matches('"').to_owned()
    };
    presented.iter().map(bare).collect::<Vec<_>>().join(", ")
}

/// The member ended the handshake: most often because of the client's certificate, or the lack of one.
fn refusal(alert: AlertDescription) -> String {
    alert_by_name(&format!("{alert:?}"))
}

/// An alert in the text of an error: those that arrive when the handshake seems done come as text only, since HTTP/2
/// makes its own error of them.
pub(super) fn alert(text: &str) -> Option<String> {
    text.strip_prefix("received fatal alert: ").map(alert_by_name)
}

fn alert_by_name(name: &str) -> String {
    match name {
        "CertificateRequired" => "it wants a client certificate, see --cert and --key".into(),
        "BadCertificate" | "UnknownCA" | "CertificateUnknown" | "UnsupportedCertificate" | "AccessDenied" => {
            "it wants a client certificate that it trusts, see --cert and --key".into()
        }
        "CertificateExpired" => "it says that the client certificate has expired, see --cert".into(),
        "CertificateRevoked" => "it says that the client certificate was revoked, see --cert".into(),
        "UnrecognisedName" => "it has no certificate for the name in --store".into(),
        "ProtocolVersion" => "it speaks no version of TLS that fenced does (1.2 and 1.3)".into(),
        other => format!("it ended the TLS handshake: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_means_the_same_as_an_error_and_as_text() {
        for alert_of_tls in
            [AlertDescription::CertificateRequired, AlertDescription::BadCertificate, AlertDescription::UnknownCA]
        {
            let error = Error::AlertReceived(alert_of_tls);
            let why = in_words(&error);
            assert!(why.contains("--cert and --key"), "{why}");
            assert_eq!(alert(&error.to_string()), Some(why));
        }
    }
}
