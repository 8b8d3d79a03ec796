// SPDX-License-Identifier: GPL-3.0-or-later
//! Entries of several conditions, which must hold together. Of thousands of entries that each name a recipient, and a message to thousands
//! of recipients, each entry and each recipient is looked at once, not each pair of them.

use super::condition::{Condition, NormalizedFacts};
use super::name::Name;
use super::patterns::{Pattern, Patterns};
use super::source::Source;
use super::table::Answers;
use std::collections::HashSet;
use std::sync::Arc;

/// An entry of several conditions.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) conditions: Vec<Condition>,
    pub(super) source: Source,
}

impl Joined {
    pub(super) fn wants_message(&self, known: &NormalizedFacts<'_>) -> bool {
        self.conditions.iter().all(|condition| condition.holds(known))
    }

    /// Whether it has a `recipient` condition, and all others hold.
    pub(super) fn may_want_for_some(&self, known: &NormalizedFacts<'_>) -> bool {
        self.recipients().next().is_some()
            && self.conditions.iter().all(|one| one.recipient().is_some() || one.holds(known))
    }

    /// Whether it has a `recipient` condition that holds for one of these.
    pub(super) fn may_want_for(&self, recipients: &Names, answers: Option<&Answers>) -> bool {
        let mut patterns = self.recipients();
        match (patterns.next(), patterns.next()) {
            (Some(only), None) => recipients.some_match(only, answers),
            _ => recipients.all.iter().any(|to| self.wants_for(to, answers)),
        }
    }

    /// Whether all `recipient` conditions hold for this one.
    fn wants_for(&self, recipient: &Name, answers: Option<&Answers>) -> bool {
        self.recipients().all(|pattern| pattern.matches(recipient, answers))
    }

    /// The patterns of its `recipient` conditions.
    fn recipients(&self) -> impl Iterator<Item = &Pattern> {
        self.conditions.iter().filter_map(Condition::recipient)
    }
}

/// The recipients by whose wish a message is wanted: the entries that otherwise match it.
pub(super) struct Wishes {
    /// The entries with one `recipient` condition.
    single: Patterns,
    /// Those with several, which narrow down one another.
    several: Vec<Arc<Joined>>,
}

impl Wishes {
    pub(super) fn of<'a>(entries: impl Iterator<Item = &'a Arc<Joined>>) -> Self {
        let mut wishes = Self { single: Patterns::default(), several: Vec::new() };
        for joined in entries {
            let mut patterns = joined.recipients();
            match (patterns.next(), patterns.next()) {
                (Some(only), None) => wishes.single.add(only.clone(), joined.source.clone()),
                _ => wishes.several.push(Arc::clone(joined)),
            }
        }
        wishes
    }

    /// The entry by which this recipient wants the message.
    pub(super) fn find(&self, address: &str, answers: Option<&Answers>) -> Option<&Source> {
        let of_several = || {
            let name = Name::of(address);
            self.several.iter().find(|joined| joined.wants_for(&name, answers)).map(|joined| &joined.source)
        };
        self.single.find(address, answers).or_else(of_several)
    }
}

/// The names of many recipients, with an index for patterns.
pub(super) struct Names {
    all: Vec<Name>,
    exact: HashSet<String>,
    below: HashSet<String>,
}

impl Names {
    pub(super) fn of(all: Vec<Name>) -> Self {
        let exact = |name: &Name| {
            [Some(name.whole()), Some(name.domain()), name.user()].map(|part| part.map(str::to_owned))
        };
        let below = |name: &Name| name.domains().map(str::to_owned).collect::<Vec<_>>();
        Self {
            exact: all.iter().flat_map(exact).flatten().collect(),
            below: all.iter().flat_map(below).collect(),
            all,
        }
    }

    /// Whether some name matches: one look-up, but with a table one for each name.
    fn some_match(&self, pattern: &Pattern, answers: Option<&Answers>) -> bool {
        match pattern {
            Pattern::Is(name) | Pattern::User(name) => self.exact.contains(name),
            Pattern::Below(domain) => self.below.contains(domain),
            Pattern::Table(_) => self.all.iter().any(|name| pattern.matches(name, answers)),
        }
    }
}
