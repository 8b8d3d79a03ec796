// SPDX-License-Identifier: GPL-3.0-or-later
//! Charsets of old mail that neither the browsers' standard nor the mail parser has: DOS code pages, and charsets with escapes.

use encoding_rs::{EUC_KR, GBK};
use std::char::{REPLACEMENT_CHARACTER, decode_utf16};

/// The text in a charset that only this module knows, with U+FFFD for invalid bytes.
pub(super) fn decode(label: &str, bytes: &[u8]) -> Option<String> {
    let label = label.trim().to_ascii_lowercase().replace('_', "-");
    Some(match &*label {
        "hz-gb-2312" | "hz" => hz(bytes),
        "iso-2022-kr" | "csiso2022kr" => korean(bytes),
        label if is_utf7(label) => utf7(bytes),
        "utf-32" | "utf-32le" | "utf-32be" | "ucs-4" | "iso-10646-ucs-4" => utf32(bytes, &label),
        _ => {
            let number = ["cp", "ibm", "dos-", "csibm", "ibm-", "cp-"]
                .iter()
                .find_map(|name| label.strip_prefix(name));
            let number: u16 = number.unwrap_or(&label).parse().ok()?;
            let (_, page) = PAGES.iter().find(|(page, _)| *page == number)?;
            let upper: Vec<char> = page.chars().collect();
            let char_of = |&b: &u8| if b < 0x80 { char::from(b) } else { upper[usize::from(b) - 0x80] };
            bytes.iter().map(char_of).collect()
        }
    })
}

/// Whether a label in small letters names UTF-7, as of some version of Unicode.
pub(super) fn is_utf7(label: &str) -> bool {
    label.contains("utf-7") || label.contains("utf7")
}

/// Whether [`decode`] knows a label.
pub(super) fn is_known(label: &str) -> bool {
    decode(label, b"").is_some()
}

/// A byte that both GBK and EUC-KR decode to U+FFFD, whatever follows.
const INVALID: u8 = 0xFF;

/// HZ (RFC 1843): between `~{` and `~}` two ASCII characters are one of GB 2312.
fn hz(bytes: &[u8]) -> String {
    let (mut plain, mut at, mut is_wide) = (Vec::with_capacity(bytes.len()), 0, false);
    while let Some(&b) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        at += 2;
        match (b, next) {
            (b'~', Some(b'{')) => is_wide = true,
            (b'~', Some(b'}')) => is_wide = false,
            (b'~', Some(b'~')) if !is_wide => plain.push(b'~'),
            (b'~', Some(b'\n')) => (),
            (0x21..=0x7E, Some(low @ 0x21..=0x7E)) if is_wide => plain.extend([b | 0x80, low | 0x80]),
            _ => {
                // Such a byte is an error among them, and the end of the line ends them.
                plain.extend(is_wide.then_some(INVALID));
                is_wide &= b != b'\n';
                plain.push(b);
                at -= 1;
            }
        }
    }
    plain.extend(is_wide.then_some(INVALID));
    GBK.decode_without_bom_handling(&plain).0.into_owned()
}

/// ISO-2022-KR (RFC 1557): between SO and SI two ASCII characters are one of KS X 1001.
fn korean(bytes: &[u8]) -> String {
    let (mut plain, mut is_wide) = (Vec::with_capacity(bytes.len()), false);
    let mut rest = bytes;
    while let Some((&b, after)) = rest.split_first() {
        rest = after;
        match b {
            0x0E => is_wide = true,
            0x0F => is_wide = false,
            0x1B => rest = rest.strip_prefix(b"$)C").unwrap_or(rest),
            0x21..=0x7E if is_wide => plain.push(b | 0x80),
            // Other bytes among them are errors.
            _ => {
                plain.extend(is_wide.then_some(INVALID));
                plain.push(b);
            }
        }
    }
    plain.extend(is_wide.then_some(INVALID));
    EUC_KR.decode_without_bom_handling(&plain).0.into_owned()
}

/// UTF-7 (RFC 2152): UTF-16 in base64, behind each `+`. A run that is no valid UTF-16 stays as written: mail programs that do not know the
/// charset show all as written.
fn utf7(bytes: &[u8]) -> String {
    let (mut text, mut rest) = (String::with_capacity(bytes.len()), bytes);
    while let Some((&b, after)) = rest.split_first() {
        rest = after;
        if b != b'+' {
            text.push(if b < 0x80 { char::from(b) } else { REPLACEMENT_CHARACTER });
            continue;
        }
        let (run, mut bits, mut have, mut units) = (rest, 0u32, 0, Vec::new());
        while let Some(sextet) = rest.first().and_then(|&b| crate::transfer::sextet(b)) {
            rest = &rest[1..];
            bits = bits << 6 | u32::from(sextet);
            have += 6;
            if have >= 16 {
                have -= 16;
                units.push(u16::try_from(bits >> have & 0xFFFF).unwrap_or_default());
            }
        }
        let written = &run[..run.len() - rest.len()];
        let ends = rest.strip_prefix(b"-");
        // The bits behind the last unit fill a digit, and are 0.
        let is_whole = have < 6 && bits & ((1 << have) - 1) == 0;
        let decoded: Result<String, _> = decode_utf16(units).collect();
        match decoded.ok().filter(|_| is_whole && !written.is_empty()) {
            Some(decoded) => text.push_str(&decoded),
            None => {
                text.push('+');
                text.extend(written.iter().map(|&b| char::from(b)));
                if !written.is_empty() {
                    continue;
                }
            }
        }
        rest = ends.unwrap_or(rest);
    }
    text
}

/// UTF-32, big-endian unless its name or a byte order mark differs.
fn utf32(bytes: &[u8], label: &str) -> String {
    let is_little = label.ends_with("le") || bytes.starts_with(&[0xFF, 0xFE, 0, 0]);
    let (units, rest) = bytes.as_chunks::<4>();
    let unit = |unit: &[u8; 4]| {
        let mut unit = *unit;
        if !is_little {
            unit.reverse();
        }
        u32::from_le_bytes(unit)
    };
    let chars = units.iter().map(|bytes| char::from_u32(unit(bytes)).unwrap_or(REPLACEMENT_CHARACTER));
    let rest = (!rest.is_empty()).then_some(REPLACEMENT_CHARACTER);
    chars.chain(rest).filter(|&c| c != '\u{FEFF}').collect()
}

/// DOS code pages: the characters of the bytes from 0x80 on, as in the tables of the Unicode Consortium (VENDORS/MICSFT/PC).
const PAGES: [(u16, &str); 14] = [
    (
        437,
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        737,
        "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρσςτυφχψ░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀ωάέήϊίόύϋώΆΈΉΊΌΎΏ±≥≤ΪΫ÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        775,
        "ĆüéāäģåćłēŖŗīŹÄÅÉæÆōöĢ¢ŚśÖÜø£Ø×¤ĀĪóŻżź”¦©®¬½¼Ł«»░▒▓│┤ĄČĘĖ╣║╗╝ĮŠ┐└┴┬├─┼ŲŪ╚╔╩╦╠═╬Žąčęėįšųūž┘┌█▄▌▐▀ÓßŌŃõÕµńĶķĻļņĒŅ’\u{ad}±“¾¶§÷„°∙·¹³²■\u{a0}",
    ),
    (
        850,
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}",
    ),
    (
        852,
        "ÇüéâäůćçłëŐőîŹÄĆÉĹĺôöĽľŚśÖÜŤťŁ×čáíóúĄąŽžĘę¬źČş«»░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐└┴┬├─┼Ăă╚╔╩╦╠═╬¤đĐĎËďŇÍÎě┘┌█▄ŢŮ▀ÓßÔŃńňŠšŔÚŕŰýÝţ´\u{ad}˝˛ˇ˘§÷¸°¨˙űŘř■\u{a0}",
    ),
    (
        855,
        "ђЂѓЃёЁєЄѕЅіІїЇјЈљЉњЊћЋќЌўЎџЏюЮъЪаАбБцЦдДеЕфФгГ«»░▒▓│┤хХиИ╣║╗╝йЙ┐└┴┬├─┼кК╚╔╩╦╠═╬¤лЛмМнНоОп┘┌█▄Пя▀ЯрРсСтТуУжЖвВьЬ№\u{ad}ыЫзЗшШэЭщЩчЧ§■\u{a0}",
    ),
    (
        857,
        "ÇüéâäàåçêëèïîıÄÅÉæÆôöòûùİÖÜø£ØŞşáíóúñÑĞğ¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ºªÊËÈ\u{fffd}ÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµ\u{fffd}×ÚÛÙìÿ¯´\u{ad}±\u{fffd}¾¶§÷¸°¨·¹³²■\u{a0}",
    ),
    (
        858,
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈ€ÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}",
    ),
    (
        860,
        "ÇüéâãàÁçêÊèÍÔìÃÂÉÀÈôõòÚùÌÕÜ¢£Ù₧ÓáíóúñÑªº¿Ò¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        861,
        "ÇüéâäàåçêëèÐðÞÄÅÉæÆôöþûÝýÖÜø£Ø₧ƒáíóúÁÍÓÚ¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        862,
        "אבגדהוזחטיךכלםמןנסעףפץצקרשת¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        863,
        "ÇüéâÂà¶çêëèïî‗À§ÉÈÊôËÏûù¤ÔÜ¢£ÙÛƒ¦´óú¨¸³¯Î⌐¬½¼¾«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        865,
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø₧ƒáíóúñÑªº¿⌐¬½¼¡«¤░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        869,
        "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}Ά\u{fffd}·¬¦‘’Έ―ΉΊΪΌ\u{fffd}\u{fffd}ΎΫ©Ώ²³ά£έήίϊΐόύΑΒΓΔΕΖΗ½ΘΙ«»░▒▓│┤ΚΛΜΝ╣║╗╝ΞΟ┐└┴┬├─┼ΠΡ╚╔╩╦╠═╬ΣΤΥΦΧΨΩαβγ┘┌█▄δε▀ζηθικλμνξοπρσςτ΄\u{ad}±υφχ§ψ΅°¨ωϋΰώ■\u{a0}",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_charsets_are_read() {
        for (label, bytes, text) in [
            (
                "hz-gb-2312",
                &b"a~~ ~{<:Ky2;~} b~\n~{VPND~}"[..],
                "a~ \u{5df1}\u{6240}\u{4e0d} b\u{4e2d}\u{6587}",
            ),
            ("ISO-2022-KR", b"\x1b$)Ca \x0eGQ1[\x0f b", "a \u{d55c}\u{ae00} b"),
            ("unicode-1-1-utf-7", b"Gr+APwA3w-e +- 1", "Gr\u{fc}\u{df}e + 1"),
            ("UTF-32LE", b"a\0\0\0\xfc\0\0\0", "a\u{fc}"),
            ("utf-32", b"\xff\xfe\0\0a\0\0\0b", "a\u{fffd}"),
            ("cp437", b"Gr\x81\xe1e", "Gr\u{fc}\u{df}e"),
            ("IBM850", b"\x9b", "\u{f8}"),
            ("cp869", b"\x80", "\u{fffd}"),
        ] {
            assert_eq!(decode(label, bytes).as_deref(), Some(text), "{label}");
        }
        assert!(!is_known("cp1252") && !is_known("utf-8") && !is_known(""));
        assert!(PAGES.iter().all(|(_, page)| page.chars().count() == 128));
    }

    #[test]
    fn any_bytes_are_text() {
        let all: Vec<u8> = (0..=255).chain(*b"+\xff+A~{a~{\x0e").collect();
        for label in ["hz", "iso-2022-kr", "utf-7", "utf-32", "cp437"] {
            for at in 0..all.len() {
                assert!(decode(label, &all[at..]).is_some());
            }
        }
    }
}
