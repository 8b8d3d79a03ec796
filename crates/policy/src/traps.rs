// SPDX-License-Identifier: GPL-3.0-or-later
//! Traps: addresses without users that were never published for people, so that all mail to them is spam.

use super::fraction::Fraction;
use super::mailbox::Mailboxes;
use super::recipients::{RecipientPattern, Recipients};
use super::source::utf8;
use super::whitelist::WhiteListError;
use arc_swap::ArcSwap;
use serde::Deserialize;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An entry of `traps.recipients`: recipients, or a file that has some, one a line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum TrapEntry {
    /// An address, a domain, all below a domain, or a name in every domain.
    Recipient(RecipientPattern),
    /// A file of these.
    File(PathBuf),
}

impl TryFrom<String> for TrapEntry {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Self::File(text.into()));
        }
        text.parse().map(Self::Recipient).map_err(|e: String| format!("{e}, or the path of a file of such"))
    }
}

/// The weight of a trap's report: from an eighth of a user to a whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct TrapWeight(Fraction);

impl TryFrom<f64> for TrapWeight {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        let weight = Fraction::try_from(value).ok().filter(|weight| weight.thousandths() >= 125);
        weight.map(Self).ok_or_else(|| format!("found {value}, expected 0.125 to 1.0"))
    }
}

/// `[traps]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TrapSettings {
    /// Their addresses.
    pub recipients: Vec<TrapEntry>,
    /// The weight of a trap's report.
    pub weight: TrapWeight,
    /// Whether mail to them is accepted and discarded.
    pub discard: bool,
}

impl Default for TrapSettings {
    fn default() -> Self {
        Self { recipients: Vec::new(), weight: TrapWeight(Fraction::ONE), discard: false }
    }
}

impl TrapSettings {
    /// The files of traps.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.recipients.iter().filter_map(|entry| match entry {
            TrapEntry::File(path) => Some(path),
            TrapEntry::Recipient(_) => None,
        })
    }
}

/// The traps, with the files that name them.
#[derive(Debug, Default)]
pub struct Traps {
    settings: TrapSettings,
    recipients: ArcSwap<Recipients>,
}

impl Traps {
    /// Reads the files. `read` gives the content of one.
    ///
    /// # Errors
    /// The first file that cannot be read, or the first line that is no entry.
    pub fn load(
        settings: &TrapSettings,
        read: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, WhiteListError> {
        let traps = Self { settings: settings.clone(), recipients: ArcSwap::default() };
        traps.reload(read)?;
        Ok(traps)
    }

    /// Reads the files again.
    ///
    /// # Errors
    /// The same; the old entries stay in force.
    pub fn reload(&self, read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> Result<(), WhiteListError> {
        let patterns: Vec<RecipientPattern> = self.settings.recipients.iter().filter_map(pattern).collect();
        let text = |path: &Path| read(path).and_then(utf8);
        let recipients = Recipients::load(&patterns, &self.files(), &text)?;
        self.recipients.store(Arc::new(recipients));
        Ok(())
    }

    /// The files of traps.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.settings.files().cloned().collect()
    }

    /// Whether there are any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recipients.load().is_empty()
    }

    /// Whether this address is a trap.
    #[must_use]
    pub fn has(&self, address: &str, mailboxes: &Mailboxes) -> bool {
        let recipients = self.recipients.load();
        !recipients.is_empty() && recipients.has(address, mailboxes)
    }

    /// The entry by which this address is a trap: all names of a domain are one trap.
    #[must_use]
    pub fn entry(&self, address: &str, mailboxes: &Mailboxes) -> Option<String> {
        self.recipients.load().entry(address, mailboxes)
    }

    /// The weight of a trap's report.
    #[must_use]
    pub const fn weight(&self) -> Fraction {
        self.settings.weight.0
    }

    /// Whether mail to them is accepted and discarded.
    #[must_use]
    pub const fn discards(&self) -> bool {
        self.settings.discard
    }
}

fn pattern(entry: &TrapEntry) -> Option<RecipientPattern> {
    match entry {
        TrapEntry::Recipient(pattern) => Some(pattern.clone()),
        TrapEntry::File(_) => None,
    }
}

/// The result of a message to a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrapResult {
    /// It was nominated as spam.
    Nominated,
    /// The trap had nominated it before.
    Known,
    /// A white list wants it, so it was not nominated.
    Whitelisted,
    /// It was not nominated for another reason, which is in the log.
    Refused,
}

impl TrapResult {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nominated, Self::Known, Self::Whitelisted, Self::Refused];

    /// The name in log and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nominated => "nominated",
            Self::Known => "known",
            Self::Whitelisted => "whitelisted",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for TrapResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_domains_and_files_are_traps() {
        let settings: TrapSettings =
            toml::from_str("recipients = [\"Old@box.test\", \"@trap.test\", \"/traps\"]\nweight = 0.5")
                .unwrap();
        let read =
            |_: &Path| -> io::Result<Vec<u8>> { Ok(b"# found on an old page\nweb@box.test\n".to_vec()) };
        let traps = Traps::load(&settings, &read).unwrap();
        let has = |address: &str| traps.has(address, &Mailboxes::default());
        for address in ["old@box.test", "old+x@box.test", "anybody@trap.test", "web@box.test"] {
            assert!(has(address), "{address}");
        }
        assert!(!has("anna@box.test") && !has("x@sub.trap.test"));
        assert_eq!((traps.weight().units(), traps.discards(), traps.is_empty()), (4, false, false));
        traps.reload(&|_| Ok(b"anna@box.test\n".to_vec())).unwrap();
        assert!(traps.has("anna@box.test", &Mailboxes::default()));
        assert!(traps.reload(&|_| Ok(b"two words\n".to_vec())).is_err());
        assert!(traps.has("anna@box.test", &Mailboxes::default()), "the old ones stay");
        let none = Traps::load(&TrapSettings::default(), &read).unwrap();
        assert!(none.is_empty() && !none.has("anna@box.test", &Mailboxes::default()));
    }
}
