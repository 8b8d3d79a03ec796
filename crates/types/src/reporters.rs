// SPDX-License-Identifier: GPL-3.0-or-later
//! User reports of a message, as further signatures that are counted like all others, so that a whole federation gets them.
//! docs/user-reports.md describes what they are made of, and why.

use super::key::FederationKey;
use super::signature::Signature;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The weight of a report by a fully trusted user. Weights are counted as reports are, so this is an integer; it fits into the smallest
/// cells.
pub const UNIT: u32 = 8;

/// The signature that sums the weights of the spam reports of messages with `of`.
#[must_use]
pub fn nomination(key: &FederationKey, of: Signature) -> Signature {
    key.nomination(of)
}

/// The signature that sums the weights of the not-spam reports, for the same content as `nomination`; and vice versa.
#[must_use]
pub const fn revocation(nomination: Signature) -> Signature {
    nomination.inverted()
}

/// The weight of a count of `total`, of which one's own users reported `own`, where others' reports weigh `thousandths` of 1,000.
#[must_use]
pub fn weigh(total: u32, own: u32, thousandths: u32) -> u32 {
    let own = own.min(total);
    let others = u64::from(total - own) * u64::from(thousandths) / 1000;
    own.saturating_add(u32::try_from(others).unwrap_or(u32::MAX))
}

/// The number that stands for a user's mailbox and a correspondent. Without the key it reveals neither.
#[must_use]
pub fn correspondence(key: &FederationKey, user: &str, other: &str) -> u64 {
    key.correspondence(user, other)
}

/// The kind of a reporter, which is the prefix of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReporterKind {
    /// A user of this mail server.
    User,
    /// An address without a user.
    Trap,
    /// A client of an interface, that is, of another protocol.
    Interface,
    /// None of these.
    Other,
}

impl ReporterKind {
    /// The prefix of the names of this kind.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::User => "user:",
            Self::Trap => "trap:",
            Self::Interface => "interface:",
            Self::Other => "",
        }
    }

    /// The kind of a name with its prefix.
    fn of(name: &[u8]) -> Self {
        let kinds = [Self::User, Self::Trap, Self::Interface];
        kinds.into_iter().find(|kind| name.starts_with(kind.prefix().as_bytes())).unwrap_or(Self::Other)
    }

    /// The lowest two bits of an identifier of this kind.
    const fn bits(self) -> u8 {
        match self {
            Self::Other => 0,
            Self::User => 1,
            Self::Trap => 2,
            Self::Interface => 3,
        }
    }
}

impl fmt::Display for ReporterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Trap => "trap",
            Self::Interface => "interface",
            Self::Other => "other",
        })
    }
}

/// The bits of an identifier's last byte that encode the kind.
const KIND: u8 = 0b11;

/// A reporter: 128 bits that stand for a name, which they reveal to nobody without the key. The last two bits encode the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReporterId([u8; 16]);

impl ReporterId {
    /// The reporter with this name, which may be any bytes. A user `a` and a trap `a` are different.
    #[must_use]
    pub fn of(key: &FederationKey, name: &[u8]) -> Self {
        let mut bytes = key.reporter(name);
        if let Some(last) = bytes.last_mut() {
            *last = *last & !KIND | ReporterKind::of(name).bits();
        }
        Self(bytes)
    }

    /// The kind of the reporter.
    #[must_use]
    pub fn kind(&self) -> ReporterKind {
        let [.., last] = self.0;
        let kinds = [ReporterKind::User, ReporterKind::Trap, ReporterKind::Interface];
        kinds.into_iter().find(|kind| kind.bits() == last & KIND).unwrap_or(ReporterKind::Other)
    }

    /// From its bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for ReporterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// User reports' signatures are recognized without the key, and all differ.
    #[test]
    fn user_reports_have_their_tag() {
        let keys = [FederationKey::public(), FederationKey::from_bytes(b"0123456789abcdef").unwrap()];
        let mut all = std::collections::HashSet::new();
        for key in &keys {
            for n in 0..100 {
                let of = Signature::from_bytes([n; 16]);
                assert!(!of.is_user_report());
                let made = [nomination(key, of), revocation(nomination(key, of))];
                assert!(made.iter().all(|signature| signature.is_user_report()));
                all.extend(made);
            }
        }
        assert_eq!(all.len(), 400);
    }

    #[test]
    fn own_reports_weigh_whole_and_those_of_others_in_part() {
        assert_eq!(weigh(24, 8, 500), 16);
        assert_eq!(weigh(24, 24, 0), 24);
        assert_eq!(weigh(24, 0, 1000), 24);
        assert_eq!(weigh(7, 8, 500), 7, "reports that expired were of one's own users");
        assert_eq!(weigh(u32::MAX, 0, 1000), u32::MAX);
    }

    #[test]
    fn an_identifier_depends_on_key_and_kind() {
        let other = FederationKey::from_bytes(b"0123456789abcdef").unwrap();
        let of = |key: &FederationKey, name: &str| ReporterId::of(key, name.as_bytes());
        let key = FederationKey::public();
        assert_eq!(of(&key, "user:anna"), of(&key, "user:anna"));
        assert_ne!(of(&key, "user:anna"), of(&other, "user:anna"));
        assert_ne!(of(&key, "user:anna"), of(&key, "trap:anna"));
    }

    #[test]
    fn an_identifier_encodes_the_kind() {
        for n in 0..20 {
            let kind = |prefix: &str| {
                ReporterId::of(&FederationKey::public(), format!("{prefix}{n}").as_bytes()).kind()
            };
            for of in [ReporterKind::User, ReporterKind::Trap, ReporterKind::Interface, ReporterKind::Other] {
                assert_eq!(kind(of.prefix()), of);
            }
            assert_eq!(kind("users:"), ReporterKind::Other);
        }
    }
}
