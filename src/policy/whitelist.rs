// SPDX-License-Identifier: GPL-3.0-or-later
//! White lists: which bulk is wanted.

use super::condition::{Condition, Known};
use super::facts::Facts;
use super::network::Network;
use super::patterns::{Name, Patterns};
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
    dkim: Patterns,
    spf: Patterns,
    dmarc: Patterns,
    joined: Vec<Joined>,
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
            if form == "include" {
                let value = value.trim();
                if depth + 1 >= MAX_INCLUDES {
                    return Err(line_error(format!("more than {MAX_INCLUDES} files include one another")));
                }
                let included = path.parent().map_or_else(|| value.into(), |folder| folder.join(value));
                self.load_file(&included, read, depth + 1)?;
            } else {
                self.add(entry, Source::new(Arc::clone(&name), i + 1)).map_err(line_error)?;
            }
        }
        Ok(())
    }

    /// Adds an entry: a condition, or several with "&" between them.
    fn add(&mut self, entry: &str, source: Source) -> Result<(), String> {
        let mut conditions = Vec::new();
        let words: Vec<&str> = entry.split_whitespace().collect();
        for words in words.split(|&word| word == "&") {
            let (form, value) =
                words.split_first().map_or(("", String::new()), |(form, value)| (*form, value.join(" ")));
            conditions.push(Condition::parse(form, &value)?);
        }
        match <[Condition; 1]>::try_from(conditions) {
            Ok([only]) => self.add_one(only, source),
            Err(conditions) => self.joined.push(Joined { conditions, source }),
        }
        Ok(())
    }

    fn add_one(&mut self, condition: Condition, source: Source) {
        let (set, pattern) = match condition {
            Condition::Ip(network) => return self.networks.push((network, source)),
            Condition::NullSender => {
                self.null_sender.get_or_insert(source);
                return;
            }
            Condition::Signature(signature) => {
                self.signatures.entry(signature).or_insert(source);
                return;
            }
            Condition::Host(pattern) => (&mut self.hosts, pattern),
            Condition::Sender(pattern) => (&mut self.senders, pattern),
            Condition::From(pattern) => (&mut self.from, pattern),
            Condition::Recipient(pattern) => (&mut self.recipients, pattern),
            Condition::ListId(pattern) => (&mut self.list_ids, pattern),
            Condition::Dkim(pattern) => (&mut self.dkim, pattern),
            Condition::Spf(pattern) => (&mut self.spf, pattern),
            Condition::Dmarc(pattern) => (&mut self.dmarc, pattern),
        };
        set.add(pattern, source);
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
        let by_joined = || {
            let known = self.known(facts)?;
            self.joined.iter().find(|joined| joined.wants_message(&known)).map(|joined| &joined.source)
        };
        let proven = facts.proven;
        by_ip()
            .or_else(|| self.hosts.find(facts.client_host?))
            .or_else(|| proven?.dkim.iter().find_map(|domain| self.dkim.find(domain)))
            .or_else(|| facts.spf().find_map(|name| self.spf.find(name)))
            .or_else(|| proven?.dmarc.iter().find_map(|domain| self.dmarc.find(domain)))
            .or_else(by_joined)
            .or_else(by_sender)
            .or_else(|| facts.from.iter().find_map(|address| self.from.find(address)))
            .or_else(|| self.list_ids.find(facts.list_id?))
            .or_else(|| self.signatures.get(&facts.signature?))
            .map(Match::of)
    }

    /// Whether an entry names this message or one of its recipients.
    #[must_use]
    pub fn names(&self, facts: &Facts<'_>) -> bool {
        let wants = self.recipients(facts);
        self.message(facts).is_some() || facts.recipients.iter().any(|to| wants(to).is_some())
    }

    /// Says of a recipient by which entry it wants this message.
    pub fn recipients<'a>(&'a self, facts: &'a Facts<'a>) -> impl Fn(&str) -> Option<Match> + 'a {
        let of_message = |known| self.joined.iter().filter(move |joined| joined.may_want_for_some(&known));
        let joined: Vec<_> = self.known(facts).map_or_else(Vec::new, |known| of_message(known).collect());
        move |address| {
            // With its extension first: some want only that.
            let mailbox = facts.mailboxes.map(|mailboxes| mailboxes.mailbox(address));
            let spellings = [Some(address), mailbox.as_deref()];
            let find = |address: &str| {
                let by_joined = || {
                    let name = Name::of(address);
                    joined.iter().find(|joined| joined.wants_for(&name)).map(|joined| &joined.source)
                };
                self.recipients.find(address).or_else(by_joined).map(Match::of)
            };
            spellings.into_iter().flatten().find_map(find)
        }
    }

    /// What is known of a message, if there are entries that need it so.
    fn known<'a>(&self, facts: &'a Facts<'a>) -> Option<Known<'a>> {
        (!self.joined.is_empty()).then(|| Known::of(facts))
    }

    /// Entries of which something holds of this message, and something does not: where they stand, and what does not.
    #[must_use]
    pub fn nearly(&self, facts: &Facts<'_>) -> Vec<(Match, String)> {
        let Some(known) = self.known(facts) else { return Vec::new() };
        let missing = |joined: &Joined| {
            let of_message = || joined.conditions.iter().filter(|condition| !condition.is_of_recipient());
            let missing: Vec<_> =
                of_message().filter(|one| !one.holds(&known)).map(ToString::to_string).collect();
            (!missing.is_empty() && missing.len() < of_message().count()).then(|| missing.join(" & "))
        };
        self.joined.iter().filter_map(|one| Some((Match::of(&one.source), missing(one)?))).collect()
    }

    /// Where the entries stand that anybody can make match, in order.
    pub(super) fn forgeable(&self) -> Vec<&Source> {
        let single = [&self.senders, &self.from, &self.list_ids].into_iter().flat_map(Patterns::sources);
        let joined =
            self.joined.iter().filter(|joined| joined.conditions.iter().all(Condition::is_forgeable));
        let mut all: Vec<_> =
            single.chain(&self.null_sender).chain(joined.map(|joined| &joined.source)).collect();
        all.sort();
        all
    }

    /// Where the entries stand that match only verified mail, in order.
    pub(super) fn proofs(&self) -> Vec<&Source> {
        let single = [&self.dkim, &self.spf, &self.dmarc].into_iter().flat_map(Patterns::sources);
        let joined = self.joined.iter().filter(|joined| joined.conditions.iter().any(Condition::is_proof));
        let mut all: Vec<_> = single.chain(joined.map(|joined| &joined.source)).collect();
        all.sort();
        all
    }
}

/// An entry of several conditions, which must hold together.
#[derive(Debug)]
struct Joined {
    conditions: Vec<Condition>,
    source: Source,
}

impl Joined {
    fn wants_message(&self, known: &Known<'_>) -> bool {
        self.conditions.iter().all(|condition| condition.holds(known))
    }

    /// Whether it is about recipients, and all else holds.
    fn may_want_for_some(&self, known: &Known<'_>) -> bool {
        let (mut of_recipients, mut others) = (self.conditions.iter(), self.conditions.iter());
        of_recipients.any(Condition::is_of_recipient)
            && others.all(|condition| condition.is_of_recipient() || condition.holds(known))
    }

    fn wants_for(&self, recipient: &Name) -> bool {
        self.conditions.iter().all(|condition| match condition {
            Condition::Recipient(pattern) => pattern.matches(recipient),
            _ => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Mailboxes, Proven};

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
            proven: None,
            mailboxes: None,
        }
    }

    /// The entry of a list of this text that a recipient has.
    fn recipient(text: &str, facts: &Facts<'_>, address: &str) -> Option<String> {
        let list = load(&[("l", text)]).unwrap();
        list.recipients(facts)(address).map(|entry| entry.to_string())
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
        assert_eq!(list.recipients(&facts())("Postmaster@example.com").unwrap().to_string(), "l:1");
        assert_eq!(list.message(&Facts { sender: Some(""), ..facts() }).unwrap().to_string(), "l:2");
        let mapped = Facts { client_ip: Some("::ffff:192.0.2.7".parse().unwrap()), ..facts() };
        assert!(load(&[("l", "ip 192.0.2.7")]).unwrap().message(&mapped).is_some());
    }

    #[test]
    fn what_is_verified_matches_by_its_own_names_only() {
        let proven = Proven {
            dkim: vec!["shop.example".to_owned()],
            spf: vec!["bounce@example.org".to_owned(), "other.example".to_owned()],
            dmarc: vec!["news.example".to_owned()],
        };
        let with = |entry: &str, facts: Facts<'_>| load(&[("l", entry)]).unwrap().message(&facts).is_some();
        let verified = Facts { proven: Some(&proven), ..facts() };
        for entry in [
            "dkim shop.example",
            "dkim .Shop.example",
            "spf example.org",
            "spf bounce@example.org",
            "dmarc news.example",
        ] {
            assert!(with(entry, verified), "{entry}");
            assert!(!with(entry, facts()), "{entry} without proof");
        }
        for entry in [
            "dkim news.example",
            "dkim example",
            "spf shop.example",
            "dmarc shop.example",
            "spf other.example",
        ] {
            assert!(!with(entry, verified), "{entry}");
        }
    }

    #[test]
    fn joined_conditions_hold_together() {
        let proven = Proven { dkim: vec!["shop.example".to_owned()], ..Proven::default() };
        let verified = Facts { proven: Some(&proven), ..facts() };
        let list = "list-id <news.example.org> & dkim shop.example # both\n";
        let list = load(&[("l", list)]).unwrap();
        assert_eq!(list.message(&verified).unwrap().to_string(), "l:1");
        assert_eq!(list.message(&facts()), None);
        assert_eq!(list.message(&Facts { list_id: None, ..verified }), None);
        let nearly = |facts: &Facts<'_>| {
            list.nearly(facts).into_iter().map(|(_, missing)| missing).collect::<Vec<_>>()
        };
        assert_eq!(nearly(&facts()), ["dkim shop.example"]);
        assert_eq!(nearly(&Facts { list_id: None, ..verified }), ["list-id <news.example.org>"]);
        assert_eq!(nearly(&verified), [""; 0]);
    }

    #[test]
    fn recipients_may_want_some_mail_only() {
        let proven = Proven { dkim: vec!["shop.example".to_owned()], ..Proven::default() };
        let verified = Facts { proven: Some(&proven), ..facts() };
        let text = "recipient anna@box.test & dkim shop.example";
        assert_eq!(recipient(text, &verified, "anna@box.test").as_deref(), Some("l:1"));
        assert_eq!(recipient(text, &verified, "bert@box.test"), None);
        assert_eq!(recipient(text, &facts(), "anna@box.test"), None);
        assert_eq!(load(&[("l", text)]).unwrap().message(&verified), None);
    }

    #[test]
    fn a_recipient_is_known_with_its_extension() {
        let mailboxes = Mailboxes::default();
        let facts = Facts { mailboxes: Some(&mailboxes), ..facts() };
        for text in ["recipient reader@box.test", "recipient reader@", "recipient reader+tag@box.test"] {
            assert!(recipient(text, &facts, "Reader+Tag@Box.test").is_some(), "{text}");
        }
        assert!(recipient("recipient reader+tag@box.test", &facts, "reader@box.test").is_none());
        assert!(recipient("recipient reader@box.test", &self::facts(), "reader+tag@box.test").is_none());
    }

    #[test]
    fn includes_are_relative_and_bounded() {
        let list = load(&[("/etc/a", "include b/c\n"), ("/etc/b/c", "ip 192.0.2.7\n")]).unwrap();
        assert_eq!(list.message(&facts()).unwrap().to_string(), "/etc/b/c:1");
        let error = load(&[("/a", "include a\n")]).unwrap_err().to_string();
        assert_eq!(error, "/a:1: more than 8 files include one another");
        let error = load(&[("/a", "include nothing\n")]).unwrap_err().to_string();
        assert!(error.starts_with("/nothing: cannot read the list"), "{error}");
    }

    #[test]
    fn errors_name_line_and_expectation() {
        for (line, message) in [
            (
                "iq 1",
                "found \"iq\", expected ip, host, sender, from, recipient, list-id, signature, dkim, spf, dmarc or include",
            ),
            (
                "ip 192.0.2.0/40",
                "found \"192.0.2.0/40\" after ip, expected an address or network such as 192.0.2.0/24",
            ),
            (
                "signature 12",
                "found \"12\" after signature, expected 32 hexadecimal digits, as bulkmark signature prints them",
            ),
            ("from", "found \"\" after from, expected an address, a domain, .domain or user@"),
            (
                "dkim a@b.example",
                "found \"a@b.example\" after dkim, expected the domain of a DKIM signature, or .domain for all below it",
            ),
            (
                "list-id a & nothing",
                "found \"nothing\", expected ip, host, sender, from, recipient, list-id, signature, dkim, spf, dmarc or include",
            ),
            (
                "& dkim a.example",
                "found \"\", expected ip, host, sender, from, recipient, list-id, signature, dkim, spf, dmarc or include",
            ),
        ] {
            let error = load(&[("/a", &format!("\n{line}"))]).unwrap_err().to_string();
            assert_eq!(error, format!("/a:2: {message}"));
        }
    }
}
