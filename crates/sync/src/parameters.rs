// SPDX-License-Identifier: GPL-3.0-or-later
//! What two machines must agree in before they can share counts.

use bulkmark_filter::Refined;
use bulkmark_types::FederationKey;
use std::fmt;
use std::time::Duration;

/// The version of the protocol; another one is another path of the API and another number here.
const PROTOCOL: u32 = 1;

/// The layout's name, without what separates fields.
fn layout() -> String {
    Refined::layout().replace([',', ' '], "-")
}

/// The one that may differ. Programs before 0.1.0 compare it, so it is told.
const CAPACITY: &str = "capacity";

/// The number of the key.
const KEY: &str = "federation-key-id";

/// That of the key to which one changes, while one does.
const NEXT_KEY: &str = "next-federation-key-id";

/// Both sides send these with every request and answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    fields: Vec<(&'static str, String)>,
}

/// The header that carries them.
pub const HEADER: &str = "bulkmark-parameters";

impl Parameters {
    /// Of a ledger with these settings and this key.
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

    /// The settings that another side's text tells, and the number of its key. The layout must be ours.
    ///
    /// # Errors
    /// What is missing or not ours.
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

    /// What the other side's text differs in. Capacities may: each filter that travels tells its own, and those of several sizes stand
    /// beside one another. While one of them changes its key, one of its ids must be one of the other's. `sides` say where ours are and
    /// where theirs, as "here" and "at the server".
    ///
    /// # Errors
    /// A sentence that names the first parameter that differs, and both values.
    pub fn check(&self, theirs: &str, sides: [&str; 2]) -> Result<(), String> {
        let (ours, theirs) = (self.to_string(), fields_of(theirs));
        let (ours, ids) = (ids_of(&fields_of(&ours)), ids_of(&theirs));
        // Of two that change the same key, to the same one.
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

    /// The id of the key to which the other side changes, if it does.
    #[must_use]
    pub fn next_key(theirs: &str) -> Option<u64> {
        let [_, next] = ids_of(&fields_of(theirs));
        next.and_then(|next| u64::from_str_radix(next, 16).ok())
    }

    /// The same, of those of a running daemon and of its configuration: no field may differ.
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
                let found = found.unwrap_or("not told");
                let is_key = matches!(*name, KEY | NEXT_KEY);
                let key = if is_key { ": both need the same federation-key-file" } else { "" };
                return Err(format!("{name} is {ours} {here} and {found} {there}{key}"));
            }
        }
        Ok(())
    }
}

/// The fields of the text that parameters are sent as.
fn fields_of(text: &str) -> Vec<(&str, &str)> {
    text.split(", ").filter_map(|field| field.split_once('=')).collect()
}

/// The id of the key, and that of the next one during a change.
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
        assert!(ours.check("", SIDES).is_err_and(|e| e.starts_with("protocol is 1 here and not told")));
    }

    /// During a change of keys, members that have not begun it, that are in it, and that have ended it count together; others do not.
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
        let told = of(both).to_string();
        assert_eq!(
            (Parameters::next_key(&told), Parameters::read(&told).unwrap().1),
            (Some(new.id()), old.id())
        );
        assert_eq!(Parameters::next_key(&of(new).to_string()), None);
    }
}
