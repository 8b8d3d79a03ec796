// SPDX-License-Identifier: GPL-3.0-or-later
//! The reasons why bulk or spam is only marked, whatever the actions are.

use std::fmt;
use std::sync::Arc;

/// The reason why bulk or spam is only marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Its count comes from too few networks.
    Sources,
    /// It came in too few messages, regardless of the number of recipients.
    Messages,
    /// A recipient wrote to its sender.
    Correspondent,
    /// The administrator allowed its mailing.
    Allowed,
}

/// The origin of an order that allows a mailing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// This machine's administrator.
    Here,
    /// Another site of the federation, or two, joined by "+".
    By(Arc<str>),
}

impl Allowed {
    /// The other site; none if the order is from here.
    #[must_use]
    pub const fn site(&self) -> Option<&Arc<str>> {
        match self {
            Self::Here => None,
            Self::By(site) => Some(site),
        }
    }
}

impl Held {
    /// The reason with this name, if commands show it in its own sentence. `sources` is shown beside the numbers of networks.
    #[must_use]
    pub fn from_name(name: Option<&str>) -> Option<Self> {
        [Self::Messages, Self::Correspondent, Self::Allowed]
            .into_iter()
            .find(|held| name == Some(&*held.to_string()))
    }

    /// The reason as a sentence, with the other site by whose order the mailing is allowed.
    #[must_use]
    pub fn sentence(self, allowed_by: Option<&str>) -> String {
        match allowed_by {
            None => self.why().to_owned(),
            Some(site) => format!("{}, by order of {site}", self.why()),
        }
    }

    const fn why(self) -> &'static str {
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

/// The name in header and log.
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
