// SPDX-License-Identifier: GPL-3.0-or-later
//! Names in NATS, times for which messages are kept, and timeouts.

use std::time::Duration;

/// Batches, by client.
pub(super) const BATCHES: Stream = Stream {
    name: "BULKMARK_BATCHES",
    subjects: "bulkmark.reports.*",
    live: Some(("bulkmark.live.batches", Live::Headers)),
};

/// Steps.
pub(super) const STEPS: Stream = Stream {
    name: "BULKMARK_STEPS",
    subjects: "bulkmark.steps",
    live: Some(("bulkmark.live.steps", Live::Whole)),
};

/// Parts of snapshots, and the pointer to the newest one.
pub(super) const SNAPSHOT: Stream =
    Stream { name: "BULKMARK_SNAPSHOT", subjects: "bulkmark.snapshot.>", live: None };

/// The clients that may report: the last message is the list.
pub(super) const CLIENTS: Stream =
    Stream { name: "BULKMARK_CLIENTS", subjects: "bulkmark.clients", live: None };

/// State reports, by member: only the last message counts.
pub(super) const MEMBERS: Stream =
    Stream { name: "BULKMARK_MEMBERS", subjects: "bulkmark.members.*", live: None };

/// The subject of the list of aggregators, beside that of clients: NATS does not distinguish the users of the log's account.
pub(super) const AGGREGATORS: &str = "bulkmark.aggregators";

/// The subject of the pointer to the newest snapshot.
pub(super) const NEWEST: &str = "bulkmark.snapshot.newest";

/// The version of this layout, in the metadata of streams.
pub(super) const VERSION: &str = "1";

/// A stream of JetStream.
pub(super) struct Stream {
    /// Its name.
    pub(super) name: &'static str,
    /// The subjects that it stores.
    pub(super) subjects: &'static str,
    /// The subject on which stored messages are republished, and how much of them.
    pub(super) live: Option<(&'static str, Live)>,
}

/// The part of a message that is sent live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Live {
    /// Its number alone.
    Headers,
    /// All of it.
    Whole,
}

/// Returns the subject of a client's batches.
pub(super) fn reports_of(client: &str) -> String {
    format!("bulkmark.reports.{client}")
}

/// Returns the subject of a member's state reports.
pub(super) fn state_of(member: &str) -> String {
    format!("bulkmark.members.{member}")
}

/// Returns the subject by which members request the state of a stream. In each account, JetStream answers the usual subject for that
/// account itself, so this one is imported under another name.
pub(super) fn info_for_members(stream: &str) -> String {
    format!("bulkmark.info.{stream}")
}

/// Returns the subject by which the administrator requests it.
pub(super) fn info_of(stream: &str) -> String {
    format!("$JS.API.STREAM.INFO.{stream}")
}

/// Returns the subject by which aggregators remove messages of a stream, for the same reason under another name.
pub(super) fn purge_for_members(stream: &str) -> String {
    format!("bulkmark.purge.{stream}")
}

/// Returns the subject that it stands for.
pub(super) fn purge_of(stream: &str) -> String {
    format!("$JS.API.STREAM.PURGE.{stream}")
}

/// Returns the subject by which messages are requested.
pub(super) fn get_of(stream: &str) -> String {
    format!("$JS.API.DIRECT.GET.{stream}")
}

/// Returns the subject of a part of a snapshot.
pub(super) fn part_of(snapshot: &str, number: usize) -> String {
    format!("bulkmark.snapshot.part.{snapshot}.{number}")
}

/// Returns the filter for all parts of a snapshot.
pub(super) fn parts_of(snapshot: &str) -> String {
    format!("bulkmark.snapshot.part.{snapshot}.*")
}

/// Timeout of one answer. A leader that died has a successor after five to nine seconds; callers repeat their requests.
pub(super) const ANSWER: Duration = Duration::from_secs(4);

/// How long reading or writing a part of a snapshot is repeated, since one missing part makes all of it useless.
pub(super) const PART: Duration = Duration::from_secs(12);

/// How long the server remembers the id of a message.
pub(super) const REPEATS: Duration = Duration::from_secs(3600);
