// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of the sources that bulk needs to be refused: schedules of copies from several networks, with a ledger in memory.

use super::{Content, Counted, Envelope, Inquiry, Mode, Question, Rules, SourceCache};
use bulkmark_mail::RawMessage;
use bulkmark_policy::{Action, Backing, Held, Sources};
use bulkmark_types::{BUCKETS, ClientNetwork, FederationKey, Signature};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// Rules by which all bulk is refused.
fn rules() -> Rules {
    let mut rules = Rules::default();
    rules.actions.bulk = Action::Reject;
    rules.actions.near = Action::Reject;
    rules
}

fn ip(network: u8) -> IpAddr {
    [198, 51, network, 7].into()
}

/// Some networks of different buckets.
fn strangers(number: usize) -> Vec<u8> {
    let (key, mut buckets) = (FederationKey::public(), HashSet::new());
    let is_new = |&n: &u8| buckets.insert(ClientNetwork::of(ip(n)).bucket(&key));
    let found: Vec<u8> = (0..=255).filter(is_new).take(number).collect();
    assert_eq!(found.len(), number, "there are {BUCKETS} buckets");
    found
}

/// A notice in the bank's words, to a customer of this name.
fn notice(name: &str) -> String {
    format!(
        "Subject: n\n\nDear {name}, we have changed our terms of business. The new terms apply to all accounts from the \
         first of March. You will find them on our web pages and in every branch. If you do not agree, write to us \
         within two months; otherwise they are taken as accepted. Your deposits remain protected by the guarantee \
         scheme up to the legal limit, and nothing changes for cards, standing orders or savings plans that you \
         have with us today. Please do not answer this message, since nobody reads that mailbox; call the number \
         on the back of your card instead.\n"
    )
}

#[derive(Default)]
struct Ledger {
    counts: HashMap<Signature, u32>,
    /// The numbers of reported signatures, and of those about networks.
    reported: usize,
    also: usize,
    questions: usize,
    looked_up: usize,
    /// The cache, if there is one.
    cache: Option<SourceCache>,
}

impl Ledger {
    fn answer(&mut self, question: &Question) -> Vec<u32> {
        let Question { reported, once, also, asked, times, .. } = question;
        let reports = reported.iter().map(|&s| (s, *times)).chain(once.iter().map(|&s| (s, 1)));
        for (signature, times) in reports.chain(also.iter().copied()) {
            *self.counts.entry(signature).or_default() += times;
            self.reported += 1;
        }
        self.also += also.len();
        self.questions += 1;
        self.looked_up += asked.len();
        let wanted = [reported, once, asked].into_iter().flatten();
        wanted.map(|s| self.counts.get(s).copied().unwrap_or(0)).collect()
    }

    /// The decision on a message from this client, to this many recipients; the ledger fails at the question of this number.
    fn judge(
        &mut self,
        raw: &str,
        client: Option<IpAddr>,
        times: u32,
        fails_at: Option<usize>,
    ) -> Option<Counted> {
        let rules = rules();
        let content = Content::of(&RawMessage::from_bytes(raw.as_bytes()), &rules);
        let envelope = Envelope { client, ..Envelope::default() };
        let inquiry = Inquiry::new(&content.signatures, &rules.key, Mode::Report(times));
        let mut inquiry = inquiry.from_network(envelope.network(), &rules.thresholds);
        let cache = self.cache.take();
        if let Some(cache) = &cache {
            inquiry = inquiry.with_cache(cache, 1_800_000_000);
        }
        let mut number = 0;
        while let Some(question) = inquiry.ask() {
            if fails_at == Some(number) {
                if !inquiry.fail() {
                    return None;
                }
                break;
            }
            number += 1;
            inquiry.answer(&self.answer(&question));
        }
        let known = (inquiry.counts(), inquiry.backings());
        self.cache = cache;
        Counted::new(&rules, (&envelope, &rules.parties(&envelope)), &content, known, None)
    }

    fn send(&mut self, raw: &str, network: u8, times: u32) -> Counted {
        self.judge(raw, Some(ip(network)), times, None).unwrap()
    }
}

fn is_refused(counted: &Counted) -> bool {
    counted.decision.action == Action::Reject
}

fn sources(counted: &Counted) -> Sources {
    match counted.decision.backing {
        Backing::Known(sources) => sources,
        other => panic!("{other:?}"),
    }
}

#[test]
fn copies_of_one_sender_are_refused_from_the_twentieth_on() {
    for copy in [|_| notice("Anna"), |n: u32| notice(&format!("customer{n}"))] {
        let mut ledger = Ledger::default();
        for n in 1..=60 {
            let counted = ledger.send(&copy(n), 1, 1);
            assert_eq!(is_refused(&counted), n >= 20, "copy {n}: {:?}", counted.decision);
            assert_eq!(counted.decision.held, None);
        }
    }
}

/// A letter to a whole parish, with and without near signatures.
#[test]
fn bulk_to_many_recipients_at_once_is_refused_from_the_third_message_on() {
    for text in [
        notice("all"),
        "Subject: n\n\nChoir practice is on Friday at eight this week, not on Thursday.\n".to_owned(),
    ] {
        let mut ledger = Ledger::default();
        for n in 1..=5 {
            let counted = ledger.send(&text, 1, 22);
            assert!(counted.is_bulk);
            assert_eq!(
                counted.decision.held == Some(Held::Messages),
                n < 3,
                "message {n}: {:?}",
                counted.decision
            );
            assert_eq!(is_refused(&counted), n >= 3);
        }
    }
}

/// The body has no blanks, so it tells how many messages there are, where near signatures differ.
#[test]
fn copies_in_which_a_program_moves_blanks_are_messages() {
    let mut ledger = Ledger::default();
    for (n, network) in (1..).zip(strangers(40)) {
        let text = notice("Anna");
        let (head, body) = text.split_once("\n\n").unwrap();
        let words = body.trim_end().split(' ').enumerate();
        let moved = words.map(|(i, word)| {
            format!("{word}{}", if (i + 1) * (n + 2) * 7919 % 101 % 2 == 0 { "" } else { " " })
        });
        let counted = ledger.send(&format!("{head}\n\n{}\n", moved.collect::<String>()), network, 1);
        assert_eq!(is_refused(&counted), n >= 20, "copy {n}: {:?}", counted.decision);
    }
}

#[test]
fn a_campaign_from_many_hosts_is_refused_from_the_twentieth_on() {
    for copy in [|_| notice("Anna"), |n: usize| notice(&format!("customer{n}"))] {
        let mut ledger = Ledger::default();
        for (n, network) in (1..).zip(strangers(40)) {
            let counted = ledger.send(&copy(n), network, 1);
            assert_eq!(is_refused(&counted), n >= 20, "copy {n}: {:?}", counted.decision);
        }
        // Four hosts are enough if each is in its own network.
        let (mut ledger, hosts) = (Ledger::default(), strangers(4));
        for (n, network) in (1..=60).zip(hosts.into_iter().cycle()) {
            let counted = ledger.send(&copy(n), network, 1);
            assert_eq!(is_refused(&counted), n >= 20, "copy {n}: {:?}", counted.decision);
        }
    }
}

/// An attacker sends the text of a bank to twenty recipients. His own copies are refused, but no letter of the bank; for that he needs three
/// networks.
#[test]
fn an_attacker_needs_three_networks_to_have_a_bank_s_letter_refused() {
    let [bank, others @ ..] = &strangers(4)[..] else { unreachable!() };
    for attackers in 1..=3 {
        let mut ledger = Ledger::default();
        for &network in &others[..attackers] {
            let counted = ledger.send(&notice("Anna"), network, 20);
            assert!(counted.is_bulk);
            assert_eq!(
                is_refused(&counted),
                network == others[2],
                "one message to many, until there are three"
            );
        }
        for n in 1..=19 {
            let counted = ledger.send(&notice("Anna"), *bank, 1);
            assert!(counted.is_bulk);
            assert_eq!(is_refused(&counted), attackers == 3, "letter {n}: {:?}", counted.decision);
            assert_eq!(counted.decision.held.is_some(), attackers < 3);
            let Sources { others, own } = sources(&counted);
            assert_eq!((others, own), (u32::try_from(attackers).unwrap(), Some(n)));
        }
    }
}

/// The same if each letter has another recipient, and their common text is bulk.
#[test]
fn letters_that_differ_need_as_many_networks() {
    let [bank, others @ ..] = &strangers(4)[..] else { unreachable!() };
    for attackers in 1..=3 {
        let mut ledger = Ledger::default();
        for n in 0..60 {
            ledger.send(&notice(&format!("victim{n}")), others[n % attackers], 1);
        }
        for n in 1..=15 {
            let counted = ledger.send(&notice(&format!("customer{n}")), *bank, 1);
            assert!(counted.is_bulk, "letter {n}: {counted:?}");
            assert_eq!(is_refused(&counted), attackers == 3, "letter {n}: {:?}", counted.decision);
            assert_eq!(counted.decision.held.is_some(), attackers < 3);
        }
    }
}

/// An attacker sends a part of the letters' text, so that they resemble his from the first one on: it still takes as many of the bank's own
/// letters as without him.
#[test]
fn a_part_of_the_text_from_elsewhere_makes_no_letter_refused() {
    let [bank, stranger] = strangers(2)[..] else { unreachable!() };
    let words: Vec<String> = notice("Anna").split_whitespace().map(str::to_owned).collect();
    for part in [30, 60, 80, 100] {
        let mut ledger = Ledger::default();
        for n in 0..30 {
            let text = words[2..part].join(" ");
            ledger.send(&format!("Subject: n\n\nNumber{n} {text}\n"), stranger, 1);
        }
        for n in 1..=19 {
            let counted = ledger.send(&notice(&format!("customer{n}")), bank, 1);
            assert!(!is_refused(&counted), "{part} words, letter {n}: {:?}", counted.decision);
        }
    }
}

#[test]
fn a_client_without_an_address_is_no_source() {
    let mut ledger = Ledger::default();
    for n in 1..=40 {
        let counted = ledger.judge(&notice("Anna"), None, 1, None).unwrap();
        assert_eq!((counted.is_bulk, is_refused(&counted)), (n >= 20, false));
        if n >= 20 {
            assert_eq!(sources(&counted), Sources { others: 0, own: None });
        }
    }
    let first = ledger.send(&notice("Anna"), 1, 1);
    assert_eq!(sources(&first), Sources { others: 0, own: Some(1) });
    // It may still come from several networks.
    for network in strangers(3) {
        ledger.send(&notice("Anna"), network, 1);
    }
    assert!(is_refused(&ledger.judge(&notice("Anna"), None, 1, None).unwrap()));
}

/// If any question has no answer, the message is only marked.
#[test]
fn a_ledger_that_fails_refuses_nothing() {
    for copy in [|_| notice("Anna"), |n: u32| notice(&format!("customer{n}"))] {
        let mut ledger = Ledger::default();
        for n in 1..=30 {
            ledger.send(&copy(n), 1, 1);
        }
        let questions = ledger.questions;
        assert!(is_refused(&ledger.send(&copy(31), 1, 1)));
        for fails_at in 0..ledger.questions - questions {
            let counted = ledger.judge(&copy(32), Some(ip(1)), 1, Some(fails_at));
            let action = counted.map_or(Action::Mark, |counted| counted.decision.action);
            assert_eq!(action, Action::Mark, "at question {fails_at}");
        }
        assert!(is_refused(&ledger.send(&copy(33), 1, 1)));
    }
}

/// Milters that judge copies at the same time do not see each other's reports, but a network still counts once.
#[test]
fn reports_at_the_same_time_make_no_second_network() {
    let (rules, mut ledger) = (rules(), Ledger::default());
    ledger.send(&notice("Anna"), 1, 20);
    let raw = notice("Anna");
    let content = Content::of(&RawMessage::from_bytes(raw.as_bytes()), &rules);
    let network = Some(ClientNetwork::of(ip(2)));
    let inquiry = || {
        let inquiry = Inquiry::new(&content.signatures, &rules.key, Mode::Report(1));
        inquiry.from_network(network, &rules.thresholds)
    };
    let mut all: Vec<_> = (0..10).map(|_| inquiry()).collect();
    loop {
        let questions: Vec<_> = all.iter_mut().map(Inquiry::ask).collect();
        if questions.iter().all(Option::is_none) {
            break;
        }
        // All look-ups come before the first report.
        let asked = |question: &Question| Question { asked: question.asked.clone(), ..Question::default() };
        let before: Vec<_> = questions.iter().map(|q| q.as_ref().map(|q| ledger.answer(&asked(q)))).collect();
        for ((inquiry, question), before) in all.iter_mut().zip(questions).zip(before) {
            let (Some(question), Some(before)) = (question, before) else { continue };
            let all = ledger.answer(&question);
            let own = all.len() - question.asked.len();
            inquiry.answer(&[&all[..own], &before].concat());
        }
    }
    let bank = ledger.send(&raw, strangers(3)[2], 1);
    assert!(sources(&bank).others <= 2 && !is_refused(&bank), "{:?}", bank.decision);
}

/// Mail below the quarter of the threshold costs nothing; bulk, which is a part of all mail, costs about a tenth more signatures.
#[test]
fn few_signatures_are_about_networks() {
    let mut ledger = Ledger::default();
    for n in 1..=4 {
        ledger.send(&notice("Anna"), n, 1);
    }
    assert_eq!(ledger.also, 0);
    for copies in [20, 100, 1000] {
        for networks in [1, 3, 40] {
            for differ in [false, true] {
                let (mut ledger, from) = (Ledger::default(), strangers(networks));
                for n in 0..copies {
                    let name = if differ { format!("customer{n}") } else { "Anna".to_owned() };
                    ledger.send(&notice(&name), from[n % networks], 1);
                }
                let share = ledger.also as f64 / (ledger.reported - ledger.also) as f64;
                assert!(share < 0.11, "{copies} copies, {networks} networks, {differ}: {share}");
            }
        }
    }
}

/// A step of a schedule: the network, the recipients, the text, and the question at which the ledger fails.
type Sent = (u8, u32, u8, Option<usize>);

fn schedule() -> impl Strategy<Value = Vec<Sent>> {
    let sent = (0u8..6, 1u32..8, 0u8..2, prop_oneof![4 => Just(None), 1 => (0usize..4).prop_map(Some)]);
    prop::collection::vec(sent, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// The cache changes no verdict.
    #[test]
    fn the_cache_changes_no_verdict(schedule in schedule()) {
        let mut fresh = Ledger::default();
        let mut caching = Ledger { cache: Some(SourceCache::default()), ..Ledger::default() };
        for (network, times, text, _) in schedule {
            let raw = notice(["Anna", "Bruno"][usize::from(text)]);
            let (asked, counted) = (fresh.send(&raw, network, times), caching.send(&raw, network, times));
            prop_assert_eq!(is_refused(&asked), is_refused(&counted));
            prop_assert_eq!(fresh.reported, caching.reported);
        }
    }

    /// For any sources and failures: a message is refused only if three other networks, or its own one often enough, sent it.
    #[test]
    fn nothing_is_refused_without_networks(schedule in schedule()) {
        let mut ledger = Ledger::default();
        let mut sent: Vec<(u8, u32)> = Vec::new();
        for (network, times, text, fails_at) in schedule {
            let name = ["Anna", "Bruno"][usize::from(text)];
            let counted = ledger.judge(&notice(name), Some(ip(network)), times, fails_at);
            sent.push((network, times));
            let Some(counted) = counted else { continue };
            let others: HashSet<u8> = sent.iter().map(|&(from, _)| from).filter(|&from| from != network).collect();
            let own: u32 = sent.iter().filter(|&&(from, _)| from == network).map(|&(_, times)| times).sum();
            prop_assert!(!is_refused(&counted) || others.len() >= 3 || own >= 15, "{:?}", counted.decision);
            if fails_at.is_some() && counted.decision.backing == Backing::Unknown {
                prop_assert_eq!(counted.decision.action, Action::Mark);
            }
        }
    }
}

/// In a long mailing, known sources are not looked up for each copy, and each copy is judged as if they were.
#[test]
fn cached_sources_are_not_looked_up_again() {
    for networks in [1, 12] {
        let from = strangers(networks);
        let mut fresh = Ledger::default();
        let mut caching = Ledger { cache: Some(SourceCache::default()), ..Ledger::default() };
        for n in 0..400 {
            let raw = notice(&format!("customer{n}"));
            let network = from[n % networks];
            let (asked, counted) = (fresh.send(&raw, network, 1), caching.send(&raw, network, 1));
            assert_eq!(is_refused(&asked), is_refused(&counted), "copy {n}");
        }
        assert_eq!(fresh.reported, caching.reported);
        assert!(fresh.looked_up > 4 * caching.looked_up, "{} {}", fresh.looked_up, caching.looked_up);
    }
}

/// A site that does not share exact signatures must know which signatures derive from them.
#[test]
fn signatures_that_derive_from_exact_counts_are_marked() {
    for is_exact in [true, false] {
        let (mut ledger, mut rules, mut followed) = (Ledger::default(), rules(), 0);
        rules.signature.near = !is_exact;
        for (n, network) in (1..).zip(strangers(20)) {
            let raw = notice(&if is_exact { "Anna".to_owned() } else { format!("customer{n}") });
            let content = Content::of(&RawMessage::from_bytes(raw.as_bytes()), &rules);
            let inquiry = Inquiry::new(&content.signatures, &rules.key, Mode::Report(1));
            let mut inquiry = inquiry.from_network(Some(ClientNetwork::of(ip(network))), &rules.thresholds);
            while let Some(question) = inquiry.ask() {
                assert!(question.also.is_empty() || question.also_exact == is_exact, "{question:?}");
                followed += question.also.len();
                inquiry.answer(&ledger.answer(&question));
            }
        }
        assert!(followed > 0, "exact: {is_exact}");
    }
}
