// SPDX-License-Identifier: GPL-3.0-or-later
//! Values of options that several commands take.

use humantime_serde::re::humantime;
use std::time::Duration;

/// The longest time of an order, a token or a look back: a hundred years.
const LONGEST: Duration = Duration::from_secs(36_500 * 86_400);

/// Reads a time span, which may be none.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).ok().filter(|&time| time <= LONGEST);
    time.ok_or_else(|| "expected a time such as 30d or 2h, up to 36500d".to_owned())
}

/// Reads the time for which an order holds.
pub(super) fn order_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time < Duration::from_secs(1) => {
            Err("expected a time such as 30d or 2h, not below 1s".to_owned())
        }
        time => Ok(time),
    }
}

/// Checks the address of a mailbox, with or without angle brackets.
pub(super) fn mailbox(text: &str) -> Result<String, String> {
    let address = text.trim_start_matches('<').trim_end_matches('>');
    match address.rsplit_once('@') {
        Some((user, domain)) if !user.is_empty() && !domain.is_empty() => Ok(address.to_owned()),
        // RFC 5321 has one without a domain.
        None if address.eq_ignore_ascii_case("postmaster") => Ok(address.to_owned()),
        _ => Err("expected an address such as anna@example.org".to_owned()),
    }
}

/// The same, or a whole domain such as `@example.org`.
pub(super) fn mailbox_or_domain(text: &str) -> Result<String, String> {
    match text.strip_prefix('@') {
        Some(domain) if !(domain.is_empty() || domain.contains('@')) => Ok(text.to_owned()),
        _ => mailbox(text).map_err(|wanted| format!("{wanted}, or @example.org for a whole domain")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        assert_eq!(duration("2h 30m"), Ok(Duration::from_secs(9000)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO), "a token that ends now");
        for bad in ["", "2", "0s", "5ms", "yesterday", "2020-01-01", "100000d"] {
            assert!(order_duration(bad).unwrap_err().contains("such as 30d"), "{bad}");
        }
        for good in ["a@example.org", "<a@example.org>", "\"a @ b\"@example.org", "Postmaster"] {
            assert!(mailbox(good).is_ok_and(|address| !address.contains('<')), "{good}");
        }
        for bad in ["", "anna", "@example.org", "anna@", "<>"] {
            assert!(mailbox(bad).is_err(), "{bad}");
        }
        assert!(mailbox_or_domain("@example.org").is_ok() && mailbox_or_domain("a@b").is_ok());
        assert!(mailbox_or_domain("@").is_err() && mailbox_or_domain("example.org").is_err());
    }
}
