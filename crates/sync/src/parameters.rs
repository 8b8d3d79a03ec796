// SPDX-License-Identifier: GPL-3.0-or-later
//! Parameters in which two machines must agree before they can share counts.

use bulkmark_filter::Refined;
use bulkmark_types::FederationKey;
use std::fmt;
use std::time::Duration;

/// The version of the protocol; a new one gets another path of the API and another number here.
const PROTOCOL: u32 = 1;

/// The layout's name, without the separators of fields.
fn layout() -> String {
    Refined::layout().replace([',', ' '], "-")
}

/// The parameter that may differ. It is sent because programs before 0.1.0 compare it.
const CAPACITY: &str = "capacity";

/// The key id.
const KEY: &str = "federation-key-id";

/// The id of the new key, during a change of keys.
const NEXT_KEY: &str = "next-federation-key-id";

/// Parameters that both sides send with every request and answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    fields: Vec<(&'static str, String)>,
}

/// The header with the parameters.
pub const HEADER: &str = "bulkmark-parameters";

impl Parameters {
    /// Returns those of a ledger with these settings and this key.
    #[must_use]
    pub fn new(settings: &bulkmark_counts::Settings, key: &FederationKey) -> Self {
        let mut fields = vec![
            ("protocol", PROTOCOL.to_string()),
            (KEY, format!("{:016x}", key.id())),
            ("layout", layout()),
            ("window", settings.window.as_secs().to_string()),
            (CAPACITY, settings.capacity.to_string()),
        ];
        fields.extend(key.next_id().map(|id| (NEXT_KEY, format!("{id:016x}"))));
        Self { fields }
    }

    /// Parses the other side's text into settings and key id. The layout must be the local one.
    ///
    /// # Errors
    /// The parameter that is missing or differs.
    pub fn read(theirs: &str) -> Result<(bulkmark_counts::Settings, u64), String> {
        let fields = fields_of(theirs);
        let field = |name: &str| {
            let found = fields.iter().find(|(other, _)| *other == name).map(|&(_, value)| value);
            found.ok_or_else(|| format!("parameters without {name}: {theirs:?}"))
        };
        for (name, ours) in [("protocol", PROTOCOL.to_string()), ("layout", layout())] {
            if field(name)? != ours {
                return Err(format!("{name} is {}, but this program has {ours}", field(name)?));
            }
        }
        let invalid = |name| move || format!("parameters with an invalid {name}: {theirs:?}");
        let window = field("window")?.parse().ok().filter(|&w| w > 0).ok_or_else(invalid("window"))?;
        let window = Duration::from_secs(window);
        let retention = window.saturating_mul(366);
        let capacity = field("capacity")?.parse().map_err(|_| invalid("capacity")())?;
        let key = field(KEY)?;
        let key = u64::from_str_radix(key, 16).map_err(|_| invalid(KEY)())?;
        Ok((
            bulkmark_counts::Settings { window, retention, capacity, ..bulkmark_counts::Settings::default() },
            key,
        ))
    }

    /// Compares the other side's text. Capacities may differ: each filter is sent with its own, and filters of several sizes can coexist.
    /// If one side changes its key, the sides must have one key id in common. `sides` name the places of the local and of the other text, as
    /// "here" and "at the server".
    ///
    /// # Errors
    /// A sentence that names the first parameter that differs, and both values.
    pub fn check(&self, theirs: &str, sides: [&str; 2]) -> Result<(), String> {
        let (ours, theirs) = (self.to_string(), fields_of(theirs));
        let (ours, ids) = (ids_of(&fields_of(&ours)), ids_of(&theirs));
        // If both change the same key, they must change it to the same one.
        let agree = if let ([from, Some(to)], [theirs_from, Some(theirs_to)]) = (ours, ids)
            && from == theirs_from
        {
            to == theirs_to
        } else {
            ours.iter().flatten().any(|id| ids.contains(&Some(id)))
        };
        let is_key = |name: &str| matches!(name, KEY | NEXT_KEY);
        self.compare(&theirs, sides, |name| name != CAPACITY && !(agree && is_key(name)))
    }

    /// The id of the other side's new key, during its change of keys.
    #[must_use]
    pub fn next_key(theirs: &str) -> Option<u64> {
        let [_, next] = ids_of(&fields_of(theirs));
        next.and_then(|next| u64::from_str_radix(next, 16).ok())
    }

    /// Compares the parameters of a running daemon with those of its configuration: no field may differ.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_all(&self, theirs: &str) -> Result<(), String> {
        let theirs = fields_of(theirs);
        let [_, ended] = ids_of(&theirs);
        if let Some(ended) = ended.filter(|_| self.fields.iter().all(|(name, _)| *name != NEXT_KEY)) {
            return Err(format!("{NEXT_KEY} is not set in the configuration and {ended} in the daemon"));
        }
        self.compare(&theirs, ["in the configuration", "in the daemon"], |_| true)
    }

    fn compare(
        &self,
        theirs: &[(&str, &str)],
        [here, there]: [&str; 2],
        matters: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        for (name, ours) in self.fields.iter().filter(|(name, _)| matters(name)) {
            let found = theirs.iter().find(|(other, _)| other == name).map(|&(_, value)| value);
            if found != Some(ours) {
                let found = found.unwrap_or("not given");
                let is_key = matches!(*name, KEY | NEXT_KEY);
                let key = if is_key { ": both need the same federation-key-file" } else { "" };
                return Err(format!("{name} is {ours} {here} and {found} {there}{key}"));
            }
        }
        Ok(())
    }
}

/// The fields of the text of parameters.
fn fields_of(text: &str) -> Vec<(&str, &str)> {
    text.split(", ").filter_map(|field| field.split_once('=')).collect()
}

/// The id of the key, and the id of the new key during a change.
fn ids_of<'a>(fields: &[(&'a str, &'a str)]) -> [Option<&'a str>; 2] {
    [KEY, NEXT_KEY].map(|id| fields.iter().find(|(name, _)| *name == id).map(|&(_, value)| value))
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.fields.iter().enumerate() {
            write!(f, "{}{name}={value}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named() {
        const SIDES: [&str; 2] = ["here", "at the server"];
        let (settings, key) = (bulkmark_counts::Settings::default(), FederationKey::public());
        let ours = Parameters::new(&settings, &key);
        assert_eq!(ours.check(&ours.to_string(), SIDES), Ok(()));
        let window = settings.window.saturating_mul(2);
        let theirs = Parameters::new(&bulkmark_counts::Settings { window, ..settings.clone() }, &key);
        assert_eq!(
            ours.check(&theirs.to_string(), SIDES),
            Err("window is 86400 here and 172800 at the server".to_owned())
        );
        let capacity = settings.capacity.saturating_add(1);
        let theirs = Parameters::new(&bulkmark_counts::Settings { capacity, ..settings }, &key);
        assert_ne!(theirs, ours);
        assert_eq!(ours.check(&theirs.to_string(), SIDES), Ok(()), "it is raised at one after the other");
        assert!(ours.check("", SIDES).is_err_and(|e| e.starts_with("protocol is 1 here and not given")));
    }

    /// Members that have not begun the change, members within it, and members that have ended it count together; others do not.
    #[test]
    fn a_federation_changes_its_key_at_one_member_after_the_other() {
        let key = |n: u8| FederationKey::from_bytes(&[b'a' + n; 16]).unwrap();
        let of = |key: FederationKey| Parameters::new(&bulkmark_counts::Settings::default(), &key);
        let agree = |one: &FederationKey, other: &FederationKey| {
            let [one, other] = [one, other].map(|key| of(key.clone()));
            let check = |ours: &Parameters, theirs: &Parameters| ours.check(&theirs.to_string(), ["", ""]);
            assert_eq!(check(&one, &other).is_ok(), check(&other, &one).is_ok());
            check(&one, &other).is_ok()
        };
        let (old, new, both) = (key(0), key(1), key(1).after(key(0)));
        assert!(agree(&both, &old) && agree(&both, &both) && agree(&both, &new));
        assert!(agree(&both, &key(2).after(key(1))), "the next change begins before all have ended this one");
        assert!(!agree(&old, &new) && !agree(&both, &key(2)));
        assert!(!agree(&both, &key(2).after(key(0))), "the same change, to another key");
        let text = of(both).to_string();
        assert_eq!(
            (Parameters::next_key(&text), Parameters::read(&text).unwrap().1),
            (Some(new.id()), old.id())
        );
        assert_eq!(Parameters::next_key(&of(new).to_string()), None);
    }
}
