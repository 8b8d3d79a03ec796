// SPDX-License-Identifier: GPL-3.0-or-later
//! What a milter with a partial copy does about counts that it does not hold: where what it holds says that a message may be bulk, it asks its server
//! for the rest.

use bulkmark_counts::Shared;
use bulkmark_sync::RemoteCounts;
use bulkmark_sync::wire::MAX_ASKED;
use bulkmark_types::Signature;
use bulkmark_verdict::Question;
use std::time::{Duration, Instant};

/// How long a message waits for counts that are not held here, in all.
const PATIENCE: Duration = Duration::from_millis(500);

/// The asking about one message.
pub(super) struct Asking<'a> {
    asks: &'a RemoteCounts,
    shared: Shared,
    /// Whether people call the message spam.
    pub(super) is_said: bool,
    deadline: Option<Instant>,
}

/// What others counted of each signature of a question, where it was asked, in the order of the answer.
pub(super) type Elsewhere = Vec<Option<u32>>;

impl<'a> Asking<'a> {
    /// About a message of which others are told so much: of what is not told them they are not asked, either.
    pub(super) const fn new(asks: &'a RemoteCounts, shared: Shared, is_said: bool) -> Self {
        Self { asks, shared, is_said, deadline: None }
    }

    /// The count from which on bulk is held.
    pub(super) fn bound(&self) -> u32 {
        self.asks.bound()
    }

    /// What the server counted of this question's signatures. None when it is not known in time.
    pub(super) async fn ask(&mut self, question: &Question) -> Option<Elsewhere> {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
        let all = wanted(question);
        let may = self.may_ask(question, all.len());
        let asked: Vec<Signature> =
            all.iter().zip(&may).filter(|(_, may)| **may).map(|(all, _)| *all).collect();
        let mut counts = self.asks.counts(&asked, deadline).await?.into_iter();
        Some(may.into_iter().map(|may| if may { counts.next() } else { None }).collect())
    }

    /// Of which signatures the server may be asked: the exact ones tell what a message says to whoever has it, too.
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

/// Whether what is held of these signatures, with what this message adds, says that it may be bulk. Below the bound nothing is held, so
/// that many recipients may make up for what is missing.
pub(super) fn may_be_bulk(question: &Question, held: &[u32], bound: u32) -> bool {
    let with_this = |(at, &count): (usize, &u32)| count.saturating_add(added(question, at).max(1));
    held.iter().enumerate().map(with_this).any(|count| count > bound)
}

/// What this message adds to the count at this place of the answer.
fn added(question: &Question, at: usize) -> u32 {
    match at {
        _ if question.times == 0 => 0,
        _ if at < question.reported.len() => question.times,
        _ => u32::from(at < question.reported.len() + question.once.len()),
    }
}

/// The higher of what is known here and elsewhere, with what this message adds to the latter.
pub(super) fn together(question: &Question, here: &[u32], elsewhere: &Elsewhere) -> Vec<u32> {
    let of = |(at, (&here, elsewhere)): (usize, (&u32, &Option<u32>))| {
        elsewhere.map_or(here, |elsewhere| here.max(elsewhere.saturating_add(added(question, at))))
    };
    here.iter().zip(elsewhere).enumerate().map(of).collect()
}

/// Raises counts of which the server tells nothing by itself, since they are low, to what it has. Where it does not answer in time, they stay.
pub(super) async fn raise(asks: &RemoteCounts, signatures: &[Signature], counts: &mut [u32]) {
    let low: Vec<usize> = (0..counts.len()).filter(|&at| counts[at] < asks.bound()).collect();
    let deadline = Instant::now() + PATIENCE;
    for some in low.chunks(MAX_ASKED) {
        let asked: Vec<Signature> = some.iter().map(|&at| signatures[at]).collect();
        let Some(elsewhere) = asks.counts_now(&asked, deadline).await else { return };
        some.iter().zip(elsewhere).for_each(|(&at, count)| counts[at] = counts[at].max(count));
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

    /// What others are not told they are not asked, either: nothing of private mail, and where exact signatures stay here, neither these
    /// nor what follows from them.
    #[test]
    fn what_is_not_told_is_not_asked() {
        let asks = RemoteCounts::new(Vec::new(), Arc::new(Links::new(&[], false)), 10);
        let question = Question {
            reported: vec![signature(1)],
            once: vec![signature(2)],
            asked: vec![signature(3), signature(4)],
            asked_exact: 1,
            times: 1,
            ..Question::default()
        };
        let may = |shared| Asking::new(&asks, shared, false).may_ask(&question, 4);
        assert_eq!(may(Shared::All), [true; 4]);
        assert_eq!(may(Shared::Once), [false, true, true, false]);
        assert_eq!(may(Shared::Nothing), [false; 4]);
    }

    /// One copy may be bulk where something of it is held; one to many, where these could make up for what is not.
    #[test]
    fn what_may_be_bulk() {
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
    fn what_this_message_adds_is_counted_once() {
        let question = Question {
            reported: vec![signature(1)],
            once: vec![signature(2)],
            asked: vec![signature(3)],
            times: 3,
            ..Question::default()
        };
        let elsewhere = vec![Some(4), Some(7), Some(9)];
        assert_eq!(together(&question, &[3, 1, 0], &elsewhere), [7, 8, 9]);
        assert_eq!(together(&question, &[13, 1, 0], &vec![Some(4), None, None]), [13, 1, 0]);
    }
}
