// SPDX-License-Identifier: GPL-3.0-or-later
//! What a member of a fleet says of itself, as JSON: what it says is for people, and may come from a machine that lies or is of
//! another version, so all of it is bounded and made fit to be shown when it is read.

use crate::log::MAX_WORD;
use bulkmark_types::{LAST_TIME, Signature, remote_text, visible};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The form of what is said. A later one that says the same and more keeps it.
const FORM: u32 = 1;

/// Mailings that a member tells at most, and letters of a subject and of a version.
pub const MAX_MAILINGS: usize = 50;
const MAX_SUBJECT: usize = 100;
const MAX_PROGRAM: usize = 40;

/// What a member does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberRole {
    /// A milter that holds all counts.
    Milter,
    /// One that holds those of bulk.
    PartialMilter,
    /// It makes steps.
    Aggregator,
    /// What this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl fmt::Display for MemberRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Milter => "milter",
            Self::PartialMilter => "milter with a partial copy",
            Self::Aggregator => "aggregator",
            Self::Unknown => "of another kind",
        })
    }
}

/// A mailing of the day, as one member saw it, or all of them that tell theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FleetMailing {
    /// The signature by which it is named.
    pub signature: String,
    /// The highest count that any of them has.
    pub count: u32,
    /// Messages of it that they found to be bulk.
    pub messages: u64,
    /// How many recipients these had.
    pub recipients: u64,
    /// When the first of them came, in seconds since 1970.
    pub first: u64,
    /// When the last did.
    pub last: u64,
    /// The members that saw it; none in a member's own word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The last subject, where the configuration wants it to be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// What a member does, and how far it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Condition {
    /// What it does.
    pub role: MemberRole,
    /// The version of its program.
    pub program: String,
    /// Steps that it counts.
    pub step: u64,
    /// The epoch of the last of them.
    pub epoch: u64,
    /// Seconds since it had all that the log has.
    #[serde(default)]
    pub lag_seconds: Option<u64>,
    /// Places of steps that it did not read yet.
    #[serde(default)]
    pub steps_behind: Option<u64>,
    /// Its own reports that no step covers yet.
    #[serde(default)]
    pub uncovered: u64,
    /// For how many seconds the oldest of them has waited.
    #[serde(default)]
    pub waiting_seconds: Option<u64>,
}

impl Condition {
    /// That of a member of this program, which counts nothing yet.
    pub(super) fn new(role: MemberRole) -> Self {
        Self { role, program: env!("CARGO_PKG_VERSION").to_owned(), ..Self::default() }
    }
}

/// How a member is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct MemberWord {
    pub(super) form: u32,
    #[serde(flatten)]
    pub(super) condition: Condition,
    /// After how many seconds it says so again.
    pub(super) every: u64,
    /// Whether it is where the log's chain ends, as far as it read that.
    pub(super) in_step: bool,
    /// Its largest mailings of the day, the largest first, if it tells them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) mailings: Vec<FleetMailing>,
}

impl MemberWord {
    /// Of a member that tells no mailings, and is not known to be where the log's chain ends.
    pub(super) const fn new(condition: Condition, every: u64) -> Self {
        Self { form: FORM, condition, every, in_step: false, mailings: Vec::new() }
    }

    /// As the log takes it; with as many mailings as it has room for.
    pub(super) fn encode(mut self) -> Vec<u8> {
        self.bound();
        loop {
            // It is text and numbers, which can be written.
            let bytes = serde_json::to_vec(&self).unwrap_or_default();
            if bytes.len() <= MAX_WORD || self.mailings.pop().is_none() {
                return bytes;
            }
        }
    }

    /// What was said, bounded; none where it is in a form that is not known here.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MAX_WORD {
            return None;
        }
        let mut word: Self = serde_json::from_slice(bytes).ok()?;
        word.bound();
        (word.form == FORM).then_some(word)
    }

    fn bound(&mut self) {
        let Condition { program, lag_seconds, waiting_seconds, .. } = &mut self.condition;
        for seconds in [lag_seconds, waiting_seconds].into_iter().flatten() {
            *seconds = LAST_TIME.min(*seconds);
        }
        *program = cut(&remote_text(program), MAX_PROGRAM);
        self.every = self.every.clamp(1, 600);
        self.mailings.retain(|mailing| mailing.signature.parse::<Signature>().is_ok());
        self.mailings.truncate(MAX_MAILINGS);
        for mailing in &mut self.mailings {
            mailing.signature.make_ascii_lowercase();
            mailing.members.clear();
            (mailing.first, mailing.last) = (mailing.first.min(LAST_TIME), mailing.last.min(LAST_TIME));
            if let Some(subject) = &mut mailing.subject {
                *subject = visible(&cut(subject, MAX_SUBJECT));
            }
        }
    }
}

/// The first letters of a text.
fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailing(n: u32, subject: &str) -> FleetMailing {
        FleetMailing {
            signature: format!("{n:032x}"),
            count: 20 + n,
            messages: 3,
            recipients: 4,
            first: 5,
            last: 6,
            members: vec!["another".to_owned()],
            subject: Some(subject.to_owned()),
        }
    }

    #[test]
    fn what_is_told_is_read_and_always_fits() {
        let mut word = MemberWord::new(Condition::new(MemberRole::PartialMilter), 60);
        word.mailings = (0..200).map(|n| mailing(n, &"\u{202E}\u{1F4A9}".repeat(300))).collect();
        let bytes = word.encode();
        assert!(bytes.len() <= MAX_WORD, "{}", bytes.len());
        let read = MemberWord::decode(&bytes).unwrap();
        assert!(!read.mailings.is_empty() && read.mailings.len() <= MAX_MAILINGS);
        assert_eq!(
            (read.condition.role, read.every, read.mailings[0].count),
            (MemberRole::PartialMilter, 60, 20)
        );
        assert!(read.mailings[0].members.is_empty(), "a member speaks for itself alone");
        assert!(!read.mailings[0].subject.as_ref().unwrap().contains('\u{202E}'));
    }

    #[test]
    fn anything_may_stand_in_the_log() {
        let milter = MemberWord::new(Condition::new(MemberRole::Milter), 1);
        let good = MemberWord { mailings: vec![mailing(1, "x")], ..milter }.encode();
        for end in 0..good.len() {
            assert!(MemberWord::decode(&good[..end]).is_none(), "{end}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x11;
            let _ = MemberWord::decode(&bad);
        }
        let text = String::from_utf8(good).unwrap();
        let read = |from: &str, to: &str| MemberWord::decode(text.replace(from, to).as_bytes());
        assert!(read("\"form\":1", "\"form\":2").is_none());
        assert_eq!(read("\"milter\"", "\"shard\"").unwrap().condition.role, MemberRole::Unknown);
        assert_eq!(read("\"every\":1", "\"every\":99999999").unwrap().every, 600);
        let late = u64::MAX.to_string();
        let mailing = read("\"last\":6", &format!("\"last\":{late}")).unwrap().mailings.remove(0);
        assert_eq!((mailing.first, mailing.last), (5, LAST_TIME), "it can be written");
        assert!(read("00000001", "<script>").unwrap().mailings.is_empty());
        assert!(MemberWord::decode(&vec![b'['; MAX_WORD]).is_none());
        assert!(MemberWord::decode(&vec![b' '; MAX_WORD + 1]).is_none());
    }
}
