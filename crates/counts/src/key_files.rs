// SPDX-License-Identifier: GPL-3.0-or-later
//! `ledger.federation-key-file`: one file, or two during a change of keys.

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::PathBuf;

/// The files of the federation's key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyFiles {
    /// The file of the key; `None` for a single site.
    pub key: Option<PathBuf>,
    /// The file of the old key, during a change of keys.
    pub old: Option<PathBuf>,
}

impl<'de> Deserialize<'de> for KeyFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrTwo)
    }
}

struct OneOrTwo;

impl<'de> Visitor<'de> for OneOrTwo {
    type Value = KeyFiles;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path in quotes, or a list of two: the new key and the old one")
    }

    fn visit_str<E: Error>(self, path: &str) -> Result<KeyFiles, E> {
        Ok(KeyFiles { key: Some(path.into()), old: None })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<KeyFiles, A::Error> {
        let files = KeyFiles { key: list.next_element()?, old: list.next_element()? };
        let more = std::iter::from_fn(|| list.next_element::<PathBuf>().transpose())
            .collect::<Result<Vec<_>, _>>()?;
        match (&files.key, more.len()) {
            (None, _) => Err(Error::invalid_length(0, &self)),
            (_, 0) => Ok(files),
            (_, more) => Err(Error::invalid_length(2 + more, &self)),
        }
    }
}
