// SPDX-License-Identifier: GPL-3.0-or-later
//! The answers to clients.

use super::request::SEEDS;
use crate::judging::ReportWeights;
use std::fmt::Write as _;

/// The most lines of a batch, as sent to clients: its answer is in one packet, since they read no more than 1,024 bytes of one.
const BATCH: usize = 50;

/// The confidence from which on something is spam: `ac`, which clients use unless they are configured otherwise.
const AVERAGE: u32 = 50;

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The user reports of a signature, and the least weight of spam.
    Found(ReportWeights, u32),
    /// It was done.
    Done,
    /// It was not done.
    Refused,
    /// The server's state: engines and bounds.
    State,
    /// A list of this name, with this address.
    Servers(&'static str),
    /// A new account.
    Account {
        /// Its name.
        user: String,
        /// Its password.
        password: String,
    },
    /// A challenge for authentication.
    Challenge(String),
    /// The name exists.
    UserExists,
    /// The name does not exist.
    UnknownUser,
    /// It has no permission, or is not authenticated.
    Forbidden,
    /// The request is invalid.
    Unknown,
    /// The ledger does not answer.
    Unavailable,
    /// No answer.
    Nothing,
}

/// The greeting.
pub(super) fn greeting() -> String {
    format!("sn=CN&srl=1&ep4={SEEDS}&a=l&a=cg\r\n")
}

impl Answer {
    /// Writes it as a line, without its end.
    fn write(&self, text: &mut String) {
        // Writing to a String does not fail.
        let _ = match self {
            Self::Found(weights, threshold) => write_found(*weights, *threshold, text),
            Self::Done => write!(text, "res=1"),
            Self::Refused => write!(text, "res=0"),
            // Engines 4 and 8 are bits 3 and 7. Clients keep all this until `srl` grows.
            Self::State => {
                write!(text, "ac={AVERAGE}&bql={BATCH}&bqs=64&dre=4&ep4={SEEDS}&se=88&sn=CN&srl=1")
            }
            Self::Account { user, password } => {
                write!(text, "pass={}&res=1&user={}", escaped(password), escaped(user))
            }
            Self::Challenge(challenge) => write!(text, "achal={challenge}"),
            // Two numbers that clients know, and three that they only show.
            Self::UserExists => write!(text, "err=210"),
            Self::UnknownUser => write!(text, "err=213"),
            Self::Forbidden => write!(text, "err=203"),
            Self::Unknown => write!(text, "err=202"),
            Self::Unavailable => write!(text, "err=201"),
            Self::Servers(_) | Self::Nothing => Ok(()),
        };
    }
}

/// A confidence of 51 to 100 is spam; a lower one shows how much is missing.
fn write_found(weights: ReportWeights, threshold: u32, text: &mut String) -> std::fmt::Result {
    let confidence = confidence(weights.left(), threshold);
    match (confidence, weights.revoked) {
        (0, _) => write!(text, "p=0"),
        (_, 0) => write!(text, "p=1&cf={confidence}"),
        (_, _) => write!(text, "p=1&cf={confidence}&ct=1"),
    }
}

/// The confidence that something is spam, if `threshold` units make it so: 51 at the threshold, 100 at twice of it.
fn confidence(units: u32, threshold: u32) -> u32 {
    let (units, threshold) = (u64::from(units), u64::from(threshold.max(1)));
    let confidence = if units < threshold {
        (units * u64::from(AVERAGE - 1)).div_ceil(threshold)
    } else {
        51 + (units - threshold).saturating_mul(49) / threshold
    };
    u32::try_from(confidence.min(100)).unwrap_or(100)
}

/// Writes the answer to a line; `public_address` is the address of lists.
pub(super) fn write_one(answer: &Answer, public_address: &str, text: &mut String) {
    match answer {
        Answer::Nothing => (),
        // Clients understand only this form of lists.
        Answer::Servers(list) => {
            let _ = write!(text, "-{list}=?\r\n{public_address}\r\n.\r\n");
        }
        answer => {
            answer.write(text);
            text.push_str("\r\n");
        }
    }
}

/// Writes the answers to a batch.
pub(super) fn write_batch(answers: &[Answer], public_address: &str, text: &mut String) {
    // Clients treat the dash as text if nothing follows the first line.
    if let [answer] = answers {
        return write_one(answer, public_address, text);
    }
    text.push('-');
    for answer in answers {
        answer.write(text);
        text.push_str("\r\n");
    }
    text.push_str(".\r\n");
}

/// Escapes a value as in URIs.
fn escaped(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_follows_weight() {
        let of = |units: u32| confidence(units, 24);
        assert_eq!([0, 1, 12, 23, 24, 36, 48, 1000].map(of), [0, 3, 25, 47, 51, 75, 100, 100]);
        assert_eq!(confidence(u32::MAX, u32::MAX), 51);
        assert_eq!((confidence(u32::MAX, 1), confidence(0, 0)), (100, 0));
    }

    /// Clients read no more than 1,024 bytes of an answer.
    #[test]
    fn the_answer_to_a_batch_fits() {
        let weights = ReportWeights { nominated: 1000, revoked: 1 };
        let mut text = String::new();
        write_batch(&vec![Answer::Found(weights, 24); BATCH], "", &mut text);
        assert!(text.starts_with("-p=1&cf=100&ct=1\r\np=1") && text.ends_with("ct=1\r\n.\r\n"));
        assert!(text.len() <= 1024, "{}", text.len());
    }
}
