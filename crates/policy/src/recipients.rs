// SPDX-License-Identifier: GPL-3.0-or-later
//! The recipients of a policy: from its table, and from files with one entry a line.

use super::mailbox::Mailboxes;
use super::patterns::{Pattern, Patterns};
use super::source::Source;
use super::whitelist::WhiteListError;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// The forms of an entry.
const EXPECTED: &str = "an address, a domain, .domain for all below it, or user@ in every domain";

/// A valid entry of `match.recipient`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipientPattern(String);

impl FromStr for RecipientPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Recipients::default().add(text).map(|()| Self(text.to_owned()))
    }
}

/// A set of recipients.
#[derive(Debug, Default)]
pub(super) struct Recipients {
    /// Names without a domain, which stand for every domain.
    users: HashSet<String>,
    addresses: Patterns,
    /// Whether there is any entry.
    is_some: bool,
}

impl Recipients {
    /// Loads the recipients of a policy. `read` gives the content of a file.
    ///
    /// # Errors
    /// The first file that cannot be read, or the first line that is no entry.
    pub(super) fn load(
        patterns: &[RecipientPattern],
        files: &[PathBuf],
        read: &dyn Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, WhiteListError> {
        let mut recipients = Self::default();
        for RecipientPattern(text) in patterns {
            // Each was checked when it was parsed.
            let _ = recipients.add(text);
        }
        for path in files {
            let text = read(path).map_err(|reason| WhiteListError::Read { path: path.clone(), reason })?;
            for (i, line) in text.lines().enumerate() {
                let entry = line.split_once('#').map_or(line, |(entry, _)| entry).trim();
                if !entry.is_empty() {
                    recipients.add(entry).map_err(|what| WhiteListError::Entry {
                        path: path.clone(),
                        line: i + 1,
                        what,
                    })?;
                }
            }
        }
        Ok(recipients)
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        self.is_some = true;
        let bare = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(text);
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.contains(|c: char| c.is_whitespace() || c.is_control() || "@<>".contains(c))
        };
        if let Some(name) = bare.strip_suffix('@').filter(|name| is_name(name)) {
            self.users.insert(name.to_lowercase());
            return Ok(());
        }
        // A single word as a domain is rare, so it was probably meant as a name; no form has wildcards.
        let is_word = !bare.contains(['@', '.']) && bare != "localhost";
        // The place of the entry is never shown.
        if !is_word
            && !bare.contains(['*', '/', '"'])
            && let Some(pattern) = Pattern::parse(bare)
        {
            self.addresses.add(pattern, Source::new(Arc::from(""), 0));
            return Ok(());
        }
        Err(format!("found \"{text}\", expected {EXPECTED}"))
    }

    /// Whether there are no entries.
    pub(super) const fn is_empty(&self) -> bool {
        !self.is_some
    }

    /// The users of every domain, and the patterns of addresses.
    pub(super) fn into_parts(self) -> (HashSet<String>, Patterns) {
        (self.users, self.addresses)
    }

    /// The broadest entry for this address, as it is written; for an entry of one address, the mailbox.
    pub(super) fn entry(&self, address: &str, mailboxes: &Mailboxes) -> Option<String> {
        let mailbox = mailboxes.mailbox(address);
        let user = mailbox.rsplit_once('@').map_or(&*mailbox, |(user, _)| user).to_lowercase();
        let by_pattern = || self.addresses.broadest(&mailbox).or_else(|| self.addresses.broadest(address));
        match by_pattern() {
            Some(entry) if entry.starts_with(['@', '.']) => Some(entry),
            _ if self.users.contains(&user) => Some(user + "@"),
            Some(_) => Some(mailbox),
            None => None,
        }
    }

    /// Whether it has this address, as it is or as its mailbox.
    pub(super) fn has(&self, address: &str, mailboxes: &Mailboxes) -> bool {
        let mailbox = mailboxes.mailbox(address);
        let user = mailbox.rsplit_once('@').map_or(&*mailbox, |(user, _)| user);
        (!self.users.is_empty() && self.users.contains(&user.to_lowercase()))
            || self.addresses.find(address, None).or_else(|| self.addresses.find(&mailbox, None)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(entries: &[&str]) -> Recipients {
        let patterns: Vec<RecipientPattern> = entries.iter().map(|entry| entry.parse().unwrap()).collect();
        Recipients::load(&patterns, &[], &|_| unreachable!()).unwrap()
    }

    #[test]
    fn addresses_domains_and_names_in_every_domain() {
        let recipients = of(&["postmaster@", "anna@box.example", "@lists.example", ".edu.example"]);
        let has = |address: &str| recipients.has(address, &Mailboxes::default());
        for address in [
            "postmaster@box.example",
            "PostMaster@elsewhere.example",
            "Postmaster",
            "Anna@BOX.example",
            "anna+news@box.example",
            "\"anna\"@box.example.",
            "all@lists.example",
            "x@cs.edu.example",
        ] {
            assert!(has(address), "{address}");
        }
        for address in [
            "anna@else.example",
            "hanna@box.example",
            "x@box.example",
            "x@sub.lists.example",
            "postmaster2@a.b",
        ] {
            assert!(!has(address), "{address}");
        }
    }

    #[test]
    fn the_broadest_entry_counts() {
        let recipients = of(&[
            "old@",
            "anna@box.example",
            "x@trap.example",
            "@trap.example",
            ".below.example",
            "@a.below.example",
        ]);
        let entry = |address: &str| recipients.entry(address, &Mailboxes::default());
        for (address, is) in [
            ("Old@any.example", Some("old@")),
            ("old+x@trap.example", Some("@trap.example")),
            ("Anna+news@BOX.example", Some("anna@box.example")),
            ("x@trap.example", Some("@trap.example")),
            ("y@trap.example", Some("@trap.example")),
            ("y@a.below.example", Some(".below.example")),
            ("ben@box.example", None),
        ] {
            assert_eq!(entry(address).as_deref(), is, "{address}");
        }
    }

    #[test]
    fn files_have_an_entry_a_line_and_errors_name_it() {
        let load = |text: &str| {
            let text = text.to_owned();
            Recipients::load(&[], &["/opt-out".into()], &move |_| Ok(text.clone())).map_err(|e| e.to_string())
        };
        let recipients = load("# who wants no verdicts\n\nanna@box.example # since May\nabuse@\n").unwrap();
        assert!(recipients.has("anna@box.example", &Mailboxes::default()));
        assert!(recipients.has("abuse@box.example", &Mailboxes::default()));
        for bad in [
            "a b@box.example",
            "@",
            "anna@@",
            "box..example",
            "postmaster",
            "*@box.example",
            "/box/",
            "\"a@b.c\"",
        ] {
            let expected = format!("/opt-out:2: found \"{bad}\", expected {EXPECTED}");
            assert_eq!(load(&format!("\n{bad}\n")).unwrap_err(), expected);
        }
        assert!(!of(&[]).is_some && load("").unwrap().is_empty());
    }
}
