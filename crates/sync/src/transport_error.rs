// SPDX-License-Identifier: GPL-3.0-or-later
//! Why a server cannot be reached. The text stays the same as long as the reason does, so the request is left out.

use super::remote::RemoteError;
use bulkmark_types::remote_text;
use std::error::Error;
use std::io;

/// A connection that ended without a TLS close: the server was killed, or something in between cut it off.
const CUT_OFF: &str = "the connection was cut off";

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

/// The problem with a certificate. A TLS error is inside one or two I/O errors, which do not list it among their sources.
fn of_certificate(cause: &(dyn Error + 'static)) -> Option<String> {
    match cause.downcast_ref() {
        Some(rustls::Error::InvalidCertificate(why)) => Some(in_words(&why.to_string())),
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
}
