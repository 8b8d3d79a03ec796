// SPDX-License-Identifier: GPL-3.0-or-later
//! Why a server cannot be reached, in words that stay the same as long as the reason does: what was asked of it is left out.

use super::remote::RemoteError;
use bulkmark_types::remote_text;
use std::error::Error;
use std::io;

/// A connection that ended without a farewell: its server was killed, or something between broke it off.
const CUT_OFF: &str = "the connection was cut off";

/// What hyper calls a name without address, in front of what the system says of it.
const DNS: &str = "dns error";

impl From<reqwest::Error> for RemoteError {
    fn from(error: reqwest::Error) -> Self {
        let causes = || std::iter::successors(error.source(), |&cause| cause.source());
        // What libraries say of it is for those who write servers.
        if causes().any(|cause| kind(cause) == Some(io::ErrorKind::UnexpectedEof)) {
            return Self::Transport(CUT_OFF.to_owned());
        }
        // It may repeat what a certificate or a server says.
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

/// What is wrong with a certificate. An error of TLS stands inside one of the system, which leaves it out of its sources.
fn of_certificate(cause: &(dyn Error + 'static)) -> Option<String> {
    let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let of_tls = inner.and_then(|inner| inner.downcast_ref()).or_else(|| cause.downcast_ref());
    match of_tls {
        Some(rustls::Error::InvalidCertificate(why)) => Some(why.to_string()),
        _ => None,
    }
}
