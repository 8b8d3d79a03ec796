// SPDX-License-Identifier: GPL-3.0-or-later
//! The counts that a milter with a partial copy does not hold: if its own counts show that a message may be bulk, it asks its server for the
//! rest.

use bulkmark_counts::Shared;
use bulkmark_sync::RemoteCounts;
use bulkmark_sync::wire::MAX_ASKED;
use bulkmark_types::Signature;
use bulkmark_verdict::Question;
use std::time::{Duration, Instant};

/// The time that a message waits for the server's counts, in all.
const PATIENCE: Duration = Duration::from_millis(500);

/// The queries to the server about one message.
pub(super) struct ServerQuery<'a> {
    asks: &'a RemoteCounts,
    shared: Shared,
    /// Whether users report the message as spam.
    pub(super) has_reports: bool,
    deadline: Option<Instant>,
}

/// The server's count of each signature of a question, if it was asked, in the order of the answer.
pub(super) type ServerCounts = Vec<Option<u32>>;

impl<'a> ServerQuery<'a> {
    /// Queries about a message of which `shared` signatures are sent to other servers: only about these they are asked, too.
    pub(super) const fn new(asks: &'a RemoteCounts, shared: Shared, has_reports: bool) -> Self {
        Self { asks, shared, has_reports, deadline: None }
    }

    /// The count from which on bulk is held.
    pub(super) fn bound(&self) -> u32 {
        self.asks.bound()
    }

    /// The server's counts of this question's signatures. `None` if they do not arrive in time.
    pub(super) async fn ask(&mut self, question: &Question) -> Option<ServerCounts> {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
        let all = wanted(question);
        let may = self.may_ask(question, all.len());
        let asked: Vec<Signature> =
            all.iter().zip(&may).filter(|(_, may)| **may).map(|(all, _)| *all).collect();
        let mut counts = self.asks.counts(&asked, deadline).await?.into_iter();
        Some(may.into_iter().map(|may| if may { counts.next() } else { None }).collect())
    }

    /// The signatures that the server may be asked for: exact ones reveal a message's content to others who have it.
    fn may_ask(&self, question: &Question, all: usize) -> Vec<bool> {
        let exact = |at: usize| at < question.reported.len() || at >= all - question.asked_exact.min(all);
        let may = |at: usize| match self.shared {
            Shared::All => true,
            Shared::Once => !exact(at),
            Shared::Nothing => false,
        };
        (0..all).map(may).collect()
    }
}

/// The signatures whose counts the answer has, in its order.
pub(super) fn wanted(question: &Question) -> Vec<Signature> {
    let Question { reported, once, asked, .. } = question;
    [reported, once, asked].into_iter().flatten().copied().collect()
}

/// Whether the counts that are held, with those of this message, show that it may be bulk. Below the bound nothing is held, so many
/// recipients can make up for missing counts.
pub(super) fn may_be_bulk(question: &Question, held: &[u32], bound: u32) -> bool {
    let with_this = |(at, &count): (usize, &u32)| count.saturating_add(added(question, at).max(1));
    held.iter().enumerate().map(with_this).any(|count| count > bound)
}

/// The number that this message adds to the count at this place of the answer.
fn added(question: &Question, at: usize) -> u32 {
    match at {
        _ if question.times == 0 => 0,
        _ if at < question.reported.len() => question.times,
        _ => u32::from(at < question.reported.len() + question.once.len()),
    }
}

/// The higher of the counts here and at the server, with this message added to the latter.
pub(super) fn merged(question: &Question, here: &[u32], server_counts: &ServerCounts) -> Vec<u32> {
    let of = |(at, (&here, server_counts)): (usize, (&u32, &Option<u32>))| {
        server_counts
            .map_or(here, |server_counts| here.max(server_counts.saturating_add(added(question, at))))
    };
    here.iter().zip(server_counts).enumerate().map(of).collect()
}

/// Raises low counts, which the server does not send by itself, to the server's. Without an answer in time, they stay.
pub(super) async fn raise(asks: &RemoteCounts, signatures: &[Signature], counts: &mut [u32]) {
    let low: Vec<usize> = (0..counts.len()).filter(|&at| counts[at] < asks.bound()).collect();
    let deadline = Instant::now() + PATIENCE;
    for some in low.chunks(MAX_ASKED) {
        let asked: Vec<Signature> = some.iter().map(|&at| signatures[at]).collect();
        let Some(server_counts) = asks.counts_now(&asked, deadline).await else { return };
        some.iter().zip(server_counts).for_each(|(&at, count)| counts[at] = counts[at].max(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_sync::Links;
    use std::sync::Arc;

    fn signature(n: u8) -> Signature {
        Signature::from_bytes([n; 16])
    }

    /// Other servers are not asked about signatures that they do not get: none of private mail, and where exact signatures stay here, neither
    /// these nor those that derive from them.
    #[test]
    fn signatures_that_are_not_sent_are_not_asked_for() {
        let asks = RemoteCounts::new(Vec::new(), Arc::new(Links::new(&[], false)), 10);
        let question = Question {
            reported: vec![signature(1)],
            once: vec![signature(2)],
            asked: vec![signature(3), signature(4)],
            asked_exact: 1,
            times: 1,
            ..Question::default()
        };
        let may = |shared| ServerQuery::new(&asks, shared, false).may_ask(&question, 4);
        assert_eq!(may(Shared::All), [true; 4]);
        assert_eq!(may(Shared::Once), [false, true, true, false]);
        assert_eq!(may(Shared::Nothing), [false; 4]);
    }

    /// One copy may be bulk if a count is held; one to many recipients, if these could make up for a missing count.
    #[test]
    fn held_counts_or_many_recipients_may_be_bulk() {
        let may = |held: u32, times| {
            let question = Question { reported: vec![signature(1)], times, ..Question::default() };
            may_be_bulk(&question, &[held], 10)
        };
        assert_eq!(
            [(9, 1), (10, 1), (0, 10), (0, 11)].map(|(held, times)| may(held, times)),
            [false, true, false, true]
        );
        let asked = Question { asked: vec![signature(1)], ..Question::default() };
        assert!(may_be_bulk(&asked, &[10], 10) && !may_be_bulk(&asked, &[9], 10));
    }

    #[test]
    fn this_message_is_counted_once() {
        let question = Question {
            reported: vec![signature(1)],
            once: vec![signature(2)],
            asked: vec![signature(3)],
            times: 3,
            ..Question::default()
        };
        let server_counts = vec![Some(4), Some(7), Some(9)];
        assert_eq!(merged(&question, &[3, 1, 0], &server_counts), [7, 8, 9]);
        assert_eq!(merged(&question, &[13, 1, 0], &vec![Some(4), None, None]), [13, 1, 0]);
    }
}
