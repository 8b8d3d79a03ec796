// SPDX-License-Identifier: GPL-3.0-or-later
//! New text beside known text can be a letter or a disguised copy, and the sender decides. A firm keeps sending its own disclaimer from its
//! network or verified domain; a campaign comes from ever new networks.

use crate::letters::{BULK, KEYS, LINK, disclaimer, message};
use crate::memory::Ledger;
use bulkmark_samples::prose::Prose;
use bulkmark_types::{ClientNetwork, Provenance};

/// A sender in the network of this number.
fn network(number: usize) -> Provenance {
    let [.., high, low] = number.to_be_bytes();
    Provenance { network: Some(ClientNetwork::of([198, 18 + high, low, 7].into())), domain: None }
}

/// A sender of the firm, whose domain is verified, in this network.
fn firm(number: usize) -> Provenance {
    Provenance { domain: Some("firm.example".to_owned()), ..network(number) }
}

fn bulk(counts: &[u32]) -> usize {
    counts.iter().filter(|&&count| count >= BULK).count()
}

/// For each key, the counts of `number` messages that `sent` writes one after another, after `before` filled the ledger.
fn counts_after(
    before: impl Fn(&mut Ledger),
    number: usize,
    mut sent: impl FnMut(&mut Prose, usize) -> (Provenance, String),
) -> Vec<Vec<u32>> {
    let under = |key| {
        let (mut ledger, mut writer) = (Ledger::under(key), Prose::new(32));
        before(&mut ledger);
        let mut see = |n| {
            let (sender, text) = sent(&mut writer, n);
            ledger.see_from(&sender, &message(&text))
        };
        (0..number).map(&mut see).collect()
    };
    KEYS.map(under).collect()
}

fn counts(number: usize, sent: impl FnMut(&mut Prose, usize) -> (Provenance, String)) -> Vec<Vec<u32>> {
    counts_after(|_| (), number, sent)
}

#[track_caller]
fn none_is_bulk(all: &[Vec<u32>], of: &str) {
    for counts in all {
        assert_eq!(bulk(counts), 0, "{of}: {counts:?}");
    }
}

/// New words above and below the text of a campaign, in lines of twelve.
const DISGUISES: [(usize, usize); 4] = [(12, 0), (0, 12), (12, 12), (24, 0)];

fn offer() -> String {
    Prose::new(31).text(150)
}

/// The text between this many new words.
fn between(writer: &mut Prose, (above, below): (usize, usize), text: &str) -> String {
    writer.text(above) + text + &writer.text(below)
}

/// A text without a link, an address or a number is more likely a letter: with one line above it is still recognized, with two it is a
/// letter.
#[test]
fn a_campaign_from_many_networks_is_bulk_whatever_line_each_copy_has() {
    let without = DISGUISES.into_iter().filter(|(above, below)| above + below < 24);
    let cases = DISGUISES.map(|disguise| (disguise, LINK, 100)).into_iter();
    for (disguise, link, enough) in cases.chain(without.map(|disguise| (disguise, "", 70))) {
        let offer = offer() + link;
        let all = counts(130, |writer, n| (network(n % 40), between(writer, disguise, &offer)));
        for counts in all {
            let bulk = bulk(&counts[24..]);
            assert!(bulk >= enough, "{disguise:?}, {link:?}: {bulk} of 106, {counts:?}");
        }
    }
}

/// The first words weigh most, so nearly all passages may be the warning's.
#[test]
fn letters_below_the_warning_of_a_gateway_are_no_bulk() {
    let warning = Prose::new(35).text(55) + "\n\n";
    for own in [30, 40, 100] {
        let all = counts(60, |writer, n| (network(n), warning.clone() + &writer.text(own)));
        none_is_bulk(&all, &format!("{own} words"));
    }
}

/// They stand between two texts that all letters have. Now and then none of a letter's passages is among those of the message.
#[test]
fn few_letters_between_a_warning_and_a_notice_are_bulk() {
    let (warning, notice) = (Prose::new(35).text(40) + "\n\n", Prose::new(36).text(40));
    let all = counts(60, |writer, n| (network(n), warning.clone() + &writer.text(36) + &notice)).concat();
    assert!(20 * bulk(&all) <= all.len(), "{all:?}");
}

/// Only above, since few passages of a text's end are chosen: below a text the rule needs more new words.
#[test]
fn text_with_different_lines_from_one_network_is_its_own_block() {
    for disguise in [(12, 0), (12, 12), (24, 0)] {
        let all = counts(60, |writer, _| (network(1), between(writer, disguise, &offer())));
        none_is_bulk(&all, &format!("{disguise:?}"));
    }
}

/// The firm has one mail server, or a provider with many networks; then its verified domain identifies it.
#[test]
fn letters_of_one_firm_above_its_disclaimer_are_no_bulk() {
    for own in [15, 30] {
        let of_all = |way: &str, sender: fn(usize) -> Provenance| {
            let all = counts(100, |writer, n| (sender(n), writer.text(own) + &disclaimer()));
            none_is_bulk(&all, &format!("{own} words, {way}"));
        };
        of_all("one network", |_| network(1));
        of_all("one network and domain", |_| firm(1));
        of_all("one domain", firm);
    }
}

/// Spammers add less text than that.
#[test]
fn long_letters_are_no_bulk_from_any_sender() {
    let all = counts(100, |writer, n| (network(n), writer.text(90) + &disclaimer()));
    none_is_bulk(&all, "ninety words");
}

fn attack(ledger: &mut Ledger) {
    let mut writer = Prose::new(34);
    for n in 0..200 {
        let copy = between(&mut writer, (12, 0), &disclaimer());
        ledger.see_from(&network(100 + n), &message(&copy));
    }
}

/// A letter reports its own passages; the next one may have others. So the third may still be refused.
#[test]
fn strangers_who_disguise_a_disclaimer_hurt_few_letters_of_its_owner() {
    for own in [20, 60] {
        for counts in counts_after(attack, 100, |writer, _| (firm(1), writer.text(own) + &disclaimer())) {
            assert!(bulk(&counts[3..]) == 0, "{own} words: {counts:?}");
        }
    }
}

/// Networks are shared, so one must have sent a tenth of all such messages: here about 22.
#[test]
fn a_network_without_a_domain_takes_longer() {
    for own in [20, 60] {
        for counts in counts_after(attack, 100, |writer, _| (network(1), writer.text(own) + &disclaimer())) {
            assert!(bulk(&counts[30..]) == 0, "{own} words: {counts:?}");
        }
    }
}

#[test]
fn a_new_head_on_some_copies_hides_no_others() {
    for line in [0, 12] {
        let is_special = |n: usize| n % 5 == 2;
        let all = counts(100, |writer, n| {
            (network(n % 40), writer.text(if is_special(n) { 40 } else { line }) + &offer())
        });
        for counts in all {
            let others: Vec<u32> = (26..100).filter(|&n| !is_special(n)).map(|n| counts[n]).collect();
            assert!(10 * bulk(&others) >= 9 * others.len(), "{line}: {counts:?}");
        }
    }
}

/// A program writes the head of each copy from six, five and five phrases, and seven other phrases in three wordings: copies have different
/// passages in most slots, and are still counted together.
#[test]
fn copies_with_different_wordings_count_together() {
    let phrase = |n: u64| Prose::new(100 + n).text(5);
    let kept: Vec<String> = (0..7).map(|n| Prose::new(n).text(25)).collect();
    let all = counts(40, |_, n| {
        let n = n as u64;
        let head = [7 * n % 6, 6 + n % 5, 11 + n / 5 % 5].map(phrase).concat();
        let below =
            kept.iter().zip(1..).map(|(kept, line)| kept.clone() + &phrase(20 + 3 * line + n / line % 3));
        (network(n as usize), head + &below.collect::<String>())
    });
    for counts in all {
        assert!(counts.iter().max() >= Some(&36), "{counts:?}");
    }
}

/// A forwarded mailing. With some keys, one in twenty is missed.
#[test]
fn words_above_a_forwarded_mailing_make_no_bulk() {
    let mailing = |ledger: &mut Ledger| {
        for n in 0..60 {
            ledger.see_from(&network(100 + n), &message(&offer()));
        }
    };
    let first = |writer: &mut Prose, n| (network(n), writer.text(40) + &offer());
    let all = counts_after(mailing, 5, first);
    assert!(bulk(&all.concat()) <= 2, "{all:?}");
}

#[test]
fn one_answer_to_different_mail_is_no_bulk() {
    const ANSWER: &str = "Approved, please go ahead with it as we have agreed, and tell the others of the team that the second half \
                          follows after the holidays.\n";
    let all = counts(60, |writer, n| {
        let quoted: String = writer.text(40).lines().map(|line| format!("> {line}\n")).collect();
        (network(1), format!("{ANSWER}\nOn Mon, 2 Mar, a{n}@x.example wrote:\n{quoted}"))
    });
    none_is_bulk(&all, "answers");
    // The same words without a quote are one message.
    let alone = counts(60, |_, _| (network(1), ANSWER.to_owned()));
    assert!(alone.iter().all(|counts| counts.last() == Some(&60)), "{alone:?}");
}

/// It has many networks, so it is no network's own block. The forwarded text is new each time, and the larger part.
#[test]
fn the_same_line_above_different_mail_is_no_bulk_from_any_sender() {
    let all = counts(60, |writer, n| {
        let line = Prose::new(44).text(24);
        let forwarded = writer.text(60);
        let head = format!("From: A{n} <a{n}@x.example>\nSent: 2 March\nTo: B <b@y.example>\nSubject: c{n}");
        (network(n), format!("{line}\n-----Original Message-----\n{head}\n\n{forwarded}"))
    });
    none_is_bulk(&all, "forwarded");
}

#[test]
fn a_warning_above_all_letters_is_no_bulk() {
    let warning = Prose::new(38).text(60);
    for networks in [1, 120] {
        let all = counts(120, |writer, n| {
            let own = 8 + writer.below(113);
            (network(n % networks), warning.clone() + &writer.text(own))
        });
        none_is_bulk(&all, &format!("{networks} networks"));
    }
}

/// Passages overlap the form, so the rule needs about 35 new words to find 20.
#[test]
fn a_form_with_new_text_inside_is_no_bulk() {
    let (top, bottom) = (Prose::new(40).text(60), Prose::new(41).text(60));
    for own in [40, 90] {
        let all = counts(100, |writer, _| (network(1), top.clone() + &writer.text(own) + &bottom));
        none_is_bulk(&all, &format!("{own} words"));
    }
}

/// Even in a campaign. Below a text, the rule needs more new words.
#[test]
fn a_message_of_which_two_fifths_are_new_is_no_bulk_by_the_rest() {
    let known = Prose::new(43).text(70);
    for split in [(50, 0), (0, 80)] {
        let all = counts(100, |writer, n| (network(n), between(writer, split, &known)));
        none_is_bulk(&all, &format!("{split:?}"));
    }
}
