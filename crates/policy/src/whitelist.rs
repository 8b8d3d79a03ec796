// SPDX-License-Identifier: GPL-3.0-or-later
//! White lists of wanted bulk.

use super::authentication::VerifiedNames;
use super::condition::Open;
use super::entries::Entries;
use super::facts::Facts;
use super::source::{Match, Source, utf8};
use super::table::{Question, Stored, Table};
use arc_swap::ArcSwap;
use bulkmark_types::Signature;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The greatest depth of includes.
const MAX_INCLUDES: usize = 8;

/// The reason why a white list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WhiteListError {
    /// A file cannot be read.
    #[error("{}: cannot read the list: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: io::Error,
    },
    /// A line is no entry.
    #[error("{}:{line}: {what}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The text that was found, and the expected one.
        what: String,
    },
}

/// All entries of all files. They can be reloaded during look-ups.
#[derive(Debug, Default)]
pub struct WhiteList {
    files: Vec<PathBuf>,
    entries: ArcSwap<Entries>,
}

impl WhiteList {
    /// Reads the files, their includes and their tables. `read` gives the content of a file: this crate opens none.
    ///
    /// # Errors
    /// The first file that cannot be read, or the first line that is no entry.
    pub fn load(
        files: &[PathBuf],
        read: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, WhiteListError> {
        let list = Self { files: files.to_vec(), entries: ArcSwap::default() };
        list.reload(read)?;
        Ok(list)
    }

    /// Reads all of it again.
    ///
    /// # Errors
    /// The same; the old entries stay in force.
    pub fn reload(&self, read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> Result<(), WhiteListError> {
        let mut reader = Reader { read, entries: Entries::default(), tables: HashMap::new() };
        for file in &self.files {
            reader.file(file, 0)?;
        }
        self.entries.store(Arc::new(reader.entries));
        Ok(())
    }

    /// The files that were read, with includes and tables.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = self.entries.load().files.clone();
        files.sort();
        files.dedup();
        files
    }

    /// The entry that wants this message, regardless of recipients.
    #[must_use]
    pub fn message(&self, facts: &Facts<'_>) -> Option<Match> {
        self.entries.load().message(facts)
    }

    /// Whether an entry names this message or one of its recipients.
    #[must_use]
    pub fn names(&self, facts: &Facts<'_>) -> bool {
        let wants = self.recipients(facts);
        self.message(facts).is_some() || facts.recipients.iter().any(|to| wants(to).is_some())
    }

    /// Returns a function from a recipient to the entry by which it wants this message.
    pub fn recipients<'a>(&self, facts: &'a Facts<'a>) -> impl Fn(&str) -> Option<Match> + 'a {
        let entries = self.entries.load_full();
        let wishes = entries.wishes(facts);
        move |address| entries.recipient(&wishes, facts, address)
    }

    /// Entries of which some conditions hold for this message and some do not: their places, and the conditions that do not hold.
    #[must_use]
    pub fn near_misses(&self, facts: &Facts<'_>) -> Vec<(Match, String)> {
        self.entries.load().near_misses(facts)
    }

    /// The questions to remote tables that must be answered before it is known whether this message is wanted. Also whether these are all:
    /// for a message with very many recipients they are not.
    #[must_use]
    pub fn questions(&self, facts: &Facts<'_>) -> (Vec<Question>, bool) {
        self.entries.load().questions(facts)
    }

    /// The first entry with a remote table.
    #[must_use]
    pub fn first_remote_entry(&self) -> Option<Match> {
        self.entries.load().remote.as_ref().map(Match::of)
    }

    /// Whether some entry matches only verified mail.
    #[must_use]
    pub fn needs_verification(&self) -> bool {
        self.entries.load().needs_verification
    }

    /// Whether some entry needs a signature that a message claims to have, regardless of its other conditions.
    #[must_use]
    pub fn asks_for_signature(&self, claimed: &VerifiedNames) -> bool {
        self.entries.load().asks_for_signature(claimed)
    }

    /// The names to verify before it is known whether a message is wanted: those that it claims and an entry needs.
    #[must_use]
    pub fn to_verify(&self, facts: &Facts<'_>) -> VerifiedNames {
        self.entries.load().to_verify(facts)
    }

    /// Removes the near signatures that a `signature` entry names. They stand for passages, pictures and files, such as a signature block,
    /// which then count as if the message did not have them. One look-up for each.
    pub fn remove_named<T>(&self, all: &mut Vec<T>, signature: impl Fn(&T) -> Signature) {
        let entries = self.entries.load();
        if entries.has_signatures() {
            all.retain(|of| !entries.names_signature(signature(of)));
        }
    }

    /// The places of the entries that any sender can make match, in order.
    pub(super) fn forgeable(&self) -> Vec<Source> {
        self.entries.load().forgeable()
    }

    /// The places of the entries that match only verified mail, in order, by method.
    pub(super) fn verified_only(&self) -> [(&'static str, Vec<Source>); 3] {
        self.entries.load().verified_only()
    }
}

/// Reads the files of a list.
struct Reader<'a> {
    read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    entries: Entries,
    /// The tables that were read, by kind and path.
    tables: HashMap<String, Table>,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, depth: usize) -> Result<(), WhiteListError> {
        let text = (self.read)(path).and_then(utf8);
        let text = text.map_err(|reason| WhiteListError::Read { path: path.to_owned(), reason })?;
        self.entries.files.push(path.to_owned());
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
                // The error names the including line, which has to be corrected.
                self.file(&included, depth + 1).map_err(|e| match e {
                    WhiteListError::Read { path, reason } => {
                        line_error(format!("cannot include {}: {reason}", path.display()))
                    }
                    entry @ WhiteListError::Entry { .. } => entry,
                })?;
            } else {
                let source = Source::new(Arc::clone(&name), i + 1);
                let conditions = super::condition::parse(entry, self).map_err(line_error)?;
                self.entries.add(conditions, source);
            }
        }
        Ok(())
    }
}

impl Open for Reader<'_> {
    fn open(&mut self, kind: &str, path: &str) -> Result<Table, String> {
        let name = format!("{kind}:{path}");
        if let Some(table) = self.tables.get(&name) {
            return Ok(table.clone());
        }
        if !path.starts_with('/') {
            return Err(format!("found {name}, expected {kind}:/PATH"));
        }
        // Without its suffix, as Postfix names it, or with it.
        let suffix = format!(".{kind}");
        let file =
            PathBuf::from(if path.ends_with(&suffix) { path.to_owned() } else { format!("{path}{suffix}") });
        let bytes =
            (self.read)(&file).map_err(|reason| format!("cannot read {}: {reason}", file.display()))?;
        let stored = Stored::new(kind, bytes).map_err(|what| format!("{}: {what}", file.display()))?;
        self.entries.files.push(file);
        let table = Table::File(name.as_str().into(), Arc::new(stored));
        self.tables.insert(name, table.clone());
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mailboxes;

    fn load(files: &[(&str, &str)]) -> Result<WhiteList, WhiteListError> {
        let read = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
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
            old_key_signature: None,
            verified: None,
            claimed: None,
            mailboxes: None,
            known_to: &[],
            allowed: None,
            answers: None,
        }
    }

    /// The entry of a list with this text by which a recipient wants the message.
    fn recipient(text: &str, facts: &Facts<'_>, address: &str) -> Option<String> {
        let list = load(&[("l", text)]).unwrap();
        list.recipients(facts)(address).map(|entry| entry.to_string())
    }

    /// A message to thousands of recipients costs as much with a list of thousands of wishes as with one.
    #[test]
    fn recipients_and_entries_are_not_compared_pair_by_pair() {
        let wish = |n: usize| format!("recipient u{n}@box.test & dkim shop.example\n");
        let list = load(&[("l", &(0..1000).map(wish).collect::<String>())]).unwrap();
        let recipients: Vec<String> = (999..1999).map(|n| format!("u{n}+x@box.test")).collect();
        let names = VerifiedNames { dkim: vec!["shop.example".to_owned()], ..VerifiedNames::default() };
        let mailboxes = Mailboxes::default();
        let facts = Facts { recipients: &recipients, mailboxes: Some(&mailboxes), ..facts() };
        let before = (crate::mailbox::read(), crate::patterns::compared());
        let asked = list.to_verify(&Facts { claimed: Some(&names), ..facts });
        assert_eq!(asked.dkim.iter().collect::<Vec<_>>(), ["shop.example"]);
        assert_eq!(crate::mailbox::read() - before.0, recipients.len());
        let verified = Facts { verified: Some(&names), ..facts };
        let wants = list.recipients(&verified);
        let wanted: Vec<_> =
            recipients.iter().filter_map(|to| wants(to)).map(|entry| entry.to_string()).collect();
        assert_eq!(wanted, ["l:1000"]);
        let compared = crate::patterns::compared() - before.1;
        assert!(compared <= 10_000, "{compared} comparisons for 1,000 entries and 1,000 recipients");
    }

    #[test]
    fn several_recipient_conditions_narrow_down_one_another() {
        let text = "recipient anna@ & recipient .box.test & sender example.org";
        assert_eq!(recipient(text, &facts(), "anna@mail.box.test").as_deref(), Some("l:1"));
        assert_eq!(recipient(text, &facts(), "anna@other.test"), None);
        assert_eq!(recipient(text, &facts(), "bert@box.test"), None);
        let claimed = VerifiedNames { dkim: vec!["shop.example".to_owned()], ..VerifiedNames::default() };
        let list = load(&[("l", "recipient anna@ & recipient .box.test & dkim shop.example")]).unwrap();
        let asks = |recipients: &[&str]| {
            let recipients: Vec<_> = recipients.iter().map(|&to| to.to_owned()).collect();
            !list
                .to_verify(&Facts { recipients: &recipients, claimed: Some(&claimed), ..facts() })
                .dkim
                .is_empty()
        };
        assert!(asks(&["anna@box.test"]) && !asks(&["anna@other.test", "bert@box.test"]));
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
    fn verified_names_match_only_entries_of_their_method() {
        let verified = VerifiedNames {
            dkim: vec!["shop.example".to_owned()],
            spf: vec!["bounce@example.org".to_owned(), "other.example".to_owned()],
            dmarc: vec!["news.example".to_owned()],
        };
        let with = |entry: &str, facts: Facts<'_>| load(&[("l", entry)]).unwrap().message(&facts).is_some();
        let verified = Facts { verified: Some(&verified), ..facts() };
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
        let verified = VerifiedNames { dkim: vec!["shop.example".to_owned()], ..VerifiedNames::default() };
        let verified = Facts { verified: Some(&verified), ..facts() };
        let list = "list-id <news.example.org> & dkim shop.example # both\n";
        let list = load(&[("l", list)]).unwrap();
        assert_eq!(list.message(&verified).unwrap().to_string(), "l:1");
        assert_eq!(list.message(&facts()), None);
        assert_eq!(list.message(&Facts { list_id: None, ..verified }), None);
        let near_misses = |facts: &Facts<'_>| {
            list.near_misses(facts).into_iter().map(|(_, missing)| missing).collect::<Vec<_>>()
        };
        assert_eq!(near_misses(&facts()), ["dkim shop.example"]);
        assert_eq!(near_misses(&Facts { list_id: None, ..verified }), ["list-id <news.example.org>"]);
        assert_eq!(near_misses(&verified), [""; 0]);
    }

    #[test]
    fn recipients_may_want_some_mail_only() {
        let verified = VerifiedNames { dkim: vec!["shop.example".to_owned()], ..VerifiedNames::default() };
        let verified = Facts { verified: Some(&verified), ..facts() };
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
        assert!(error.starts_with("/a:1: cannot include /nothing: "), "{error}");
        let error = load(&[("/a", "include b\n"), ("/b", "\ninclude c\n")]).unwrap_err().to_string();
        assert!(error.starts_with("/b:2: cannot include /c: "), "{error}");
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
