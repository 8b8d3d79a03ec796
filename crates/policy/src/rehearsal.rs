// SPDX-License-Identifier: GPL-3.0-or-later
//! Rehearsed actions: the message is only marked, and header and log show the action that would have been taken.

use super::fraction::Fraction;
use super::settings::{Action, Actions};

/// The reason why an action is only rehearsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rehearsal {
    /// The daemon is paused (`bulkmark pause`).
    Paused,
    /// `actions.rehearse` is true.
    Configured,
    /// A recipient, or the client, is outside `actions.share`.
    Share,
}

impl Rehearsal {
    /// The reason why `actions` are only rehearsed for these mailboxes or for this client network, if so. `part` gives the place of a name
    /// among all, in thousandths (0 to 999). A message without a known recipient or client is outside every share below the whole.
    #[must_use]
    pub fn of(
        actions: &Actions,
        is_paused: bool,
        mut names: impl Iterator<Item = String>,
        part: impl Fn(&str) -> u32,
    ) -> Option<Self> {
        if is_paused {
            return Some(Self::Paused);
        }
        if actions.rehearse {
            return Some(Self::Configured);
        }
        if actions.share == Fraction::ONE {
            return None;
        }
        let is_inside = |name: String| part(&name) < actions.share.thousandths();
        let first = names.next().is_some_and(is_inside);
        (!(first && names.all(is_inside))).then_some(Self::Share)
    }

    /// The reason as a sentence.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::Paused => "bulkmark is paused",
            Self::Configured => "actions.rehearse is true",
            Self::Share => "a recipient, or the client, is outside actions.share",
        }
    }
}

/// The action that a message would have got, and the reason why it did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Would {
    /// The action; never `mark`.
    pub action: Action,
    /// The reason.
    pub why: Rehearsal,
}

impl Would {
    /// Applies a rehearsal to `action`: returns the action to take, and the one that is only rehearsed.
    #[must_use]
    pub fn instead(action: Action, rehearsal: Option<Rehearsal>) -> (Action, Option<Self>) {
        match rehearsal {
            Some(why) if action != Action::Mark => (Action::Mark, Some(Self { action, why })),
            _ => (action, None),
        }
    }

    /// The sentence that commands show.
    #[must_use]
    pub fn sentence(action: &str, why: &str) -> String {
        format!("only marked, would be \"{action}\": {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(share: f64, parts: &[u32]) -> Option<Rehearsal> {
        let actions = Actions { share: Fraction::try_from(share).unwrap(), ..Actions::default() };
        let names = parts.iter().map(ToString::to_string);
        Rehearsal::of(&actions, false, names, |name| name.parse().unwrap())
    }

    #[test]
    fn an_action_is_taken_if_all_recipients_are_in_the_share() {
        assert_eq!(share(1.0, &[]), None);
        assert_eq!(share(1.0, &[999]), None);
        assert_eq!(share(0.1, &[99, 0]), None);
        for outside in [&[100][..], &[99, 100], &[100, 99], &[]] {
            assert_eq!(share(0.1, outside), Some(Rehearsal::Share), "{outside:?}");
        }
        assert_eq!(share(0.0, &[0]), Some(Rehearsal::Share));
    }

    #[test]
    fn a_pause_and_a_rehearsal_hold_for_all() {
        let actions = Actions { rehearse: true, ..Actions::default() };
        let of = |is_paused| Rehearsal::of(&actions, is_paused, std::iter::empty(), |_| 0);
        assert_eq!((of(false), of(true)), (Some(Rehearsal::Configured), Some(Rehearsal::Paused)));
        assert_eq!(Would::instead(Action::Mark, of(true)), (Action::Mark, None));
        let would = Would { action: Action::Reject, why: Rehearsal::Paused };
        assert_eq!(Would::instead(Action::Reject, of(true)), (Action::Mark, Some(would)));
    }
}
