// SPDX-License-Identifier: GPL-3.0-or-later
//! The federation's key. Without it, nobody can test guesses or aim at cells.

use super::signature::{Kind, Signature};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::fmt;
use std::hash::Hasher as _;

/// The key of a site that shares its counts with nobody. It is public: the signatures that anybody can compute with it are useless, since
/// only the site sees its counts.
const PUBLIC: &[u8] = b"bulkmark: the public key of sites without a federation, version 1";

/// The least number of bytes of a key: the strength of a signature.
const MIN_LEN: usize = 16;

/// A key with its derived state, made once: the HMAC state, and the keys of cheaper hashes, of which a message needs many.
#[derive(Clone)]
pub struct FederationKey {
    mac: Hmac<Sha256>,
    id: u64,
    /// The old key, during a change of keys.
    old: Option<Box<Self>>,
    passages: SipHasher24,
    words: [u8; 16],
    strays: SipHasher24,
    source_counts: SipHasher24,
    source_buckets: SipHasher24,
    nominations: SipHasher24,
}

/// A key cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    /// It is too short to be secret.
    #[error("the key has {0} bytes, expected at least {MIN_LEN}; make one with: openssl rand -hex 32")]
    TooShort(usize),
}

impl FederationKey {
    /// A key from the bytes of its file, without white space around them.
    ///
    /// # Errors
    /// When it is shorter than 16 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes = bytes.trim_ascii();
        if bytes.len() < MIN_LEN { Err(KeyError::TooShort(bytes.len())) } else { Ok(Self::new(bytes)) }
    }

    /// The key of a site without a federation.
    #[must_use]
    pub fn public() -> Self {
        Self::new(PUBLIC)
    }

    fn new(bytes: &[u8]) -> Self {
        #[expect(clippy::unreachable, reason = "HMAC takes keys of any length (RFC 2104, section 2)")]
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(bytes).unwrap_or_else(|_| unreachable!());
        let digest = mac.clone().chain_update(b"key id").finalize().into_bytes();
        let id = u64::from_le_bytes(std::array::from_fn(|i| digest[i]));
        let derived = |kind, purpose: &[u8]| signature(&mac, kind, &[purpose]).to_bytes();
        let hasher = |kind, purpose| SipHasher24::new_with_key(&derived(kind, purpose));
        Self {
            id,
            passages: hasher(Kind::Near, b"passages"),
            words: derived(Kind::Near, b"words"),
            strays: hasher(Kind::StrayBy, b"origins"),
            source_counts: hasher(Kind::SourceCount, b"networks"),
            source_buckets: hasher(Kind::SourceBucket, b"buckets"),
            nominations: hasher(Kind::Nomination, b"signatures"),
            mac,
            old: None,
        }
    }

    /// The same key while a federation changes to it from `old`: signatures are made under this key, and those under the old key are looked
    /// up, too. The ledger holds both, and keeps the [id](Self::id) of the old key until the change ends.
    #[must_use]
    pub fn after(self, old: Self) -> Self {
        Self { old: Some(Box::new(Self { old: None, ..old })), ..self }
    }

    /// The old key, during a change of keys.
    #[must_use]
    pub fn old(&self) -> Option<&Self> {
        self.old.as_deref()
    }

    /// This key, and the old key if there is one.
    pub fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.old())
    }

    /// Identifies the counts without revealing the key. Holders of filters compare it before they exchange anything. During a change it is the
    /// id of the old key.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.old().map_or(self.id, |old| old.id)
    }

    /// Whether both have the same key, and the same old key.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.all().map(|key| key.id).eq(other.all().map(|key| key.id))
    }

    /// During a change of keys, the id that the counts will have afterwards.
    #[must_use]
    pub fn next_id(&self) -> Option<u64> {
        self.old().map(|_| self.id)
    }

    /// A new HMAC-SHA-256 under this key that has already hashed the name of `kind`.
    pub fn mac(&self, kind: Kind) -> Hmac<Sha256> {
        mac_of(&self.mac, kind)
    }

    /// The signature of `content`.
    pub fn signature(&self, kind: Kind, content: &[&[u8]]) -> Signature {
        signature(&self.mac, kind, content)
    }

    /// The `near` signature of a passage in a slot.
    pub fn passage(&self, slot: u8, passage: u64) -> Signature {
        let mut content = [slot; 9];
        content[1..].copy_from_slice(&passage.to_le_bytes());
        Signature::from_bytes(self.passages.hash(&content).as_bytes())
    }

    /// The signature that counts how often `of` was below new text in messages of this origin.
    pub(crate) fn stray_by(&self, of: Signature, origin: u8, name: &[u8]) -> Signature {
        let mut hasher = self.strays;
        hasher.write(&of.to_bytes());
        hasher.write(&[origin]);
        hasher.write(name);
        Signature::from_bytes(hasher.finish128().as_bytes())
    }

    /// The signature that stands for `of` from one network.
    pub fn source_count(&self, of: Signature, network: &[u8]) -> Signature {
        let mut hasher = self.source_counts;
        hasher.write(&of.to_bytes());
        hasher.write(network);
        Signature::from_bytes(hasher.finish128().as_bytes())
    }

    /// The signature that stands for `of` from the networks of a bucket.
    pub fn source_bucket(&self, of: Signature, bucket: u8) -> Signature {
        let mut content = [bucket; 17];
        content[..16].copy_from_slice(&of.to_bytes());
        Signature::from_bytes(self.source_buckets.hash(&content).as_bytes())
    }

    /// The signature that sums the weights of the spam reports of messages with `of`.
    pub fn nomination(&self, of: Signature) -> Signature {
        Signature::from_bytes(self.nominations.hash(&of.to_bytes()).as_bytes()).tagged()
    }

    /// 128 bits that stand for the reporter with this name.
    pub fn reporter(&self, name: &[u8]) -> [u8; 16] {
        let mac = self.mac.clone().chain_update(b"reporter/1").chain_update([0]).chain_update(name);
        let digest = mac.finalize().into_bytes();
        std::array::from_fn(|i| digest[i])
    }

    /// A number that stands for a user and a correspondent. Its upper half depends on the user only, so that all pairs of one user can be
    /// found and erased.
    pub fn correspondence(&self, user: &str, other: &str) -> u64 {
        const USER: u64 = 0xffff_ffff_0000_0000;
        let mac = self.mac.clone().chain_update(b"correspondence/2").chain_update([0]).chain_update(user);
        let number = |mac: Hmac<Sha256>| {
            let digest = mac.finalize().into_bytes();
            u64::from_le_bytes(std::array::from_fn(|i| digest[i]))
        };
        let pair = number(mac.clone().chain_update([0]).chain_update(other));
        number(mac) & USER | pair & !USER
    }

    /// A number for a network, the same for all signatures.
    pub fn network(&self, network: &[u8]) -> u8 {
        self.source_buckets.hash(network).as_bytes()[0]
    }

    /// The key of the words' hashes.
    pub const fn words(&self) -> [u8; 16] {
        self.words
    }
}

fn mac_of(mac: &Hmac<Sha256>, kind: Kind) -> Hmac<Sha256> {
    mac.clone().chain_update(kind.domain()).chain_update([0])
}

fn signature(mac: &Hmac<Sha256>, kind: Kind, content: &[&[u8]]) -> Signature {
    let mac = content.iter().fold(mac_of(mac, kind), |mac, piece| mac.chain_update(piece));
    Signature::from_digest(&mac.finalize().into_bytes().into())
}

impl fmt::Debug for FederationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FederationKey(id {:016x})", self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_keys_have_different_ids_and_short_ones_are_refused() {
        assert_eq!(FederationKey::from_bytes(b" short \n").unwrap_err(), KeyError::TooShort(5));
        let a = FederationKey::from_bytes(b"0123456789abcdef\n").unwrap();
        let b = FederationKey::from_bytes(b"0123456789abcdeF").unwrap();
        assert_eq!(a.id(), FederationKey::from_bytes(b"0123456789abcdef").unwrap().id());
        assert_ne!(a.id(), b.id());
        assert_ne!(a.id(), FederationKey::public().id());
    }

    #[test]
    fn a_change_of_keys_keeps_the_id_until_it_is_over() {
        let old = FederationKey::from_bytes(b"0123456789abcdef").unwrap();
        let new = FederationKey::from_bytes(b"fedcba9876543210").unwrap();
        let both = new.clone().after(old.clone());
        assert_eq!((both.id(), both.next_id()), (old.id(), Some(new.id())));
        assert_eq!((new.next_id(), old.next_id()), (None, None));
        let made = |key: &FederationKey| key.signature(Kind::Body, &[b"text"]);
        assert_eq!(made(&both), made(&new));
        assert_eq!(both.all().map(made).collect::<Vec<_>>(), [made(&new), made(&old)]);
    }
}
