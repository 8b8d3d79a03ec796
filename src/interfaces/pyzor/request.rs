// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads requests of Pyzor's clients: header lines in one datagram.

use crate::judging::PyzorDigest;

/// The most bytes of a datagram, as in the clients.
pub(super) const MOST: usize = 8192;

/// The most characters of the thread, which is sent back as it came.
const MOST_THREAD: usize = 16;

/// The user of unsigned requests.
pub(super) const ANONYMOUS: &str = "anonymous";

/// The operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Whether the server is there.
    Ping,
    /// A fixed count.
    Pong,
    /// The counts of a digest.
    Check,
    /// The same with times.
    Info,
    /// A report as spam.
    Report,
    /// A white-listing.
    Whitelist,
}

impl Op {
    /// All of them, as the reference server's access file names them.
    pub(super) const ALL: [(&'static str, Self); 6] = [
        ("check", Self::Check),
        ("report", Self::Report),
        ("ping", Self::Ping),
        ("pong", Self::Pong),
        ("info", Self::Info),
        ("whitelist", Self::Whitelist),
    ];

    /// The operation with this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, op)| *op)
    }
}

/// The reason why the answer is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// No version.
    #[error("Protocol Version not specified in request")]
    NoVersion,
    /// A version that is no number.
    #[error("Invalid Protocol Version")]
    BadVersion,
    /// An invalid digest.
    #[error("Invalid digest")]
    BadDigest,
}

/// One request; all values are as sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Request<'a> {
    /// The operation.
    pub op: &'a str,
    /// The version of the protocol.
    pub version: Option<&'a str>,
    /// The number by which the client recognizes the answer.
    pub thread: &'a str,
    /// The user; empty if it is missing.
    pub user: &'a str,
    /// The time, in seconds since 1970.
    pub time: Option<i64>,
    /// The user's signature.
    pub signature: &'a str,
    /// The first digest's text.
    first: Option<&'a str>,
    /// All lines.
    text: &'a str,
}

/// The lines of a header, each with its name and its value, up to the first line that is none. Empty lines are skipped: old clients send one
/// amid the others.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    text.lines().filter(|line| !line.is_empty()).map_while(|line| {
        let (name, value) = line.split_once(':')?;
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic());
        is_name.then(|| (line, name, value.trim()))
    })
}

impl<'a> Request<'a> {
    /// Reads a datagram. Bytes that are no text make an empty request.
    #[must_use]
    pub fn read(datagram: &'a [u8]) -> Self {
        let text = std::str::from_utf8(datagram).unwrap_or_default();
        let mut request = Self { text, ..Self::default() };
        for (_, name, value) in lines(text) {
            // The first of two counts, as for the reference server.
            let set = |at: &mut &'a str| {
                if at.is_empty() {
                    *at = value;
                }
            };
            match name {
                _ if name.eq_ignore_ascii_case("op") => set(&mut request.op),
                _ if name.eq_ignore_ascii_case("op-digest") => _ = request.first.get_or_insert(value),
                _ if name.eq_ignore_ascii_case("thread") => set(&mut request.thread),
                _ if name.eq_ignore_ascii_case("pv") => _ = request.version.get_or_insert(value),
                _ if name.eq_ignore_ascii_case("user") => set(&mut request.user),
                _ if name.eq_ignore_ascii_case("time") => {
                    request.time = request.time.or_else(|| value.parse().ok())
                }
                _ if name.eq_ignore_ascii_case("sig") => set(&mut request.signature),
                _ => (),
            }
        }
        let is_plain =
            request.thread.len() <= MOST_THREAD && request.thread.bytes().all(|b| b.is_ascii_graphic());
        if !is_plain {
            request.thread = "";
        }
        request
    }

    /// The user.
    #[must_use]
    pub const fn user(&self) -> &'a str {
        if self.user.is_empty() { ANONYMOUS } else { self.user }
    }

    /// Whether its version is supported: any that begins with 2.
    ///
    /// # Errors
    /// The version is missing or no number.
    pub fn is_of_this_version(&self) -> Result<bool, Bad> {
        let version: f64 = self.version.ok_or(Bad::NoVersion)?.parse().map_err(|_| Bad::BadVersion)?;
        if !version.is_finite() {
            return Err(Bad::BadVersion);
        }
        Ok(version.trunc() == 2.0)
    }

    /// The first digest, if there is one.
    ///
    /// # Errors
    /// It is invalid.
    pub fn digest(&self) -> Result<Option<PyzorDigest>, Bad> {
        self.first.map(|text| text.parse().map_err(|_| Bad::BadDigest)).transpose()
    }

    /// All digests, which are reported together: a repeated one is reported twice, as with the reference server. A datagram has room for some
    /// 150.
    ///
    /// # Errors
    /// One is invalid.
    pub fn digests(&self) -> Result<Vec<PyzorDigest>, Bad> {
        let all = lines(self.text).filter(|(_, name, _)| name.eq_ignore_ascii_case("op-digest"));
        all.map(|(_, _, value)| value.parse().map_err(|_| Bad::BadDigest)).collect()
    }

    /// The signed text: all lines except the signature.
    #[must_use]
    pub fn signed(&self) -> String {
        let kept = lines(self.text).filter(|(_, name, _)| !name.eq_ignore_ascii_case("sig"));
        let lines: Vec<&str> = kept.map(|(line, ..)| line).collect();
        lines.join("\n").trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "db8eb8136eb53e81ba3cb45f2288f800b4e56fc7";

    /// The bytes of Pyzor's client, and those of older ones, which send one more empty line.
    #[test]
    fn requests_of_known_clients_are_understood() {
        for end in ["\n", "\n\n", "\n\n\n"] {
            let text = format!(
                "Op: check\nOp-Digest: {DIGEST}\nThread: 46513\nPV: 2.1\nUser: anonymous\nTime: 1795205188\nSig: {DIGEST}{end}"
            );
            let request = Request::read(text.as_bytes());
            assert_eq!((request.op, request.thread, request.user()), ("check", "46513", "anonymous"));
            assert_eq!((request.time, request.signature), (Some(1_795_205_188), DIGEST));
            assert_eq!(request.is_of_this_version(), Ok(true));
            assert_eq!(request.digest(), Ok(DIGEST.parse().ok()));
            assert!(request.signed().ends_with("User: anonymous\nTime: 1795205188"));
        }
    }

    #[test]
    fn invalid_requests_have_errors() {
        let version = |text: &str| Request::read(format!("PV: {text}").as_bytes()).is_of_this_version();
        assert_eq!(Request::read(b"\xff\xfe").is_of_this_version(), Err(Bad::NoVersion));
        assert_eq!([version("2"), version("2.9"), version("3.0")], [Ok(true), Ok(true), Ok(false)]);
        assert_eq!([version("x"), version("nan"), version("")], [Err(Bad::BadVersion); 3]);
        let digest = |text: &str| Request::read(format!("Op-Digest: {text}").as_bytes()).digest();
        assert_eq!([digest("00"), digest(&"g".repeat(40)), digest("")], [Err(Bad::BadDigest); 3]);
        // Each of them, with repetitions.
        let many: String = (0..60).map(|n| format!("Op-Digest: {:040x}\n", n % 30)).collect();
        assert_eq!(Request::read(many.as_bytes()).digests().map(|all| all.len()), Ok(60));
        assert_eq!(Request::read(&many.as_bytes()[..many.len() - 1]).op, "");
        assert_eq!(Request::read(format!("Thread: {}", "9".repeat(99)).as_bytes()).thread, "");
    }
}
