// SPDX-License-Identifier: GPL-3.0-or-later
//! The result of tuning, for people and programs.

use super::archive::Fault;
use bulkmark_types::writable_time;
use serde::{Serialize, Serializer};

/// The whole result.
#[derive(Debug, Serialize)]
pub struct Tuning {
    /// The contents of the archive.
    pub archive: Contents,
    /// The effect of each threshold.
    pub thresholds: Vec<AtThreshold>,
    /// The effect of the configuration.
    pub configured: Configured,
    /// Clusters that reached the lowest threshold, those of the highest count first.
    pub clusters: Vec<ClusterRow>,
    /// Lines for a white list: by their standing, then those with the most bulk first.
    pub proposals: Vec<Proposal>,
    /// Files that could not be read, the first thousand.
    pub unreadable: Vec<Fault>,
    /// The same as `thresholds` for many more up to the highest count, at most 10,000.
    #[serde(skip)]
    pub curve: Vec<AtThreshold>,
}

/// The contents of an archive.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Contents {
    /// All messages.
    pub messages: u64,
    /// Those that were counted.
    pub counted: u64,
    /// Counted messages without a known client network.
    pub without_network: u64,
    /// Signatures of counted messages.
    pub signatures: u64,
    /// Messages with too little content to be counted.
    pub exempt: u64,
    /// Messages that are not judged, by the policy of their recipient.
    pub by_policy: u64,
    /// Files and messages that could not be read.
    pub unreadable: u64,
    /// Files that are no mail.
    pub no_mail: u64,
    /// By label.
    pub labels: Labels,
    /// Time of the first message.
    #[serde(serialize_with = "time")]
    pub first: u64,
    /// Time of the last message.
    #[serde(serialize_with = "time")]
    pub last: u64,
}

/// Messages of each label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Labels {
    /// Without one.
    pub none: u64,
    /// Wanted.
    pub ham: u64,
    /// Unwanted.
    pub spam: u64,
}

impl From<[u64; 3]> for Labels {
    fn from([none, ham, spam]: [u64; 3]) -> Self {
        Self { none, ham, spam }
    }
}

/// A threshold for both kinds of count, and its effect.
#[derive(Debug, Clone, Serialize)]
pub struct AtThreshold {
    /// The threshold.
    pub threshold: u32,
    /// Messages that would have been bulk, without whitelisted ones.
    pub messages: u64,
    /// Messages of these that are bulk by their body.
    pub body: u64,
    /// Messages of these that are bulk by their near signatures alone.
    pub near: u64,
    /// The number of their senders' addresses.
    pub senders: u64,
    /// By label.
    pub labels: Labels,
    /// Whitelisted messages that reached it.
    pub whitelisted: u64,
}

/// The configuration, and its effect.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Configured {
    /// The threshold of the body.
    pub body: u32,
    /// The threshold of near signatures.
    pub near: u32,
    /// The number of other networks from which a count must come.
    pub min_sources: u32,
    /// Messages that would have been bulk.
    pub bulk: u64,
    /// Messages of these that would only have been marked, since their count came from too few networks.
    pub held: u64,
    /// By label.
    pub labels: Labels,
    /// Whitelisted messages, whatever their count.
    pub whitelisted: u64,
    /// The same by deciding policy, if there are several; those with the most messages first.
    pub policies: Vec<PolicyRow>,
    /// Messages that would still have been bulk with the lines that look wanted in the white list.
    pub bulk_with_proposals: u64,
}

/// The effect of a policy.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PolicyRow {
    /// Its name.
    pub policy: String,
    /// Messages that it decides, whitelisted ones included.
    pub messages: u64,
    /// Messages that would have been bulk.
    pub bulk: u64,
    /// Messages of these that its actions would not have delivered.
    pub refused: u64,
}

/// A cluster of similar messages.
#[derive(Debug, Clone, Serialize)]
pub struct ClusterRow {
    /// The number of messages.
    pub messages: u64,
    /// The highest count of a message: messages within the retention before it.
    pub count: u32,
    /// Messages with the body of an earlier one.
    pub same_body: u64,
    /// Whitelisted messages.
    pub whitelisted: u64,
    /// By label.
    pub labels: Labels,
    /// Time of the first message.
    #[serde(serialize_with = "time")]
    pub first: u64,
    /// Time of the last message.
    #[serde(serialize_with = "time")]
    pub last: u64,
    /// Domains of From fields, the most frequent first, at most eight.
    pub from: Vec<(String, u64)>,
    /// Whether these are all.
    pub from_is_all: bool,
    /// List-Ids.
    pub list_ids: Vec<(String, u64)>,
    /// Subjects.
    pub subjects: Vec<(String, u64)>,
}

/// The evidence for a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Its bulk was labelled ham, or it is a list that wrote for days.
    Wanted,
    /// Nothing shows whether it is wanted.
    Unsure,
    /// Its mail was labelled ham as well as spam.
    Both,
}

/// A line for a white list.
#[derive(Debug, Clone, Serialize)]
pub struct Proposal {
    /// The line in the syntax of white lists.
    pub line: String,
    /// The evidence for it.
    pub standing: Standing,
    /// Messages that would have been bulk.
    pub bulk: u64,
    /// All messages of that list or sender.
    pub messages: u64,
    /// The number of days on which they came.
    pub days: u32,
    /// Time of the first message.
    #[serde(serialize_with = "time")]
    pub first: u64,
    /// Time of the last message.
    #[serde(serialize_with = "time")]
    pub last: u64,
    /// All of them by label.
    pub labels: Labels,
    /// The subject of the last message that would have been bulk.
    pub subject: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn time<S: Serializer>(seconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&date(*seconds))
}

/// Formats a time as in RFC 3339; its first ten characters are the day.
#[must_use]
pub fn date(seconds: u64) -> String {
    humantime_serde::re::humantime::format_rfc3339_seconds(writable_time(seconds)).to_string()
}
