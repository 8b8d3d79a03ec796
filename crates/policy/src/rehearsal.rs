// SPDX-License-Identifier: GPL-3.0-or-later
//! Rehearsed actions: the message is only marked, and header and log show the action that would have been taken.

use super::rehearse::Rehearse;
use super::settings::{Action, Actions};

/// The reason why an action is only rehearsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rehearsal {
    /// The daemon is paused (`bulkmark pause`).
    Paused,
    /// `actions.rehearse` is true.
    Configured,
    /// A recipient is in the part of `actions.rehearse`.
    Recipient,
    /// The client's network is in the part of `actions.rehearse`.
    Client,
    /// Recipients are acted on in part, and none is known.
    NoRecipient,
    /// Clients are acted on in part, and this one is not known.
    NoClient,
    /// The time of `actions.rehearse` has not come.
    Until,
}

impl Rehearsal {
    /// The reason why `actions` are only rehearsed for these mailboxes or for this client network, if so. `part` gives the place of a name
    /// among all, in thousandths (0 to 999). A message without a known recipient or client is in every part above zero. `now` is in seconds since 1970.
    #[must_use]
    pub fn of(
        actions: &Actions,
        is_paused: bool,
        now: u64,
        names: impl Iterator<Item = String>,
        part: impl Fn(&str) -> u32,
    ) -> Option<Self> {
        if is_paused {
            return Some(Self::Paused);
        }
        let (rehearsed, inside, unknown) = match actions.rehearse {
            Rehearse::Never => return None,
            Rehearse::Always => return Some(Self::Configured),
            Rehearse::Until(time) => return (now < time.seconds()).then_some(Self::Until),
            Rehearse::Recipients(part) => (part.thousandths(), Self::Recipient, Self::NoRecipient),
            Rehearse::Clients(part) => (part.thousandths(), Self::Client, Self::NoClient),
        };
        let mut names = names.peekable();
        match rehearsed {
            0 => None,
            1000 => Some(inside),
            _ if names.peek().is_none() => Some(unknown),
            _ => names.any(|name| part(&name) >= 1000 - rehearsed).then_some(inside),
        }
    }

    /// The reason as a sentence.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::Paused => "bulkmark is paused",
            Self::Configured => "actions.rehearse is true",
            Self::Recipient => "a recipient is in the part of actions.rehearse",
            Self::Client => "the client's network is in the part of actions.rehearse",
            Self::NoRecipient => "actions.rehearse depends on the recipient, and none is known (--recipient)",
            Self::NoClient => "actions.rehearse depends on the client, which is not known (--ip)",
            Self::Until => "the date of actions.rehearse has not come",
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
    use crate::fraction::Fraction;
    use crate::rehearse::Time;

    fn rehearsed(part: f64, parts: &[u32]) -> Option<Rehearsal> {
        let rehearse = Rehearse::Recipients(Fraction::try_from(part).unwrap());
        let actions = Actions { rehearse, ..Actions::default() };
        let names = parts.iter().map(ToString::to_string);
        Rehearsal::of(&actions, false, 0, names, |name| name.parse().unwrap())
    }

    #[test]
    fn an_action_is_taken_if_no_recipient_is_in_the_part() {
        assert_eq!(rehearsed(0.0, &[]), None);
        assert_eq!(rehearsed(0.0, &[999]), None);
        assert_eq!(rehearsed(0.9, &[99, 0]), None);
        for inside in [&[100][..], &[99, 100], &[100, 99]] {
            assert_eq!(rehearsed(0.9, inside), Some(Rehearsal::Recipient), "{inside:?}");
        }
        for names in [&[0][..], &[]] {
            assert_eq!(rehearsed(1.0, names), Some(Rehearsal::Recipient));
        }
        assert_eq!(rehearsed(0.9, &[]), Some(Rehearsal::NoRecipient), "nobody was named, so nobody is in it");
    }

    #[test]
    fn a_pause_and_a_rehearsal_hold_for_all() {
        let actions = Actions { rehearse: Rehearse::Always, ..Actions::default() };
        let of = |is_paused| Rehearsal::of(&actions, is_paused, 0, std::iter::empty(), |_| 0);
        assert_eq!((of(false), of(true)), (Some(Rehearsal::Configured), Some(Rehearsal::Paused)));
        assert_eq!(Would::instead(Action::Mark, of(true)), (Action::Mark, None));
        let would = Would { action: Action::Reject, why: Rehearsal::Paused };
        assert_eq!(Would::instead(Action::Reject, of(true)), (Action::Mark, Some(would)));
    }
    #[test]
    fn a_rehearsal_ends_at_its_date() {
        let until = |text: &str| Time::try_from(text.to_owned());
        assert_eq!(
            until("2026-12-01T01:00:00Z").unwrap().seconds() - until("2026-12-01").unwrap().seconds(),
            3600
        );
        for bad in ["", "tomorrow", "2026-13-01", "2026-12-01T", "1.12.2026"] {
            assert!(until(bad).unwrap_err().contains("expected a date"), "{bad}");
        }
        let date = until("2026-12-01").unwrap();
        let actions = Actions { rehearse: Rehearse::Until(date), ..Actions::default() };
        let of = |now| Rehearsal::of(&actions, false, now, std::iter::empty(), |_| 0);
        assert_eq!((of(date.seconds() - 1), of(date.seconds())), (Some(Rehearsal::Until), None));
    }
}
