// SPDX-License-Identifier: GPL-3.0-or-later
//! Normalized names: addresses, domains, host names, list ids.

use std::borrow::Cow;

/// The length of the longest host name of DNS (RFC 1035), in bytes. A longer name is in no domain; otherwise each of its many parents would
/// be looked up.
const LONGEST_DOMAIN: usize = 253;

/// A normalized name: in lower case, its domain as in DNS (`xn--...`), without a dot at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    whole: String,
    /// The byte at which the domain begins.
    domain: usize,
}

impl Name {
    pub(super) fn of(text: &str) -> Self {
        let text = text.trim_end_matches('.').to_lowercase();
        let at = text.rfind('@').map_or(0, |at| at + 1);
        match ascii(&text[at..]) {
            Cow::Borrowed(_) => Self { whole: text, domain: at },
            Cow::Owned(domain) => Self { whole: format!("{}{domain}", &text[..at]), domain: at },
        }
    }

    pub(super) fn whole(&self) -> &str {
        &self.whole
    }

    pub(super) fn domain(&self) -> &str {
        &self.whole[self.domain..]
    }

    /// The part before the domain, with its `@`.
    pub(super) fn user(&self) -> Option<&str> {
        Some(&self.whole[..self.domain]).filter(|user| !user.is_empty())
    }

    /// The domain and all above it.
    pub(super) fn domains(&self) -> impl Iterator<Item = &str> {
        let first = Some(self.domain()).filter(|domain| domain.len() <= LONGEST_DOMAIN);
        std::iter::successors(first, |domain| domain.split_once('.').map(|(_, rest)| rest))
    }
}

/// A domain as in DNS. An invalid one stays as it is.
fn ascii(domain: &str) -> Cow<'_, str> {
    if domain.is_ascii() || domain.len() > 4 * LONGEST_DOMAIN {
        return Cow::Borrowed(domain);
    }
    idna::domain_to_ascii(domain).map_or(Cow::Borrowed(domain), Cow::Owned)
}
