// SPDX-License-Identifier: GPL-3.0-or-later
//! The verdict on a message.

use super::facts::Facts;
use super::settings::{Action, Actions, Thresholds};
use super::source::Match;
use super::whitelist::WhiteList;
use std::fmt;

/// What was found of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Its count is below the threshold.
    Clean,
    /// Its count has reached the threshold.
    Bulk,
    /// The white list wants it, whatever its count.
    Whitelisted,
    /// It was neither counted nor judged.
    Exempt,
    /// Nothing could be found out.
    Unknown,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Clean, Self::Bulk, Self::Whitelisted, Self::Exempt, Self::Unknown];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "clean",
            Self::Bulk => "bulk",
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
}

/// How often a message was seen, this one included; `None` where it has no such signatures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// By its `body` signature.
    pub body: Option<u32>,
    /// By its `near` signatures.
    pub near: Option<u32>,
}

/// Decides on a message that was seen so often.
///
/// A message that some recipients want (`recipient` entries) is bulk for the others, but it is never refused: a
/// refusal would be one for all.
#[must_use]
pub fn decide(
    counts: Counts,
    thresholds: &Thresholds,
    actions: &Actions,
    list: &WhiteList,
    facts: &Facts<'_>,
) -> Decision {
    let whitelisted =
        |entry| Decision { verdict: Verdict::Whitelisted, action: Action::Mark, whitelist: Some(entry) };
    if let Some(entry) = list.message(facts) {
        return whitelisted(entry);
    }
    let mut wanted = facts.recipients.iter().map(|r| list.recipient(r));
    let some = wanted.clone().flatten().next();
    let all = wanted.all(|entry| entry.is_some());
    let action = if thresholds.body.is_reached(counts.body) {
        Some(actions.bulk)
    } else {
        thresholds.near.is_reached(counts.near).then_some(actions.near)
    };
    match (some, action) {
        (Some(entry), _) if all => whitelisted(entry),
        (_, None) => Decision { verdict: Verdict::Clean, action: Action::Mark, whitelist: None },
        (Some(entry), _) => Decision { verdict: Verdict::Bulk, action: Action::Mark, whitelist: Some(entry) },
        (None, Some(action)) => Decision { verdict: Verdict::Bulk, action, whitelist: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::PathBuf;

    fn decide_for(body: u32, list: &str, recipients: &[&str]) -> (Verdict, Action, Option<String>) {
        decide_on(Counts { body: Some(body), near: None }, list, recipients)
    }

    fn decide_on(counts: Counts, list: &str, recipients: &[&str]) -> (Verdict, Action, Option<String>) {
        let read = |_: &std::path::Path| -> io::Result<String> { Ok(list.to_owned()) };
        let list = WhiteList::load(&[PathBuf::from("l")], &read).unwrap();
        let recipients: Vec<_> = recipients.iter().map(|&r| r.to_owned()).collect();
        let facts = Facts {
            client_ip: None,
            client_host: None,
            sender: Some("a@example.org"),
            recipients: &recipients,
            from: &[],
            list_id: None,
            signature: None,
        };
        let actions = Actions { bulk: Action::Reject, near: Action::Quarantine, ..Actions::default() };
        let d = decide(counts, &Thresholds::default(), &actions, &list, &facts);
        (d.verdict, d.action, d.whitelist.map(|m| m.to_string()))
    }

    #[test]
    fn the_threshold_is_reached_by_the_twentieth() {
        assert_eq!(decide_for(19, "", &["x@y.z"]), (Verdict::Clean, Action::Mark, None));
        assert_eq!(decide_for(20, "", &["x@y.z"]), (Verdict::Bulk, Action::Reject, None));
    }

    #[test]
    fn each_kind_has_its_action() {
        let action = |body, near| decide_on(Counts { body, near }, "", &["x@y.z"]).1;
        assert_eq!(action(Some(1), Some(20)), Action::Quarantine);
        assert_eq!(action(None, Some(20)), Action::Quarantine);
        assert_eq!(action(Some(20), Some(20)), Action::Reject);
        assert_eq!(action(Some(19), Some(19)), Action::Mark);
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
