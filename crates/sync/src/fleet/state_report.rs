// SPDX-License-Identifier: GPL-3.0-or-later
//! The state report of a fleet's member, as JSON. It is for people, and may come from a machine that lies or has another version, so on
//! reading all of it is bounded and made printable.

use crate::log::MAX_STATE_REPORT;
use bulkmark_types::{LAST_TIME, Signature, told, visible};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of the format. A later version that only adds fields keeps it.
const FORM: u32 = 1;

/// Maximum of mailings in a report, and of characters in a subject and a version.
pub const MAX_MAILINGS: usize = 50;
const MAX_SUBJECT: usize = 100;
const MAX_PROGRAM: usize = 40;

/// The role of a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberRole {
    /// A milter that holds all counts.
    Milter,
    /// A milter that holds only bulk.
    PartialMilter,
    /// A member that makes steps.
    Aggregator,
    /// A role that this version does not know.
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

/// A mailing of the day, as seen by one member or by all that publish theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FleetMailing {
    /// The signature that names it.
    pub signature: String,
    /// The highest count at any of them.
    pub count: u32,
    /// Its messages that they judged bulk.
    pub messages: u64,
    /// The number of recipients of these.
    pub recipients: u64,
    /// The arrival of the first one, in seconds since 1970.
    pub first: u64,
    /// The arrival of the last one.
    pub last: u64,
    /// The members that saw it; empty in a member's own report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The last subject, if configured to be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// The role of a member, and its position.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Condition {
    /// Its role.
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
    /// The waiting time of the oldest of them, in seconds.
    #[serde(default)]
    pub waiting_seconds: Option<u64>,
}

impl Condition {
    /// Returns that of a member with this program's version that counts nothing yet.
    pub(super) fn new(role: MemberRole) -> Self {
        Self { role, program: env!("CARGO_PKG_VERSION").to_owned(), ..Self::default() }
    }
}

/// The content of a state report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ReportBody {
    pub(super) form: u32,
    #[serde(flatten)]
    pub(super) condition: Condition,
    /// Seconds until the next report.
    pub(super) every: u64,
    /// Whether it is at the end of the log's chain, as far as it was read.
    pub(super) in_step: bool,
    /// Its largest mailings of the day, the largest first, if it publishes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) mailings: Vec<FleetMailing>,
}

impl ReportBody {
    /// Returns that of a member without mailings that is not known to be at the end of the log's chain.
    pub(super) const fn new(condition: Condition, every: u64) -> Self {
        Self { form: FORM, condition, every, in_step: false, mailings: Vec::new() }
    }

    /// Encodes it for the log, with as many mailings as it has room for.
    pub(super) fn encode(mut self) -> Vec<u8> {
        self.bound();
        loop {
            // It has only text and numbers, so encoding cannot fail.
            let bytes = serde_json::to_vec(&self).unwrap_or_default();
            if bytes.len() <= MAX_STATE_REPORT || self.mailings.pop().is_none() {
                return bytes;
            }
        }
    }

    /// Decodes a report and bounds it; none for an unknown format.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MAX_STATE_REPORT {
            return None;
        }
        let mut body: Self = serde_json::from_slice(bytes).ok()?;
        body.bound();
        (body.form == FORM).then_some(body)
    }

    fn bound(&mut self) {
        let Condition { program, lag_seconds, waiting_seconds, .. } = &mut self.condition;
        for seconds in [lag_seconds, waiting_seconds].into_iter().flatten() {
            *seconds = LAST_TIME.min(*seconds);
        }
        *program = cut(&told(program), MAX_PROGRAM);
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

/// Returns the first characters of a text.
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
    fn reports_are_read_back_and_always_fit() {
        let mut body = ReportBody::new(Condition::new(MemberRole::PartialMilter), 60);
        body.mailings = (0..200).map(|n| mailing(n, &"\u{202E}\u{1F4A9}".repeat(300))).collect();
        let bytes = body.encode();
        assert!(bytes.len() <= MAX_STATE_REPORT, "{}", bytes.len());
        let read = ReportBody::decode(&bytes).unwrap();
        assert!(!read.mailings.is_empty() && read.mailings.len() <= MAX_MAILINGS);
        assert_eq!(
            (read.condition.role, read.every, read.mailings[0].count),
            (MemberRole::PartialMilter, 60, 20)
        );
        assert!(read.mailings[0].members.is_empty(), "a member reports only for itself");
        assert!(!read.mailings[0].subject.as_ref().unwrap().contains('\u{202E}'));
    }

    #[test]
    fn any_bytes_in_the_log_are_tolerated() {
        let milter = ReportBody::new(Condition::new(MemberRole::Milter), 1);
        let good = ReportBody { mailings: vec![mailing(1, "x")], ..milter }.encode();
        for end in 0..good.len() {
            assert!(ReportBody::decode(&good[..end]).is_none(), "{end}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x11;
            let _ = ReportBody::decode(&bad);
        }
        let text = String::from_utf8(good).unwrap();
        let read = |from: &str, to: &str| ReportBody::decode(text.replace(from, to).as_bytes());
        assert!(read("\"form\":1", "\"form\":2").is_none());
        assert_eq!(read("\"milter\"", "\"shard\"").unwrap().condition.role, MemberRole::Unknown);
        assert_eq!(read("\"every\":1", "\"every\":99999999").unwrap().every, 600);
        let late = u64::MAX.to_string();
        let mailing = read("\"last\":6", &format!("\"last\":{late}")).unwrap().mailings.remove(0);
        assert_eq!((mailing.first, mailing.last), (5, LAST_TIME), "it can be written");
        assert!(read("00000001", "<script>").unwrap().mailings.is_empty());
        assert!(ReportBody::decode(&vec![b'['; MAX_STATE_REPORT]).is_none());
        assert!(ReportBody::decode(&vec![b' '; MAX_STATE_REPORT + 1]).is_none());
    }
}
