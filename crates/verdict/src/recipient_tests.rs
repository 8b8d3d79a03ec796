// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of messages to several recipients with several policies: nobody loses mail because of others.

use super::{Content, Counted, Envelope, Finding, Rules};
use bulkmark_mail::RawMessage;
use bulkmark_policy::{
    Action, Backing, Backings, Correspondents, Counts, Decision, Defaults, Held, Policies, Policy,
    PolicySettings, Rehearse, Sources, Verdict, Weight, WhiteList,
};
use proptest::prelude::*;
use std::io;
use std::path::{Path, PathBuf};

/// Recipients that policies and white lists may name.
const USERS: u8 = 6;

const RAW: &[u8] = b"From: a@sender.test\n\nA letter of eight words, or more than these.\n";

fn address(user: u8) -> String {
    format!("u{user}@box.test")
}

/// The settings of one policy, or of the file itself.
#[derive(Debug, Clone)]
struct Settings {
    users: Vec<u8>,
    judge: bool,
    body: u32,
    near: u32,
    bulk: Action,
    near_action: Action,
    /// The threshold of spam, and its action.
    spam: (u32, Action),
    /// Whether mail from correspondents is only marked.
    spares: bool,
    list: String,
}

impl Settings {
    /// The settings as a `[[policy]]`.
    fn policy(&self, name: usize) -> PolicySettings {
        let users: Vec<String> = self.users.iter().map(|&user| address(user)).collect();
        let text = format!(
            "name = \"p{name}\"\nmatch = {{ recipient = {users:?} }}\njudge = {}\n\
             thresholds = {{ body = {}, near = {}, spam = {} }}\nactions = {{ bulk = \"{}\", near = \"{}\", spam = \"{}\", \
             correspondents = \"{}\" }}\nwhitelist = {{ files = [\"list\"] }}\n",
            self.judge,
            self.body,
            self.near,
            self.spam.0,
            self.bulk,
            self.near_action,
            self.spam.1,
            if self.spares { "never-refuse" } else { "off" }
        );
        toml::from_str(&text).unwrap()
    }

    fn read(&self) -> impl Fn(&Path) -> io::Result<Vec<u8>> {
        let list = self.list.clone();
        move |_| Ok(list.clone().into_bytes())
    }
}

fn action() -> impl Strategy<Value = Action> {
    prop::sample::select(Action::ALL.to_vec())
}

fn settings() -> impl Strategy<Value = Settings> {
    let list = prop_oneof![
        4 => Just(String::new()),
        2 => (0..USERS).prop_map(|user| format!("recipient {}\n", address(user))),
        1 => Just("sender sender.test\n".to_owned()),
    ];
    let threshold = || prop::sample::select(vec![1u32, 10, 20, 30]);
    let users = prop::collection::vec(0..USERS, 1..4);
    let judge = prop::bool::weighted(0.8);
    let spam = (1..4u32, action());
    (users, judge, (threshold(), threshold()), (action(), action()), spam, any::<bool>(), list).prop_map(
        |(users, judge, (body, near), (bulk, near_action), spam, spares, list)| Settings {
            users,
            judge,
            body,
            near,
            bulk,
            near_action,
            spam,
            spares,
            list,
        },
    )
}

fn backing() -> impl Strategy<Value = Backing> {
    let known = (0..5u32, prop::option::of(0..40u32));
    prop_oneof![
        Just(Backing::NotAsked),
        Just(Backing::Unknown),
        known.prop_map(|(others, own)| Backing::Known(Sources { others, own })),
    ]
}

fn rules(all: &Settings, policies: &[Settings]) -> Rules {
    let mut rules = Rules::default();
    rules.thresholds.body = i64::from(all.body).try_into().unwrap();
    rules.thresholds.near = i64::from(all.near).try_into().unwrap();
    rules.thresholds.spam = i64::from(all.spam.0).try_into().unwrap();
    (rules.actions.bulk, rules.actions.near, rules.actions.spam) = (all.bulk, all.near_action, all.spam.1);
    rules.actions.correspondents = if all.spares { Correspondents::NeverRefuse } else { Correspondents::Off };
    rules.whitelist = WhiteList::load(&[PathBuf::from("l")], &all.read()).unwrap();
    let defaults = Defaults { thresholds: &rules.thresholds, actions: &rules.actions };
    let load = |(i, settings): (usize, &Settings)| {
        Policy::load(&settings.policy(i), defaults, &settings.read()).unwrap()
    };
    rules.policies = Policies::new(policies.iter().enumerate().map(load).collect());
    rules
}

/// The decision on a message to these users, to whose sender `writers` wrote; `None` if no copy is judged.
fn decided(rules: &Rules, users: &[u8], writers: &[u8], known: (Counts, Backings)) -> Option<Decision> {
    let recipients = users.iter().map(|&user| address(user)).collect();
    let envelope = Envelope {
        sender: Some("a@sender.test".to_owned()),
        host: Some("mx.sender.test".to_owned()),
        recipients,
        ..Envelope::default()
    };
    let mut content = Content::of(&RawMessage::from_bytes(RAW), rules);
    content.correspondences = content.possible_correspondences(&envelope);
    content.correspondences.retain(|of| writers.iter().any(|&writer| address(writer) == of.recipient));
    match Counted::find(rules, &envelope, &content, known, None) {
        Finding::Counted(counted) => {
            let decision = counted.decision;
            assert!(rules.judges(decision.by), "a policy that does not judge decides nothing");
            assert!(
                decision.milder.is_none_or(|milder| decision.action == Action::Mark && milder != decision.by)
            );
            // Held mail is only marked, and mail that users report as spam is not held because of its sources.
            assert!(decision.held.is_none() || decision.action == Action::Mark, "{decision:?}");
            let is_of_sources = matches!(decision.held, Some(Held::Sources | Held::Messages));
            assert!(decision.verdict == Verdict::Bulk || !is_of_sources, "{decision:?}");
            Some(decision)
        }
        Finding::Exempt(_) => None,
        other => panic!("{other:?}"),
    }
}

/// Verdict and action for such a message.
fn judged(rules: &Rules, users: &[u8], writers: &[u8], known: (Counts, Backings)) -> (Verdict, Action) {
    let decision = decided(rules, users, writers, known);
    decision.map_or((Verdict::Exempt, Action::Mark), |decision| (decision.verdict, decision.action))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// For all policies and recipients: no copy is treated more harshly than it would be alone, wanted copies are delivered, including those
    /// from correspondents, and mail that is bulk or spam for nobody does not get that verdict.
    #[test]
    fn nobody_loses_mail_because_of_others(
        all in settings(),
        policies in prop::collection::vec(settings(), 0..5),
        users in prop::collection::vec(0..USERS, 1..6),
        writers in prop::collection::vec(0..USERS, 0..3),
        counts in (prop::option::of(0..40u32), prop::option::of(0..40u32)),
        units in prop::option::of(0..40u32),
        backings in (backing(), backing()),
        messages in prop::option::of(0..6u32),
    ) {
        let rules = rules(&all, &policies);
        let known = (
            Counts { body: counts.0, near: counts.1, spam: units.map(Weight::of_units) },
            Backings { messages, body: backings.0, near: backings.1 },
        );
        let (verdict, action) = judged(&rules, &users, &writers, known);
        let alone: Vec<_> = users.iter().map(|&user| judged(&rules, &[user], &writers, known)).collect();
        for (of_one, his) in &alone {
            prop_assert!(action.harshness() <= his.harshness(), "{action} for all, {his} alone");
            if matches!(of_one, Verdict::Whitelisted | Verdict::Exempt) {
                prop_assert_eq!(action, Action::Mark);
            }
        }
        // If all of them would refuse it, it is not delivered.
        let mildest = alone.iter().map(|(_, his)| his.harshness()).min();
        prop_assert_eq!(Some(action.harshness()), mildest);
        let has = |wanted: Verdict| alone.iter().any(|(verdict, _)| *verdict == wanted);
        prop_assert_eq!(verdict.is_unwanted(), has(Verdict::Bulk) || has(Verdict::Spam));
        prop_assert!(has(verdict), "{verdict} for all, and for nobody alone");
        prop_assert_eq!(verdict == Verdict::Exempt, alone.iter().all(|(of_one, _)| *of_one == Verdict::Exempt));
        prop_assert!(verdict != Verdict::Whitelisted || !has(Verdict::Clean));
    }

    /// A rehearsal shows the action that the same message would have got without it, and changes nothing else.
    #[test]
    fn a_rehearsal_shows_the_intended_action(
        all in (settings(), any::<bool>()),
        policies in prop::collection::vec((settings(), any::<bool>()), 0..5),
        users in prop::collection::vec(0..USERS, 1..6),
        counts in (prop::option::of(0..40u32), prop::option::of(0..40u32)),
    ) {
        let settings: Vec<Settings> = policies.iter().map(|(settings, _)| settings.clone()).collect();
        let acting = rules(&all.0, &settings);
        let mut rehearsing = rules(&all.0, &settings);
        rehearsing.actions.rehearse = if all.1 { Rehearse::Always } else { Rehearse::Never };
        for (policy, (_, rehearses)) in rehearsing.policies.0.iter_mut().zip(&policies) {
            policy.actions.rehearse = if *rehearses { Rehearse::Always } else { Rehearse::Never };
        }
        let known = (Counts { body: counts.0, near: counts.1, spam: None }, Backings::default());
        let (acts, rehearses) = (decided(&acting, &users, &[], known), decided(&rehearsing, &users, &[], known));
        let of = |decision: &Option<Decision>| decision.as_ref().map(|it| (it.verdict, it.intended()));
        prop_assert_eq!(of(&acts), of(&rehearses));
        if let Some(decision) = rehearses {
            let is_rehearsed = decision.would.is_some();
            prop_assert!(!is_rehearsed || decision.action.harshness() < decision.intended().harshness());
            let all_rehearse = all.1 && policies.iter().all(|(_, rehearses)| *rehearses);
            prop_assert!(!all_rehearse || decision.action == Action::Mark);
        }
    }

    /// Only copies that are judged are counted.
    #[test]
    fn recipients_who_opted_out_are_not_counted(
        all in settings(),
        policies in prop::collection::vec(settings(), 0..5),
        users in prop::collection::btree_set(0..USERS, 1..6),
    ) {
        let rules = rules(&all, &policies);
        let known = (Counts::default(), Backings::default());
        let wants = |user: &&u8| judged(&rules, &[**user], &[], known).0 != Verdict::Exempt;
        let expected = users.iter().filter(wants).count();
        let recipients = users.iter().map(|&user| address(user)).collect();
        let envelope = Envelope { recipients, ..Envelope::default() };
        prop_assert_eq!(rules.mailboxes(&rules.parties(&envelope)).len(), expected);
    }
}
