// SPDX-License-Identifier: GPL-3.0-or-later
//! From the signatures of a message to its counts, by questions that the caller puts to a ledger.
//!
//! A message takes one question, or two where the answer to the first says that more is to be known: whether what it shares
//! with others was found in messages with other text. docs/signatures.md has the reasons.

use crate::policy::Counts;
use crate::signature::near::Seen;
use crate::signature::{FederationKey, Signature, Signatures};

/// Whether a message is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is reported so many times, and its counts include these.
    Report(u32),
    /// It is only asked for; its counts are those of messages before it.
    Ask,
}

/// What to put to the ledger. The answer has a count for each signature, first for those that are reported; theirs include this
/// report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What was seen; no signature twice.
    pub reported: Vec<Signature>,
    /// What is only asked for.
    pub asked: Vec<Signature>,
    /// How often it was seen.
    pub times: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    First,
    Second,
    Done,
}

/// The questions about one message. Put each to a ledger, [`answer`](Self::answer) it, until there is none.
#[derive(Debug)]
pub struct Inquiry<'a> {
    signatures: &'a Signatures,
    key: &'a FederationKey,
    mode: Mode,
    step: Step,
    /// What the open question is about, and how much of it is reported.
    open: (Vec<Signature>, usize),
    seen: Seen,
    body: Option<u32>,
    knows_near: bool,
    reported: usize,
}

impl<'a> Inquiry<'a> {
    /// About a message with these signatures, which were made under `key`.
    #[must_use]
    pub fn new(signatures: &'a Signatures, key: &'a FederationKey, mode: Mode) -> Self {
        let step = if signatures.is_empty() { Step::Done } else { Step::First };
        Self {
            signatures,
            key,
            mode,
            step,
            open: (Vec::new(), 0),
            seen: Seen::default(),
            body: None,
            knows_near: !signatures.near.is_empty(),
            reported: 0,
        }
    }

    /// The next question; none when the counts are known.
    pub fn ask(&mut self) -> Option<Question> {
        let near = &self.signatures.near;
        let (reported, asked) = match self.step {
            Step::First => (self.signatures.reported(), near.asked()),
            Step::Second => (near.strays(self.key, &self.seen), near.doubts(self.key, &self.seen)),
            Step::Done => return None,
        };
        let question = match self.mode {
            Mode::Report(times) => Question { reported: distinct(reported), asked: distinct(asked), times },
            // Nothing is reported, and so no strays are: they would only be added.
            Mode::Ask if self.step == Step::Second => {
                Question { reported: Vec::new(), asked: distinct(asked), times: 0 }
            }
            Mode::Ask => {
                Question { reported: Vec::new(), asked: distinct([reported, asked].concat()), times: 0 }
            }
        };
        if question.reported.is_empty() && question.asked.is_empty() {
            self.step = Step::Done;
            return None;
        }
        self.open = ([&question.reported[..], &question.asked].concat(), question.reported.len());
        Some(question)
    }

    /// Takes the answer to the question that [`ask`](Self::ask) gave last.
    pub fn answer(&mut self, counts: &[u32]) {
        let (signatures, reported) = std::mem::take(&mut self.open);
        let times = self.times();
        let before = counts.iter().enumerate().map(|(i, &count)| {
            // What this report added is taken off again: near-replicas are judged by what was seen before.
            if i < reported { count.saturating_sub(times) } else { count }
        });
        self.reported += reported;
        let before: Vec<u32> = before.collect();
        match self.step {
            Step::First => {
                // The body signature is the first of all.
                self.body = self.signatures.body.ok().and_then(|_| counts.first().copied());
                self.seen.add(&signatures, &before);
                self.step = Step::Second;
            }
            Step::Second => {
                // Strays count from the next message on, doubts for this one.
                self.seen.add(&signatures[reported..], before.get(reported..).unwrap_or(&[]));
                self.step = Step::Done;
            }
            Step::Done => (),
        }
    }

    /// The open question has no answer and will have none. True when the message can be judged nevertheless, by its body
    /// alone: what is known of its near-replicas may be too much.
    pub fn fail(&mut self) -> bool {
        let is_counted = self.step == Step::Second && self.body.is_some();
        self.step = Step::Done;
        self.knows_near = false;
        is_counted
    }

    /// The counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let near = || self.signatures.near.count(self.key, &self.seen).saturating_add(self.times());
        Counts { body: self.body, near: self.knows_near.then(near) }
    }

    /// How many signatures were reported.
    #[must_use]
    pub const fn reported(&self) -> usize {
        self.reported
    }

    /// What is known of the signatures.
    #[must_use]
    pub const fn seen(&self) -> &Seen {
        &self.seen
    }

    const fn times(&self) -> u32 {
        match self.mode {
            Mode::Report(times) => times,
            Mode::Ask => 0,
        }
    }
}

/// The same without what stands there a second time: one message says everything once.
fn distinct(signatures: Vec<Signature>) -> Vec<Signature> {
    let mut seen = Vec::with_capacity(signatures.len());
    for signature in signatures {
        if !seen.contains(&signature) {
            seen.push(signature);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::RawMessage;
    use crate::signature::{self, signatures};
    use std::collections::HashMap;

    fn of(raw: &str) -> Signatures {
        let raw = RawMessage::from_bytes(raw.as_bytes()).unwrap();
        signatures(&raw, &FederationKey::public(), &signature::Settings::default())
    }

    /// A ledger in memory, whose disk fails after so many questions.
    #[derive(Default)]
    struct Ledger(HashMap<Signature, u32>);

    impl Ledger {
        fn judge(&mut self, signatures: &Signatures, mode: Mode, after: usize) -> Option<Counts> {
            let key = FederationKey::public();
            let mut inquiry = Inquiry::new(signatures, &key, mode);
            let mut left = after;
            while let Some(Question { reported, asked, times }) = inquiry.ask() {
                if left == 0 {
                    return inquiry.fail().then(|| inquiry.counts());
                }
                left -= 1;
                for signature in &reported {
                    *self.0.entry(*signature).or_default() += times;
                }
                let all = reported.iter().chain(&asked);
                let counts: Vec<_> = all.map(|s| self.0.get(s).copied().unwrap_or(0)).collect();
                inquiry.answer(&counts);
            }
            Some(inquiry.counts())
        }
    }

    const LETTER: &str = "Subject: x\n\nalpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu\n";

    #[test]
    fn a_disk_that_fails_between_two_reports_leaves_the_count_of_the_body() {
        let (mut ledger, letter) = (Ledger::default(), of(LETTER));
        for n in 1..=9 {
            let counts = ledger.judge(&letter, Mode::Report(1), 2);
            assert_eq!(counts, Some(Counts { body: Some(n), near: Some(n) }));
        }
        let counts = ledger.judge(&letter, Mode::Report(1), 1);
        assert_eq!(counts, Some(Counts { body: Some(10), near: None }));
        assert_eq!(ledger.judge(&letter, Mode::Report(1), 0), None);
        // It was counted, once.
        let counts = ledger.judge(&letter, Mode::Report(1), 2);
        assert_eq!(counts, Some(Counts { body: Some(11), near: Some(11) }));
    }

    /// What has no body to be judged by is not taken for clean.
    #[test]
    fn without_a_body_there_is_no_count() {
        let links =
            of("Content-Type: text/html\n\n<a href='http://a.example/'>x</a><a href='http://b.example/'>\n");
        assert!(links.body.is_err() && !links.near.is_empty());
        let mut ledger = Ledger::default();
        for n in 1..=9 {
            assert_eq!(ledger.judge(&links, Mode::Report(1), 2).unwrap().near, Some(n));
        }
        assert_eq!(ledger.judge(&links, Mode::Report(1), 1), None);
    }

    #[test]
    fn asking_counts_nothing_and_says_what_was_seen() {
        let (mut ledger, letter) = (Ledger::default(), of(LETTER));
        let asked = |ledger: &mut Ledger| ledger.judge(&letter, Mode::Ask, 2).unwrap();
        assert_eq!(asked(&mut ledger), Counts { body: Some(0), near: Some(0) });
        for n in 1..=9 {
            let counts = ledger.judge(&letter, Mode::Report(3), 2).unwrap();
            assert_eq!(counts, Counts { body: Some(3 * n), near: Some(3 * n) });
            assert_eq!(asked(&mut ledger), counts);
        }
    }

    #[test]
    fn of_nothing_nothing_is_asked() {
        let (none, key) = (of("Subject: x\n\nok\n"), FederationKey::public());
        let mut inquiry = Inquiry::new(&none, &key, Mode::Report(1));
        assert_eq!(inquiry.ask(), None);
        assert_eq!((inquiry.counts(), inquiry.reported()), (Counts::default(), 0));
    }

    /// Whatever made a signature come twice, one message reports it once.
    #[test]
    fn each_signature_is_reported_once() {
        let mut twice = of(LETTER);
        twice.near.things =
            [1, 1, 2].map(|n| (signature::near::Thing::Links, Signature::from_bytes([n; 16]))).into();
        let key = FederationKey::public();
        let question = Inquiry::new(&twice, &key, Mode::Report(1)).ask().unwrap();
        let mut sorted = question.reported.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), question.reported.len());
        let mut ledger = Ledger::default();
        for n in 1..=5 {
            let counts = ledger.judge(&twice, Mode::Report(1), 2).unwrap();
            assert_eq!(counts, Counts { body: Some(n), near: Some(n) });
        }
    }
}
