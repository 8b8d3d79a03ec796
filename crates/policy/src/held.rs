// SPDX-License-Identifier: GPL-3.0-or-later
//! Why bulk or spam is only marked, whatever the actions say.

use std::fmt;

/// Why bulk or spam is only marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Its count comes from too few networks.
    Sources,
    /// It came in too few messages, however many recipients these had.
    Messages,
    /// A recipient wrote to whom it comes from.
    Correspondent,
    /// The administrator allowed its mailing.
    Allowed,
}

impl Held {
    /// The one of this name that is told in a sentence of its own; that of networks stands beside their numbers.
    #[must_use]
    pub fn told(name: Option<&str>) -> Option<Self> {
        [Self::Messages, Self::Correspondent, Self::Allowed]
            .into_iter()
            .find(|held| name == Some(&*held.to_string()))
    }

    /// Why, for people.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::Sources => "only marked, since its count comes from too few networks",
            Self::Messages => {
                "only marked, since its count is one of recipients, and it came in too few messages"
            }
            Self::Correspondent => {
                "only marked, since a recipient wrote to whom it is from, and that is verified"
            }
            Self::Allowed => "only marked, since this mailing is allowed (bulkmark allow --list)",
        }
    }
}

/// As header and log write it.
impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sources => "sources",
            Self::Messages => "messages",
            Self::Correspondent => "correspondent",
            Self::Allowed => "allowed",
        })
    }
}
