// SPDX-License-Identifier: GPL-3.0-or-later
//! White lists: which bulk is wanted.

use super::facts::Facts;
use super::network::Network;
use super::patterns::Patterns;
use super::source::{Match, Source};
use crate::signature::Signature;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files that may include one another in a row.
const MAX_INCLUDES: usize = 8;

/// A white list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WhiteListError {
    /// A file cannot be read.
    #[error("{}: cannot read the list: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// A line is no entry.
    #[error("{}:{line}: {what}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What was found and what was expected.
        what: String,
    },
}

/// All entries of all files.
#[derive(Debug, Default)]
pub struct WhiteList {
    networks: Vec<(Network, Source)>,
    hosts: Patterns,
    senders: Patterns,
    null_sender: Option<Source>,
    from: Patterns,
    recipients: Patterns,
    list_ids: Patterns,
    signatures: HashMap<Signature, Source>,
}

impl WhiteList {
    /// Reads the files and what they include. `read` gives the content of a file: this room opens none itself.
    ///
    /// # Errors
    /// At the first file that cannot be read and the first line that is no entry.
    pub fn load(
        files: &[PathBuf],
        read: &dyn Fn(&Path) -> io::Result<String>,
    ) -> Result<Self, WhiteListError> {
        let mut list = Self::default();
        for file in files {
            list.load_file(file, read, 0)?;
        }
        Ok(list)
    }

    fn load_file(
        &mut self,
        path: &Path,
        read: &dyn Fn(&Path) -> io::Result<String>,
        depth: usize,
    ) -> Result<(), WhiteListError> {
        let text = read(path).map_err(|reason| WhiteListError::Read { path: path.to_owned(), reason })?;
        let name: Arc<str> = path.display().to_string().into();
        for (i, line) in text.lines().enumerate() {
            let line_error =
                |what: String| WhiteListError::Entry { path: path.to_owned(), line: i + 1, what };
            let entry = line.split_once('#').map_or(line, |(entry, _)| entry).trim();
            if entry.is_empty() {
                continue;
            }
            let (form, value) = entry.split_once(char::is_whitespace).unwrap_or((entry, ""));
            let value = value.trim();
            if form == "include" {
                if depth + 1 >= MAX_INCLUDES {
                    return Err(line_error(format!("more than {MAX_INCLUDES} files include one another")));
                }
                let included = path.parent().map_or_else(|| value.into(), |folder| folder.join(value));
                // Where it is named is what has to be corrected.
                self.load_file(&included, read, depth + 1).map_err(|e| match e {
                    WhiteListError::Read { path, reason } => {
                        line_error(format!("cannot include {}: {reason}", path.display()))
                    }
                    entry @ WhiteListError::Entry { .. } => entry,
                })?;
            } else {
                self.add(form, value, Source::new(Arc::clone(&name), i + 1)).map_err(line_error)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, form: &str, value: &str, source: Source) -> Result<(), String> {
        let bare = value.strip_prefix('<').and_then(|v| v.strip_suffix('>'));
        let (added, expected) = match form {
            "ip" => {
                let network = value.parse::<Network>();
                let added = network.map(|network| self.networks.push((network, source))).is_ok();
                (added, "an address or network such as 192.0.2.0/24")
            }
            "host" => (self.hosts.add(value, source), "a host name, a domain, or .domain for all below it"),
            "sender" if value == "<>" => {
                self.null_sender.get_or_insert(source);
                (true, "")
            }
            "sender" => {
                (self.senders.add(bare.unwrap_or(value), source), "an address, a domain, .domain or <>")
            }
            "from" => (self.from.add(bare.unwrap_or(value), source), "an address, a domain or .domain"),
            "recipient" => {
                (self.recipients.add(bare.unwrap_or(value), source), "an address, a domain or .domain")
            }
            "list-id" => {
                (self.list_ids.add(bare.unwrap_or(value), source), "a list id such as <news.example.org>")
            }
            "signature" => {
                let signature = value.parse::<Signature>();
                let added = signature.map(|s| self.signatures.entry(s).or_insert(source)).is_ok();
                (added, "32 hexadecimal digits, as bulkmark signature prints them")
            }
            _ => {
                return Err(format!(
                    "found \"{form}\", expected ip, host, sender, from, recipient, list-id, signature or include"
                ));
            }
        };
        if added { Ok(()) } else { Err(format!("found \"{value}\" after {form}, expected {expected}")) }
    }

    /// The entry that wants this message, whoever its recipients are.
    #[must_use]
    pub fn message(&self, facts: &Facts<'_>) -> Option<Match> {
        let by_ip = || {
            let ip = facts.client_ip?;
            self.networks.iter().find(|(network, _)| network.contains(ip)).map(|(_, source)| source)
        };
        let by_sender = || match facts.sender? {
            "" => self.null_sender.as_ref(),
            sender => self.senders.find(sender),
        };
        by_ip()
            .or_else(|| self.hosts.find(facts.client_host?))
            .or_else(by_sender)
            .or_else(|| facts.from.iter().find_map(|address| self.from.find(address)))
            .or_else(|| self.list_ids.find(facts.list_id?))
            .or_else(|| self.signatures.get(&facts.signature?))
            .map(Match::of)
    }

    /// Whether an entry names this message or one of its recipients.
    #[must_use]
    pub fn names(&self, facts: &Facts<'_>) -> bool {
        self.message(facts).is_some() || facts.recipients.iter().any(|to| self.recipients.find(to).is_some())
    }

    /// The entry by which this recipient wants all mail.
    #[must_use]
    pub fn recipient(&self, address: &str) -> Option<Match> {
        self.recipients.find(address).map(Match::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(files: &[(&str, &str)]) -> Result<WhiteList, WhiteListError> {
        let read = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
        };
        WhiteList::load(&[PathBuf::from(files[0].0)], &read)
    }

    fn facts() -> Facts<'static> {
        Facts {
            client_ip: Some("192.0.2.7".parse().unwrap()),
            client_host: Some("mail.example.org"),
            sender: Some("bounce@example.org"),
            recipients: &[],
            from: &[],
            list_id: Some("news.example.org"),
            signature: Some(Signature::from_bytes([1; 16])),
        }
    }

    #[test]
    fn each_form_matches_and_names_its_place() {
        for entry in [
            "ip 192.0.2.0/24",
            "ip 192.0.2.7",
            "host mail.example.org",
            "host .example.org",
            "sender bounce@example.org",
            "sender <bounce@example.org>",
            "sender example.org",
            "from news@example.net",
            "list-id <news.example.org>",
            "list-id news.example.org  # with a comment",
            "signature 01010101010101010101010101010101",
        ] {
            let list = load(&[("/etc/list", &format!("# comment\n\n{entry}\n"))]).unwrap();
            let from = ["news@example.net".to_owned()];
            let known = Facts { from: &from, ..facts() };
            assert_eq!(list.message(&known).expect(entry).to_string(), "/etc/list:3");
            let nobody = Facts {
                client_ip: Some("2001:db8::1".parse().unwrap()),
                client_host: None,
                sender: None,
                list_id: None,
                signature: None,
                ..facts()
            };
            assert_eq!(list.message(&nobody), None, "{entry}");
        }
        let list = load(&[("l", "recipient postmaster@example.com\nsender <>\nip 2001:db8::/32")]).unwrap();
        assert_eq!(list.recipient("Postmaster@example.com").unwrap().to_string(), "l:1");
        assert_eq!(list.message(&Facts { sender: Some(""), ..facts() }).unwrap().to_string(), "l:2");
        let mapped = Facts { client_ip: Some("::ffff:192.0.2.7".parse().unwrap()), ..facts() };
        assert!(load(&[("l", "ip 192.0.2.7")]).unwrap().message(&mapped).is_some());
    }

    #[test]
    fn includes_are_relative_and_bounded() {
        let list = load(&[("/etc/a", "include b/c\n"), ("/etc/b/c", "ip 192.0.2.7\n")]).unwrap();
        assert_eq!(list.message(&facts()).unwrap().to_string(), "/etc/b/c:1");
        let error = load(&[("/a", "include a\n")]).unwrap_err().to_string();
        assert_eq!(error, "/a:1: more than 8 files include one another");
        let error = load(&[("/a", "include nothing\n")]).unwrap_err().to_string();
        assert!(error.starts_with("/a:1: cannot include /nothing: "), "{error}");
        let error = load(&[("/a", "include b\n"), ("/b", "\ninclude c\n")]).unwrap_err().to_string();
        assert!(error.starts_with("/b:2: cannot include /c: "), "{error}");
    }

    #[test]
    fn errors_name_line_and_expectation() {
        for (line, message) in [
            (
                "iq 1",
                "found \"iq\", expected ip, host, sender, from, recipient, list-id, signature or include",
            ),
            (
                "ip 192.0.2.0/40",
                "found \"192.0.2.0/40\" after ip, expected an address or network such as 192.0.2.0/24",
            ),
            (
                "signature 12",
                "found \"12\" after signature, expected 32 hexadecimal digits, as bulkmark signature prints them",
            ),
            ("from", "found \"\" after from, expected an address, a domain or .domain"),
        ] {
            let error = load(&[("/a", &format!("\n{line}"))]).unwrap_err().to_string();
            assert_eq!(error, format!("/a:2: {message}"));
        }
    }
}
