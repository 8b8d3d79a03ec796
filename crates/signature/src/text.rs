// SPDX-License-Identifier: GPL-3.0-or-later
//! Kinds of characters.

/// White space, controls, and invisible characters (Unicode, Default_Ignorable_Code_Point): soft hyphen, zero-width ones, fillers,
/// selectors, marks of direction, byte order mark. Also others without ink: the empty pattern of Braille, annotation marks, a note without a head.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
            | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D159}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Characters of scripts that are written without spaces: Thai to Khmer, Kana, Han.
pub(super) const fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0E00}'..='\u{0EFF}' | '\u{1780}'..='\u{17B3}' | '\u{17B6}'..='\u{17FF}' | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// Number of bytes in a text for which `is` holds. Without a branch in it, sixteen bytes are compared at a time.
pub(crate) fn count(text: &str, is: impl Fn(u8) -> bool) -> usize {
    // A sum that fits into a byte.
    let short = |bytes: &[u8]| bytes.iter().map(|&b| u8::from(is(b))).sum::<u8>();
    text.as_bytes().chunks(usize::from(u8::MAX)).map(|bytes| usize::from(short(bytes))).sum()
}
