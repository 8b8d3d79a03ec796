// SPDX-License-Identifier: GPL-3.0-or-later
//! Received fields, in which a mail server describes its client. Every mail server has another form.

use std::net::IpAddr;

/// The field of one mail server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// The mail server that wrote it, in lower case; empty if not given.
    pub by: String,
    /// The address of its client.
    pub client: Option<IpAddr>,
    /// The name that the client gave (HELO).
    pub helo: Option<String>,
}

impl Received {
    /// Reads the value of a Received field. The client's own name is not taken for its address. The name is behind `from`, or, with Exim
    /// and qmail, marked in a comment. The client is unknown if several words `by`, or a comment without an end, show that a name has
    /// blanks, and so may contain a forged beginning of the field.
    #[must_use]
    pub fn of(value: &str) -> Self {
        let mut received = Self::default();
        let (mut depth, mut servers, mut literal) = (0usize, 0, None);
        let (mut before, mut named, mut marked) = ("", None, None);
        for word in words(value) {
            let last = std::mem::replace(&mut before, word);
            if servers > 0 {
                // Its own address may follow.
            } else if depth == 0 && named.is_none() && last.eq_ignore_ascii_case("from") {
                named = Some(word);
            } else if depth > 0 && marked.is_none() {
                marked = marked_helo(last, word);
            }
            match word {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ if depth == 0 && word.eq_ignore_ascii_case("by") => servers += 1,
                _ if depth == 0 && servers == 1 && received.by.is_empty() => {
                    received.by = word.trim_end_matches(';').to_lowercase();
                }
                _ if servers > 0 => (),
                _ if depth > 0 => received.client = address(word).or(received.client),
                // Exim writes the address itself outside comments, where others write the client's name.
                _ if word.starts_with('[') => literal = address(word).or(literal),
                _ => (),
            }
        }
        let is_forged = servers > 1 || depth > 0;
        received.client = received.client.or(literal).filter(|_| !is_forged).map(|ip| ip.to_canonical());
        let is_helo = |helo: &&str| received.client.is_some() && !matches!(*helo, "(" | ")");
        received.helo = marked.or(named).filter(is_helo).map(str::to_owned);
        received
    }
}

/// Pieces between white space; parentheses are separate pieces.
fn words(value: &str) -> impl Iterator<Item = &str> {
    let pieces = value.split_inclusive(['(', ')']).flat_map(|piece| {
        let is_mark = piece.ends_with(['(', ')']);
        let (text, mark) = piece.split_at(piece.len() - usize::from(is_mark));
        text.split_whitespace().chain([mark])
    });
    pieces.filter(|word| !word.is_empty())
}

/// The client's name in a comment, as `helo=NAME` (Exim) or `HELO NAME` (qmail).
fn marked_helo<'a>(last: &str, word: &'a str) -> Option<&'a str> {
    let is_name = |name: &str| !matches!(name, "" | "(" | ")");
    let at = word.find('=').filter(|&at| word[..at].eq_ignore_ascii_case("helo"));
    let name = if last.eq_ignore_ascii_case("helo") { Some(word) } else { at.map(|at| &word[at + 1..]) };
    name.filter(|name| is_name(name))
}

/// An address, maybe in brackets. `helo=` marks a name.
fn address(word: &str) -> Option<IpAddr> {
    let word = word.trim_end_matches([';', ',']);
    let word = word.strip_prefix('[').map_or(word, |rest| rest.split(']').next().unwrap_or(rest));
    let is_v6 = word.get(..5).is_some_and(|tag| tag.eq_ignore_ascii_case("ipv6:"));
    if is_v6 { &word[5..] } else { word }.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_many_mail_servers_are_read() {
        let lines = [
            ("me", "from me (client.example [192.0.2.7])\n\tby MX.test (Postfix) with ESMTP id 4ID; Sat"),
            ("[198.51.100.1]", "from [198.51.100.1] (unknown [192.0.2.7]) by mx.test (Postfix)"),
            (
                "[198.51.100.1]",
                "from client.example ([192.0.2.7] helo=[198.51.100.1]) by mx.test with esmtp (Exim 4)",
            ),
            ("me", "from [192.0.2.7] (helo=me) by mx.test with smtp (Exim 4)"),
            ("client.example", "from client.example ([192.0.2.7]) by mx.test with esmtp (Exim 4)"),
            ("198.51.100.1", "from unknown (HELO 198.51.100.1) (192.0.2.7) by mx.test with SMTP; 20 Nov"),
            ("me", "from me (client.example. [192.0.2.7]) by mx.test with ESMTPS id x"),
            ("me", "from me (192.0.2.7) by mx.test (198.51.100.1) with Microsoft SMTP Server"),
            ("me", "from me (client.example [IPv6:::ffff:192.0.2.7]) by mx.test (8.17/8.17)"),
        ];
        for (helo, line) in lines {
            let found = Received::of(line);
            assert_eq!(found.client, "192.0.2.7".parse().ok(), "{line}");
            assert_eq!(found.by, "mx.test", "{line}");
            assert_eq!(found.helo.as_deref(), Some(helo), "{line}");
        }
        let v6 = Received::of("from a (a.example [IPv6:2001:db8::7]) by mx.test");
        assert_eq!(v6.client, "2001:db8::7".parse().ok());
    }

    #[test]
    fn fields_without_a_client_have_none() {
        for line in
            ["", "by mx.test (Postfix, from userid 0) id 4ID", "from (((", "from [", ")))) by", "from a (b"]
        {
            let found = Received::of(line);
            assert_eq!((found.client, found.helo), (None, None), "{line}");
        }
        // Names with blanks, from servers that write them as they are.
        for name in [
            "[203.0.113.9] by x",
            "a (b [203.0.113.9]) by x with y",
            "[203.0.113.9] by x (",
            "a (b [203.0.113.9]) by x (",
        ] {
            let line = format!(
                "from {name} (client.example [192.0.2.7]) by mx.test (Postfix) with ESMTP id 4ID; Sat"
            );
            let found = Received::of(&line);
            assert_eq!((found.client, found.helo), (None, None), "{line}");
        }
        assert_eq!(Received::of("by mx.test (Postfix, from userid 0)").by, "mx.test");
        // The server's own address is behind "by".
        assert_eq!(Received::of("from me by mx.test ([192.0.2.1])").client, None);
    }
}
