// SPDX-License-Identifier: GPL-3.0-or-later
//! Patterns over names: addresses, domains, host names, list ids.

use super::name::Name;
use super::source::Source;
use super::table::{Answers, RemoteTable, Table};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// One pattern. Case does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pattern {
    /// `user@example.org` is that address, `example.org` or `@example.org` every address in that domain.
    Is(String),
    /// `.example.org` is every address in that domain or below it. Here without its dot.
    Below(String),
    /// `user@` is that user of any domain. Here with its `@`.
    User(String),
    /// All names in a table.
    Table(Table),
}

impl Pattern {
    /// Returns `None` if the text is not a pattern.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '<' || c == '>';
        if text.contains(is_odd) || text.ends_with('.') {
            return None;
        }
        let (is_below, text) = text.strip_prefix('.').map_or((false, text), |domain| (true, domain));
        let name = Name::of(if is_below { text } else { text.strip_prefix('@').unwrap_or(text) });
        match (name.user(), name.domain()) {
            (Some(user), "") if user.find('@') == Some(user.len() - 1) && user.len() > 1 && !is_below => {
                return Some(Self::User(user.to_owned()));
            }
            (Some("@"), _) => return None,
            (_, domain) if domain.split('.').any(str::is_empty) => return None,
            _ => (),
        }
        let name = name.whole().to_owned();
        Some(if is_below { Self::Below(name) } else { Self::Is(name) })
    }

    /// Whether it matches. `answers` are those of remote tables.
    pub(super) fn matches(&self, name: &Name, answers: Option<&Answers>) -> bool {
        #[cfg(test)]
        COMPARED.set(COMPARED.get() + 1);
        match self {
            Self::Is(pattern) => name.whole() == pattern || name.domain() == pattern,
            Self::Below(pattern) => name.domains().any(|domain| domain == pattern),
            Self::User(pattern) => name.user() == Some(pattern),
            Self::Table(table) => table.has(name, answers),
        }
    }

    /// The remote table that it asks.
    pub(super) fn remote(&self) -> Option<&RemoteTable> {
        match self {
            Self::Table(Table::Remote(table)) => Some(table),
            _ => None,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(text) | Self::User(text) => f.write_str(text),
            Self::Below(text) => write!(f, ".{text}"),
            Self::Table(table) => table.fmt(f),
        }
    }
}

/// A set of patterns with their places in files.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// Addresses and domains, as they are, and users with their `@`.
    exact: HashMap<String, Source>,
    /// Domains, without leading dot, that stand for their subdomains too.
    below: HashMap<String, Source>,
    tables: Vec<(Pattern, Source)>,
}

impl Patterns {
    /// Adds a pattern. If it exists, the first place stays.
    pub(super) fn add(&mut self, pattern: Pattern, source: Source) {
        let (set, name) = match pattern {
            Pattern::Below(domain) => (&mut self.below, domain),
            Pattern::Is(name) | Pattern::User(name) => (&mut self.exact, name),
            Pattern::Table(_) => return self.tables.push((pattern, source)),
        };
        set.entry(name).or_insert(source);
    }

    /// The names of all patterns without a table: those that match as they are, and those that match all below them.
    pub(super) fn into_names(self) -> (HashSet<String>, HashSet<String>) {
        (self.exact.into_keys().collect(), self.below.into_keys().collect())
    }

    /// The place of a pattern that matches `name`: the address itself first, then its domain, then the domains above, then the
    /// user, then tables.
    pub(super) fn find(&self, name: &str, answers: Option<&Answers>) -> Option<&Source> {
        if self.exact.is_empty() && self.below.is_empty() && self.tables.is_empty() {
            return None;
        }
        let name = Name::of(name);
        let exact = || self.exact.get(name.whole()).or_else(|| self.exact.get(name.domain()));
        let below = || name.domains().find_map(|domain| self.below.get(domain));
        let by_table = || self.tables.iter().find(|(table, _)| table.matches(&name, answers));
        exact()
            .or_else(below)
            .or_else(|| self.exact.get(name.user()?))
            .or_else(|| by_table().map(|(_, at)| at))
    }

    /// The broadest pattern without a table that matches `name`, as it is written.
    pub(super) fn broadest(&self, name: &str) -> Option<String> {
        let name = Name::of(name);
        let below = || name.domains().filter(|domain| self.below.contains_key(*domain)).last();
        let domain = || Some(name.domain()).filter(|domain| self.exact.contains_key(*domain));
        let user = || name.user().filter(|user| self.exact.contains_key(*user));
        let whole = || Some(name.whole()).filter(|whole| self.exact.contains_key(*whole));
        below()
            .map(|domain| format!(".{domain}"))
            .or_else(|| domain().map(|domain| format!("@{domain}")))
            .or_else(|| user().or_else(whole).map(str::to_owned))
    }

    /// The places of all.
    pub(super) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.exact.values().chain(self.below.values()).chain(self.tables.iter().map(|(_, source)| source))
    }

    /// Its remote tables.
    pub(super) fn remote(&self) -> impl Iterator<Item = &RemoteTable> {
        self.tables.iter().filter_map(|(table, _)| table.remote())
    }
}

#[cfg(test)]
thread_local! {
    static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The number of times that this thread has compared a pattern with a name.
#[cfg(test)]
pub(crate) fn compared() -> usize {
    COMPARED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        let parsed = Pattern::parse(pattern).unwrap_or_else(|| panic!("{pattern}"));
        let alone = parsed.matches(&Name::of(name), None);
        let mut patterns = Patterns::default();
        patterns.add(parsed, Source::new("list".into(), 1));
        assert_eq!(patterns.find(name, None).is_some(), alone, "{pattern} in a set, and alone, and {name}");
        alone
    }

    #[test]
    fn addresses_domains_and_below() {
        assert!(matches("News@Example.org", "news@example.ORG"));
        assert!(!matches("news@example.org", "other@example.org"));
        assert!(matches("example.org", "x@example.org") && matches("@example.org", "x@example.org"));
        assert!(!matches("example.org", "x@mail.example.org") && !matches("example.org", "x@badexample.org"));
        assert!(matches(".example.org", "x@example.org") && matches(".example.org", "x@a.b.example.org"));
        assert!(
            !matches(".example.org", "x@badexample.org") && !matches(".example.org", "example.org@evil.test")
        );
        assert!(matches("mail.example.org", "mail.example.org."));
        let long = "a.".repeat(200);
        assert!(!matches(".example.org", &format!("x@{long}example.org")), "a name longer than DNS knows");
    }

    #[test]
    fn users_of_any_domain() {
        assert!(matches("Abuse@", "abuse@example.org") && matches("abuse@", "abuse@a.example.net"));
        assert!(!matches("abuse@", "abuse.example.org") && !matches("abuse@", "no-abuse@example.org"));
        assert!(!matches("abuse@", "abuse"));
    }

    #[test]
    fn international_names_are_those_of_dns() {
        for name in [
            "news@Bücher.example",
            "news@BÜCHER.example",
            "news@xn--bcher-kva.example",
            "news@bu\u{308}cher.example",
        ] {
            assert!(matches("bücher.example", name) && matches("xn--bcher-kva.example", name), "{name}");
            assert!(matches("news@bücher.example", name) && matches(".Bücher.example", name), "{name}");
            assert!(!matches("bucher.example", name), "{name}");
        }
        assert!(matches(".bücher.example", "a.xn--bcher-kva.example"));
        assert!(matches("grüße@example.org", "Grüße@example.org"));
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in ["", ".", "@", "a@@", ".a@", "a b@example.org", "a..b", "<a@example.org>", "example.org."]
        {
            assert!(Pattern::parse(bad).is_none(), "{bad}");
        }
    }
}
