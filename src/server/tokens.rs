// SPDX-License-Identifier: GPL-3.0-or-later
//! The owners of tokens, in a hash table, so that many clients, and many wrong tokens, cost no more than few.

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use subtle::ConstantTimeEq;

/// Maximum length of a token; those from this program have 73 bytes.
const MAX_TOKEN: usize = 256;

/// SHA-256 of a token.
type Hash = [u8; 32];

/// Hashes of tokens, by their first eight bytes. The time of a search reveals only these, which is of no use: nobody can choose a token by
/// its hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tokens(HashMap<[u8; 8], Vec<(Hash, usize)>>);

/// Returns the hash of a token, as it is stored.
pub(super) fn hash(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Parses the text of [`hash`]; none for anything else.
fn read(text: &str) -> Option<Hash> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.iter().map(byte).collect::<Option<Vec<u8>>>()?.try_into().ok()
}

fn beginning(hash: &Hash) -> [u8; 8] {
    std::array::from_fn(|i| hash[i])
}

impl Tokens {
    /// Indexes these hashes, each with the number of its owner.
    pub(super) fn new<'a>(hashes: impl Iterator<Item = (&'a str, usize)>) -> Self {
        let mut tokens = Self::default();
        for (text, owner) in hashes {
            if let Some(hash) = read(text) {
                tokens.0.entry(beginning(&hash)).or_default().push((hash, owner));
            }
        }
        tokens
    }

    /// Returns the owner of this token. Hashes are compared in constant time.
    pub(super) fn find(&self, token: &str) -> Option<usize> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let hash: Hash = Sha256::digest(token.as_bytes()).into();
        let like = self.0.get(&beginning(&hash))?;
        like.iter().find(|(kept, _)| bool::from(kept.ct_eq(&hash))).map(|&(_, owner)| owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_found_by_the_whole_hash() {
        let hashes = ["a", "b", "c"].map(hash);
        let mut almost = hash("d");
        almost.replace_range(63.., if almost.ends_with('0') { "1" } else { "0" });
        let kept = hashes.iter().map(|hash| &**hash).chain([&*almost, "nonsense", ""]);
        let tokens = Tokens::new(kept.zip(0..));
        assert_eq!(
            ["a", "b", "c", "d", ""].map(|token| tokens.find(token)),
            [Some(0), Some(1), Some(2), None, None]
        );
        let long = "x".repeat(MAX_TOKEN + 1);
        assert_eq!(Tokens::new([(&*hash(&long), 0)].into_iter()).find(&long), None, "it is not even hashed");
    }
}
