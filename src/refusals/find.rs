// SPDX-License-Identifier: GPL-3.0-or-later
//! Finds refusals: by recipient, sender, client and mailing.

use super::entry::Entry;
use super::segments::list;
use bulkmark_ledger::directory::StateDirectory;
use bulkmark_policy::{Mailboxes, Network};
use memchr::memmem;
use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

/// Length limit of a line in bytes; the line of a message with all recipients is shorter.
const MAX_LINE: u64 = 1 << 20;

/// The conditions of a search; all must hold.
#[derive(Debug, Default)]
pub struct Query {
    /// A recipient, or with a leading `@` those of a domain.
    pub recipient: Option<String>,
    /// A sender, in the same form; `<>` is the null sender.
    pub sender: Option<String>,
    /// A client: a network, or its name and those below it.
    pub client: Option<Client>,
    /// The beginning of one of its signatures.
    pub mailing: Option<String>,
    /// The earliest time, in seconds since 1970.
    pub since: u64,
    /// Decides which addresses are one mailbox.
    pub mailboxes: Mailboxes,
}

/// A client.
#[derive(Debug, Clone)]
pub enum Client {
    /// By its address.
    Network(Network),
    /// By its name, in lower case.
    Host(String),
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Found {
    /// The number of matches.
    pub total: u64,
    /// The last matches, the oldest first.
    pub last: VecDeque<Entry>,
}

impl Query {
    /// Returns texts that every matching line contains, so that most other lines need no parsing.
    fn needles(&self) -> Vec<String> {
        let domain = |address: &String| address.rfind('@').map(|at| address[at..].to_lowercase());
        let addresses =
            [&self.recipient, &self.sender].into_iter().filter_map(|wanted| domain(wanted.as_ref()?));
        let quoted =
            |text: String| serde_json::to_string(&text).unwrap_or_default().trim_matches('"').to_owned();
        addresses.map(quoted).chain(self.mailing.clone()).collect()
    }

    fn fits(&self, entry: &Entry) -> bool {
        let address = |wanted: &str, address: &str| match wanted {
            "<>" => address.is_empty(),
            _ => self.mailboxes.is_recipient(address, wanted),
        };
        let client = |wanted: &Client| match wanted {
            Client::Network(network) => entry.client.parse().is_ok_and(|ip| network.contains(ip)),
            Client::Host(host) => entry
                .host
                .strip_suffix(host.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
        };
        entry.at >= self.since
            && self.recipient.as_ref().is_none_or(|to| entry.to.iter().any(|found| address(to, found)))
            && self.sender.as_ref().is_none_or(|from| address(from, &entry.from))
            && self.client.as_ref().is_none_or(client)
            && self.mailing.as_ref().is_none_or(|mailing| {
                entry.signatures.iter().any(|signature| signature.starts_with(mailing.as_str()))
            })
    }
}

/// Finds the refusals in a state directory, and returns the last `most` of them. Reads all files that may have a match; takes memory for the
/// returned entries only.
///
/// # Errors
/// If a file cannot be read.
pub fn find(state_dir: &Path, query: &Query, most: usize) -> io::Result<Found> {
    let (mut found, needles) = (Found::default(), query.needles());
    let finders: Vec<_> = needles.iter().map(|needle| memmem::Finder::new(needle.as_bytes())).collect();
    let directory = StateDirectory::open(state_dir)?;
    let all = list(state_dir)?;
    for (i, segment) in all.iter().enumerate() {
        // A file ends where the next one begins.
        if all.get(i + 1).is_some_and(|next| next.begun < query.since) {
            continue;
        }
        let file = match directory.file(&segment.name, false) {
            // It was removed meanwhile because of its age.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        let (mut lines, mut line) = (BufReader::with_capacity(1 << 18, file), Vec::new());
        loop {
            line.clear();
            if (&mut lines).take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if !finders.iter().all(|finder| finder.find(&line).is_some()) {
                continue;
            }
            // The last line may be half written.
            let Ok(entry) = serde_json::from_slice::<Entry>(&line) else { continue };
            if query.fits(&entry) {
                found.total += 1;
                if found.last.len() >= most {
                    found.last.pop_front();
                }
                found.last.push_back(entry);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::segments::name;
    use super::*;

    fn entry(at: u64, from: &str, to: &[&str]) -> Entry {
        Entry {
            at,
            from: from.to_owned(),
            to: to.iter().map(|&to| to.to_owned()).collect(),
            client: "192.0.2.7".to_owned(),
            host: "out.shop.example".to_owned(),
            signatures: vec!["ab".repeat(16), "cd".repeat(16)],
            ..Entry::default()
        }
    }

    #[test]
    fn refusals_are_found_by_all_that_is_asked() {
        let directory = tempfile::tempdir().unwrap();
        let lines = |entries: &[Entry]| -> String {
            entries.iter().map(|entry| serde_json::to_string(entry).unwrap() + "\n").collect()
        };
        let old = [entry(100, "a@shop.example", &["anna@box.example"])];
        let new = [
            entry(200, "a@shop.example", &["ben@box.example", "anna+news@box.example"]),
            entry(300, "", &["anna@else.example"]),
        ];
        std::fs::write(directory.path().join(name(100)), lines(&old)).unwrap();
        std::fs::write(directory.path().join(name(150)), lines(&new) + "{\"at\":4").unwrap();
        let at = |query: Query| -> Vec<u64> {
            let found = find(directory.path(), &query, 10).unwrap();
            assert_eq!(found.total, found.last.len() as u64);
            found.last.iter().map(|entry| entry.at).collect()
        };
        let text = |text: &str| Some(text.to_owned());
        let client = |text: &str| Some(Client::Network(text.parse().unwrap()));
        let host = |text: &str| Some(Client::Host(text.to_owned()));
        assert_eq!(at(Query { recipient: text("Anna@Box.example"), ..Query::default() }), [100, 200]);
        assert_eq!(at(Query { recipient: text("@box.example"), since: 150, ..Query::default() }), [200]);
        assert_eq!(at(Query { sender: text("<>"), ..Query::default() }), [300]);
        assert_eq!(at(Query { sender: text("@shop.example"), ..Query::default() }), [100, 200]);
        assert_eq!(at(Query { client: client("192.0.2.0/24"), since: 300, ..Query::default() }), [300]);
        assert_eq!(at(Query { client: client("198.51.100.7"), ..Query::default() }), [0; 0]);
        assert_eq!(at(Query { client: host("shop.example"), since: 300, ..Query::default() }), [300]);
        assert_eq!(at(Query { client: host("hop.example"), ..Query::default() }), [0; 0]);
        assert_eq!(at(Query { mailing: text("cdcd"), ..Query::default() }), [100, 200, 300]);
        assert_eq!(at(Query { mailing: text("abcd"), ..Query::default() }), [0; 0]);
        let last = find(directory.path(), &Query::default(), 1).unwrap();
        assert_eq!((last.total, last.last[0].at), (3, 300));
    }
}
