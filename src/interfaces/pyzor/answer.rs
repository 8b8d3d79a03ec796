// SPDX-License-Identifier: GPL-3.0-or-later
//! The answers to clients, byte by byte as the reference server writes them.

use super::accounts::Unsigned;
use super::request::Bad;
use std::io::Write as _;

/// The counts of a digest that is never counted: SpamAssassin ignores it, and all others treat it as white-listed.
pub(super) const NEVER_COUNTED: Counts = Counts { count: 0, whitelisted: 10_000 };

/// The counts of `pong`.
pub(super) const PONG: Counts = Counts { count: i64::MAX as u64, whitelisted: 0 };

/// The reports and white-listings of a digest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) count: u64,
    pub(super) whitelisted: u64,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    Done,
    Counts(Counts),
    /// With times, which are unknown.
    Info(Counts),
}

/// An error answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Denied {
    #[error("Bad request: {0}")]
    Bad(#[from] Bad),
    #[error("Unauthorized: Signature Error: {0}")]
    Unsigned(#[from] Unsigned),
    #[error("Forbidden: User is not authorized to request the operation.")]
    Forbidden,
    #[error("Forbidden: Too many reports today.")]
    TooMany,
    #[error("Forbidden: Too many reports at once.")]
    Busy,
    #[error("Internal Server Error: the counts are not available")]
    Unavailable,
    #[error("Version Not Supported: ")]
    Version,
}

impl Denied {
    const fn code(&self) -> u16 {
        match self {
            Self::Bad(_) => 400,
            Self::Unsigned(_) => 401,
            Self::Forbidden | Self::TooMany | Self::Busy => 403,
            Self::Unavailable => 500,
            Self::Version => 505,
        }
    }
}

/// Writes an answer, or nothing if it would be too long for a request of `asked` bytes: a request with a forged address must not amplify
/// traffic to it.
pub(super) fn write(answer: &mut Vec<u8>, reply: Result<Reply, Denied>, thread: &str, asked: usize) {
    answer.clear();
    let written = match &reply {
        Ok(_) => write!(answer, "Code: 200\nDiag: OK\n"),
        Err(why) => write!(answer, "Code: {}\nDiag: {why}\n", why.code()),
    };
    let written = written.and_then(|()| write!(answer, "PV: 2.1\nThread: {thread}\n"));
    let write_counts = |answer: &mut Vec<u8>, Counts { count, whitelisted }| {
        write!(answer, "Count: {count}\nWL-Count: {whitelisted}\n")
    };
    let written = written.and_then(|()| match reply {
        Ok(Reply::Done) | Err(_) => Ok(()),
        Ok(Reply::Counts(counts)) => write_counts(answer, counts),
        Ok(Reply::Info(counts)) => {
            let times = "Entered: 0\nUpdated: 0\nWL-Entered: 0\nWL-Updated: 0\n";
            answer.write_all(times.as_bytes()).and_then(|()| write_counts(answer, counts))
        }
    });
    answer.push(b'\n');
    let most = if reply.is_ok() { 2 * asked } else { asked };
    if written.is_err() || answer.len() > most {
        answer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(reply: Result<Reply, Denied>, asked: usize) -> String {
        let mut answer = b"before".to_vec();
        write(&mut answer, reply, "4711", asked);
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn answers_are_those_of_the_reference_server() {
        let counts = Counts { count: 7, whitelisted: 1 };
        assert_eq!(of(Ok(Reply::Done), 100), "Code: 200\nDiag: OK\nPV: 2.1\nThread: 4711\n\n");
        assert!(of(Ok(Reply::Counts(counts)), 100).ends_with("Thread: 4711\nCount: 7\nWL-Count: 1\n\n"));
        assert!(of(Ok(Reply::Info(counts)), 100).ends_with("WL-Updated: 0\nCount: 7\nWL-Count: 1\n\n"));
        assert!(of(Ok(Reply::Counts(PONG)), 100).contains("\nCount: 9223372036854775807\nWL-Count: 0\n"));
        let denied = of(Err(Unsigned::Time.into()), 200);
        let expected = "Code: 401\nDiag: Unauthorized: Signature Error: Timestamp not within allowed range.\nPV: 2.1\nThread: 4711\n\n";
        assert_eq!(denied, expected);
        assert!(
            of(Err(Bad::NoVersion.into()), 200)
                .starts_with("Code: 400\nDiag: Bad request: Protocol Version not")
        );
    }

    #[test]
    fn answers_do_not_amplify_requests() {
        assert_eq!(of(Ok(Reply::Done), 10), "");
        assert_eq!(of(Err(Denied::Forbidden), 60), "");
        assert_ne!(of(Err(Denied::Forbidden), 120), "");
    }
}
