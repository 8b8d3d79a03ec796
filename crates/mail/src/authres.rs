// SPDX-License-Identifier: GPL-3.0-or-later
//! Authentication-Results fields (RFC 8601): a mail server's results for DKIM, SPF and DMARC.
//!
//! Anybody may write such a field, and mail servers remove forged ones under their own name. They leave fields that they cannot read, so
//! anything unusual is no field here, even if the RFC allows it: a quoted server name, versions of methods, more or longer items than
//! OpenDKIM reads. Each bound was tested with OpenDKIM 2.11.

use std::fmt;

/// Results of one field. OpenDKIM does not remove a field with its own name that has more.
const MAX_RESULTS: usize = 15;

/// Properties of all results, for the same reason: OpenDKIM reads 512 tokens, five for each property. Servers write six properties for a
/// result.
const MAX_PROPERTIES: usize = 64;

/// Comments of a field; each is a token.
const MAX_COMMENTS: usize = 64;

/// Types of properties (RFC 8601, 2.3). OpenDKIM knows no others.
const KINDS: [&str; 4] = ["header", "smtp", "body", "policy"];

/// Bytes of the longest name or value that OpenDKIM reads.
const MAX_VALUE: usize = 255;

/// The results of one mail server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthenticationResults {
    /// The server (the authserv-id), in lower case.
    pub server: String,
    /// Its result for each method; empty for `none`.
    pub results: Vec<MethodResult>,
}

/// The result of one method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodResult {
    /// `dkim`, `spf`, `dmarc` or another one, in lower case.
    pub method: String,
    /// `pass`, `fail`, `none` and so on, in lower case.
    pub result: String,
    /// The properties, such as `header.d`; names in lower case, values as written.
    properties: Vec<(String, String)>,
}

impl MethodResult {
    /// The value of a property that occurs once: of two, one may be a sender's.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&str> {
        let mut values = self.properties.iter().filter(|(found, _)| found == name);
        let first = values.next();
        first.filter(|_| values.next().is_none()).map(|(_, value)| &**value)
    }
}

impl fmt::Display for MethodResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.method, self.result)?;
        let is_shown = |name: &str| matches!(name, "header.d" | "header.from" | "smtp.mailfrom" | "reason");
        let mut shown = self.properties.iter().filter(|(name, _)| is_shown(name));
        shown.try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

impl AuthenticationResults {
    /// Reads the value of a field. Returns `None` for any unusual form.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        if value.contains(|c: char| c.is_control() && !"\t\r\n".contains(c)) {
            return None;
        }
        let mut rest = Reader { rest: value.trim_ascii(), properties: 0, comments: 0 };
        // Neither comments nor quotation marks may precede it: programs that remove forged fields search for the plain name.
        let server = rest.run(|c| c.is_ascii_alphanumeric() || "-._".contains(c))?.to_ascii_lowercase();
        rest.blank()?;
        if rest.run(|c| c.is_ascii_digit()).is_some() {
            rest.blank()?;
        }
        let mut results = Vec::new();
        while !rest.rest.is_empty() {
            rest.eat(';')?;
            rest.blank()?;
            if rest.rest.is_empty() {
                break;
            }
            match rest.result()? {
                Some(result) if results.len() < MAX_RESULTS => results.push(result),
                Some(_) => return None,
                None if results.is_empty() && rest.rest.trim_end_matches([';', ' ']).is_empty() => break,
                None => return None,
            }
        }
        Some(Self { server, results })
    }
}

/// The unread rest of a field.
struct Reader<'a> {
    rest: &'a str,
    properties: usize,
    comments: usize,
}

impl<'a> Reader<'a> {
    /// One result, or `none` alone.
    fn result(&mut self) -> Option<Option<MethodResult>> {
        let keyword = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let method = self.run(keyword)?.to_ascii_lowercase();
        self.blank()?;
        if method == "none" && !self.rest.starts_with('=') {
            return Some(None);
        }
        self.eat('=')?;
        self.blank()?;
        let result = self.run(keyword)?.to_ascii_lowercase();
        self.blank()?;
        let mut properties = Vec::new();
        while !self.rest.is_empty() && !self.rest.starts_with(';') {
            self.properties += 1;
            let property = self.property().filter(|_| self.properties <= MAX_PROPERTIES)?;
            properties.push(property);
        }
        Some(Some(MethodResult { method, result, properties }))
    }

    /// `ptype.property=value`, or `reason=value`.
    fn property(&mut self) -> Option<(String, String)> {
        let part = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let mut name = self.run(part)?.to_ascii_lowercase();
        self.blank()?;
        if name != "reason" {
            self.eat('.').filter(|()| KINDS.contains(&&*name))?;
            self.blank()?;
            name = format!("{name}.{}", self.run(part)?.to_ascii_lowercase());
            self.blank()?;
        }
        self.eat('=')?;
        self.blank()?;
        let value = self.value()?;
        self.blank()?;
        Some((name, value))
    }

    /// A value: quoted and plain pieces up to a blank, a comment or a semicolon. Quotation marks stay, so that a quoted piece is not taken
    /// for a domain.
    fn value(&mut self) -> Option<String> {
        let mut value = String::new();
        loop {
            if let Some(plain) = self.run(|c| !c.is_whitespace() && !";()\"\\".contains(c)) {
                value.push_str(plain);
            } else if self.rest.starts_with('"') {
                let end = quoted_end(self.rest)?;
                value.push_str(&self.rest[..end]);
                self.rest = &self.rest[end..];
            } else {
                break;
            }
        }
        (!value.is_empty() && value.len() <= MAX_VALUE && !self.rest.starts_with([')', '\\']))
            .then_some(value)
    }

    /// The next characters of this kind; `None` if there are none.
    fn run(&mut self, is_kind: impl Fn(char) -> bool) -> Option<&'a str> {
        let end = self.rest.find(|c| !is_kind(c)).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at(end);
        self.rest = rest;
        (1..=MAX_VALUE).contains(&run.len()).then_some(run)
    }

    fn eat(&mut self, c: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(c)?;
        Some(())
    }

    /// Skips white space and comments, which may be nested; `None` if a comment does not end.
    fn blank(&mut self) -> Option<()> {
        let mut depth = 0usize;
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '(' => {
                    depth += 1;
                    self.comments += 1;
                }
                ')' if depth > 0 => depth -= 1,
                '\\' if depth > 0 => drop(chars.next()?),
                c if depth > 0 || c.is_ascii_whitespace() => (),
                _ => {
                    self.rest = &self.rest[at..];
                    return (self.comments <= MAX_COMMENTS).then_some(());
                }
            }
        }
        self.rest = "";
        (depth == 0 && self.comments <= MAX_COMMENTS).then_some(())
    }
}

/// The end of the quoted string at the beginning of `text`.
fn quoted_end(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some(at + 1),
            '\\' => drop(chars.next()?),
            _ => (),
        }
    }
    None
}

/// The domain of a DKIM-Signature field (its `d=`, in lower case), if the field has all tags that a verifier needs: without them, some
/// verifiers report no result.
pub(super) fn signing_domain(value: &str) -> Option<String> {
    let mut tags: Vec<(&str, String)> = Vec::new();
    for tag in value.trim_ascii().trim_end_matches(';').split(';') {
        let (name, value) = tag.split_once('=')?;
        let value: String = value.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        let name = name.trim_ascii();
        if tags.iter().any(|(other, _)| *other == name) {
            return None;
        }
        tags.push((name, value));
    }
    let tag = |wanted: &str| {
        tags.iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| value)
            .filter(|value| !value.is_empty())
    };
    let is_whole = ["a", "b", "bh", "h", "s"].iter().all(|&name| tag(name).is_some());
    tag("d").filter(|_| is_whole && tag("v").is_some_and(|v| v == "1")).map(|d| d.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All results in display form.
    fn read(value: &str) -> Option<String> {
        let all = AuthenticationResults::parse(value)?;
        let results: Vec<_> = all.results.iter().map(ToString::to_string).collect();
        Some(format!("{}: {}", all.server, results.join(", ")))
    }

    #[test]
    fn usual_fields_are_read() {
        for (value, expected) in [
            (
                "mx.test;\n\tdkim=pass (2048-bit key; unprotected) header.d=shop.example header.i=@shop.example \
                 header.a=rsa-sha256 header.s=sel header.b=\"abc/D+f\";\n\tdkim-atps=neutral",
                "mx.test: dkim=pass header.d=shop.example, dkim-atps=neutral",
            ),
            (
                "MX.test; dmarc=pass (p=none dis=none) header.from=Shop.example",
                "mx.test: dmarc=pass header.from=Shop.example",
            ),
            (
                "rspamd; dkim=pass header.d=a.example header.s=s header.b=x/+y; spf=pass (rspamd: domain of b@a.example designates \
                 192.0.2.7 as permitted sender) smtp.mailfrom=b@a.example; dmarc=pass (policy=none) header.from=a.example",
                "rspamd: dkim=pass header.d=a.example, spf=pass smtp.mailfrom=b@a.example, dmarc=pass header.from=a.example",
            ),
            (
                "mx.test 1; spf=fail reason=\"not; yours\" smtp . mailfrom = a.example ; auth=pass (cram (md5)) smtp.auth=me",
                "mx.test: spf=fail reason=\"not; yours\" smtp.mailfrom=a.example, auth=pass",
            ),
            ("mx.test; none", "mx.test: "),
            ("mx.test (by\\) hand); none", "mx.test: "),
        ] {
            assert_eq!(read(value).as_deref(), Some(expected), "{value}");
        }
    }

    /// Fields that some program leaves in place, since it cannot read them; the first eight passed OpenDKIM 2.11.
    #[test]
    fn unusual_fields_are_ignored() {
        let many = "mx.test".to_owned() + &"; dkim=pass header.d=a.example".repeat(16);
        let most = "mx.test".to_owned() + &"; dkim=pass header.d=a.example".repeat(15);
        assert!(read(&most).is_some());
        let pieces = "mx.test".to_owned()
            + &("; dkim=pass header.d=a.example".to_owned() + &" header.x=y".repeat(11)).repeat(8);
        let long = format!("mx.test; dkim=pass header.d=a.example header.s={}", "s".repeat(256));
        for value in [
            "mx.test; dkim=pass header.d=a.example; @@ bad",
            "mx.test; dkim=pass header.d=a.example;; x",
            &many,
            &pieces,
            "mx.test; dkim/1=pass header.d=a.example",
            "mx.test; dkim=pass action=none header.d=a.example",
            "mx.test; dkim=pass header.d=a.example other.x=y",
            &long,
            &format!("mx.test; dkim=pass header.d=a.example {}", "(x)".repeat(65)),
            "(c) mx.test; dkim=pass header.d=a.example",
            "\"mx.test\"; dkim=pass header.d=a.example",
            "mx.test; dkim=pass (open header.d=a.example",
            "mx.test; dkim=pass) header.d=a.example",
            "mx.test; dkim=pass header.d=\"a.example",
            "mx.test; dkim=pass header.d=",
            "mx.test; dkim=pass header.d=a.example; none",
            "mx.test; none; dkim=pass header.d=a.example",
            "mx.test; dkim=pass\0 header.d=a.example",
            "mx.test dkim=pass header.d=a.example",
            "mx.test; dkim=pass \\header.d=a.example",
            "",
        ] {
            assert_eq!(read(value), None, "{value}");
        }
    }

    /// A sender may have a quoted name with any content, and some verifiers copy it.
    #[test]
    fn quoted_text_is_no_property() {
        let parse = |value: &str| AuthenticationResults::parse(value).unwrap().results.remove(0);
        let quoted =
            parse("mx.test; spf=pass smtp.mailfrom=\"x smtp.mailfrom=a.example; dkim=pass\"@evil.example");
        assert_eq!(
            quoted.property("smtp.mailfrom"),
            Some("\"x smtp.mailfrom=a.example; dkim=pass\"@evil.example")
        );
        let twice = parse("mx.test; dkim=pass header.d=evil.example header.s=x header.d=a.example");
        assert_eq!(twice.property("header.d"), None);
    }

    #[test]
    fn a_complete_signature_has_a_domain() {
        let whole = "v=1; a=rsa-sha256; c=relaxed/simple; d=Shop.\r\n\texample; s=sel;\r\n\th=From:To; bh=AA==;\r\n\tb=AA\r\n\t==";
        assert_eq!(signing_domain(whole).as_deref(), Some("shop.example"));
        for odd in [
            "d=a.example",
            "garbage",
            &whole.replace("v=1", "v=2"),
            &whole.replace(" s=sel;", ""),
            &format!("{whole}; d=evil.example"),
        ] {
            assert_eq!(signing_domain(odd), None, "{odd}");
        }
    }
}
