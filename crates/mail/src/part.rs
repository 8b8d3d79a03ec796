// SPDX-License-Identifier: GPL-3.0-or-later
//! The parts of a message, as a visitor gets them.

/// A text or HTML part.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    /// Its characters, decoded strictly: bytes that are invalid in its transfer encoding or charset are kept, so that different texts stay
    /// different. `body/1` is made of these.
    pub exact: &'a str,
    /// Its characters as mail programs show them: invalid bytes are skipped or replaced. In nearly all mail the same as `exact`, in the
    /// same memory.
    pub shown: &'a str,
    /// The second half of its type, in lower case: `plain`, `html`, `calendar`.
    pub subtype: &'a str,
    /// Whether it is not shown inline: a file by its Content-Disposition, or HTML in a `multipart/related` that is not its root.
    pub is_attachment: bool,
}

impl Text<'_> {
    /// Whether both forms are the same text.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        std::ptr::eq(self.exact, self.shown) || self.exact == self.shown
    }

    /// Whether it is read as HTML, attached or not, by its type or its beginning. Mail programs and those that open attached files look at
    /// the beginning.
    #[must_use]
    pub fn is_html(&self) -> bool {
        self.subtype == "html" || begins_html(self.shown.as_bytes())
    }
}

/// Whether a text begins as only HTML does.
pub(super) fn begins_html(text: &[u8]) -> bool {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text).trim_ascii_start();
    ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| {
        let (start, rest) = text.split_at(tag.len().min(text.len()));
        let ends = rest.first().is_some_and(|&b| b == b'>' || b.is_ascii_whitespace());
        start.eq_ignore_ascii_case(tag.as_bytes()) && ends
    })
}

/// A part that is neither text nor HTML.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// Its bytes, decoded if they are valid in the transfer encoding.
    pub exact: &'a [u8],
    /// Its bytes as mail programs read them: without bytes that are invalid in the transfer encoding.
    pub shown: &'a [u8],
    /// Its type in lower case, such as `image` and `png`.
    pub media: (&'a str, &'a str),
    /// Its Content-ID without angle brackets, by which HTML refers to it (`cid:`).
    pub id: Option<&'a str>,
    /// Whether it is for storing, not for showing (Content-Disposition).
    pub is_attachment: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_known_by_its_beginning() {
        let is_html = |shown, subtype| Text { exact: "", shown, subtype, is_attachment: false }.is_html();
        for text in ["\u{feff}\r\n <!DOCTYPE HTML>", "<html>", "<HTML lang=en>", "<head\n>", "<body>"] {
            assert!(is_html(text, "plain"), "{text}");
        }
        for text in ["", "<", "<html", "<htmlx>", "<p>", "<header>", "a <html>"] {
            assert!(!is_html(text, "plain"), "{text}");
            assert!(is_html(text, "html"), "{text}");
        }
    }
}
