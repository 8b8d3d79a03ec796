// SPDX-License-Identifier: GPL-3.0-or-later
//! Armour in a text: encrypted or signed data, keys and certificates, which are no words of a person.

use super::line::{Line, is_field};
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// Bytes of an armour header; a longer one is text.
const HEADER: usize = 400;

/// The marks around an armour's name.
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// Bytes of a row of armour, as longer words are not read anyway; and of the longest row.
const ROW: usize = 40;
const LONGEST: usize = 1 << 12;

/// Bytes of a line that may contain armour.
const SHORTEST: usize = 128;

/// The number of lines after `line` in the armour that it begins, if any: encrypted or signed data, a key or a certificate (RFC
/// 4880, 6.2; RFC 7468). Its header is a program's, and the rest is not for people. Of a signed text, only the header. In a page, empty
/// lines may stand between all lines.
pub(super) fn armour<'a>(line: &str, rest: impl Iterator<Item = Line<'a>>) -> Option<usize> {
    // Within a signed text, `- ` stands before hyphens.
    let name = line.trim_start_matches("- ").strip_prefix(BEGIN)?.strip_suffix(DASHES)?;
    let is_signed = name == "PGP SIGNED MESSAGE";
    let (mut lines, mut fields, mut in_header) = (0, 0, true);
    for (_, line) in rest {
        let line = line.trim();
        lines += 1;
        if line.is_empty() {
            if is_signed && fields > 0 {
                return Some(lines);
            }
        } else if in_header && is_field(line) {
            fields += line.len();
        } else if is_signed {
            return Some(lines - 1);
        } else if let Some(end) = line.trim_start_matches("- ").strip_prefix(END) {
            return end.strip_suffix(DASHES).filter(|end| *end == name).map(|_| lines);
        } else if !is_code(line) {
            return None;
        } else {
            in_header = false;
        }
        if fields > HEADER {
            return None;
        }
    }
    None
}

/// The text before and behind the first armour within a line: a page may show all of its lines as one.
pub(super) fn armour_within(line: &str) -> Option<(&str, &str)> {
    static BEGINS: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(BEGIN));
    if line.len() < SHORTEST {
        return None;
    }
    BEGINS.find_iter(line.as_bytes()).find_map(|at| {
        let (before, block) = line.split_at(at);
        Some((before.trim_end(), behind_armour(block)?.trim_start()))
    })
}

/// The text behind the armour with which a text begins: a name, a header, long rows of code and two short ones at most, the name again.
fn behind_armour(block: &str) -> Option<&str> {
    let (name, rest) = block.strip_prefix(BEGIN)?.split_once(DASHES)?;
    let (mut header, mut short, mut has_code, mut end) = (name.len(), 0, false, rest);
    loop {
        end = end.trim_start();
        if let Some(end) = end.strip_prefix(END) {
            return end.strip_prefix(name)?.strip_prefix(DASHES).filter(|_| has_code);
        }
        let length = end[..end.floor_char_boundary(LONGEST)].find(char::is_whitespace)?;
        let row = &end[..length];
        if length > ROW && is_code(row) {
            has_code = true;
        } else if has_code {
            short += 1;
        } else {
            header += length;
        }
        // Code belongs to the last beginning before it, so no code is looked at twice.
        let begins = !has_code && row.contains(BEGIN.trim_end());
        if header > HEADER || short > 2 || begins || has_code && !is_code(row) {
            return None;
        }
        end = &end[length..];
    }
}

fn is_code(row: &str) -> bool {
    row.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::super::lines::Lines;

    const LONG: &str = "This line has more words than those of a name.";

    fn own(text: &str) -> String {
        Lines::of(text).own.iter().map(|(_, line)| *line).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn data_is_not_own() {
        let key = "hQEMA1\r\nx+/=\r\n";
        for (header, name) in [("Version: x\r\nComment: no\r\n\r\n", "PGP MESSAGE"), ("", "CERTIFICATE")] {
            let block = format!("-----BEGIN {name}-----\r\n{header}{key}-----END {name}-----\r\n");
            assert_eq!(own(&block), "");
            assert_eq!(own(&format!("{LONG}\r\n{block}{LONG}\r\n{block}")), format!("{LONG}|{LONG}"));
            // A text that only stands between such lines.
            let text = block.replace("x+", "Buy this, x+");
            assert!(own(&text).contains("Buy this"), "{text}");
            assert!(own(&block.replace("END", "The END")).contains("hQEMA1"));
        }
        let signed = format!(
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n{LONG}\n-----BEGIN PGP SIGNATURE-----\n\n{key}-----END PGP SIGNATURE-----\n"
        );
        assert_eq!(own(&signed), LONG);
    }

    /// A page shows lines with empty ones between them, or all as one.
    #[test]
    fn armour_of_a_page_is_not_own() {
        let row = "hQEMA1x+/".repeat(7);
        let block = |name: &str| {
            format!(
                "-----BEGIN {name}-----\nVersion: x\nComment: seen at http://a.example\n\n{row}\n{row}\nab=\n=xyz1\n-----END {name}-----\n"
            )
        };
        let both = block("PGP MESSAGE") + &block("CERTIFICATE");
        assert_eq!(own(&format!("{LONG}\n{both}").replace('\n', "\n\n")), LONG);
        let one = format!("{LONG} {both} {LONG}").replace('\n', " ");
        assert_eq!(own(&one), format!("{LONG}|{LONG}"));
        assert_eq!(own(&both.replace('\n', " ")), "");
        let escaped = both.replace("-----", "- -----").replace("- -----\n", "-----\n");
        assert_eq!(own(&format!("{LONG}\n{escaped}")), LONG);
        // A beginning without an end hides no other one.
        assert_eq!(
            own(&format!("{LONG} -----BEGIN X----- {one}")),
            format!("{LONG} -----BEGIN X----- {LONG}|{LONG}")
        );
        for text in [
            one.replace("ab=", "buy this now and here"),
            one.replace(&row, "buy"),
            one.replace("-----END", "END"),
            one.replace("Version", &"Version ".repeat(60)),
        ] {
            assert!(own(&text).contains("Version"), "{text}");
        }
    }
}
