// SPDX-License-Identifier: GPL-3.0-or-later
//! Why a message has no count.

use std::fmt;

/// Why a message is neither counted nor judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exempt {
    /// It was submitted on this machine.
    Loopback,
    /// Its client is in a network of the configuration.
    Network,
    /// Its client authenticated.
    Authenticated,
    /// The policies of all its recipients say so.
    Policy,
    /// It says too little to be distinguished from others.
    LowInformation,
}

impl Exempt {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Loopback, Self::Network, Self::Authenticated, Self::Policy, Self::LowInformation];

    /// As header and log write it.
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

    /// Whether it comes from a machine of our own, whose verdict in the header is kept.
    #[must_use]
    pub const fn is_our_own(self) -> bool {
        matches!(self, Self::Loopback | Self::Network)
    }
}

/// Why a message could not be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// It is over a bound of what is read.
    TooLarge,
    /// It has more recipients than are kept.
    TooManyRecipients,
    /// Messages take more memory than they may.
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
    pub const ALL: [Self; 6] = [
        Self::TooLarge,
        Self::TooManyRecipients,
        Self::Overloaded,
        Self::InternalError,
        Self::LedgerUnavailable,
        Self::Timeout,
    ];

    /// As header and log write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too-large",
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
