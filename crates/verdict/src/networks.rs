// SPDX-License-Identifier: GPL-3.0-or-later
//! What a message needs besides its count to be refused: schedules of copies from several networks, with a ledger in memory.

use super::{Content, Counted, Envelope, Inquiry, Mode, Question, Rules, Settled};
use bulkmark_mail::RawMessage;
use bulkmark_policy::{Action, Backing, Held, Sources};
use bulkmark_types::{BUCKETS, ClientNetwork, FederationKey, Signature};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// Where everything that is bulk would be refused.
fn rules() -> Rules {
    let mut rules = Rules::default();
    rules.actions.bulk = Action::Reject;
    rules.actions.near = Action::Reject;
    rules
}

fn ip(network: u8) -> IpAddr {
    [198, 51, network, 7].into()
}

/// So many networks of different buckets.
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
    /// Signatures that were reported, and those of them that say from where.
    reported: usize,
    also: usize,
    questions: usize,
    /// What was settled, where that is kept.
    settled: Option<Settled>,
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
        let wanted = [reported, once, asked].into_iter().flatten();
        wanted.map(|s| self.counts.get(s).copied().unwrap_or(0)).collect()
    }

    /// What is decided of a message from there, to so many; the ledger fails at the question of this number.
    fn judge(
        &mut self,
        raw: &str,
        client: Option<IpAddr>,
        times: u32,
        fails_at: Option<usize>,
    ) -> Option<Counted> {
        let rules = rules();
        let content = Content::of(&RawMessage::from_bytes(raw.as_bytes()).unwrap(), &rules);
        let envelope = Envelope { client, ..Envelope::default() };
        let inquiry = Inquiry::new(&content.signatures, &rules.key, Mode::Report(times));
        let mut inquiry = inquiry.from_network(envelope.network(), &rules.thresholds);
        let settled = self.settled.take();
        if let Some(settled) = &settled {
            inquiry = inquiry.recalling(settled, 1_800_000_000);
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
        self.settled = settled;
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

/// A letter to a whole parish, with text that has near signatures and with less.
#[test]
fn what_a_sender_writes_to_many_at_once_is_refused_from_the_third_message_on() {
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

#[test]
fn a_campaign_from_many_hosts_is_refused_from_the_twentieth_on() {
    for copy in [|_| notice("Anna"), |n: usize| notice(&format!("customer{n}"))] {
        let mut ledger = Ledger::default();
        for (n, network) in (1..).zip(strangers(40)) {
            let counted = ledger.send(&copy(n), network, 1);
            assert_eq!(is_refused(&counted), n >= 20, "copy {n}: {:?}", counted.decision);
        }
        // Four hosts are many, if each is in a network of its own.
        let (mut ledger, hosts) = (Ledger::default(), strangers(4));
        for (n, network) in (1..=60).zip(hosts.into_iter().cycle()) {
            let counted = ledger.send(&copy(n), network, 1);
            assert_eq!(is_refused(&counted), n >= 20, "copy {n}: {:?}", counted.decision);
        }
    }
}

/// Somebody sends the text of a bank to twenty recipients. He gets his own copies refused, and not one letter of the bank;
/// for that he needs three networks.
#[test]
fn who_sends_a_bank_s_letter_needs_three_networks_to_have_it_refused() {
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

/// The same where each letter is to somebody else, and what is bulk is what they have in common.
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

/// Somebody sends a part of the letters, so that they are like his from the first one on: still it takes as many of the bank's
/// own ones as without him.
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
    // It may come from several networks nevertheless.
    for network in strangers(3) {
        ledger.send(&notice("Anna"), network, 1);
    }
    assert!(is_refused(&ledger.judge(&notice("Anna"), None, 1, None).unwrap()));
}

/// Whichever question has no answer, what was about to be refused is only marked.
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

/// Milters that judge copies at the same time see nothing of each other's reports, and still a network is one.
#[test]
fn reports_at_the_same_time_make_no_second_network() {
    let (rules, mut ledger) = (rules(), Ledger::default());
    ledger.send(&notice("Anna"), 1, 20);
    let raw = notice("Anna");
    let content = Content::of(&RawMessage::from_bytes(raw.as_bytes()).unwrap(), &rules);
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
        // All are asked before one is answered.
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

/// Mail below the quarter of the threshold costs nothing; and bulk, which is a part of all mail, a tenth or little more.
#[test]
fn few_signatures_tell_networks() {
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

    /// What was settled lately changes no verdict.
    #[test]
    fn what_is_settled_changes_nothing(schedule in schedule()) {
        let mut fresh = Ledger::default();
        let mut recalling = Ledger { settled: Some(Settled::default()), ..Ledger::default() };
        for (network, times, text, _) in schedule {
            let raw = notice(["Anna", "Bruno"][usize::from(text)]);
            let (asked, counted) = (fresh.send(&raw, network, times), recalling.send(&raw, network, times));
            prop_assert_eq!(is_refused(&asked), is_refused(&counted));
            prop_assert_eq!(fresh.reported, recalling.reported);
        }
    }

    /// Whatever comes from where, and whenever the ledger fails: nothing is refused but what three other networks
    /// sent, or its own one often enough.
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

/// A mailing goes on and on: what is known of it is not asked for each copy, and each is judged as if it were.
#[test]
fn what_is_settled_is_not_asked_again() {
    for networks in [1, 12] {
        let from = strangers(networks);
        let mut fresh = Ledger::default();
        let mut recalling = Ledger { settled: Some(Settled::default()), ..Ledger::default() };
        for n in 0..400 {
            let raw = notice(&format!("customer{n}"));
            let network = from[n % networks];
            let (asked, counted) = (fresh.send(&raw, network, 1), recalling.send(&raw, network, 1));
            assert_eq!(is_refused(&asked), is_refused(&counted), "copy {n}");
        }
        assert_eq!(fresh.reported, recalling.reported);
        assert!(fresh.questions - recalling.questions > 300, "{} {}", fresh.questions, recalling.questions);
    }
}

/// Who keeps exact signatures to himself must know what follows from them.
#[test]
fn what_follows_from_exact_counts_is_told_apart() {
    for is_exact in [true, false] {
        let (mut ledger, mut rules, mut followed) = (Ledger::default(), rules(), 0);
        rules.signature.near = !is_exact;
        for (n, network) in (1..).zip(strangers(20)) {
            let raw = notice(&if is_exact { "Anna".to_owned() } else { format!("customer{n}") });
            let content = Content::of(&RawMessage::from_bytes(raw.as_bytes()).unwrap(), &rules);
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
