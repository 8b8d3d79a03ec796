// SPDX-License-Identifier: GPL-3.0-or-later
//! A key that takes one text or a list of them.

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// One or more values, each written as text: `"a"` is the same as `["a"]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: FromStr<Err = String>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Texts(PhantomData))
    }
}

struct Texts<T>(PhantomData<T>);

impl<'de, T: FromStr<Err = String>> Visitor<'de> for Texts<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts, as in [\"one\", \"another\"]")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map(|value| OneOrMany(vec![value])).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(text) = list.next_element::<String>()? {
            values.push(text.parse().map_err(A::Error::custom)?);
        }
        Ok(OneOrMany(values))
    }
}
