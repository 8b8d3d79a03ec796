// SPDX-License-Identifier: GPL-3.0-or-later
//! The reasons why a message has no count.

use std::fmt;

/// The reason why a message is neither counted nor judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exempt {
    /// It was submitted on this machine.
    Loopback,
    /// Its client is in a network of the configuration.
    Network,
    /// Its client authenticated.
    Authenticated,
    /// The policies of all its recipients exempt it.
    Policy,
    /// It has too little text to be distinguished from others.
    LowInformation,
}

impl Exempt {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Loopback, Self::Network, Self::Authenticated, Self::Policy, Self::LowInformation];

    /// The name in header and log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Network => "network",
            Self::Authenticated => "authenticated",
            Self::Policy => "policy",
            Self::LowInformation => "low-information",
        }
    }

    /// Whether it comes from one's own machine, whose verdict in the header is kept.
    #[must_use]
    pub const fn is_our_own(self) -> bool {
        matches!(self, Self::Loopback | Self::Network)
    }
}

/// The reason why a message could not be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// It has too many recipients.
    TooManyRecipients,
    /// All messages together take too much memory.
    Overloaded,
    /// Reading it failed.
    InternalError,
    /// The ledger did not count it.
    LedgerUnavailable,
    /// There was no verdict within the configured time.
    Timeout,
}

impl Unknown {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::TooManyRecipients,
        Self::Overloaded,
        Self::InternalError,
        Self::LedgerUnavailable,
        Self::Timeout,
    ];

    /// The name in header and log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooManyRecipients => "too-many-recipients",
            Self::Overloaded => "overloaded",
            Self::InternalError => "internal-error",
            Self::LedgerUnavailable => "ledger-unavailable",
            Self::Timeout => "timeout",
        }
    }
}

impl fmt::Display for Exempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
