// SPDX-License-Identifier: GPL-3.0-or-later
//! Transfer encodings, written for the tests alone.

/// Base64 in lines of 76 digits.
pub fn base64(bytes: &[u8]) -> String {
    base64_lines(bytes, 76)
}

/// Base64 in lines of `width` digits, with CRLF.
pub fn base64_lines(bytes: &[u8], width: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut digits = String::with_capacity(bytes.len() * 4 / 3 + 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, i| bits << 8 | u32::from(group.get(i).copied().unwrap_or(0)));
        for i in 0..4 {
            let digit = char::from(DIGITS[(bits >> (18 - 6 * i) & 63) as usize]);
            digits.push(if i > group.len() { '=' } else { digit });
        }
    }
    digits.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line) + "\r\n").collect()
}

/// Decodes base64 on one line.
pub fn from_base64(digits: &str) -> Vec<u8> {
    let value = |digit: u8| match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let group = |group: &[u8]| {
        let digits = group.iter().take_while(|&&digit| digit != b'=');
        let (bits, count) =
            digits.fold((0u32, 0), |(bits, n), &d| (bits | u32::from(value(d)) << (18 - 6 * n), n + 1));
        bits.to_be_bytes()[1..count].to_vec()
    };
    digits.as_bytes().chunks(4).flat_map(group).collect()
}

/// Quoted-printable of a text with CRLF line ends, in lines of at most `width` characters; bytes for which `quote` is true are
/// quoted even if they need not be.
pub fn quoted_printable(bytes: &[u8], width: usize, quote: &dyn Fn(usize) -> bool) -> String {
    let mut out = String::new();
    let mut column = 0;
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i..].starts_with(b"\r\n") {
            out.push_str("\r\n");
            column = 0;
            i += 2;
            continue;
        }
        let b = bytes[i];
        let at_line_end = matches!(bytes.get(i + 1), None | Some(b'\r'));
        let plain = matches!(b, b'!'..=b'~' if b != b'=') || b == b' ' && !at_line_end;
        let piece = if plain && !quote(i) { char::from(b).to_string() } else { format!("={b:02X}") };
        if column + piece.len() > width - 1 {
            out.push_str("=\r\n");
            column = 0;
        }
        column += piece.len();
        out.push_str(&piece);
        i += 1;
    }
    out
}
