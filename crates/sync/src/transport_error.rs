// SPDX-License-Identifier: GPL-3.0-or-later
//! Why a server cannot be reached. The text stays the same as long as the reason does, so the request is left out.

use super::remote::RemoteError;
use bulkmark_types::remote_text;
use humantime_serde::re::humantime::format_rfc3339_seconds;
use rustls::CertificateError;
use rustls::pki_types::UnixTime;
use std::error::Error;
use std::io;
use std::time::{Duration, UNIX_EPOCH};

/// A connection that ended without a TLS close: the server was killed, or something in between cut it off.
const CUT_OFF: &str = "the connection was cut off";

/// The last second of the year 9999, up to which times can be printed.
const LAST_TIME: u64 = 253_402_300_799;

/// hyper's text for a name without address, in front of the system's own text.
const DNS: &str = "dns error";

impl From<reqwest::Error> for RemoteError {
    fn from(error: reqwest::Error) -> Self {
        let causes = || std::iter::successors(error.source(), |&cause| cause.source());
        // The libraries' texts for this are meant for developers of servers.
        if causes().any(|cause| kind(cause) == Some(io::ErrorKind::UnexpectedEof)) {
            return Self::Transport(CUT_OFF.to_owned());
        }
        // It may quote a certificate or a server.
        let last = || {
            remote_text(&causes().last().map_or_else(|| "no reason is known".to_owned(), ToString::to_string))
        };
        if let Some(unfit) = causes().find_map(of_certificate) {
            return Self::Certificate(remote_text(&unfit));
        }
        if causes().any(|cause| cause.to_string() == DNS) {
            return Self::Name(last());
        }
        Self::Transport(if error.is_timeout() {
            "it did not answer in time".to_owned()
        } else if error.is_connect() {
            format!("it cannot be reached: {}", last())
        } else {
            format!("the connection broke: {}", last())
        })
    }
}

fn kind(cause: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    cause.downcast_ref().map(io::Error::kind)
}

/// rustls's texts for some reasons are names of its types, with their content: `UnknownIssuer`, `SomeContext { ids: [6, 8] }`.
fn in_words(reason: &str) -> String {
    let name = reason.split(" {").next().unwrap_or(reason);
    if !name.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return reason.to_owned();
    }
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// Describes the problem with a certificate. rustls's own texts have the time of the check, and names of its types.
fn unfit(why: &CertificateError) -> String {
    let day = |time: &UnixTime| {
        let time = UNIX_EPOCH + Duration::from_secs(time.as_secs().min(LAST_TIME));
        format_rfc3339_seconds(time).to_string().chars().take(10).collect::<String>()
    };
    match why {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("certificate expired on {}", day(not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("certificate not valid before {}; is the clock of this machine right?", day(not_before))
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let name = |text: &String| text.split('"').nth(1).unwrap_or(text).to_owned();
            let names: Vec<_> = presented.iter().take(5).map(name).collect();
            let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            format!("certificate not valid for name {}, but for {names}", expected.to_str())
        }
        other => in_words(&other.to_string()),
    }
}

/// The problem with a certificate. A TLS error is inside one or two I/O errors, which do not list it among their sources.
fn of_certificate(cause: &(dyn Error + 'static)) -> Option<String> {
    match cause.downcast_ref() {
        Some(rustls::Error::InvalidCertificate(why)) => Some(unfit(why)),
        Some(_) => None,
        None => of_certificate(cause.downcast_ref::<io::Error>()?.get_ref()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_words() {
        assert_eq!(in_words("UnknownIssuer"), "unknown issuer");
        assert_eq!(in_words("BadSignatureContext { ids: [6, 8] }"), "bad signature context");
        let text = "certificate expired: verification time 1 (UNIX)";
        assert_eq!(in_words(text), text);
    }

    #[test]
    fn the_text_stays_the_same_as_long_as_the_reason_does() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let expired = |time| unfit(&CertificateError::ExpiredContext { time, not_after: at(1_795_737_600) });
        assert_eq!(expired(at(1_795_901_223)), "certificate expired on 2026-11-27");
        assert_eq!(expired(at(1_795_901_224)), expired(at(1_795_901_223)));
        let far = CertificateError::NotValidYetContext { time: at(0), not_before: at(u64::MAX) };
        assert!(unfit(&far).starts_with("certificate not valid before 9999-12-31"));
        let name = |presented: &[&str]| {
            unfit(&CertificateError::NotValidForNameContext {
                expected: "counts.example.org".try_into().unwrap(),
                presented: presented.iter().map(|&name| name.to_owned()).collect(),
            })
        };
        let text = "certificate not valid for name counts.example.org, but for";
        assert_eq!(
            name(&["DnsName(\"a.example\")", "IpAddress(192.0.2.1)"]),
            format!("{text} a.example, IpAddress(192.0.2.1)")
        );
        assert_eq!(name(&[]), format!("{text} no name"));
    }
}
