// SPDX-License-Identifier: GPL-3.0-or-later
//! A line of a text, and header fields in it.

/// A line without blanks around it, and its number from 1.
pub(super) type Line<'a> = (usize, &'a str);

/// Bytes of the name of a header field that a text shows, in most languages.
const FIELD: usize = 20;

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

/// The `From` field of a header, as mail programs name it in the languages of much mail.
pub(super) fn is_from(line: &str) -> bool {
    const NAMES: &[&str] = &[
        "from",
        "von",
        "de",
        "da",
        "van",
        "från",
        "fra",
        "frá",
        "lähettäjä",
        "saatja",
        "kellelt",
        "od",
        "nadawca",
        "odosielateľ",
        "pošiljatelj",
        "šalje",
        "feladó",
        "de la",
        "nga",
        "nuo",
        "no",
        "nork",
        "от",
        "от кого",
        "від",
        "від кого",
        "од",
        "από",
        "kimden",
        "gönderen",
        "dari",
        "daripada",
        "từ",
        "发件人",
        "寄件者",
        "寄件人",
        "差出人",
        "送信者",
        "보낸 사람",
        "보낸사람",
        "מאת",
        "من",
        "از",
        "จาก",
        "प्रेषक",
    ];
    let line = line.trim_start_matches('*');
    // The first byte excludes many lines.
    let may_be = match line.bytes().next() {
        Some(b @ ..0x80) => b"dfgklnopstv".contains(&b.to_ascii_lowercase()),
        first => first.is_some(),
    };
    if !may_be {
        return false;
    }
    // Marks and blanks may follow a name.
    let start = &line[..line.floor_char_boundary(3 * FIELD)];
    // 0xEF begins the wide colon.
    let mut colons = memchr::memchr2_iter(b':', 0xEF, start.as_bytes());
    let Some(end) = colons.find(|&at| start[at..].starts_with([':', '：'])) else { return false };
    let name = start[..end].trim_end_matches(['*', ' ', '\u{A0}']);
    name.len() <= FIELD && NAMES.contains(&&*name.to_lowercase())
}
