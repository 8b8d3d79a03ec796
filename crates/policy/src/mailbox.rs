// SPDX-License-Identifier: GPL-3.0-or-later
//! The mailbox of an address, so that a message to many spellings of one address counts once. Case never matters: nearly all mail systems
//! ignore it.

use std::borrow::Cow;

/// The rules by which addresses are one mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mailboxes {
    /// Characters that begin an extension: with `+`, `anna+news@` is the mailbox of `anna@`. Empty: there are no extensions.
    pub delimiter: String,
}

impl Default for Mailboxes {
    fn default() -> Self {
        Self { delimiter: "+".to_owned() }
    }
}

impl Mailboxes {
    /// The mailbox of an address without angle brackets. Addresses of different mailboxes have different results.
    #[must_use]
    pub fn mailbox(&self, address: &str) -> String {
        #[cfg(test)]
        READ.set(READ.get() + 1);
        // A source route (RFC 5321, appendix C) is no part of the mailbox.
        let address = match address.split_once(':') {
            Some((route, rest)) if route.starts_with('@') => rest,
            _ => address,
        };
        let (local, domain) = address.rsplit_once('@').map_or((address, None), |(l, d)| (l, Some(d)));
        let local = unquoted(local);
        // As with Postfix, an address that begins with a delimiter has no extension.
        let end = local.char_indices().skip(1).find(|&(_, c)| self.delimiter.contains(c));
        let local = end.map_or(&*local, |(at, _)| &local[..at]);
        let mut mailbox = local.to_lowercase();
        if let Some(domain) = domain {
            mailbox.push('@');
            mailbox.push_str(&domain.strip_suffix('.').unwrap_or(domain).to_lowercase());
        }
        mailbox
    }

    /// Whether an address is this recipient, or in this domain if `wanted` begins with `@`.
    #[must_use]
    pub fn is_recipient(&self, address: &str, wanted: &str) -> bool {
        wanted.strip_prefix('@').map_or_else(
            || self.mailbox(address) == self.mailbox(wanted),
            |domain| address.rsplit_once('@').is_some_and(|(_, found)| found.eq_ignore_ascii_case(domain)),
        )
    }
}

/// `"anna"` is `anna`, and `"an\na"` as well.
fn unquoted(local: &str) -> Cow<'_, str> {
    let Some(quoted) = local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Cow::Borrowed(local);
    };
    let mut plain = String::with_capacity(quoted.len());
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        plain.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    Cow::Owned(plain)
}

#[cfg(test)]
thread_local! {
    static READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The number of addresses that this thread has read.
#[cfg(test)]
pub(crate) fn read() -> usize {
    READ.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_mailbox_are_one() {
        let same = [
            "anna@box.example",
            "Anna@box.example",
            "ANNA@BOX.EXAMPLE",
            "anna@box.example.",
            "anna+@box.example",
            "anna+news@box.example",
            "Anna+a+b@Box.example",
            "\"anna\"@box.example",
            "\"an\\na+x\"@box.example",
            "@relay.example,@b.example:anna@box.example",
        ];
        for address in same {
            assert_eq!(Mailboxes::default().mailbox(address), "anna@box.example", "{address}");
        }
        for other in ["anna-news@box.example", "anna@other.example", "+anna@box.example", "\"@\"", "", "anna"]
        {
            assert_ne!(Mailboxes::default().mailbox(other), "anna@box.example", "{other}");
        }
    }

    #[test]
    fn the_delimiters_of_extensions_are_configured() {
        let mailboxes = |delimiter: &str| Mailboxes { delimiter: delimiter.to_owned() };
        assert_eq!(mailboxes("").mailbox("anna+news@box.example"), "anna+news@box.example");
        assert_eq!(mailboxes("-+").mailbox("anna-news@box.example"), "anna@box.example");
        assert_eq!(mailboxes("-+").mailbox("anna+news-x@box.example"), "anna@box.example");
        assert_eq!(mailboxes("é").mailbox("épée@box.example"), "ép@box.example");
    }
}
