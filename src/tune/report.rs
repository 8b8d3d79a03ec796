// SPDX-License-Identifier: GPL-3.0-or-later
//! What tuning found, for people and programs.

use super::archive::Fault;
use bulkmark_types::writable_time;
use serde::{Serialize, Serializer};

/// The whole of it.
#[derive(Debug, Serialize)]
pub struct Tuning {
    /// What the archive has.
    pub archive: Kept,
    /// What each threshold would have done.
    pub thresholds: Vec<AtThreshold>,
    /// What the configuration would have done.
    pub configured: Configured,
    /// Messages that belong together, those of the highest count first; those that reached the lowest threshold.
    pub clusters: Vec<ClusterRow>,
    /// Lines for a white list: by their standing, then those with the most bulk first.
    pub proposals: Vec<Proposal>,
    /// What could not be read, the first thousand.
    pub unreadable: Vec<Fault>,
    /// The same as `thresholds` for many more up to the highest count, at most 10,000.
    #[serde(skip)]
    pub curve: Vec<AtThreshold>,
}

/// An archive.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Kept {
    /// All messages.
    pub messages: u64,
    /// Those that were counted.
    pub counted: u64,
    /// Those of them of which it is not known from which network they came.
    pub without_network: u64,
    /// Signatures that they reported.
    pub signatures: u64,
    /// Those that say too little to be counted.
    pub exempt: u64,
    /// Those that are not judged, by the policy of their recipient.
    pub by_policy: u64,
    /// Those that are larger than what is judged.
    pub too_large: u64,
    /// Files and messages that could not be read.
    pub unreadable: u64,
    /// Files that are no mail.
    pub no_mail: u64,
    /// By label.
    pub labels: Labels,
    /// When the first message came.
    #[serde(serialize_with = "time")]
    pub first: u64,
    /// When the last one did.
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
    /// Not wanted.
    pub spam: u64,
}

impl From<[u64; 3]> for Labels {
    fn from([none, ham, spam]: [u64; 3]) -> Self {
        Self { none, ham, spam }
    }
}

/// A threshold for both kinds of count, and what it would have done.
#[derive(Debug, Clone, Serialize)]
pub struct AtThreshold {
    /// The threshold.
    pub threshold: u32,
    /// Messages that would have been bulk; those that a white list wants are not among them.
    pub messages: u64,
    /// Those of them that are so by their body.
    pub body: u64,
    /// Those that are so by their near signatures alone.
    pub near: u64,
    /// How many addresses they are from.
    pub senders: u64,
    /// By label.
    pub labels: Labels,
    /// Messages that reached it and that a white list wants.
    pub whitelisted: u64,
}

/// The configuration, and what it would have done.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Configured {
    /// The threshold of the body.
    pub body: u32,
    /// That of near signatures.
    pub near: u32,
    /// From how many other networks a count must come.
    pub min_sources: u32,
    /// Messages that would have been bulk.
    pub bulk: u64,
    /// Those of them that would only have been marked, since their count came from too few networks.
    pub held: u64,
    /// By label.
    pub labels: Labels,
    /// Those that the white list wants, whatever their count.
    pub whitelisted: u64,
    /// The same by the policy that decides, where there are several; those with the most messages first.
    pub policies: Vec<PolicyRow>,
    /// Those that would have been bulk still if the lines that look wanted were in the white list.
    pub bulk_with_proposals: u64,
}

/// What a policy would have done.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PolicyRow {
    /// Its name.
    pub policy: String,
    /// Messages for which it decides, whitelisted ones included.
    pub messages: u64,
    /// Those that would have been bulk.
    pub bulk: u64,
    /// Those of them that would not have been delivered, by its actions.
    pub refused: u64,
}

/// Messages that belong together.
#[derive(Debug, Clone, Serialize)]
pub struct ClusterRow {
    /// How many.
    pub messages: u64,
    /// The highest count that one of them had: messages of the retention before it.
    pub count: u32,
    /// Those with the body of one before.
    pub same_body: u64,
    /// Those that a white list wants.
    pub whitelisted: u64,
    /// By label.
    pub labels: Labels,
    /// When the first one came.
    #[serde(serialize_with = "time")]
    pub first: u64,
    /// When the last one did.
    #[serde(serialize_with = "time")]
    pub last: u64,
    /// Domains of From fields, the most frequent first, eight at most.
    pub from: Vec<(String, u64)>,
    /// Whether these are all.
    pub from_is_all: bool,
    /// List-Ids.
    pub list_ids: Vec<(String, u64)>,
    /// Subjects.
    pub subjects: Vec<(String, u64)>,
}

/// How sure a proposal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Its bulk was called ham, or it is a list that wrote for days.
    Wanted,
    /// Nothing says that it is wanted, nor that it is not.
    Unsure,
    /// Its mail was called ham as well as spam.
    Both,
}

/// A line for a white list.
#[derive(Debug, Clone, Serialize)]
pub struct Proposal {
    /// As it is written there.
    pub line: String,
    /// How sure it is.
    pub standing: Standing,
    /// Messages that would have been bulk.
    pub bulk: u64,
    /// All messages of that list or sender.
    pub messages: u64,
    /// On how many days they came.
    pub days: u32,
    /// When the first one came.
    #[serde(serialize_with = "time")]
    pub first: u64,
    /// When the last one did.
    #[serde(serialize_with = "time")]
    pub last: u64,
    /// All of them by label.
    pub labels: Labels,
    /// The subject of the last one that would have been bulk.
    pub subject: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn time<S: Serializer>(seconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&date(*seconds))
}

/// A time as RFC 3339 writes it; its first ten characters are the day.
#[must_use]
pub fn date(seconds: u64) -> String {
    humantime_serde::re::humantime::format_rfc3339_seconds(writable_time(seconds)).to_string()
}
