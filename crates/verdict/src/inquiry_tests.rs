// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of inquiries: a ledger that fails, look-ups without a report, outbound mail.

use super::inquiry::{Inquiry, Mode};
use super::question::Question;
use bulkmark_mail::RawMessage;
use bulkmark_policy::Counts;
use bulkmark_signature::{Signatures, signatures};
use bulkmark_types::{FederationKey, Signature};
use std::collections::HashMap;

fn of(raw: &str) -> Signatures {
    let raw = RawMessage::from_bytes(raw.as_bytes());
    signatures(&raw, &FederationKey::public(), &bulkmark_signature::Settings::default())
}

/// A ledger in memory, whose disk fails after some questions.
#[derive(Default)]
struct Ledger(HashMap<Signature, u32>);

impl Ledger {
    fn judge(&mut self, signatures: &Signatures, mode: Mode, after: usize) -> Option<Counts> {
        let key = FederationKey::public();
        let mut inquiry = Inquiry::new(signatures, &key, mode);
        let mut left = after;
        while let Some(Question { reported, once, also, asked, times, .. }) = inquiry.ask() {
            assert_eq!(also, [], "the network is unknown");
            if left == 0 {
                return inquiry.fail().then(|| inquiry.counts());
            }
            left -= 1;
            inquiry.answer(&self.count(&reported, &once, &asked, times));
        }
        Some(inquiry.counts())
    }

    fn answer_all(&mut self, inquiry: &mut Inquiry<'_>) {
        while let Some(Question { reported, once, asked, times, .. }) = inquiry.ask() {
            inquiry.answer(&self.count(&reported, &once, &asked, times));
        }
    }

    fn count(
        &mut self,
        reported: &[Signature],
        once: &[Signature],
        asked: &[Signature],
        times: u32,
    ) -> Vec<u32> {
        for (signatures, times) in [(reported, times), (once, 1)] {
            for signature in signatures {
                *self.0.entry(*signature).or_default() += times;
            }
        }
        let all = [reported, once, asked].into_iter().flatten();
        all.map(|s| self.0.get(s).copied().unwrap_or(0)).collect()
    }
}

const LETTER: &str = "Subject: x\n\nalpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi\n";

#[test]
fn a_disk_that_fails_between_two_reports_leaves_the_count_of_the_body() {
    let (mut ledger, letter) = (Ledger::default(), of(LETTER));
    for n in 1..=9 {
        let counts = ledger.judge(&letter, Mode::Report(1), 3);
        assert_eq!(counts, Some(Counts { body: Some(n), near: Some(n), spam: None }));
    }
    let counts = ledger.judge(&letter, Mode::Report(1), 1);
    assert_eq!(counts, Some(Counts { body: Some(10), near: None, spam: None }));
    assert_eq!(ledger.judge(&letter, Mode::Report(1), 0), None);
    // It was counted once.
    let counts = ledger.judge(&letter, Mode::Report(1), 3);
    assert_eq!(counts, Some(Counts { body: Some(11), near: Some(11), spam: None }));
}

/// A message without a body signature is not clean if the ledger fails.
#[test]
fn without_a_body_there_is_no_count() {
    let links =
        of("Content-Type: text/html\n\n<a href='http://a.example/'>x</a><a href='http://b.example/'>\n");
    assert!(links.body.is_err() && !links.near.is_empty());
    let mut ledger = Ledger::default();
    for n in 1..=9 {
        assert_eq!(ledger.judge(&links, Mode::Report(1), 3).unwrap().near, Some(n));
    }
    assert_eq!(ledger.judge(&links, Mode::Report(1), 1), None);
}

#[test]
fn a_look_up_counts_nothing_and_returns_the_counts() {
    let (mut ledger, letter) = (Ledger::default(), of(LETTER));
    let asked = |ledger: &mut Ledger| ledger.judge(&letter, Mode::Ask, 3).unwrap();
    assert_eq!(asked(&mut ledger), Counts { body: Some(0), near: Some(0), spam: None });
    for n in 1..=9 {
        // To three recipients: three for the body, one for near.
        let counts = ledger.judge(&letter, Mode::Report(3), 3).unwrap();
        assert_eq!(counts, Counts { body: Some(3 * n), near: Some(n), spam: None });
        assert_eq!(asked(&mut ledger), counts);
    }
}

#[test]
fn outbound_mail_is_counted_separately() {
    let (mut ledger, letter, key) = (Ledger::default(), of(LETTER), FederationKey::public());
    for n in 1..=9 {
        assert_eq!(ledger.judge(&letter, Mode::Report(1), 3).unwrap().body, Some(n));
        let mut inquiry = Inquiry::new(&letter, &key, Mode::Report(2)).outbound();
        ledger.answer_all(&mut inquiry);
        assert_eq!(inquiry.counts(), Counts { body: Some(2 * n), near: Some(n), spam: None });
    }
}

#[test]
fn without_signatures_there_is_no_question() {
    let (none, key) = (of("Subject: x\n\nok\n"), FederationKey::public());
    let mut inquiry = Inquiry::new(&none, &key, Mode::Report(1));
    assert_eq!(inquiry.ask(), None);
    assert_eq!((inquiry.counts(), inquiry.reported()), (Counts::default(), 0));
}

/// A message with a signature twice reports it once.
#[test]
fn each_signature_is_reported_once() {
    let mut twice = of(LETTER);
    twice.near.things =
        [1, 1, 2].map(|n| (bulkmark_signature::near::Thing::Links, Signature::from_bytes([n; 16]))).into();
    let key = FederationKey::public();
    let question = Inquiry::new(&twice, &key, Mode::Report(1)).ask().unwrap();
    let all = [question.reported, question.once, question.asked].concat();
    let mut sorted = all.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), all.len());
    let mut ledger = Ledger::default();
    for n in 1..=5 {
        let counts = ledger.judge(&twice, Mode::Report(1), 3).unwrap();
        assert_eq!(counts, Counts { body: Some(n), near: Some(n), spam: None });
    }
}
