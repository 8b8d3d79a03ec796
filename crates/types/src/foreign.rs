// SPDX-License-Identifier: GPL-3.0-or-later
//! Digests that programs of other systems make from a message. Each is counted as it is, under its own kind.

use super::key::FederationKey;
use super::signature::{Kind, Signature};

/// The system that made a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Foreign {
    /// Pyzor: SHA-1 of some lines.
    Pyzor,
    /// Razor's engine 4: SHA-1 of some parts. The hashed content includes its seeds and separator.
    Razor4,
    /// Razor's engine 8: the host names of its links.
    Razor8,
}

/// The signature under which a digest is counted. Two digests have the same signature if and only if their bytes are equal.
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

    /// The same bytes from two systems have different signatures.
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
