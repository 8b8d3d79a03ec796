// SPDX-License-Identifier: GPL-3.0-or-later
//! `listen` of the configuration: one address, or several of which some have names.

use crate::net::Endpoint;
use bulkmark_policy::Name;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// The most listeners. Each accepts as many connections as `max-connections` says.
pub const MAX_LISTENERS: usize = 16;

/// A listener for the MTA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerSettings {
    /// Its name in policies.
    pub name: Option<Name>,
    /// Its address.
    pub at: Endpoint,
}

/// All listeners: at least one, unless only interfaces are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listeners(pub Vec<ListenerSettings>);

/// The value of `listen` for a daemon without a milter.
pub const NONE: &str = "none";

impl Default for Listeners {
    fn default() -> Self {
        Self::one(Endpoint::here(8720))
    }
}

impl Listeners {
    /// One listener without a name.
    #[must_use]
    pub fn one(at: Endpoint) -> Self {
        Self(vec![ListenerSettings { name: None, at }])
    }

    /// The listeners of a daemon without a milter.
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// The first one, if there is any.
    #[must_use]
    pub fn first(&self) -> Option<&Endpoint> {
        self.0.first().map(|listener| &listener.at)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().filter_map(|listener| listener.name.as_ref())
    }

    fn check(self) -> Result<Self, String> {
        if self.0.is_empty() || self.0.len() > MAX_LISTENERS {
            return Err(format!("found {} addresses, expected 1 to {MAX_LISTENERS}", self.0.len()));
        }
        for (i, listener) in self.0.iter().enumerate() {
            let before = &self.0[..i];
            if let Some(name) = &listener.name
                && before.iter().any(|other| other.name.as_ref() == Some(name))
            {
                return Err(format!(
                    "found the name \"{}\" twice, expected a name of its own",
                    name.as_str()
                ));
            }
            if listener.name.is_none() && before.iter().any(|other| other.name.is_none()) {
                return Err("found two listeners without a name, expected names for all but one".to_owned());
            }
        }
        Ok(self)
    }
}

impl<'de> Deserialize<'de> for Listeners {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Many)
    }
}

struct Many;

impl<'de> Visitor<'de> for Many {
    type Value = Listeners;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "an address such as \"inet:127.0.0.1:8720\", a list of addresses and tables { name, at }, or tables [listen.NAME] with at",
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Listeners, E> {
        if text == NONE {
            return Ok(Listeners::none());
        }
        Endpoint::of_postfix(text).map(Listeners::one).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Listeners, A::Error> {
        let mut all = Vec::new();
        while let Some(One(listener)) = list.next_element()? {
            all.push(listener);
        }
        Listeners(all).check().map_err(A::Error::custom)
    }

    /// Tables `[listen.NAME]` add to the default address, which is not in the file then.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Listeners, A::Error> {
        let mut all = Listeners::default().0;
        while let Some((name, At { at })) = map.next_entry()? {
            all.push(ListenerSettings { name: Some(name), at });
        }
        Listeners(all).check().map_err(A::Error::custom)
    }
}

/// An entry of the list.
struct One(ListenerSettings);

impl<'de> Deserialize<'de> for One {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Entry)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: Name,
    #[serde(deserialize_with = "Endpoint::postfix")]
    at: Endpoint,
}

/// A table `[listen.NAME]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct At {
    #[serde(deserialize_with = "Endpoint::postfix")]
    at: Endpoint,
}

struct Entry;

impl<'de> Visitor<'de> for Entry {
    type Value = One;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address such as \"inet:127.0.0.1:8720\", or { name = \"outbound\", at = \"inet:127.0.0.1:8724\" }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<One, E> {
        let at = Endpoint::of_postfix(text).map_err(E::custom)?;
        Ok(One(ListenerSettings { name: None, at }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<One, A::Error> {
        let Named { name, at } = Named::deserialize(MapAccessDeserializer::new(map))?;
        Ok(One(ListenerSettings { name: Some(name), at }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_or_several_with_names() {
        #[derive(Deserialize)]
        struct File {
            listen: Listeners,
        }
        let read = |text: &str| toml::from_str::<File>(&format!("listen = {text}")).map(|file| file.listen);
        let one = read("\"inet:127.0.0.1:8720\"").unwrap();
        assert_eq!(one, read("[\"inet:127.0.0.1:8720\"]").unwrap());
        let two = read("[\"systemd\", { name = \"out\", at = \"unix:/run/out.sock\" }]").unwrap();
        let names: Vec<_> = two.names().map(Name::as_str).collect();
        assert_eq!((two.0.len(), names, two.first()), (2, vec!["out"], Some(&Endpoint::Systemd)));
        let named = toml::from_str::<File>("[listen.out]\nat = \"unix:/run/out.sock\"\n").unwrap().listen;
        assert_eq!(named.0, [Listeners::default().0, two.0[1..].to_vec()].concat());
        assert_eq!(read("\"none\"").unwrap(), Listeners::none());
        for (bad, expected) in [
            ("[]", "found 0 addresses, expected 1 to 16"),
            (
                "[{ name = \"a\", at = \"systemd\" }, { name = \"a\", at = \"systemd\" }]",
                "the name \"a\" twice",
            ),
            ("[\"inet:127.0.0.1:1\", \"inet:127.0.0.1:2\"]", "two listeners without a name"),
            ("[{ at = \"systemd\" }]", "missing field `name`"),
            ("[{ name = \"a b\", at = \"systemd\" }]", "expected a name of letters"),
            ("8720", "expected an address such as"),
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains(expected), "{bad}: {error}");
        }
    }
}
