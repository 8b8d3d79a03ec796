// SPDX-License-Identifier: GPL-3.0-or-later
//! Large mail providers, in whose domains anybody can have an address.

/// Their names in all countries.
const NAMES: [&str; 9] =
    ["aol", "gmail", "gmx", "hotmail", "live", "outlook", "rediffmail", "yahoo", "yandex"];

/// Domains of others.
const DOMAINS: [&str; 31] = [
    "126.com",
    "163.com",
    "comcast.net",
    "fastmail.com",
    "free.fr",
    "freemail.hu",
    "freenet.de",
    "googlemail.com",
    "icloud.com",
    "juno.com",
    "laposte.net",
    "libero.it",
    "lycos.com",
    "mac.com",
    "mail.com",
    "mail.ru",
    "me.com",
    "msn.com",
    "naver.com",
    "netzero.net",
    "onet.pl",
    "orange.fr",
    "proton.me",
    "protonmail.com",
    "qq.com",
    "seznam.cz",
    "sina.com",
    "t-online.de",
    "web.de",
    "wp.pl",
    "zoho.com",
];

/// Whether anybody can have an address in this registered domain (in small letters), so that users of it have nothing in common.
#[must_use]
pub fn is_of_provider(domain: &str) -> bool {
    let (first, rest) = domain.split_once('.').unwrap_or_default();
    // `yahoo.co.uk`, not `yahoo.shop.example`.
    NAMES.contains(&first) && rest.len() <= "com.au".len() || DOMAINS.binary_search(&domain).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_all_countries_and_nowhere_else() {
        assert!(DOMAINS.is_sorted());
        for domain in ["gmail.com", "yahoo.co.uk", "outlook.fr", "web.de", "zoho.com"] {
            assert!(is_of_provider(domain), "{domain}");
        }
        for domain in ["yahoo.shop.example", "myyahoo.com", "example.com", "gmail", ""] {
            assert!(!is_of_provider(domain), "{domain}");
        }
    }
}
