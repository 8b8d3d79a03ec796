// SPDX-License-Identifier: GPL-3.0-or-later
//! A line of a text, and header fields in it.

/// A line without blanks around it, and its number from 1.
pub(super) type Line<'a> = (usize, &'a str);

/// Bytes of the name of a header field that a text shows, in most languages.
pub(super) const FIELD: usize = 20;

/// `Subject: text`, in any language.
pub(super) fn is_field(line: &str) -> bool {
    let name =
        line.trim_start_matches('*').split_once([':', '：']).map(|(name, _)| name.trim_end_matches('*'));
    name.is_some_and(|name| {
        !name.is_empty()
            && name.len() <= FIELD
            && name.chars().all(|c| c.is_alphabetic() || matches!(c, '-' | ' ' | '\u{A0}'))
    })
}
