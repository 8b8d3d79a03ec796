// SPDX-License-Identifier: GPL-3.0-or-later
//! Pictures and texts that their address contains (RFC 2397).

use super::transfer::Encoding;

const START: &str = "data:image/";

/// Whether an address contains a picture of pixels.
#[must_use]
pub fn is_data(address: &str) -> bool {
    let kind = address.get(..START.len()).filter(|start| start.eq_ignore_ascii_case(START));
    // Mail programs read a drawing as text or not at all.
    let is_drawing =
        || address.get(START.len()..START.len() + 3).is_some_and(|sub| sub.eq_ignore_ascii_case("svg"));
    kind.is_some() && !is_drawing()
}

/// The bytes of the picture that an address contains; `None` for other addresses.
#[must_use]
pub fn data(address: &str) -> Option<Vec<u8>> {
    contained(address).filter(|_| is_data(address))
}

/// The bytes that an address contains.
#[must_use]
pub fn contained(address: &str) -> Option<Vec<u8>> {
    let (kind, content) = address.split_once(',')?;
    kind.get(.."data:".len()).filter(|scheme| scheme.eq_ignore_ascii_case("data:"))?;
    let content = unescaped(content.as_bytes());
    let is_base64 = kind.rsplit(';').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("base64"));
    Some(if is_base64 { Encoding::Base64.decoded(&content).shown().to_vec() } else { content })
}

/// Decodes `%` with two hexadecimal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| first == b'%').and_then(|digits| str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_in_addresses_are_found() {
        for address in [
            "data:image/png;base64,Q2F0",
            "DATA:Image/GIF ; charset=x; BASE64,Q2\n F0",
            "data:image/png;base64,Q2F%30",
            "data:image/png,C%61t",
        ] {
            assert_eq!(data(address).as_deref(), Some(&b"Cat"[..]), "{address}");
        }
        for address in [
            "",
            "data:",
            "data:image/png;base64",
            "data:text/html,Cat",
            "data:image/SVG+xml,Cat",
            "http://a.example/data:image/png,",
        ] {
            assert_eq!(data(address), None, "{address}");
        }
        assert_eq!(contained("Data:text/html,C%61t").as_deref(), Some(&b"Cat"[..]));
        assert_eq!(contained("x,Cat"), None);
        assert_eq!(data("data:image/png,%4%zz%\u{e9}").as_deref(), Some("%4%zz%\u{e9}".as_bytes()));
    }
}
