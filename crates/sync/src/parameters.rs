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
        Self {
            fields: vec![
                ("protocol", PROTOCOL.to_string()),
                (KEY, format!("{:016x}", key.id())),
                ("layout", layout()),
                ("window", settings.window.as_secs().to_string()),
                (CAPACITY, settings.capacity.to_string()),
            ],
        }
    }

    /// Parses the other side's text into settings and key id. The layout must be the local one.
    ///
    /// # Errors
    /// The parameter that is missing or differs.
    pub fn read(theirs: &str) -> Result<(bulkmark_counts::Settings, u64), String> {
        let fields: Vec<(&str, &str)> =
            theirs.split(", ").filter_map(|field| field.split_once('=')).collect();
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
    /// `sides` name the places of the local and of the other text, as "here" and "at the server".
    ///
    /// # Errors
    /// A sentence that names the first parameter that differs, and both values.
    pub fn check(&self, theirs: &str, sides: [&str; 2]) -> Result<(), String> {
        self.compare(theirs, sides, |name| name != CAPACITY)
    }

    /// Compares the parameters of a running daemon with those of its configuration: no field may differ.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_all(&self, theirs: &str) -> Result<(), String> {
        self.compare(theirs, ["in the configuration", "in the daemon"], |_| true)
    }

    fn compare(
        &self,
        theirs: &str,
        [here, there]: [&str; 2],
        matters: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let theirs: Vec<(&str, &str)> =
            theirs.split(", ").filter_map(|field| field.split_once('=')).collect();
        for (name, ours) in self.fields.iter().filter(|(name, _)| matters(name)) {
            let found = theirs.iter().find(|(other, _)| other == name).map(|&(_, value)| value);
            if found != Some(ours) {
                let found = found.unwrap_or("not told");
                let key = if *name == KEY { ": both need the same federation-key-file" } else { "" };
                return Err(format!("{name} is {ours} {here} and {found} {there}{key}"));
            }
        }
        Ok(())
    }
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
}
