// SPDX-License-Identifier: GPL-3.0-or-later
//! What clients are told.

use super::request::SEEDS;
use crate::judging::ReportWeights;
use std::fmt::Write as _;

/// Lines of a batch that clients are asked to keep to: its answer is in one packet, since they read no more than 1,024 bytes of one.
const BATCH: usize = 50;

/// The confidence from which on something is spam: `ac`, to which clients compare unless they are configured otherwise.
const AVERAGE: u32 = 50;

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// User reports of a signature, and what they say of spam at least.
    Found(ReportWeights, u32),
    /// It was done.
    Done,
    /// It was not.
    Refused,
    /// What clients have to know.
    State,
    /// A list of this name, which has this address.
    Servers(&'static str),
    /// A new account.
    Account {
        /// Its name.
        user: String,
        /// Its password.
        password: String,
    },
    /// What is to be proved.
    Challenge(String),
    /// Somebody has that name.
    UserExists,
    /// Nobody has that name.
    UnknownUser,
    /// It may not do that, or has not proved who it is.
    Forbidden,
    /// Nobody can read it.
    Unknown,
    /// The ledger does not answer.
    Unavailable,
    /// None.
    Nothing,
}

/// What is said first.
pub(super) fn greeting() -> String {
    format!("sn=CN&srl=1&ep4={SEEDS}&a=l&a=cg\r\n")
}

impl Answer {
    /// Writes it as a line, which has no end yet.
    fn write(&self, text: &mut String) {
        // Nothing fails that is written to a string.
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
            // Two numbers that clients know, and three that they only tell.
            Self::UserExists => write!(text, "err=210"),
            Self::UnknownUser => write!(text, "err=213"),
            Self::Forbidden => write!(text, "err=203"),
            Self::Unknown => write!(text, "err=202"),
            Self::Unavailable => write!(text, "err=201"),
            Self::Servers(_) | Self::Nothing => Ok(()),
        };
    }
}

/// A confidence of 51 to 100 is spam, and one below tells how much is missing.
fn write_found(weights: ReportWeights, threshold: u32, text: &mut String) -> std::fmt::Result {
    let confidence = confidence(weights.left(), threshold);
    match (confidence, weights.revoked) {
        (0, _) => write!(text, "p=0"),
        (_, 0) => write!(text, "p=1&cf={confidence}"),
        (_, _) => write!(text, "p=1&cf={confidence}&ct=1"),
    }
}

/// How sure it is that something is spam where `threshold` units make it so: 51 with as much, 100 with twice as much.
fn confidence(units: u32, threshold: u32) -> u32 {
    let (units, threshold) = (u64::from(units), u64::from(threshold.max(1)));
    let confidence = if units < threshold {
        (units * u64::from(AVERAGE - 1)).div_ceil(threshold)
    } else {
        51 + (units - threshold).saturating_mul(49) / threshold
    };
    u32::try_from(confidence.min(100)).unwrap_or(100)
}

/// Writes the answer to a line; `told` is the address of lists.
pub(super) fn write_one(answer: &Answer, told: &str, text: &mut String) {
    match answer {
        Answer::Nothing => (),
        // Clients understand lists in this form only.
        Answer::Servers(list) => {
            let _ = write!(text, "-{list}=?\r\n{told}\r\n.\r\n");
        }
        answer => {
            answer.write(text);
            text.push_str("\r\n");
        }
    }
}

/// Writes the answers to a batch.
pub(super) fn write_batch(answers: &[Answer], told: &str, text: &mut String) {
    // Clients take the dash for a letter where nothing follows the first line.
    if let [answer] = answers {
        return write_one(answer, told, text);
    }
    text.push('-');
    for answer in answers {
        answer.write(text);
        text.push_str("\r\n");
    }
    text.push_str(".\r\n");
}

/// As in URIs.
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
