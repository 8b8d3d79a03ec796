// SPDX-License-Identifier: GPL-3.0-or-later
//! Character references of HTML: `&amp;`, `&#8217;`.

use html5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};

/// The meaning of an ampersand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    /// No reference, but the ampersand itself.
    None,
    /// One or two characters (a zero for no second one), written in this many bytes.
    To {
        /// The characters.
        chars: [char; 2],
        /// The bytes.
        length: usize,
    },
}

/// Reads a reference at its ampersand; `None` if the text ends too early to decide.
pub(super) fn reference(rest: &[u8], in_attribute: bool) -> Option<Reference> {
    match rest.get(1)? {
        b'#' => number(rest),
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => name(rest, in_attribute),
        _ => Some(Reference::None),
    }
}

fn number(rest: &[u8]) -> Option<Reference> {
    let (base, start) = if matches!(rest.get(2)?, b'x' | b'X') { (16, 3) } else { (10, 2) };
    let (mut number, mut at) = (0u32, start);
    while let Some(digit) = char::from(*rest.get(at)?).to_digit(base) {
        number = number.saturating_mul(base).saturating_add(digit);
        at += 1;
    }
    if at == start {
        return Some(Reference::None);
    }
    let length = at + usize::from(rest[at] == b';');
    let c = match number {
        0 => char::REPLACEMENT_CHARACTER,
        0x80..=0x9F => {
            let replaced = C1_REPLACEMENTS[number as usize - 0x80].or_else(|| char::from_u32(number));
            replaced.unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        _ => char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    Some(Reference::To { chars: [c, '\0'], length })
}

/// More bytes than the longest name has.
const LONGEST: usize = 40;

fn name(rest: &[u8], in_attribute: bool) -> Option<Reference> {
    let known = |end: usize| str::from_utf8(&rest[1..end]).ok().and_then(|name| NAMED_ENTITIES.get(name));
    let is_letter = |at: usize| rest.get(at).map(u8::is_ascii_alphanumeric);
    // Nearly all names end with a semicolon, and no name continues behind it.
    let mut end = 1;
    while end < LONGEST && is_letter(end)? {
        end += 1;
    }
    if rest.get(end)? == &b';'
        && let Some(&found) = known(end + 1)
    {
        return Some(to(found, end + 1));
    }
    // The longest prefix that is a name. The table also has prefixes of names.
    let (mut longest, mut at) = (None, 2);
    while at <= rest.len()
        && let Some(&found) = known(at)
    {
        if found.0 != 0 {
            longest = Some((found, at));
        }
        at += 1;
    }
    let Some((found, length)) = longest else { return Some(Reference::None) };
    let next = *rest.get(length)?;
    let goes_on = next == b'=' || next.is_ascii_alphanumeric();
    if in_attribute && rest[length - 1] != b';' && goes_on {
        return Some(Reference::None);
    }
    Some(to(found, length))
}

fn to((first, second): (u32, u32), length: usize) -> Reference {
    let c = |code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    Reference::To { chars: [c(first), c(second)], length }
}
