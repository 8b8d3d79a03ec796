// SPDX-License-Identifier: GPL-3.0-or-later
//! The parts of a message, as a visitor gets them.

use super::style::Work;

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
    /// The work that is left for the pages of the message.
    pub work: &'a Work,
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
        matches!(self.subtype, "html" | "svg+xml") || begins_html(self.shown.as_bytes())
    }

    /// Whether nobody sees anything of it.
    pub(super) fn is_blank(&self) -> bool {
        if self.is_html() { is_blank_page(self.shown) } else { self.shown.chars().all(is_unseen) }
    }
}

/// Whether a character is blank or invisible.
fn is_unseen(c: char) -> bool {
    let has_no_width =
        matches!(c, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    c.is_whitespace() || c.is_control() || has_no_width
}

/// Elements that show something without text or address.
const SHOWN: [&str; 4] = ["input", "button", "object", "svg"];

/// Attributes with the address of a link or picture.
const ADDRESSES: [&str; 4] = ["href", "src", "action", "background"];

/// Elements whose text is not shown.
const UNSHOWN: [&str; 3] = ["title", "style", "script"];

/// Whether a page has neither text nor pictures nor links, whatever its styles hide.
fn is_blank_page(page: &str) -> bool {
    let mut rest = page;
    while let Some((text, tag)) = rest.split_once('<') {
        if !is_blank_between_tags(text) {
            return false;
        }
        let name = tag.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let is = |names: &[&str]| names.iter().any(|other| name.eq_ignore_ascii_case(other));
        if is(&SHOWN) {
            return false;
        }
        let end = if tag.starts_with("!--") { tag.find("-->") } else { tag.find('>') };
        let Some(end) = end else { return true };
        rest = &tag[end..];
        if !tag.starts_with('!') && has_address(&tag[..end]) {
            return false;
        }
        if is(&UNSHOWN) {
            let end = rest.match_indices("</").find(|(at, _)| {
                rest.get(at + 2..at + 2 + name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name))
            });
            // Some programs show the text of one that never ends.
            let Some((end, _)) = end else { return rest[1..].chars().all(is_unseen) };
            rest = &rest[end..];
        }
        rest = rest.trim_start_matches('-').strip_prefix('>').unwrap_or(rest);
    }
    is_blank_between_tags(rest)
}

fn has_address(tag: &str) -> bool {
    let mut names = tag.split(|c: char| !c.is_ascii_alphanumeric());
    names.any(|name| ADDRESSES.iter().any(|address| name.eq_ignore_ascii_case(address)))
}

fn is_blank_between_tags(text: &str) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(is_unseen);
        let reference = ["&nbsp;", "&#160;"].into_iter().find_map(|blank| rest.strip_prefix(blank));
        match reference {
            Some(after) => rest = after,
            None => return rest.is_empty(),
        }
    }
}

/// Whether bytes are a text, in any charset of mail.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    const SOME: usize = 1024;
    let has_mark = bytes.starts_with(b"\xFE\xFF") || bytes.starts_with(b"\xFF\xFE");
    has_mark || memchr::memchr(0, &bytes[..bytes.len().min(SOME)]).is_none()
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
    fn blank_pages_show_nothing() {
        for page in [
            "",
            "<",
            "<p>\u{200b}&nbsp;\n&#160;</p>",
            "<!-- a > b --><style>p > a{}</STYLE ><title>x</title>",
            "<script>a<b</script><p",
            "<!-- no end",
            "</style><br/>",
        ] {
            assert!(is_blank_page(page), "{page}");
        }
        for page in [
            "a",
            "<p>a",
            "&#65;",
            "<IMG src=x>",
            "<input>",
            "<!-- -->a",
            "<style>a",
            "<svg>",
            "<style></style>a",
            "<p>a<",
        ] {
            assert!(!is_blank_page(page), "{page}");
        }
    }

    #[test]
    fn html_is_known_by_its_beginning() {
        let is_html = |shown, subtype| {
            Text { exact: "", shown, subtype, is_attachment: false, work: &Work::default() }.is_html()
        };
        for text in ["\u{feff}\r\n <!DOCTYPE HTML>", "<html>", "<HTML lang=en>", "<head\n>", "<body>"] {
            assert!(is_html(text, "plain"), "{text}");
        }
        for text in ["", "<", "<html", "<htmlx>", "<p>", "<header>", "a <html>"] {
            assert!(!is_html(text, "plain"), "{text}");
            assert!(is_html(text, "html"), "{text}");
        }
    }
}
