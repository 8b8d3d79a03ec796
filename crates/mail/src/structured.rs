// SPDX-License-Identifier: GPL-3.0-or-later
//! Values of structured header fields (RFC 2045, 5.1; RFC 2231): a word and parameters, with comments and blanks anywhere. Broken values
//! are read as mail programs do.

/// The most parameters that are read; mail has fewer.
const MAX_PARAMETERS: usize = 64;

/// A field such as `text/html (yes); charset="utf-8"`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Structured {
    /// The value before the parameters, in lower case.
    pub(super) value: String,
    /// Names in lower case, values as written.
    parameters: Vec<(String, String)>,
}

impl Structured {
    /// Reads a value. One pass.
    pub(super) fn of(value: &[u8]) -> Self {
        let text = String::from_utf8_lossy(value);
        let mut rest = Rest(&text);
        let mut value = rest.word(true);
        // `text / html` is one value.
        while rest.blanks().0.starts_with('/') || value.ends_with('/') {
            let slash = if let Some(after) = rest.0.strip_prefix('/') {
                rest.0 = after;
                "/"
            } else {
                ""
            };
            let next = rest.blanks().word(true);
            if slash.is_empty() && next.is_empty() {
                break;
            }
            value = value + slash + &next;
        }
        let mut parameters = Vec::new();
        while !rest.separators().0.is_empty() && parameters.len() < MAX_PARAMETERS {
            let name = rest.name();
            if let Some(after) = rest.blanks().0.strip_prefix('=') {
                rest.0 = after;
                let is_boundary = name.starts_with("boundary");
                parameters.push((name, rest.blanks().word(!is_boundary)));
            } else if name.is_empty() {
                // Skips a character that begins no name.
                let mut chars = rest.0.chars();
                chars.next();
                rest.0 = chars.as_str();
            }
        }
        Self { value: value.to_ascii_lowercase(), parameters }
    }

    /// Type and subtype. `html` alone is a text, as is an unknown type (RFC 2045, 5.2). `None` for an empty value.
    pub(super) fn media(&self) -> Option<(String, String)> {
        let media = |kind: &str, sub: &str| Some((kind.to_owned(), sub.to_owned()));
        match self.value.split_once('/') {
            Some((kind, sub)) => media(kind, sub.split('/').next().unwrap_or(sub)),
            None => match &*self.value {
                "" => None,
                "html" => media("text", "html"),
                "multipart" => media("multipart", "mixed"),
                _ => media("text", "plain"),
            },
        }
    }

    /// A parameter, joined if it is in pieces, and decoded if it is encoded.
    pub(super) fn parameter(&self, wanted: &str) -> Option<String> {
        let of_name = |(name, value): &'_ (String, String)| {
            let rest = name.strip_prefix(wanted)?;
            let (rest, is_encoded) = rest.strip_suffix('*').map_or((rest, false), |rest| (rest, true));
            let number = if rest.is_empty() { Some(0) } else { rest.strip_prefix('*')?.parse().ok() }?;
            Some((number, is_encoded, value.clone()))
        };
        let mut pieces: Vec<(u32, bool, String)> = self.parameters.iter().filter_map(of_name).collect();
        // The first of several with one number counts.
        pieces.sort_by_key(|piece| piece.0);
        pieces.dedup_by_key(|piece| piece.0);
        let mut all = Vec::new();
        for (at, (number, is_encoded, value)) in pieces.iter().enumerate() {
            // Charset and language precede the value.
            let value = match value.splitn(3, '\'').nth(2) {
                Some(value) if *is_encoded && *number == 0 => value,
                _ => value,
            };
            if u32::try_from(at) != Ok(*number) {
                break;
            }
            if *is_encoded {
                unescape(value.as_bytes(), &mut all);
            } else {
                all.extend_from_slice(value.as_bytes());
            }
        }
        (!pieces.is_empty()).then(|| String::from_utf8_lossy(&all).into_owned())
    }
}

/// Appends bytes, decoding `%` with two hexadecimal digits.
fn unescape(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some((&first, rest)) = text.split_first() {
        let digits = rest.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        match digits.filter(|_| first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                text = &rest[2..];
            }
            None => {
                out.push(first);
                text = rest;
            }
        }
    }
}

/// The unread rest.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    /// Skips blanks and comments.
    fn blanks(&mut self) -> &mut Self {
        loop {
            self.0 = self.0.trim_start();
            let Some(comment) = self.0.strip_prefix('(') else { return self };
            let (mut depth, mut is_quoted) = (1, false);
            let end = comment.bytes().position(|b| {
                match b {
                    _ if is_quoted => is_quoted = false,
                    b'\\' => is_quoted = true,
                    b'(' => depth += 1,
                    b')' => depth -= 1,
                    _ => (),
                }
                depth == 0
            });
            self.0 = end.map_or("", |end| &comment[end + 1..]);
        }
    }

    /// Skips separators between parameters.
    fn separators(&mut self) -> &mut Self {
        while self.blanks().0.starts_with([';', ',']) {
            self.0 = &self.0[1..];
        }
        self
    }

    /// A name, in lower case.
    fn name(&mut self) -> String {
        let end = self.0.find(|c: char| c.is_whitespace() || "=;,(\"".contains(c)).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(end);
        self.0 = rest;
        name.to_ascii_lowercase()
    }

    /// A word, quoted or not. Unquoted boundaries often contain characters that end other words.
    fn word(&mut self, is_strict: bool) -> String {
        self.blanks();
        if let Some(quoted) = self.0.strip_prefix('"') {
            let mut word = String::new();
            let mut chars = quoted.chars();
            while let Some(c) = chars.next().filter(|&c| c != '"') {
                match c {
                    '\\' => word.extend(chars.next()),
                    '\r' | '\n' => (),
                    c => word.push(c),
                }
            }
            self.0 = chars.as_str();
            return word.trim().to_owned();
        }
        let ends = if is_strict { ";,(\"/" } else { ";" };
        let slash = if is_strict && !self.0.starts_with('/') { ends } else { ends.trim_end_matches('/') };
        let end = self.0.find(|c: char| c.is_whitespace() || slash.contains(c)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media(value: &str) -> String {
        Structured::of(value.as_bytes())
            .media()
            .map_or_else(|| "-".to_owned(), |(kind, sub)| format!("{kind} {sub}"))
    }

    fn parameter(value: &str, name: &str) -> Option<String> {
        Structured::of(value.as_bytes()).parameter(name)
    }

    #[test]
    fn types_are_read_in_any_form() {
        for html in [
            "text/html",
            " Text/HTML; charset=x",
            "text/html charset=x",
            "text/html, charset=x",
            "text/html;charset=x;",
            "(a (b) \\) c) text (d) / (e) html (f); charset (g) = (h) x (i)",
            "\"text/html\"; charset=\"x\"",
            "html; charset=x",
            "text/html; =; ;; \"; charset=x",
            "text/html/; charset=x",
        ] {
            assert_eq!(media(html), "text html", "{html}");
            if html.contains("charset") && !html.contains("\";") {
                assert_eq!(parameter(html, "charset").as_deref(), Some("x"), "{html}");
            }
        }
        for (value, expected) in [
            ("", "-"),
            ("()", "-"),
            ("plain", "text plain"),
            ("multipart; boundary=x", "multipart mixed"),
            ("x/", "x "),
        ] {
            assert_eq!(media(value), expected, "{value}");
        }
    }

    #[test]
    fn parameters_are_joined() {
        assert_eq!(parameter("a/b; boundary*1=\"d e\"; boundary*0=c", "boundary").as_deref(), Some("cd e"));
        assert_eq!(parameter("a/b; name*=utf-8'en'a%20b%", "name").as_deref(), Some("a b%"));
        assert_eq!(parameter("a/b; name*0*=x''a%41; name*1=%41", "name").as_deref(), Some("aA%41"));
        assert_eq!(parameter("a/b; boundary==_(1)/,x; c=d", "boundary").as_deref(), Some("=_(1)/,x"));
        assert_eq!(parameter("a/b; boundary=\"a\\\"b", "boundary").as_deref(), Some("a\"b"));
        assert_eq!(parameter("a/b; charset=utf-8(x)", "charset").as_deref(), Some("utf-8"));
        assert_eq!(parameter("a/b; names=x", "name"), None);
    }

    #[test]
    fn any_value_is_read() {
        for value in ["/", "//", "a/ /b", "a/", "(", "\"", "=", "a;=;=", "a/b;\u{fc}\u{a0}=\u{fc}", "a / "] {
            Structured::of(value.as_bytes());
            Structured::of(value.repeat(1000).as_bytes());
        }
    }
}
