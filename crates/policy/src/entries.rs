// SPDX-License-Identifier: GPL-3.0-or-later
//! The entries of a white list, and the search for one that wants a message.

use super::authentication::VerifiedNames;
use super::condition::{Condition, NormalizedFacts};
use super::facts::Facts;
use super::joined::{Joined, Names, Wishes};
use super::name::Name;
use super::network::Network;
use super::patterns::Patterns;
use super::source::{Match, Source};
use super::table::{Question, question};
use bulkmark_types::Signature;
use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

/// The most names of one message that are looked up in remote tables. A message has a few, and one for each recipient.
pub(super) const MAX_QUESTIONS: usize = 256;

/// All entries of all files.
#[derive(Debug, Default)]
pub(super) struct Entries {
    networks: Vec<(Network, Source)>,
    hosts: Patterns,
    senders: Patterns,
    null_sender: Option<Source>,
    from: Patterns,
    recipients: Patterns,
    list_ids: Patterns,
    signatures: HashMap<Signature, Source>,
    dkim: Patterns,
    spf: Patterns,
    dmarc: Patterns,
    joined: Vec<Arc<Joined>>,
    /// The first entry with a remote table.
    pub(super) remote: Option<Source>,
    /// Whether some entry matches only verified mail.
    pub(super) needs_verification: bool,
    /// All files that were read.
    pub(super) files: Vec<PathBuf>,
}

impl Entries {
    /// Adds an entry of one condition, or of several that must hold together.
    pub(super) fn add(&mut self, conditions: Vec<Condition>, source: Source) {
        if self.remote.is_none() && conditions.iter().any(|condition| condition.remote().is_some()) {
            self.remote = Some(source.clone());
        }
        self.needs_verification |= conditions.iter().any(|condition| condition.method().is_some());
        match <[Condition; 1]>::try_from(conditions) {
            Ok([only]) => self.add_one(only, source),
            Err(conditions) => self.joined.push(Arc::new(Joined { conditions, source })),
        }
    }

    fn add_one(&mut self, condition: Condition, source: Source) {
        let (set, pattern) = match condition {
            Condition::Ip(network) => return self.networks.push((network, source)),
            Condition::NullSender => {
                self.null_sender.get_or_insert(source);
                return;
            }
            Condition::Signature(signature) => {
                self.signatures.entry(signature).or_insert(source);
                return;
            }
            Condition::Host(pattern) => (&mut self.hosts, pattern),
            Condition::Sender(pattern) => (&mut self.senders, pattern),
            Condition::From(pattern) => (&mut self.from, pattern),
            Condition::Recipient(pattern) => (&mut self.recipients, pattern),
            Condition::ListId(pattern) => (&mut self.list_ids, pattern),
            Condition::Dkim(pattern) => (&mut self.dkim, pattern),
            Condition::Spf(pattern) => (&mut self.spf, pattern),
            Condition::Dmarc(pattern) => (&mut self.dmarc, pattern),
        };
        set.add(pattern, source);
    }

    /// The entry that wants this message, regardless of recipients.
    pub(super) fn message(&self, facts: &Facts<'_>) -> Option<Match> {
        let find = |set: &Patterns, name: &str| set.find(name, facts.answers).cloned();
        let by_ip = || {
            let ip = facts.client_ip?;
            self.networks.iter().find(|(network, _)| network.contains(ip)).map(|(_, source)| source.clone())
        };
        let by_sender = || match facts.sender? {
            "" => self.null_sender.clone(),
            sender => find(&self.senders, sender),
        };
        let by_joined = || {
            let known = self.known(facts)?;
            self.joined.iter().find(|joined| joined.wants_message(&known)).map(|joined| joined.source.clone())
        };
        let verified = facts.verified;
        by_ip()
            .or_else(|| find(&self.hosts, facts.client_host?))
            .or_else(|| verified?.dkim.iter().find_map(|domain| find(&self.dkim, domain)))
            .or_else(|| facts.spf().find_map(|name| find(&self.spf, name)))
            .or_else(|| verified?.dmarc.iter().find_map(|domain| find(&self.dmarc, domain)))
            .or_else(by_joined)
            .or_else(by_sender)
            .or_else(|| facts.from.iter().find_map(|address| find(&self.from, address)))
            .or_else(|| find(&self.list_ids, facts.list_id?))
            .or_else(|| facts.signatures().find_map(|signature| self.signatures.get(&signature).cloned()))
            .map(|source| Match::of(&source))
    }

    /// The recipients by whose wish this message is wanted.
    pub(super) fn wishes(&self, facts: &Facts<'_>) -> Wishes {
        let known = self.known(facts);
        let joined = known
            .iter()
            .flat_map(|known| self.joined.iter().filter(|joined| joined.may_want_for_some(known)));
        Wishes::of(joined)
    }

    /// The entry by which a recipient wants this message, which has these [`wishes`](Self::wishes).
    pub(super) fn recipient(&self, wishes: &Wishes, facts: &Facts<'_>, address: &str) -> Option<Match> {
        // With its extension first: some entries want only that.
        spellings(facts, address).find_map(|address| {
            let by_recipient = self.recipients.find(&address, facts.answers);
            by_recipient.or_else(|| wishes.find(&address, facts.answers)).map(Match::of)
        })
    }

    /// The questions to remote tables, and whether these are all.
    pub(super) fn questions(&self, facts: &Facts<'_>) -> (Vec<Question>, bool) {
        if self.remote.is_none() || self.message(facts).is_some() {
            return (Vec::new(), true);
        }
        let known = facts.if_verified();
        let known = NormalizedFacts::of(&known);
        // Each has two spellings, and some names may repeat.
        let recipients: Vec<Name> = recipients(facts).take(2 * MAX_QUESTIONS).collect();
        let sets = [
            &self.hosts,
            &self.senders,
            &self.from,
            &self.recipients,
            &self.list_ids,
            &self.dkim,
            &self.spf,
            &self.dmarc,
        ];
        let names = |set: usize| match set {
            0 => &known.host,
            1 => &known.sender,
            2 => &known.from,
            3 => &recipients,
            4 => &known.list_id,
            5 => &known.dkim,
            6 => &known.spf,
            _ => &known.dmarc,
        };
        let single = sets.iter().enumerate().flat_map(|(n, set)| set.remote().map(move |table| (n, table)));
        let conditions = self.joined.iter().flat_map(|joined| &joined.conditions);
        let joined = conditions.filter_map(Condition::remote);
        let (mut seen, mut questions) = (HashSet::new(), Vec::new());
        for (set, table) in single.chain(joined) {
            for name in names(set) {
                let question = question(table, name);
                if seen.insert(question.clone()) {
                    questions.push(question);
                }
                if questions.len() >= MAX_QUESTIONS {
                    return (questions, false);
                }
            }
        }
        (questions, true)
    }

    /// The names to verify: claimed names that an otherwise matching entry needs. Empty if the message is already wanted.
    pub(super) fn to_verify(&self, facts: &Facts<'_>) -> VerifiedNames {
        let mut asked = VerifiedNames::default();
        if !self.needs_verification || facts.claimed.is_none() || self.message(facts).is_some() {
            return asked;
        }
        let facts = facts.if_verified();
        let known = NormalizedFacts::of(&facts);
        for (set, names, of) in [
            (&self.dkim, &known.dkim, &mut asked.dkim),
            (&self.spf, &known.spf, &mut asked.spf),
            (&self.dmarc, &known.dmarc, &mut asked.dmarc),
        ] {
            let is_asked = |name: &&Name| set.find(name.whole(), facts.answers).is_some();
            of.extend(names.iter().filter(is_asked).map(|name| name.whole().to_owned()));
        }
        let recipients = LazyCell::new(|| Names::of(recipients(&facts).collect()));
        let needs_verification =
            |joined: &&Arc<Joined>| joined.conditions.iter().any(|one| one.method().is_some());
        for joined in self.joined.iter().filter(needs_verification) {
            let wants_for_any = || joined.may_want_for(&recipients, facts.answers);
            if joined.wants_message(&known) || joined.may_want_for_some(&known) && wants_for_any() {
                joined.conditions.iter().for_each(|condition| asked.extend(condition.claims(&known)));
            }
        }
        asked
    }

    /// Whether some entry needs a signature that a message claims to have, regardless of its other conditions.
    pub(super) fn asks_for_signature(&self, claimed: &VerifiedNames) -> bool {
        if !self.needs_verification {
            return false;
        }
        let known = Facts { verified: Some(claimed), ..Facts::default() };
        let known = NormalizedFacts::of(&known);
        let has = |set: &Patterns, names: &[Name]| {
            let is_asked =
                |name: &Name| set.find(name.whole(), None).is_some() || set.remote().next().is_some();
            names.iter().any(is_asked)
        };
        let of_signature = |condition: &Condition| {
            matches!(condition, Condition::Dkim(_) | Condition::Dmarc(_))
                && (condition.remote().is_some() || condition.holds(&known))
        };
        has(&self.dkim, &known.dkim)
            || has(&self.dmarc, &known.dmarc)
            || self.joined.iter().any(|joined| joined.conditions.iter().any(of_signature))
    }

    /// Whether there are entries with only a signature.
    pub(super) fn has_signatures(&self) -> bool {
        !self.signatures.is_empty()
    }

    /// Whether an entry has only this signature as its condition.
    pub(super) fn names_signature(&self, signature: Signature) -> bool {
        self.signatures.contains_key(&signature)
    }

    /// The normalized facts about a message, if some entries need them.
    fn known<'a>(&self, facts: &'a Facts<'a>) -> Option<NormalizedFacts<'a>> {
        (!self.joined.is_empty()).then(|| NormalizedFacts::of(facts))
    }

    /// Entries of which some conditions hold for this message and some do not: their places, and the conditions that do not hold.
    pub(super) fn near_misses(&self, facts: &Facts<'_>) -> Vec<(Match, String)> {
        let Some(known) = self.known(facts) else { return Vec::new() };
        let missing = |joined: &Joined| {
            let of_message = || joined.conditions.iter().filter(|condition| condition.recipient().is_none());
            let missing: Vec<_> =
                of_message().filter(|one| !one.holds(&known)).map(ToString::to_string).collect();
            (!missing.is_empty() && missing.len() < of_message().count()).then(|| missing.join(" & "))
        };
        self.joined.iter().filter_map(|one| Some((Match::of(&one.source), missing(one)?))).collect()
    }

    /// The places of the entries that any sender can make match, in order.
    pub(super) fn forgeable(&self) -> Vec<Source> {
        let single = [&self.senders, &self.from, &self.list_ids].into_iter().flat_map(Patterns::sources);
        let joined =
            self.joined.iter().filter(|joined| joined.conditions.iter().all(Condition::is_forgeable));
        in_order(single.chain(&self.null_sender).chain(joined.map(|joined| &joined.source)))
    }

    /// The places of the entries that match only verified mail, in order, by method.
    pub(super) fn verified_only(&self) -> [(&'static str, Vec<Source>); 3] {
        let of = |set: &Patterns, method: &str| {
            let needs =
                |joined: &&Arc<Joined>| joined.conditions.iter().any(|one| one.method() == Some(method));
            in_order(set.sources().chain(self.joined.iter().filter(needs).map(|joined| &joined.source)))
        };
        [(&self.dkim, "dkim"), (&self.spf, "spf"), (&self.dmarc, "dmarc")]
            .map(|(set, method)| (method, of(set, method)))
    }
}

fn in_order<'a>(sources: impl Iterator<Item = &'a Source>) -> Vec<Source> {
    let mut all: Vec<_> = sources.cloned().collect();
    all.sort();
    all
}

/// A recipient's address as it is, and as its mailbox.
fn spellings<'a>(facts: &Facts<'_>, address: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
    let mailbox = facts.mailboxes.map(|mailboxes| Cow::Owned(mailboxes.mailbox(address)));
    std::iter::once(Cow::Borrowed(address)).chain(mailbox)
}

/// The names of all recipients, in all spellings.
fn recipients<'a>(facts: &'a Facts<'a>) -> impl Iterator<Item = Name> + 'a {
    let spelled = facts.recipients.iter().flat_map(|address| spellings(facts, address));
    spelled.map(|address| Name::of(&address))
}
