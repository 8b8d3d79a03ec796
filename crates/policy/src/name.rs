// SPDX-License-Identifier: GPL-3.0-or-later
//! Names as they are compared: addresses, domains, host names, list ids.

use std::borrow::Cow;

/// Bytes of the longest host name that DNS knows (RFC 1035). What is longer is in no domain; senders who write so would
/// otherwise have us look up each of its many parents.
const LONGEST_DOMAIN: usize = 253;

/// A name as it is compared: in lower case, its domain as DNS has it (`xn--...`), without a dot at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    whole: String,
    /// Where the domain begins.
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

    /// What stands before the domain, with its `@`.
    pub(super) fn user(&self) -> Option<&str> {
        Some(&self.whole[..self.domain]).filter(|user| !user.is_empty())
    }

    /// The domain and all above it.
    pub(super) fn domains(&self) -> impl Iterator<Item = &str> {
        let first = Some(self.domain()).filter(|domain| domain.len() <= LONGEST_DOMAIN);
        std::iter::successors(first, |domain| domain.split_once('.').map(|(_, rest)| rest))
    }
}

/// A domain as DNS has it. One that DNS cannot have stays as it is.
fn ascii(domain: &str) -> Cow<'_, str> {
    if domain.is_ascii() || domain.len() > 4 * LONGEST_DOMAIN {
        return Cow::Borrowed(domain);
    }
    idna::domain_to_ascii(domain).map_or(Cow::Borrowed(domain), Cow::Owned)
}
