// SPDX-License-Identifier: GPL-3.0-or-later
//! The verdict on a message.

use super::correspondents::Correspondents;
use super::facts::Facts;
use super::held::Held;
use super::policies::By;
use super::rehearsal::{Rehearsal, Would};
use super::settings::{Action, Actions, Thresholds};
use super::source::Match;
use super::sources::{Backing, Backings};
use super::weight::Weight;
use super::whitelist::WhiteList;
use std::fmt;

/// What was found of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Its count is below the threshold.
    Clean,
    /// Its count has reached the threshold.
    Bulk,
    /// So many users report it as spam.
    Spam,
    /// The white list wants it, whatever its count.
    Whitelisted,
    /// It was neither counted nor judged.
    Exempt,
    /// Nothing could be found out.
    Unknown,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Clean, Self::Bulk, Self::Spam, Self::Whitelisted, Self::Exempt, Self::Unknown];

    /// Whether something may be done about it: it is bulk or spam, and wanted by nobody.
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

/// A verdict, what is to be done, and by which entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What was found.
    pub verdict: Verdict,
    /// What is to be done.
    pub action: Action,
    /// The entry that wants the message, or some recipient's copy of it.
    pub whitelist: Option<Match>,
    /// Of bulk, where the count comes from that makes it so.
    pub backing: Backing,
    /// Why it may only be marked though it is bulk or spam that no white list wants, if so.
    pub held: Option<Held>,
    /// The action that it would have got, where that is only rehearsed.
    pub would: Option<Would>,
    /// The policy by which it is that.
    pub by: By,
    /// The policy of other recipients for whose sake less is done than that one says.
    pub milder: Option<By>,
}

impl Decision {
    /// The action without any rehearsal.
    #[must_use]
    pub fn intended(&self) -> Action {
        self.would.map_or(self.action, |would| would.action)
    }

    /// What header and log say of the networks that the count came from, why it is only marked, and what is rehearsed.
    pub fn sources(&self) -> impl Iterator<Item = (&'static str, String)> {
        let held = self.held.map(|held| ("held", held.to_string()));
        let would = self.would.map(|would| ("would", would.action.to_string()));
        self.backing.fields().into_iter().chain(held).chain(would)
    }
}

/// How often a message was seen, this one included; `None` where it has no such signatures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// By its `body` signature.
    pub body: Option<u32>,
    /// By its `near` signatures.
    pub near: Option<u32>,
    /// How much users report it as spam; `None` where nobody was asked.
    pub spam: Option<Weight>,
}

impl Counts {
    /// Whether one of them has reached its threshold.
    #[must_use]
    pub fn reach(&self, thresholds: &Thresholds) -> bool {
        self.are_bulk(thresholds) || self.are_spam(thresholds)
    }

    /// Whether it was seen so often.
    #[must_use]
    pub fn are_bulk(&self, thresholds: &Thresholds) -> bool {
        thresholds.body.is_reached(self.body) || thresholds.near.is_reached(self.near)
    }

    /// Whether so many users report it as spam.
    #[must_use]
    pub fn are_spam(&self, thresholds: &Thresholds) -> bool {
        self.spam.is_some_and(|spam| spam.reaches(thresholds.spam))
    }
}

/// By what some recipients' copies are judged.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The policy that says so.
    pub by: By,
    /// From which count on it is bulk.
    pub thresholds: &'a Thresholds,
    /// What is done with bulk.
    pub actions: &'a Actions,
    /// Why that is only rehearsed, if so.
    pub rehearsal: Option<Rehearsal>,
    /// Which bulk is wanted: by one of these lists.
    pub lists: [&'a WhiteList; 2],
}

/// Decides on a message that was seen so often, for recipients who all have these terms: those of `facts`.
///
/// A count that has reached its threshold makes it bulk. More than to mark it takes a count that comes from enough networks.
/// A message that some recipients want (`recipient` entries) is bulk for the others, but it is never refused: a
/// refusal would be one for all.
#[must_use]
pub fn decide(counts: Counts, backings: Backings, terms: Terms<'_>, facts: &Facts<'_>) -> Decision {
    let Terms { by, thresholds, actions, rehearsal, lists } = terms;
    let plain = |verdict, whitelist| Decision {
        verdict,
        action: Action::Mark,
        whitelist,
        backing: Backing::NotAsked,
        held: None,
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
    // As with a white list, a message to several is not refused for the sake of one who knows the sender.
    let is_known = actions.correspondents == Correspondents::NeverRefuse
        && facts.recipients.iter().any(|to| facts.known_to.contains(to));
    let held = if facts.is_allowed { Some(Held::Allowed) } else { is_known.then_some(Held::Correspondent) };
    let bulk = bulk.map(|bulk| match held {
        Some(_) => Decision { action: Action::Mark, held, ..bulk },
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

/// What becomes of a message whose recipients have several policies: for each policy what it would say, none where it has the
/// message not judged. None for all: neither is it judged.
///
/// A milter has one answer for all recipients. So it is bulk if it is that for some who do not want it, but what is done is the
/// mildest that any policy says: nobody's mail is taken away for the sake of others.
#[must_use]
pub fn settle(parties: &[(By, Option<Decision>)]) -> Option<Decision> {
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
        // Without any rehearsal, too, the mildest action holds.
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
        would: None,
        ..bulk.clone()
    })
}

/// What is bulk, and what would be done with it if nobody wants it: by its body, or else by what it is like.
fn bulk(counts: Counts, backings: Backings, thresholds: &Thresholds, actions: &Actions) -> Option<Decision> {
    let Backings { messages, body, near } = backings;
    // Near counts are of messages.
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
                would: None,
                by: By::default(),
                milder: None,
            }
        })
        .collect();
    all.iter().find(|decision| decision.held.is_none()).or_else(|| all.first()).cloned()
}

/// What people call spam, and what would be done with it if nobody wants it: what is done with spam, or with the bulk that it is, too.
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
        would: None,
        by: By::default(),
        milder: None,
    };
    let of_bulk = bulk.unwrap_or(none);
    let is_harsher = actions.spam.harshness() > of_bulk.action.harshness();
    let action = if is_harsher { actions.spam } else { of_bulk.action };
    // That its count comes from few networks spares bulk. User reports does not rest on the count.
    Some(Decision { verdict: Verdict::Spam, action, held: None, ..of_bulk })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sources, Threshold};
    use std::io;
    use std::path::PathBuf;

    fn terms<'a>(thresholds: &'a Thresholds, actions: &'a Actions, list: &'a WhiteList) -> Terms<'a> {
        Terms { by: By::default(), thresholds, actions, rehearsal: None, lists: [list; 2] }
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

    /// From so many people on it is spam, bulk or not, unless a white list wants it; what is done is the harsher of what both would get.
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

    /// What is done, and whether it was held back, with these sources of both counts.
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
    fn what_comes_from_few_networks_is_only_marked() {
        let (few, many) = (Sources { others: 2, own: Some(1) }, Sources { others: 3, own: None });
        let (few, many) = (Backing::Known(few), Backing::Known(many));
        let both = Counts { body: Some(20), near: Some(20), spam: None };
        assert_eq!(backed(both, many, few), (Action::Reject, false));
        assert_eq!(backed(both, few, few), (Action::Mark, true));
        assert_eq!(backed(both, Backing::Unknown, Backing::Unknown), (Action::Mark, true));
        // What it is like came from many networks, though its body did not.
        assert_eq!(backed(both, few, many), (Action::Quarantine, false));
        assert_eq!(
            backed(Counts { body: Some(19), near: Some(20), spam: None }, Backing::NotAsked, few),
            (Action::Mark, true)
        );
    }

    /// One letter to a whole parish is bulk, and wanted.
    #[test]
    fn what_came_in_few_messages_is_only_marked() {
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
        // It is bulk by what it is like.
        assert_eq!(decided(Some(10), 22, Some(20), 30).1, Action::Quarantine);
        // So many as make it bulk are enough.
        assert_eq!(decided(Some(20), 20, None, 30).1, Action::Reject);
    }

    /// Nor is it told so: a filter would leave alone mail that users report as spam.
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
