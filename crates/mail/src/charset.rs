// SPDX-License-Identifier: GPL-3.0-or-later
//! Decodes charsets, strictly or as mail programs do.

use super::legacy;
use super::meta;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{CoderResult, Encoding, ISO_2022_JP, REPLACEMENT, SHIFT_JIS, UTF_8, X_USER_DEFINED};
use mail_parser::decoders::charsets::map::charset_decoder;
use std::borrow::Cow;

/// Bytes from which a charset is guessed; some hundred are enough.
const GUESSED_FROM: usize = 16 << 10;

const ESCAPE: u8 = 0x1B;

/// The text in the declared charset (UTF-8 by default), and whether mail programs certainly show the same.
///
/// Invalid bytes become one character each (as in ISO 8859-1), not a replacement character: otherwise all texts in an undeclared charset
/// would look alike.
pub(super) fn exact<'a>(bytes: &'a [u8], declared: Option<&str>) -> (Cow<'a, str>, bool) {
    let charset = declared.unwrap_or("utf-8");
    let is_utf8 = charset.eq_ignore_ascii_case("utf-8");
    if let Ok(text) = str::from_utf8(bytes)
        && (is_utf8 || text.is_ascii() && is_ascii_superset(charset))
    {
        // Without a reliable charset, ASCII with escapes may be Japanese.
        let is_sure =
            declared.is_some_and(is_known) || !text.is_ascii() || memchr::memchr(ESCAPE, bytes).is_none();
        return (Cow::Borrowed(text), is_sure);
    }
    let decoded = decoded(charset, bytes);
    decoded.filter(|text| !text.contains(char::REPLACEMENT_CHARACTER)).map_or_else(
        || (bytes.iter().map(|&b| char::from(b)).collect(), false),
        |text| (Cow::Owned(text), !is_ascii(charset)),
    )
}

/// The text as mail programs show it, with invalid bytes replaced. The charset is the first that mostly fits the bytes: that of a byte
/// order mark, the declared one, UTF-8, and in HTML that of a `<meta>`; otherwise it is guessed.
pub(super) fn shown<'a>(bytes: &'a [u8], declared: Option<&str>, is_html: bool) -> Cow<'a, str> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark..]).0;
    }
    let utf8 = str::from_utf8(bytes).ok();
    let has_escapes = memchr::memchr(ESCAPE, bytes).is_some();
    let declared = declared.map(str::trim).filter(|label| is_known(label));
    match declared.map(|label| (label, encoding_of(label))) {
        // Without escapes nothing is in ISO-2022-JP.
        Some((_, Some(encoding))) if encoding == ISO_2022_JP && !has_escapes => (),
        Some((_, Some(encoding))) => {
            let text = decode(encoding, bytes);
            match utf8 {
                _ if replaced(&text) == 0 => return text,
                // Marks of HTML between escapes are Japanese, as every byte there.
                Some(ascii) if encoding == ISO_2022_JP && ascii.is_ascii() => return text,
                Some(text) => return Cow::Borrowed(text),
                None if fits(&text) => return text,
                None => (),
            }
        }
        Some((label, None)) => {
            // Mail programs that do not know it show the bytes as they are.
            if let Some(text) = decoded(label, bytes).filter(|text| fits(text)) {
                return Cow::Owned(text);
            }
        }
        None => (),
    }
    if let Some(text) = utf8.filter(|_| !has_escapes) {
        return Cow::Borrowed(text);
    }
    let text = decode(UTF_8, bytes);
    if !text.is_ascii() && fits_well(&text) {
        return text;
    }
    let named = is_html.then(|| meta::charset(bytes)).flatten();
    let text = named.and_then(|label| encoding_of(&label)).map(|encoding| decode(encoding, bytes));
    text.filter(|text| fits(text)).unwrap_or_else(|| decode(guessed(bytes), bytes))
}

/// The text in a charset, with U+FFFD for invalid bytes; `None` if the charset is unknown.
fn decoded(label: &str, bytes: &[u8]) -> Option<String> {
    legacy::decode(label, bytes).or_else(|| charset_decoder(label.as_bytes()).map(|decode| decode(bytes)))
}

/// The encoding of a label; `None` for labels that do not define bytes above 127.
fn encoding_of(label: &str) -> Option<&'static Encoding> {
    if is_ascii(label) {
        return None;
    }
    let lower = label.to_ascii_lowercase();
    // Labels of Japanese and Chinese mail; the standard has labels for browsers.
    let label = match &*lower {
        "cp932" | "ms932" => "shift_jis",
        "cp936" | "ms936" => "gbk",
        "cp949" => "euc-kr",
        "cp950" => "big5",
        name if name.starts_with("iso-2022-jp") || name.starts_with("cp5022") => "iso-2022-jp",
        name => name,
    };
    let encoding = Encoding::for_label(label.as_bytes());
    encoding.filter(|&encoding| encoding != REPLACEMENT && encoding != X_USER_DEFINED)
}

/// Whether a label names a known charset beyond ASCII.
fn is_known(label: &str) -> bool {
    let is_decoded = encoding_of(label).is_some() || charset_decoder(label.as_bytes()).is_some();
    let is_replaced = Encoding::for_label(label.as_bytes()) == Some(REPLACEMENT);
    legacy::is_known(label) || !is_ascii(label) && is_decoded && !is_replaced
}

fn is_ascii(label: &str) -> bool {
    ["us-ascii", "ascii", "ansi_x3.4-1968"].iter().any(|name| label.trim().eq_ignore_ascii_case(name))
}

fn decode<'a>(encoding: &'static Encoding, bytes: &'a [u8]) -> Cow<'a, str> {
    if encoding == ISO_2022_JP {
        return Cow::Owned(japanese(bytes));
    }
    encoding.decode_without_bom_handling(bytes).0
}

/// Decodes ISO-2022-JP. Programs that mix charsets put Shift_JIS between its escapes; its bytes above 127 never occur in ISO-2022-JP.
fn japanese(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut decoder = ISO_2022_JP.new_decoder_without_bom_handling();
    // A separate buffer, since the decoder clears all room that it is given.
    let mut buffer = [0; 1024];
    let mut feed = |text: &mut String, mut bytes: &[u8], is_last: bool| {
        loop {
            let (result, read, written, _) = decoder.decode_to_utf8(bytes, &mut buffer, is_last);
            text.push_str(str::from_utf8(&buffer[..written]).unwrap_or_default());
            bytes = &bytes[read..];
            if result == CoderResult::InputEmpty {
                return;
            }
        }
    };
    let mut rest = bytes;
    while !rest.is_empty() {
        // Up to the next escape or line end; one at the start of the run belongs to it.
        let end = memchr::memchr2(ESCAPE, b'\n', &rest[1..]).map_or(rest.len(), |at| at + 1);
        let (run, after) = rest.split_at(end);
        rest = after;
        // The escapes that return to ASCII or nearly ASCII.
        let escape = if run.starts_with(b"\x1b(B") || run.starts_with(b"\x1b(J") { 3 } else { 0 };
        if run.is_ascii() || run[0] == ESCAPE && escape == 0 {
            feed(&mut text, run, false);
        } else {
            feed(&mut text, &run[..escape], false);
            text.push_str(&SHIFT_JIS.decode_without_bom_handling(&run[escape..]).0);
        }
    }
    feed(&mut text, b"", true);
    text
}

/// Guesses a charset by the letters that languages use.
fn guessed(bytes: &[u8]) -> &'static Encoding {
    let start = bytes.iter().position(|&b| b >= 0x80 || b == ESCAPE).unwrap_or(0);
    let some = &bytes[start..bytes.len().min(start + GUESSED_FROM)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(some, true);
    detector.guess(None, Utf8Detection::Deny)
}

/// Damaged bytes that any text may have.
const DAMAGED: usize = 2;

/// Whether so few characters were replaced that the charset must be the right one.
fn fits(text: &str) -> bool {
    fits_well(text) || replaced(text) <= DAMAGED
}

/// Whether at most one character was replaced for every four non-ASCII ones.
fn fits_well(text: &str) -> bool {
    let replaced = replaced(text);
    let other = text.chars().filter(|c| !c.is_ascii()).count() - replaced;
    4 * replaced <= other
}

fn replaced(text: &str) -> usize {
    text.matches(char::REPLACEMENT_CHARACTER).count()
}

/// Whether ASCII bytes mean themselves in `charset`: not in charsets that use escapes or two bytes for everything.
fn is_ascii_superset(charset: &str) -> bool {
    let name = charset.trim().to_ascii_lowercase().replace('_', "-");
    let prefixes = ["utf-16", "utf-32", "iso-2022", "iso2022", "csiso2022", "hz", "ucs", "unicode-1-1"];
    !legacy::is_utf7(&name) && !prefixes.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(bytes: &[u8], declared: Option<&str>) -> String {
        exact(bytes, declared).0.into_owned()
    }

    /// The text that a visitor gets.
    fn lenient(bytes: &[u8], declared: Option<&str>) -> String {
        let (exact, is_sure) = exact(bytes, declared);
        if is_sure { exact.into_owned() } else { shown(bytes, declared, true).into_owned() }
    }

    fn encoded(text: &str, label: &str) -> Vec<u8> {
        let encoding = Encoding::for_label(label.as_bytes()).unwrap();
        let (bytes, _, has_unmappable) = encoding.encode(text);
        assert!(!has_unmappable);
        bytes.into_owned()
    }

    const CHINESE: &str = "\u{89aa}\u{611b}\u{7684}\u{5ba2}\u{6236}\u{60a8}\u{597d}\u{ff0c}\u{4eca}\u{5929}\u{7684}\u{50f9}\u{683c}\u{6700}\u{4f4e}";
    const JAPANESE: &str = "\u{304a}\u{5ba2}\u{69d8}\u{306b}\u{7279}\u{5225}\u{306a}\u{304a}\u{77e5}\u{3089}\u{305b}\u{3067}\u{3059}";
    const RUSSIAN: &str = "\u{414}\u{43e}\u{431}\u{440}\u{44b}\u{439} \u{434}\u{435}\u{43d}\u{44c}, \u{44d}\u{442}\u{43e} \u{43f}\u{440}\u{435}\u{434}\u{43b}\u{43e}\u{436}\u{435}\u{43d}\u{438}\u{435} \u{434}\u{43b}\u{44f} \u{432}\u{430}\u{441}";

    /// Two texts in an undeclared charset must not become one row of replacement characters.
    #[test]
    fn undeclared_charsets_stay_apart() {
        assert_ne!(strict(b"\xc4\xe3\xba\xc3", None), strict(b"\xd0\xbb\xd0\xbb", None));
        let unknown = Some("x-nonsense");
        assert_ne!(strict(b"\xc4\xe3", unknown), strict(b"\xd0\xbb", unknown));
    }

    /// Valid text is the same in both ways, and in the same memory.
    #[test]
    fn valid_text_is_not_guessed() {
        for (label, text) in [
            ("utf-8", CHINESE),
            ("big5", CHINESE),
            ("gb18030", CHINESE),
            ("iso-2022-jp", JAPANESE),
            ("shift_jis", JAPANESE),
            ("windows-1251", RUSSIAN),
            ("koi8-r", RUSSIAN),
        ] {
            let bytes = encoded(text, label);
            let (found, is_sure) = exact(&bytes, Some(label));
            assert!(is_sure && found == text, "{label}: {found}");
            assert_eq!(shown(&bytes, Some(label), false), text, "{label}");
        }
        assert!(exact(b"plain", None).1 && exact("gr\u{fc}n".as_bytes(), None).1);
    }

    /// Readers see no tag there.
    #[test]
    fn ascii_between_japanese_escapes_is_no_ascii() {
        let bytes = b"one \x1b$B<p hidden>\x1b(B two";
        let text = shown(bytes, Some("iso-2022-jp"), true);
        assert!(!text.contains('<') && text.starts_with("one ") && text.ends_with(" two"), "{text}");
        let utf8 = format!("{RUSSIAN} \x1b$B");
        assert_eq!(shown(utf8.as_bytes(), Some("iso-2022-jp"), true), utf8);
    }

    #[test]
    fn bad_bytes_are_replaced() {
        for (label, text) in
            [("utf-8", RUSSIAN), ("big5", CHINESE), ("euc-jp", JAPANESE), ("gb2312", RUSSIAN)]
        {
            let mut bytes = encoded(text, label);
            bytes.push(b' ');
            bytes.push(0xFF);
            let expected = format!("{text} \u{fffd}");
            assert_eq!(lenient(&bytes, Some(label)), expected, "{label}");
            assert_ne!(strict(&bytes, Some(label)), expected, "{label}");
        }
        let mut bytes = format!("{RUSSIAN} ").into_bytes();
        bytes.push(0xFF);
        assert_eq!(lenient(&bytes, None), format!("{RUSSIAN} \u{fffd}"));
    }

    #[test]
    fn undeclared_text_is_guessed() {
        for label in [None, Some("x-unknown"), Some("us-ascii"), Some("utf-8")] {
            for (charset, text) in [
                ("windows-1251", RUSSIAN),
                ("koi8-r", RUSSIAN),
                ("shift_jis", JAPANESE),
                ("euc-jp", JAPANESE),
                ("big5", CHINESE),
            ] {
                assert_eq!(lenient(&encoded(text, charset), label), text, "{charset} as {label:?}");
            }
        }
        for label in [None, Some("x-unknown"), Some("us-ascii"), Some("big5")] {
            assert_eq!(lenient(RUSSIAN.as_bytes(), label), RUSSIAN, "{label:?}");
        }
        assert_eq!(lenient(&encoded(JAPANESE, "iso-2022-jp"), None), JAPANESE);
    }

    #[test]
    fn html_names_its_charset() {
        for meta in [
            "<meta charset=big5>",
            "<META http-equiv=content-type CONTENT='text/html;charset = \"Big5\"'>",
            "<!-- <meta charset=koi8-r> --><head lang=zh><meta name=x><meta charset=\" Big5 \"/><meta charset=utf-8>",
            "<meta http-equiv='Content-Type' content='text/html; x=charset; charset=big5; y'>",
        ] {
            // Three characters are too few to guess from.
            let text: String = CHINESE.chars().take(3).collect();
            let html = [meta.as_bytes(), &encoded(&text, "big5")].concat();
            for label in [None, Some("us-ascii"), Some("nonsense")] {
                assert_eq!(lenient(&html, label), format!("{meta}{text}"), "{label:?}");
            }
        }
        // The header takes precedence, but a charset that does not fit is ignored.
        let html = [b"<meta charset=koi8-r>", &*encoded(CHINESE, "big5")].concat();
        assert!(lenient(&html, Some("big5")).ends_with(CHINESE));
        let html = format!("<meta charset=big5>{RUSSIAN}");
        assert_eq!(lenient(html.as_bytes(), None), html);
        let late =
            [" ".repeat(PAST).as_bytes(), b"<meta charset=koi8-r>", &encoded(CHINESE, "big5")].concat();
        assert!(lenient(&late, None).ends_with(CHINESE));
    }

    #[test]
    fn utf_7_has_many_names() {
        for label in [
            "utf-7",
            "UTF7",
            "x-utf-7",
            "unicode-1-1-utf-7",
            "unicode-2-0-utf-7",
            "csUnicode11UTF7",
            "x-unicode-2-0-utf7",
        ] {
            assert_eq!(lenient(b"caf+AOk- +AGE-b", Some(label)), "caf\u{e9} ab", "{label}");
        }
        assert_eq!(lenient("caf\u{e9} +AGE-".as_bytes(), Some("unicode-1-1-utf-8")), "caf\u{e9} +AGE-");
    }

    /// Mail programs that do not know these charsets show the bytes.
    #[test]
    fn text_that_does_not_fit_an_old_charset_stays() {
        let text = "one two three, and four more words; five +six +seven +eight";
        for label in ["utf-32", "UTF-32LE", "ucs-4", "UTF_32", "hz-gb-2312", "iso-2022-kr", "x-utf-7-x"] {
            for start in ["", "~{", "\u{e}"] {
                let text = format!("{start}{text}");
                assert_eq!(lenient(text.as_bytes(), Some(label)), text, "{label}");
            }
        }
        assert_eq!(lenient(b"a ~{VPND~} b", Some("hz-gb-2312")), "a \u{4e2d}\u{6587} b");
        assert_eq!(lenient(b"\x1b$)C\x0e0!\x0f a", Some("iso-2022-kr")), "\u{ac00} a");
    }

    const PAST: usize = 1024;

    #[test]
    fn shift_jis_between_the_escapes_of_iso_2022_jp() {
        let mixed =
            [&encoded(JAPANESE, "iso-2022-jp")[..], b"\r\n", &encoded(JAPANESE, "shift_jis"), b"\n"].concat();
        assert_eq!(lenient(&mixed, Some("ISO-2022-JP")), format!("{JAPANESE}\r\n{JAPANESE}\n"));
        // In one line, after the escape that ends the other charset.
        let mixed = [&encoded(JAPANESE, "iso-2022-jp")[..], &encoded(JAPANESE, "shift_jis")].concat();
        assert_eq!(lenient(&mixed, Some("iso-2022-jp-ms")), format!("{JAPANESE}{JAPANESE}"));
        assert_eq!(lenient(b"\x1b(I1\x1b(B a", Some("iso-2022-jp")), "\u{ff71} a");
        for only in ["shift_jis", "euc-jp"] {
            assert_eq!(lenient(&encoded(JAPANESE, only), Some("iso-2022-jp")), JAPANESE, "{only}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_believed() {
        let bytes: Vec<u8> =
            [0xFEFF].into_iter().chain(RUSSIAN.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        assert_eq!(lenient(&bytes, None), RUSSIAN);
    }
}
