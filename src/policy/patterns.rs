// SPDX-License-Identifier: GPL-3.0-or-later
//! Patterns over names: addresses, domains, host names, list ids.

use super::source::Source;
use std::collections::HashMap;

/// Bytes of the longest host name that DNS knows (RFC 1035). What is longer is in no domain; senders who write so would
/// otherwise have us look up each of its many parents.
const LONGEST_DOMAIN: usize = 253;

/// A set of patterns, each with the place where it was written.
///
/// `user@example.org` is that address, `example.org` (or `@example.org`) every address in that domain, and
/// `.example.org` every address in that domain or below it. Case does not matter.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// Addresses and domains, as they are.
    exact: HashMap<String, Source>,
    /// Domains, without their leading dot, of which the subdomains count too.
    below: HashMap<String, Source>,
}

impl Patterns {
    /// Adds a pattern; false when the text is not a pattern. Of two equal patterns the first keeps its place.
    pub(super) fn add(&mut self, text: &str, source: Source) -> bool {
        let text = text.to_lowercase();
        let (set, name) = match text.strip_prefix('.') {
            Some(domain) => (&mut self.below, domain),
            None => (&mut self.exact, text.strip_prefix('@').unwrap_or(&text)),
        };
        let domain =
            name.rsplit_once('@').map_or(name, |(user, domain)| if user.is_empty() { "" } else { domain });
        let valid = !domain.is_empty()
            && !name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '<' || c == '>')
            && domain.split('.').all(|label| !label.is_empty());
        if valid {
            set.entry(name.to_owned()).or_insert(source);
        }
        valid
    }

    /// The place of a pattern that matches `name`: the address itself first, then its domain, then the domains above.
    pub(super) fn find(&self, name: &str) -> Option<&Source> {
        if self.exact.is_empty() && self.below.is_empty() {
            return None;
        }
        let name = name.trim_end_matches('.').to_lowercase();
        let domain = name.rsplit_once('@').map_or(&*name, |(_, domain)| domain);
        self.exact.get(&name).or_else(|| self.exact.get(domain)).or_else(|| {
            let mut above = Some(domain).filter(|domain| domain.len() <= LONGEST_DOMAIN);
            std::iter::from_fn(|| {
                let this = above?;
                above = this.split_once('.').map(|(_, rest)| rest);
                Some(this)
            })
            .find_map(|domain| self.below.get(domain))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        let mut patterns = Patterns::default();
        assert!(patterns.add(pattern, Source::new("list".into(), 1)), "{pattern}");
        patterns.find(name).is_some()
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
    fn nonsense_is_refused() {
        for bad in ["", ".", "@", "a@", "a b@example.org", "a..b", "<a@example.org>", "example.org."] {
            assert!(!Patterns::default().add(bad, Source::new("list".into(), 1)), "{bad}");
        }
    }
}
