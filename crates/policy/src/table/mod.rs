// SPDX-License-Identifier: GPL-3.0-or-later
//! Existing tables of a site in Postfix's formats and protocols: files in memory, and servers, which are asked beforehand.

mod cdb;
mod lmdb;
mod remote;

pub use remote::{Answers, Protocol, Question, RemoteTable};

use super::name::Name;
use cdb::Cdb;
use lmdb::Lmdb;
use std::fmt;
use std::sync::Arc;

/// The kinds of tables.
pub(super) const KINDS: &str = "cdb, lmdb, socketmap or tcp";

/// A table as a pattern.
#[derive(Debug, Clone)]
pub(super) enum Table {
    /// The content of a file, with its name.
    File(Arc<str>, Arc<Stored>),
    /// A server.
    Remote(Arc<RemoteTable>),
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Table {}

/// The content of a file.
#[derive(Debug)]
pub(super) struct Stored(Kind);

#[derive(Debug)]
enum Kind {
    Cdb(Cdb),
    Lmdb(Lmdb),
}

impl Stored {
    /// Parses the content of a file of this kind.
    ///
    /// # Errors
    /// The expected content.
    pub(super) fn new(kind: &str, bytes: Vec<u8>) -> Result<Self, String> {
        let stored = match kind {
            "cdb" => Cdb::new(bytes).map(Kind::Cdb),
            _ => Lmdb::new(bytes).map(Kind::Lmdb),
        };
        stored.map(Self).ok_or_else(|| {
            format!("found no table of this kind, expected a file that \"postmap {kind}:\" made")
        })
    }

    /// The value of a key; Postfix's tables may end keys and values with a zero byte.
    fn get(&self, key: &str) -> Option<&[u8]> {
        let find = |key: &[u8]| match &self.0 {
            Kind::Cdb(cdb) => cdb.get(key),
            Kind::Lmdb(lmdb) => lmdb.get(key),
        };
        let value = find(key.as_bytes()).or_else(|| find(&[key.as_bytes(), b"\0"].concat()))?;
        Some(value.strip_suffix(b"\0").unwrap_or(value))
    }
}

impl Table {
    /// Whether it has the name, or its domain, or one above.
    pub(super) fn has(&self, name: &Name, answers: Option<&Answers>) -> bool {
        match self {
            Self::File(_, stored) => {
                keys(name).into_iter().find_map(|key| stored.get(&key)).is_some_and(is_wanted)
            }
            Self::Remote(table) => answers.is_some_and(|answers| answers.has(table, name.whole())),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name, _) => f.write_str(name),
            Self::Remote(table) => table.fmt(f),
        }
    }
}

/// The question to a remote table for a name.
pub(super) fn question(table: &RemoteTable, name: &Name) -> Question {
    Question { table: table.clone(), name: name.whole().to_owned(), keys: keys(name) }
}

/// The keys under which a name is looked up, as in access(5): the address, its domain, with a leading dot the domain and those above it, and
/// the user. The first that exists counts.
fn keys(name: &Name) -> Vec<String> {
    let address = name.user().map(|_| name.whole().to_owned());
    let dotted = name.domains().map(|domain| format!(".{domain}"));
    let domain = std::iter::once(name.domain().to_owned());
    let user = name.user().map(str::to_owned);
    address.into_iter().chain(domain).chain(dotted).chain(user).collect()
}

/// Whether a value means that mail is wanted. In tables of access(5), some values mean the contrary, or nothing.
#[must_use]
pub fn is_wanted(value: &[u8]) -> bool {
    let word = value.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default().to_ascii_uppercase();
    let is_code = word.len() == 3 && matches!(word[0], b'4' | b'5') && word.iter().all(u8::is_ascii_digit);
    let no: [&[u8]; 6] = [b"REJECT", b"DEFER", b"DEFER_IF_REJECT", b"DEFER_IF_PERMIT", b"DISCARD", b"DUNNO"];
    !is_code && !no.contains(&&*word) && word != b"HOLD"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_access() {
        let keys = |name: &str| keys(&Name::of(name)).join(" ");
        assert_eq!(
            keys("Anna@A.Example.org"),
            "anna@a.example.org a.example.org .a.example.org .example.org .org anna@"
        );
        assert_eq!(keys("mail.example.org."), "mail.example.org .mail.example.org .example.org .org");
        assert_eq!(keys("a@bücher.example").split(' ').nth(1), Some("xn--bcher-kva.example"));
    }

    #[test]
    fn some_values_do_not_want_mail() {
        for wanted in ["OK", "ok", "", "1", "permit", "250 x", "x@example.org", "yes please"] {
            assert!(is_wanted(wanted.as_bytes()), "{wanted}");
        }
        for not in
            ["REJECT", "reject no", "550 5.7.1 no", "451", "DUNNO", "Hold", "discard", "DEFER_IF_PERMIT x"]
        {
            assert!(!is_wanted(not.as_bytes()), "{not}");
        }
    }
}
