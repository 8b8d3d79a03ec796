// SPDX-License-Identifier: GPL-3.0-or-later
//! What is called how in NATS, for how long it is kept, and how long an answer may take.

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

/// Parts of snapshots, and which one is the newest.
pub(super) const SNAPSHOT: Stream =
    Stream { name: "BULKMARK_SNAPSHOT", subjects: "bulkmark.snapshot.>", live: None };

/// Who may report: the last message is the list.
pub(super) const CLIENTS: Stream =
    Stream { name: "BULKMARK_CLIENTS", subjects: "bulkmark.clients", live: None };

/// What each member says of itself, by its name: the last message is all that counts.
pub(super) const MEMBERS: Stream =
    Stream { name: "BULKMARK_MEMBERS", subjects: "bulkmark.members.*", live: None };

/// Where the names of aggregators are, beside the list of clients: of a log's account, all users are the same to NATS.
pub(super) const AGGREGATORS: &str = "bulkmark.aggregators";

/// Where the newest snapshot is told.
pub(super) const NEWEST: &str = "bulkmark.snapshot.newest";

/// What the first parts of all snapshots are found by.
pub(super) const FIRST_PARTS: &str = "bulkmark.snapshot.part.*.0";

/// The version of all this, as streams tell it.
pub(super) const VERSION: &str = "1";

/// What belongs together in JetStream.
pub(super) struct Stream {
    /// The stream.
    pub(super) name: &'static str,
    /// What it keeps.
    pub(super) subjects: &'static str,
    /// Where what was kept is told at once, and how much of it.
    pub(super) live: Option<(&'static str, Live)>,
}

/// How much of a message is told live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Live {
    /// Its number alone.
    Headers,
    /// All of it.
    Whole,
}

/// Where a client's batches go.
pub(super) fn reports_of(client: &str) -> String {
    format!("bulkmark.reports.{client}")
}

/// Where a member says how it is.
pub(super) fn state_of(member: &str) -> String {
    format!("bulkmark.members.{member}")
}

/// Where clients ask how far a stream is. JetStream answers to the usual subject in each account for that account itself, and so
/// this one is imported by another name.
pub(super) fn info_for_clients(stream: &str) -> String {
    format!("bulkmark.info.{stream}")
}

/// Where others ask that.
pub(super) fn info_of(stream: &str) -> String {
    format!("$JS.API.STREAM.INFO.{stream}")
}

/// Where it is asked for a message.
pub(super) fn get_of(stream: &str) -> String {
    format!("$JS.API.DIRECT.GET.{stream}")
}

/// A part of a snapshot.
pub(super) fn part_of(snapshot: &str, number: usize) -> String {
    format!("bulkmark.snapshot.part.{snapshot}.{number}")
}

/// All parts of a snapshot.
pub(super) fn parts_of(snapshot: &str) -> String {
    format!("bulkmark.snapshot.part.{snapshot}.*")
}

/// How long one answer may take. A leader that died has a successor after five to nine seconds; whoever asks does so again.
pub(super) const ANSWER: Duration = Duration::from_secs(4);

/// How long it is tried to get or put a part of a snapshot, since all of it is lost with one.
pub(super) const PART: Duration = Duration::from_secs(12);

/// How long the server knows a message by its id.
pub(super) const REPEATS: Duration = Duration::from_secs(3600);
