// SPDX-License-Identifier: GPL-3.0-or-later
//! What programs of other systems made from a message: it is counted as it is, under a kind of its own.

use super::key::FederationKey;
use super::signature::{Kind, Signature};

/// Which system a digest is of, and what made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Foreign {
    /// The digest of Pyzor: SHA-1 of some lines.
    Pyzor,
    /// Of Razor's engine 4: SHA-1 of some parts. The content has its seeds and separator, too.
    Razor4,
    /// Of Razor's engine 8: the host names of its links.
    Razor8,
}

/// The signature under which such a digest is counted. Two digests are one signature if and only if their bytes are equal.
#[must_use]
pub fn foreign(key: &FederationKey, of: Foreign, digest: &[u8]) -> Signature {
    let kind = match of {
        Foreign::Pyzor => Kind::Pyzor,
        Foreign::Razor4 => Kind::Razor4,
        Foreign::Razor8 => Kind::Razor8,
    };
    key.signature(kind, &[digest])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same bytes from two systems are two signatures, and no other's.
    #[test]
    fn systems_never_meet() {
        let key = FederationKey::public();
        let digest = [7; 20];
        let all = [Foreign::Pyzor, Foreign::Razor4, Foreign::Razor8].map(|of| foreign(&key, of, &digest));
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
        assert_eq!(all[0], foreign(&key, Foreign::Pyzor, &digest));
        assert_ne!(all[0], foreign(&key, Foreign::Pyzor, &[8; 20]));
    }
}
