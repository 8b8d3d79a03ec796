// SPDX-License-Identifier: GPL-3.0-or-later
//! The main risk of a bulk detector: letters by different people that are refused because of their company's text below. And its purpose:
//! mailings are found, whatever is below them.

use crate::memory::Ledger;
use bulkmark_samples::prose::Prose;
use bulkmark_types::{ClientNetwork, Provenance};

/// The count from which on mail is refused.
pub(crate) const BULK: u32 = 20;

/// The keys of all tests: each chooses other passages.
pub(crate) const KEYS: std::ops::Range<u8> = 0..4;

/// The link of a campaign.
pub(crate) const LINK: &str = " http://www.offers.example/order ";

pub(crate) fn message(text: &str) -> Vec<u8> {
    format!("Subject: x\n\n{text}").into_bytes()
}

/// The company's mail server.
fn company() -> Provenance {
    Provenance { network: Some(ClientNetwork::of([192, 0, 2, 7].into())), domain: None }
}

/// The number of bulk letters among a hundred with `own` words above the block, for all keys.
fn bulk_letters(own: usize, block: &str, before: impl Fn(&mut Ledger)) -> usize {
    let mut bulk = 0;
    for key in KEYS {
        let mut ledger = Ledger::under(key);
        before(&mut ledger);
        let mut writer = Prose::new(own as u64 ^ 0x1E77);
        let mut letter = || message(&(writer.text(own) + "\n" + block));
        bulk += (0..100).filter(|_| ledger.see_from(&company(), &letter()) >= BULK).count();
    }
    bulk
}

pub(crate) fn disclaimer() -> String {
    Prose::new(7).text(120)
}

fn signature_block() -> String {
    Prose::new(8).text(64)
}

#[test]
fn letters_above_one_block_are_no_bulk() {
    for (own, block) in [
        (10, signature_block()),
        (20, signature_block()),
        (40, signature_block()),
        (15, disclaimer()),
        (40, disclaimer()),
        (100, disclaimer()),
        (30, disclaimer() + &signature_block() + &Prose::new(9).text(60)),
    ] {
        assert_eq!(
            bulk_letters(own, &block, |_| ()),
            0,
            "{own} words above {}",
            block.split_whitespace().count()
        );
    }
}

/// A circular to a whole department has the disclaimer below it, too.
#[test]
fn a_message_to_many_makes_no_letter_bulk() {
    let circular = message(&(Prose::new(3).text(80) + "\n" + &disclaimer()));
    for own in [15, 40, 100, 200] {
        let before = |ledger: &mut Ledger| {
            let counts = ledger.report(&circular, 25);
            assert_eq!(
                (counts.body, counts.near),
                (Some(25), Some(1)),
                "body counts recipients, near messages"
            );
        };
        assert_eq!(bulk_letters(own, &disclaimer(), before), 0, "{own} words");
    }
}

/// Anybody with a letter of a company has its disclaimer, and may send it often. Only letters before its detection as a block are affected:
/// at most one in a hundred.
#[test]
fn a_stranger_who_sends_the_block_alone_hurts_few_letters() {
    let alone = message(&disclaimer());
    for own in [20, 40, 100] {
        let hurt = bulk_letters(own, &disclaimer(), |ledger| (0..25).for_each(|_| _ = ledger.see(&alone)));
        assert!(hurt <= KEYS.len(), "{hurt} of {} with {own} words", 100 * KEYS.len());
    }
}

/// Each copy has another greeting, and ends with the text that all mail of the firm has.
#[test]
fn a_mailing_reaches_the_threshold_above_a_known_block() {
    let (offer, names) = (Prose::new(11).text(60), &mut Prose::new(12));
    for key in KEYS {
        let mut ledger = Ledger::under(key);
        let mut writer = Prose::new(13);
        for _ in 0..60 {
            ledger.see_from(&company(), &message(&(writer.text(40) + "\n" + &disclaimer())));
        }
        let counts: Vec<u32> = (0..40)
            .map(|_| {
                let greeting = format!("Dear {} {},\n", names.word(), names.word());
                ledger.see(&message(&(greeting + &offer + "\n" + &disclaimer())))
            })
            .collect();
        // One copy or two may pass while passages take turns.
        assert!(counts[21..].iter().all(|&count| count >= BULK), "key {key}: {counts:?}");
    }
}

/// Copies that differ in places are no letters: the new text is not above the known one. Copies without a link, an address or a number could
/// be letters instead, so fewer of them are recognized.
#[test]
fn changed_copies_go_on_counting() {
    let offer: Vec<String> = Prose::new(21).text(150).split_whitespace().map(str::to_owned).collect();
    for (link, enough) in [(LINK, 13), ("", 8)] {
        for key in KEYS {
            let (mut ledger, mut noise) = (Ledger::under(key), Prose::new(22));
            let copy = |noise: &mut Prose| {
                let words =
                    offer.iter().map(|word| if noise.below(30) == 0 { noise.word() } else { word.clone() });
                message(&(words.collect::<Vec<_>>().join(" ") + link))
            };
            let counts: Vec<u32> = (0..60).map(|_| ledger.see(&copy(&mut noise))).collect();
            let bulk = counts[40..].iter().filter(|&&count| count >= BULK).count();
            assert!(bulk >= enough, "key {key}, {link:?}: {bulk} of the last 20 in {counts:?}");
        }
    }
}
