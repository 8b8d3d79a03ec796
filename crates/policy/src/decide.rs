// SPDX-License-Identifier: GPL-3.0-or-later
//! The verdict on a message.

use super::correspondents::Correspondents;
use super::facts::Facts;
use super::held::{Allowed, Held};
use super::policies::PolicyRef;
use super::rehearsal::{Rehearsal, Would};
use super::settings::{Action, Actions, Thresholds};
use super::source::Match;
use super::sources::{Backing, Backings};
use super::weight::Weight;
use super::whitelist::WhiteList;
use std::fmt;
use std::sync::Arc;

/// The verdict on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Its count is below the threshold.
    Clean,
    /// Its count has reached the threshold.
    Bulk,
    /// Enough users report it as spam.
    Spam,
    /// A white list wants it, whatever its count.
    Whitelisted,
    /// It was neither counted nor judged.
    Exempt,
    /// It could not be judged.
    Unknown,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Clean, Self::Bulk, Self::Spam, Self::Whitelisted, Self::Exempt, Self::Unknown];

    /// Whether an action may be taken: it is bulk or spam, and not wanted.
    #[must_use]
    pub const fn is_unwanted(self) -> bool {
        matches!(self, Self::Bulk | Self::Spam)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "clean",
            Self::Bulk => "bulk",
            Self::Spam => "spam",
            Self::Whitelisted => "whitelisted",
            Self::Exempt => "exempt",
            Self::Unknown => "unknown",
        })
    }
}

/// A verdict, the action, and the reasons for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// The action.
    pub action: Action,
    /// The entry that wants the message, or some recipient's copy of it.
    pub whitelist: Option<Match>,
    /// For bulk, the sources of the count that makes it bulk.
    pub backing: Backing,
    /// The reason why it is only marked although it is unwanted bulk or spam.
    pub held: Option<Held>,
    /// The other site by whose order its mailing is allowed.
    pub allowed_by: Option<Arc<str>>,
    /// The action that is only rehearsed.
    pub would: Option<Would>,
    /// The policy that decided.
    pub by: PolicyRef,
    /// The policy of other recipients that made the action milder.
    pub milder: Option<PolicyRef>,
}

impl Decision {
    /// The action without any rehearsal.
    #[must_use]
    pub fn intended(&self) -> Action {
        self.would.map_or(self.action, |would| would.action)
    }

    /// The fields of header and log for the sources of the count, the reason why it is only marked, and the rehearsed action.
    pub fn sources(&self) -> impl Iterator<Item = (&'static str, String)> {
        let held = self.held.map(|held| ("held", held.to_string()));
        let would = self.would.map(|would| ("would", would.action.to_string()));
        let by = self.allowed_by.as_ref().map(|site| ("allowed-by", site.to_string()));
        self.backing.fields().into_iter().chain(held).chain(by).chain(would)
    }
}

/// The counts of a message, this copy included; `None` if it has no such signatures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// By its `body` signature.
    pub body: Option<u32>,
    /// By its `near` signatures.
    pub near: Option<u32>,
    /// The weight of spam reports; `None` if they were not looked up.
    pub spam: Option<Weight>,
}

impl Counts {
    /// Whether one of them has reached its threshold.
    #[must_use]
    pub fn reach(&self, thresholds: &Thresholds) -> bool {
        self.are_bulk(thresholds) || self.are_spam(thresholds)
    }

    /// Whether the message is bulk by its counts.
    #[must_use]
    pub fn are_bulk(&self, thresholds: &Thresholds) -> bool {
        thresholds.body.is_reached(self.body) || thresholds.near.is_reached(self.near)
    }

    /// Whether enough users report it as spam.
    #[must_use]
    pub fn are_spam(&self, thresholds: &Thresholds) -> bool {
        self.spam.is_some_and(|spam| spam.reaches(thresholds.spam))
    }
}

/// The terms by which some recipients' copies are judged.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The policy.
    pub by: PolicyRef,
    /// The counts from which on it is bulk.
    pub thresholds: &'a Thresholds,
    /// The actions.
    pub actions: &'a Actions,
    /// The reason why the actions are only rehearsed, if so.
    pub rehearsal: Option<Rehearsal>,
    /// The white lists for wanted bulk.
    pub lists: [&'a WhiteList; 2],
}

/// Decides on a message with these counts, for the recipients in `facts`, who all have these terms.
///
/// A count that has reached its threshold makes it bulk. Any action beyond marking needs a count from enough networks. A message that some
/// recipients want (`recipient` entries) is bulk for the others, but never refused: a refusal would affect all of them.
#[must_use]
pub fn decide(counts: Counts, backings: Backings, terms: Terms<'_>, facts: &Facts<'_>) -> Decision {
    let Terms { by, thresholds, actions, rehearsal, lists } = terms;
    let plain = |verdict, whitelist| Decision {
        verdict,
        action: Action::Mark,
        whitelist,
        backing: Backing::NotAsked,
        held: None,
        allowed_by: None,
        would: None,
        by,
        milder: None,
    };
    let whitelisted = |entry| plain(Verdict::Whitelisted, Some(entry));
    if let Some(entry) = lists.iter().find_map(|list| list.message(facts)) {
        return whitelisted(entry);
    }
    let wants = lists.map(|list| list.recipients(facts));
    let wants = &wants;
    let mut wanted = facts.recipients.iter().map(|to| wants.iter().find_map(|wants| wants(to)));
    let some = wanted.clone().flatten().next();
    let all = wanted.all(|entry| entry.is_some());
    let bulk = bulk(counts, backings, thresholds, actions);
    let bulk = spam(counts, bulk, thresholds, actions).map(|bulk| Decision { by, ..bulk });
    // As with a white list, a message to several is not refused if one of them knows the sender.
    let is_known = actions.correspondents == Correspondents::NeverRefuse
        && facts.recipients.iter().any(|to| facts.known_to.contains(to));
    let held = match facts.allowed {
        Some(_) => Some(Held::Allowed),
        None => is_known.then_some(Held::Correspondent),
    };
    let allowed_by = facts.allowed.and_then(Allowed::site);
    let bulk = bulk.map(|bulk| match held {
        Some(_) => Decision { action: Action::Mark, held, allowed_by: allowed_by.cloned(), ..bulk },
        None => bulk,
    });
    match (some, bulk) {
        (Some(entry), _) if all => whitelisted(entry),
        (_, None) => plain(Verdict::Clean, None),
        (Some(entry), Some(bulk)) => Decision { action: Action::Mark, whitelist: Some(entry), ..bulk },
        (None, Some(bulk)) => {
            let (action, would) = Would::instead(bulk.action, rehearsal);
            Decision { action, would, ..bulk }
        }
    }
}

/// Combines the decisions of several policies on one message; `None` stands for a policy that does not judge it. Returns `None` if no policy
/// judges it.
///
/// A milter has one answer for all recipients. So the message is bulk if it is unwanted bulk for some, but the mildest action of all policies
/// is taken: nobody loses mail because of others.
#[must_use]
pub fn settle(parties: &[(PolicyRef, Option<Decision>)]) -> Option<Decision> {
    let judged = || parties.iter().filter_map(|(_, decision)| decision.as_ref());
    let is_bulk = |decision: &Decision| decision.verdict.is_unwanted();
    let unwanted = || judged().filter(|decision| is_bulk(decision));
    let harshness = |decision: &&Decision| (decision.action.harshness(), decision.intended().harshness());
    let Some(bulk) = unwanted().min_by_key(harshness) else {
        let clean = judged().find(|decision| decision.verdict != Verdict::Whitelisted);
        return clean.or_else(|| judged().next()).cloned();
    };
    let others = || parties.iter().filter(|(_, decision)| !decision.as_ref().is_some_and(is_bulk));
    let Some((milder, _)) = others().next() else {
        // The mildest action also holds without any rehearsal.
        let mildest = unwanted().map(Decision::intended).min_by_key(|action| action.harshness());
        let would = bulk
            .would
            .and_then(|Would { why, action }| Would::instead(mildest.unwrap_or(action), Some(why)).1);
        return Some(Decision { would, ..bulk.clone() });
    };
    let wanted = others().find_map(|(_, decision)| decision.as_ref()?.whitelist.clone());
    Some(Decision {
        action: Action::Mark,
        whitelist: bulk.whitelist.clone().or(wanted),
        milder: (bulk.intended() != Action::Mark).then_some(*milder),
        allowed_by: None,
        would: None,
        ..bulk.clone()
    })
}

/// The decision by the counts if nobody wants the message: by its body, or else by its near signatures.
fn bulk(counts: Counts, backings: Backings, thresholds: &Thresholds, actions: &Actions) -> Option<Decision> {
    let Backings { messages, body, near } = backings;
    // Near counts count messages.
    let wanted = thresholds.min_messages.get().min(thresholds.body.get());
    let few = messages.is_some_and(|messages| messages < wanted).then_some(Held::Messages);
    let kinds = [
        (thresholds.body, counts.body, body, few, actions.bulk),
        (thresholds.near, counts.near, near, None, actions.near),
    ];
    let reached = kinds.into_iter().filter_map(|(threshold, count, backing, few, action)| {
        let count = count.filter(|&count| threshold.is_reached(Some(count)))?;
        Some((threshold, count, backing, few, action))
    });
    let all: Vec<Decision> = reached
        .map(|(threshold, count, backing, few, action)| {
            let suffices = backing.suffices(count, threshold, thresholds.min_sources);
            let held = few.or_else(|| (!suffices).then_some(Held::Sources));
            let action = if held.is_some() { Action::Mark } else { action };
            Decision {
                verdict: Verdict::Bulk,
                action,
                whitelist: None,
                backing,
                held,
                allowed_by: None,
                would: None,
                by: PolicyRef::default(),
                milder: None,
            }
        })
        .collect();
    all.iter().find(|decision| decision.held.is_none()).or_else(|| all.first()).cloned()
}

/// The decision by spam reports if nobody wants the message: the harsher action of spam and of `bulk`.
fn spam(
    counts: Counts,
    bulk: Option<Decision>,
    thresholds: &Thresholds,
    actions: &Actions,
) -> Option<Decision> {
    if !counts.are_spam(thresholds) {
        return bulk;
    }
    let none = Decision {
        verdict: Verdict::Spam,
        action: Action::Mark,
        whitelist: None,
        backing: Backing::NotAsked,
        held: None,
        allowed_by: None,
        would: None,
        by: PolicyRef::default(),
        milder: None,
    };
    let of_bulk = bulk.unwrap_or(none);
    let is_harsher = actions.spam.harshness() > of_bulk.action.harshness();
    let action = if is_harsher { actions.spam } else { of_bulk.action };
    // A count from few networks spares bulk only. Spam does not rest on that count.
    Some(Decision { verdict: Verdict::Spam, action, held: None, ..of_bulk })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sources, Threshold};
    use std::io;
    use std::path::PathBuf;

    fn terms<'a>(thresholds: &'a Thresholds, actions: &'a Actions, list: &'a WhiteList) -> Terms<'a> {
        Terms { by: PolicyRef::default(), thresholds, actions, rehearsal: None, lists: [list; 2] }
    }

    fn decide_for(body: u32, list: &str, recipients: &[&str]) -> (Verdict, Action, Option<String>) {
        decide_on(Counts { body: Some(body), near: None, spam: None }, list, recipients)
    }

    fn decide_on(counts: Counts, list: &str, recipients: &[&str]) -> (Verdict, Action, Option<String>) {
        let read = |_: &std::path::Path| -> io::Result<Vec<u8>> { Ok(list.into()) };
        let list = WhiteList::load(&[PathBuf::from("l")], &read).unwrap();
        let recipients: Vec<_> = recipients.iter().map(|&r| r.to_owned()).collect();
        let facts = Facts { sender: Some("a@example.org"), recipients: &recipients, ..Facts::default() };
        let actions = Actions { bulk: Action::Reject, near: Action::Quarantine, ..Actions::default() };
        let d = decide(counts, Backings::default(), terms(&Thresholds::default(), &actions, &list), &facts);
        (d.verdict, d.action, d.whitelist.map(|m| m.to_string()))
    }

    #[test]
    fn the_threshold_is_reached_by_the_twentieth() {
        assert_eq!(decide_for(19, "", &["x@y.z"]), (Verdict::Clean, Action::Mark, None));
        assert_eq!(decide_for(20, "", &["x@y.z"]), (Verdict::Bulk, Action::Reject, None));
    }

    #[test]
    fn each_kind_has_its_action() {
        let action = |body, near| decide_on(Counts { body, near, spam: None }, "", &["x@y.z"]).1;
        assert_eq!(action(Some(1), Some(20)), Action::Quarantine);
        assert_eq!(action(None, Some(20)), Action::Quarantine);
        assert_eq!(action(Some(20), Some(20)), Action::Reject);
        assert_eq!(action(Some(19), Some(19)), Action::Mark);
    }

    /// With enough reports it is spam, bulk or not, unless a white list wants it; the harsher action of the two is taken.
    #[test]
    fn reported_spam_is_spam() {
        let decided = |body, units, list| {
            let counts = Counts { body: Some(body), near: None, spam: Some(Weight::of_units(units)) };
            let (verdict, action, _) = decide_on(counts, list, &["x@y.z"]);
            (verdict, action)
        };
        assert_eq!(decided(1, 23, ""), (Verdict::Clean, Action::Mark));
        assert_eq!(decided(1, 24, ""), (Verdict::Spam, Action::Mark));
        assert_eq!(decided(20, 24, ""), (Verdict::Spam, Action::Reject));
        assert_eq!(decided(1, 24, "sender example.org").0, Verdict::Whitelisted);
        let both = |of_spam, of_bulk| {
            let counts = Counts { body: Some(20), near: None, spam: Some(Weight::of_units(24)) };
            let actions = Actions { spam: of_spam, bulk: of_bulk, ..Actions::default() };
            let (thresholds, list, facts) = (Thresholds::default(), WhiteList::default(), Facts::default());
            let facts = Facts { recipients: &["x@y.z".to_owned()], ..facts };
            decide(counts, Backings::default(), terms(&thresholds, &actions, &list), &facts).action
        };
        assert_eq!(both(Action::Mark, Action::Reject), Action::Reject);
        assert_eq!(both(Action::Reject, Action::Mark), Action::Reject);
    }

    /// The action, and whether the message was only marked, with these sources of both counts.
    fn backed(counts: Counts, body: Backing, near: Backing) -> (Action, bool) {
        let actions = Actions { bulk: Action::Reject, near: Action::Quarantine, ..Actions::default() };
        let (thresholds, list, facts) = (Thresholds::default(), WhiteList::default(), Facts::default());
        let facts = Facts { recipients: &["x@y.z".to_owned()], ..facts };
        let d = decide(
            counts,
            Backings { messages: None, body, near },
            terms(&thresholds, &actions, &list),
            &facts,
        );
        assert_eq!(d.verdict, Verdict::Bulk);
        (d.action, d.held.is_some())
    }

    #[test]
    fn bulk_from_few_networks_is_only_marked() {
        let (few, many) = (Sources { others: 2, own: Some(1) }, Sources { others: 3, own: None });
        let (few, many) = (Backing::Known(few), Backing::Known(many));
        let both = Counts { body: Some(20), near: Some(20), spam: None };
        assert_eq!(backed(both, many, few), (Action::Reject, false));
        assert_eq!(backed(both, few, few), (Action::Mark, true));
        assert_eq!(backed(both, Backing::Unknown, Backing::Unknown), (Action::Mark, true));
        // Its near signatures came from many networks, but its body did not.
        assert_eq!(backed(both, few, many), (Action::Quarantine, false));
        assert_eq!(
            backed(Counts { body: Some(19), near: Some(20), spam: None }, Backing::NotAsked, few),
            (Action::Mark, true)
        );
    }

    /// One letter to a whole parish is bulk, and wanted.
    #[test]
    fn bulk_in_few_messages_is_only_marked() {
        let decided = |messages, body, near, min_messages| {
            let actions = Actions { bulk: Action::Reject, near: Action::Quarantine, ..Actions::default() };
            let min_messages = Threshold::try_from(min_messages).unwrap();
            let (thresholds, list) =
                (Thresholds { min_messages, ..Thresholds::default() }, WhiteList::default());
            let facts = Facts { recipients: &["x@y.z".to_owned()], ..Facts::default() };
            let (counts, backings) =
                (Counts { body: Some(body), near, spam: None }, Backings { messages, ..Backings::default() });
            let d = decide(counts, backings, terms(&thresholds, &actions, &list), &facts);
            (d.verdict, d.action, d.held)
        };
        let held = (Verdict::Bulk, Action::Mark, Some(Held::Messages));
        assert_eq!(decided(Some(1), 22, Some(1), 3), held);
        assert_eq!(decided(Some(2), 99, Some(2), 3), held);
        assert_eq!(decided(Some(3), 22, Some(3), 3), (Verdict::Bulk, Action::Reject, None));
        assert_eq!(decided(Some(1), 22, Some(1), 1), (Verdict::Bulk, Action::Reject, None));
        assert_eq!(decided(Some(3), 22, Some(3), 4), held);
        // It is bulk by its near signatures.
        assert_eq!(decided(Some(10), 22, Some(20), 30).1, Action::Quarantine);
        // As many messages as make it bulk are enough.
        assert_eq!(decided(Some(20), 20, None, 30).1, Action::Reject);
    }

    /// Nor is the reason in the header: a filter would spare mail that users report as spam.
    #[test]
    fn reported_spam_is_not_spared_for_few_networks() {
        let (thresholds, list) = (Thresholds::default(), WhiteList::default());
        let facts = Facts { recipients: &["x@y.z".to_owned()], ..Facts::default() };
        let few = Backing::Known(Sources { others: 2, own: Some(1) });
        let backings = Backings { messages: Some(1), body: few, near: few };
        for spam in [Action::Mark, Action::Quarantine] {
            let actions = Actions { bulk: Action::Reject, spam, ..Actions::default() };
            let counts = Counts { body: Some(20), near: None, spam: Some(Weight::of_units(24)) };
            let d = decide(counts, backings, terms(&thresholds, &actions, &list), &facts);
            assert_eq!((d.verdict, d.action, d.held, d.backing), (Verdict::Spam, spam, None, few));
        }
    }

    #[test]
    fn mail_of_correspondents_is_only_marked() {
        let recipients = ["anna@y.z".to_owned(), "ben@y.z".to_owned()];
        let decide_for = |recipients: &[String], known_to: &[String], correspondents| {
            let actions =
                Actions { bulk: Action::Reject, spam: Action::Discard, correspondents, ..Actions::default() };
            let (thresholds, list) = (Thresholds::default(), WhiteList::default());
            let facts = Facts { recipients, known_to, ..Facts::default() };
            let counts = Counts { body: Some(20), near: None, spam: Some(Weight::of_units(24)) };
            let d = decide(counts, Backings::default(), terms(&thresholds, &actions, &list), &facts);
            (d.verdict, d.action, d.held)
        };
        let (never, off) = (Correspondents::NeverRefuse, Correspondents::Off);
        let spared = (Verdict::Spam, Action::Mark, Some(Held::Correspondent));
        assert_eq!(decide_for(&recipients[..1], &recipients[..1], never), spared);
        assert_eq!(decide_for(&recipients, &recipients[1..], never), spared, "one answer for both");
        assert_eq!(decide_for(&recipients[..1], &recipients[1..], never).1, Action::Discard);
        assert_eq!(decide_for(&recipients, &recipients, off).1, Action::Discard);
    }

    #[test]
    fn wanted_mail_is_never_refused() {
        let wanted = (Verdict::Whitelisted, Action::Mark, Some("l:1".to_owned()));
        assert_eq!(decide_for(99, "sender example.org", &["x@y.z"]), wanted);
        assert_eq!(decide_for(99, "recipient x@y.z", &["x@y.z"]), wanted);
        let kept = (Verdict::Bulk, Action::Mark, Some("l:1".to_owned()));
        assert_eq!(decide_for(99, "recipient x@y.z", &["u@y.z", "x@y.z", "v@y.z"]), kept);
        assert_eq!(decide_for(9, "recipient x@y.z", &["u@y.z", "x@y.z"]).0, Verdict::Clean);
    }
}
