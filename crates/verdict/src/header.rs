// SPDX-License-Identifier: GPL-3.0-or-later
//! The header with the verdict. docs/header.md has its grammar.

use bulkmark_policy::{Held, Verdict};
use serde::Deserialize;
use std::fmt;

/// The longest name of a header field.
const MAX_NAME: usize = 64;

/// The name of a header field (RFC 5322, 3.6.8).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HeaderName(String);

impl HeaderName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for HeaderName {
    fn default() -> Self {
        Self("X-Bulkmark".to_owned())
    }
}

impl TryFrom<String> for HeaderName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let is_name =
            (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic() && b != b':');
        if !is_name {
            return Err(format!("found \"{name}\", expected the name of a header field such as X-Bulkmark"));
        }
        if is_of_mail(&name) {
            return Err(format!(
                "found \"{name}\", a standard field of mail that the verdict would replace; expected a separate one such as X-Bulkmark"
            ));
        }
        Ok(Self(name))
    }
}

/// Whether it is a field of others: of RFC 5322, MIME, lists, verifiers, mail servers and SpamAssassin.
fn is_of_mail(name: &str) -> bool {
    const NAMES: [&str; 26] = [
        "archived-at",
        "auto-submitted",
        "authentication-results",
        "bcc",
        "cc",
        "comments",
        "date",
        "delivered-to",
        "dkim-signature",
        "disposition-notification-to",
        "envelope-to",
        "from",
        "in-reply-to",
        "keywords",
        "message-id",
        "mime-version",
        "precedence",
        "received",
        "received-spf",
        "references",
        "reply-to",
        "return-path",
        "sender",
        "subject",
        "to",
        "x-original-to",
    ];
    const FAMILIES: [&str; 5] = ["arc-", "content-", "list-", "resent-", "x-spam-"];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&&*name) || FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Whether a stored header value has the field `held=correspondent`.
#[must_use]
pub fn is_held_for_correspondent(value: &[u8]) -> bool {
    let held = format!("held={}", Held::Correspondent);
    value.split(|&byte| byte == b';').any(|field| field.trim_ascii() == held.as_bytes())
}

/// One header value: `verdict; field=value; ...`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HeaderValue(String);

impl HeaderValue {
    pub(super) fn new(verdict: Verdict) -> Self {
        Self(verdict.to_string())
    }

    /// Appends a field. A value that is no token is quoted; a character that a header cannot have becomes `?`.
    pub(super) fn field(mut self, name: &str, value: impl fmt::Display) -> Self {
        let value = value.to_string();
        let token = |c: char| c.is_ascii_alphanumeric() || ".-_+:/@[]".contains(c);
        self.0.push_str("; ");
        self.0.push_str(name);
        self.0.push('=');
        if !value.is_empty() && value.chars().all(token) {
            self.0.push_str(&value);
        } else {
            let clean = |c: char| if matches!(c, ' '..='~') && c != '"' && c != '\\' { c } else { '?' };
            self.0.push('"');
            self.0.extend(value.chars().map(clean));
            self.0.push('"');
        }
        self
    }

    /// Appends the policy that decided, if there are several.
    pub(super) fn policy(self, name: Option<&str>) -> Self {
        match name {
            Some(name) => self.field("policy", name),
            None => self,
        }
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_tokens_or_quoted() {
        let value = HeaderValue::new(Verdict::Bulk)
            .field("body", 27)
            .field("host", "mx1.example.org")
            .field("whitelist", "/etc/bulk mark/list:3")
            .field("reason", "a\r\n\"b\\é");
        let expected =
            "bulk; body=27; host=mx1.example.org; whitelist=\"/etc/bulk mark/list:3\"; reason=\"a???b??\"";
        assert_eq!(value.into_string(), expected);
    }

    #[test]
    fn only_mail_that_is_held_for_a_correspondent_is_recognized() {
        let value =
            |held: Held| HeaderValue::new(Verdict::Bulk).field("body", 2).field("held", held).into_string();
        assert!(is_held_for_correspondent(value(Held::Correspondent).as_bytes()));
        assert!(is_held_for_correspondent(b" bulk; body=2;\r\n held=correspondent; policy=x\r\n"));
        for other in [&*value(Held::Sources), "held=correspondents", "bulk; x=held=correspondent", ""] {
            assert!(!is_held_for_correspondent(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn names_are_checked() {
        assert!(HeaderName::try_from("X-Spam_1".to_owned()).is_ok());
        for bad in [
            "",
            "X Y",
            "X:",
            "Ü",
            &"x".repeat(65),
            "Subject",
            "content-type",
            "List-Id",
            "ARC-Seal",
            "X-Spam-Status",
        ] {
            assert!(HeaderName::try_from((*bad).to_owned()).is_err(), "{bad}");
        }
    }
}
