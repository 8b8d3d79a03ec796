// SPDX-License-Identifier: GPL-3.0-or-later
//! The host of a link: its canonical name, and the registered domain.

use bulkmark_mail::is_of_provider;
use psl::Type;
use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Bytes of the longest name (RFC 1035, 2.3.4), and of its longest written form.
const LONGEST: usize = 253;
const LONGEST_WRITTEN: usize = 3 * LONGEST;

/// Domains of formats and examples, which lead nowhere.
const UNINFORMATIVE: [&str; 4] = ["w3.org", "example.com", "example.net", "example.org"];
const UNINFORMATIVE_HOSTS: [&str; 5] = [
    "schemas.microsoft.com",
    "schemas.openxmlformats.org",
    "schemas.xmlsoap.org",
    "ns.adobe.com",
    "purl.org",
];

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    /// Its full name in small ASCII letters (punycode), or the IP address.
    pub(super) name: String,
    /// Where the registered domain begins in it; 0 if names below it belong to different people.
    site: usize,
}

impl Host {
    /// The host of an authority: `user@host:port` (RFC 3986, 3.2).
    pub(super) fn of_authority(authority: &str) -> Option<Self> {
        // Text before the last `@` is deceptive.
        let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
        if let Some(place) = place.strip_prefix('[') {
            let address: Ipv6Addr = place.split(']').next()?.parse().ok()?;
            return (!address.is_loopback()).then(|| Self { name: format!("[{address}]"), site: 0 });
        }
        Self::of_host(place.split(':').next()?)
    }

    fn of_host(host: &str) -> Option<Self> {
        let name = ascii(host)?;
        match number_of(&name) {
            Some(address) => {
                let address = address?;
                let is_public = !address.is_private() && !address.is_loopback() && !address.is_unspecified();
                is_public.then(|| Self { name: address.to_string(), site: 0 })
            }
            None => Self::of_ascii(name),
        }
    }

    /// The host of this name, unless it is an IP address.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let name = ascii(name)?;
        if number_of(&name).is_some() { None } else { Self::of_ascii(name) }
    }

    fn of_ascii(name: String) -> Option<Self> {
        let suffix = psl::suffix(name.as_bytes())?;
        // Each name below `github.io` and the like belongs to somebody else.
        let site = match (suffix.typ(), psl::domain(name.as_bytes())) {
            (Some(Type::Private), _) => 0,
            (_, domain) => name.len() - domain?.as_bytes().len(),
        };
        Some(Self { name, site })
    }

    /// The registered domain, or the full name if names below it belong to different people.
    pub(super) fn site(&self) -> &str {
        &self.name[self.site..]
    }

    /// Whether it is a known host without meaning for a message.
    pub(super) fn is_uninformative(&self) -> bool {
        UNINFORMATIVE.contains(&self.site()) || UNINFORMATIVE_HOSTS.contains(&&*self.name)
    }

    /// Whether it is a mail provider: providers put a link to themselves below mail.
    pub(super) fn is_of_provider(&self) -> bool {
        is_of_provider(self.site())
    }
}

/// A name in small ASCII letters, without final dots.
fn ascii(name: &str) -> Option<String> {
    if name.len() > LONGEST_WRITTEN {
        return None;
    }
    let name = decoded(name);
    let name = if name.is_ascii() { name.to_ascii_lowercase() } else { idna::domain_to_ascii(&name).ok()? };
    let name = name.trim_end_matches('.');
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    (name.len() <= LONGEST && name.split('.').all(is_label)).then(|| name.to_owned())
}

/// The IP address that a name is, if its last label is a number. As in browsers, parts may be hexadecimal or octal and fewer than four (URL
/// Standard, IPv4 parser).
fn number_of(name: &str) -> Option<Option<Ipv4Addr>> {
    let number = |label: &str| {
        if let Some(digits) = label.strip_prefix("0x") {
            return if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 16).ok() };
        }
        let is_octal = label.len() > 1 && label.starts_with('0');
        u64::from_str_radix(label, if is_octal { 8 } else { 10 }).ok()
    };
    let last = name.rsplit('.').next()?;
    let is_number =
        last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") && number(last).is_some();
    if !is_number {
        return None;
    }
    let parts: Option<Vec<u64>> = name.split('.').take(5).map(number).collect();
    Some(parts.and_then(|parts| {
        let (last, first) = parts.split_last().filter(|(_, first)| first.len() < 4)?;
        let high = first.iter().zip([24, 16, 8]).map(|(part, shift)| part.min(&0xFF) << shift).sum::<u64>();
        let fits = first.iter().all(|part| *part <= 0xFF) && *last < 1 << (8 * (4 - first.len()));
        u32::try_from(high + last).ok().filter(|_| fits).map(Ipv4Addr::from)
    }))
}

/// Decodes percent encoding; invalid UTF-8 becomes U+FFFD.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = match after {
            [high, low, ..] if *first == b'%' => hexadecimal(*high).zip(hexadecimal(*low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn site(authority: &str) -> Option<String> {
        Host::of_authority(authority).map(|host| host.site().to_owned())
    }

    #[test]
    fn one_host_in_many_forms() {
        for authority in [
            "shop.example",
            "WWW.a.Shop.example.",
            "www.bank.example@shop.example:8080",
            "s%68op.example",
            "a_b.shop.example",
            "ｓhop。example",
        ] {
            assert_eq!(site(authority).as_deref(), Some("shop.example"), "{authority}");
        }
        assert_eq!(site("a.bücher.example").as_deref(), Some("xn--bcher-kva.example"));
        assert_eq!(site("a.b.co.uk").as_deref(), Some("b.co.uk"));
        for authority in ["209.214.1.5", "0xD1.0xD6.0x1.0x5", "3520463109", "0321.0326.261", "209.214.261"] {
            assert_eq!(site(authority).as_deref(), Some("209.214.1.5"), "{authority}");
        }
        assert_eq!(site("[2001:DB8::1]:80").as_deref(), Some("[2001:db8::1]"));
    }

    #[test]
    fn names_below_shared_ones_are_whole() {
        for name in ["me.github.io", "a.me.github.io", "shop.blogspot.com", "github.io"] {
            assert_eq!(site(name).as_deref(), Some(name));
        }
    }

    #[test]
    fn other_text_is_no_host() {
        for authority in [
            "",
            "localhost",
            "com",
            "co.uk",
            "10.0.0.1",
            "127.1",
            "256.1.1.1.1",
            "1.2.3.999",
            "a..b",
            "a b.example",
            "[::1]",
            "[x]",
            "é..x",
        ] {
            assert_eq!(site(authority), None, "{authority}");
        }
        assert_eq!(site(&"a.".repeat(200)), None);
    }

    #[test]
    fn uninformative_hosts() {
        let host = |name| Host::of_name(name).unwrap();
        assert!(host("www.w3.org").is_uninformative() && host("schemas.microsoft.com").is_uninformative());
        assert!(!host("www.microsoft.com").is_uninformative());
        assert!(host("groups.yahoo.com").is_of_provider() && host("www.gmx.de").is_of_provider());
        assert!(!host("yahoo.shop.example").is_of_provider() && !host("myyahoo.com").is_of_provider());
    }

    proptest! {
        #[test]
        fn nothing_panics_and_the_form_stays(authority in "\\PC{0,40}|[a-zA-Z0-9.%@:\\[\\]-]{0,40}") {
            if let Some(host) = Host::of_authority(&authority) {
                prop_assert_eq!(Host::of_authority(&host.name), Some(host.clone()));
                prop_assert!(host.name.ends_with(host.site()));
            }
            let _ = decoded(&authority);
        }
    }
}
