// SPDX-License-Identifier: GPL-3.0-or-later
//! Header fields, transfer encodings and charsets. The only file that knows the `mail-parser` crate, but for its dates.

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{Header, HeaderName, HeaderValue, MessageParser};
use std::borrow::Cow;
use std::sync::LazyLock;

static MIME_PARSER: LazyLock<MessageParser> = LazyLock::new(|| MessageParser::new().with_mime_headers());
static FIELD_PARSER: LazyLock<MessageParser> =
    LazyLock::new(|| MessageParser::new().header_address(HeaderName::From));
static SUBJECT_PARSER: LazyLock<MessageParser> =
    LazyLock::new(|| MessageParser::new().header_text(HeaderName::Subject));

/// What the header says of sender, list and message. Addresses and the list id are in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// Addresses of the From field.
    pub from: Vec<String>,
    /// What stands in angle brackets in List-Id, or the whole value where there are none.
    pub list_id: Option<String>,
    /// The Message-ID as it stands.
    pub message_id: Option<String>,
}

impl Fields {
    /// Reads the fields of a header block.
    pub(super) fn of(head: &[u8]) -> Self {
        let mut fields = Self::default();
        for field in fields_of(head) {
            let Some((name, value)) = name_and_value(field) else { continue };
            let text = || String::from_utf8_lossy(value).trim().to_owned();
            if name.eq_ignore_ascii_case(b"from") {
                fields.from.extend(addresses(field));
            } else if name.eq_ignore_ascii_case(b"list-id") && fields.list_id.is_none() {
                let text = text().to_lowercase();
                let id = text.rsplit_once('<').map_or(&*text, |(_, id)| id.split('>').next().unwrap_or(id));
                fields.list_id = Some(id.trim().to_owned());
            } else if name.eq_ignore_ascii_case(b"message-id") && fields.message_id.is_none() {
                fields.message_id = Some(text());
            }
        }
        fields
    }
}

/// A Subject field as people read it, from its value.
#[must_use]
pub fn subject(value: &[u8]) -> String {
    let field = [b"Subject: ", value.trim_ascii(), b"\r\n\r\n"].concat();
    let message = SUBJECT_PARSER.parse_headers(&field);
    message.as_ref().and_then(|message| message.subject()).unwrap_or_default().to_owned()
}

fn addresses(field: &[u8]) -> Vec<String> {
    let with_end = [field, b"\r\n\r\n"].concat();
    let message = FIELD_PARSER.parse_headers(&with_end);
    let from = message.as_ref().and_then(|m| m.from());
    from.into_iter().flat_map(|list| list.iter()).filter_map(|a| a.address()).map(str::to_lowercase).collect()
}

/// The fields of a header block, each with its continuation lines and without its final line end.
pub(super) fn fields_of(mut head: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if head.is_empty() {
            return None;
        }
        let mut end = 0;
        loop {
            end = memchr::memchr(b'\n', &head[end..]).map_or(head.len(), |i| end + i + 1);
            if !matches!(head.get(end), Some(b' ' | b'\t')) {
                break;
            }
        }
        let (field, rest) = head.split_at(end);
        head = rest;
        Some(field.trim_ascii_end())
    })
}

/// Splits a field at its colon; neither side is trimmed of inner folds.
pub(super) fn name_and_value(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', field)?;
    Some((field[..colon].trim_ascii(), field[colon + 1..].trim_ascii()))
}

/// Bytes of MIME fields of one part that are read; a long file name takes some hundreds.
const MAX_MIME: usize = 16 << 10;

/// The fields that say how to read a part. The parser makes much of every field, of which a part may have millions.
fn mime_fields(head: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    for field in fields_of(head) {
        let Some((name, _)) = name_and_value(field) else { continue };
        let wanted = ["content-type", "content-transfer-encoding", "content-disposition"];
        if wanted.iter().any(|w| name.eq_ignore_ascii_case(w.as_bytes()))
            && kept.len() + field.len() <= MAX_MIME
        {
            kept.extend_from_slice(field);
            kept.extend_from_slice(b"\r\n");
        }
    }
    kept.extend_from_slice(b"\r\n");
    kept
}

/// How the transfer encoding wraps a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    QuotedPrintable,
    Base64,
}

/// What the MIME header of one entity says. All names are in lower case.
#[derive(Debug)]
pub(super) struct Mime {
    /// Type and subtype, where given.
    pub(super) media: Option<(String, String)>,
    pub(super) boundary: Option<String>,
    charset: Option<String>,
    encoding: Encoding,
    pub(super) is_attachment: bool,
}

impl Mime {
    /// Reads the MIME fields of a header block.
    pub(super) fn of(head: &[u8]) -> Self {
        let mut mime = Self {
            media: None,
            boundary: None,
            charset: None,
            encoding: Encoding::Identity,
            is_attachment: false,
        };
        if head.is_empty() {
            return mime;
        }
        let head = mime_fields(head);
        let message = MIME_PARSER.parse_headers(&head);
        let headers: &[Header<'_>] = message.as_ref().map_or(&[], |m| m.headers());
        for header in headers {
            match (&header.name, &header.value) {
                (HeaderName::ContentType, HeaderValue::ContentType(ct)) if mime.media.is_none() => {
                    let subtype = ct.subtype().unwrap_or("").to_lowercase();
                    mime.media = Some((ct.ctype().to_lowercase(), subtype));
                    mime.boundary = ct.attribute("boundary").filter(|b| !b.is_empty()).map(str::to_owned);
                    mime.charset = ct.attribute("charset").map(str::to_owned);
                }
                (HeaderName::ContentTransferEncoding, HeaderValue::Text(name)) => {
                    mime.encoding = match name.trim() {
                        n if n.eq_ignore_ascii_case("base64") => Encoding::Base64,
                        n if n.eq_ignore_ascii_case("quoted-printable") => Encoding::QuotedPrintable,
                        _ => Encoding::Identity,
                    };
                }
                (HeaderName::ContentDisposition, HeaderValue::ContentType(d)) => {
                    mime.is_attachment = d.is_attachment();
                }
                _ => (),
            }
        }
        mime
    }

    /// Takes the transfer encoding off. What is not validly encoded stays as it is.
    pub(super) fn decoded<'a>(&self, body: &'a [u8]) -> Cow<'a, [u8]> {
        match self.encoding {
            Encoding::Identity => None,
            Encoding::QuotedPrintable => quoted_printable_decode(body),
            Encoding::Base64 => base64_decode(body),
        }
        .map_or(Cow::Borrowed(body), Cow::Owned)
    }

    /// The text in the declared charset; UTF-8 where none is declared.
    ///
    /// Bytes that are not valid in it become one character each (as in ISO 8859-1), never a replacement character:
    /// texts in an undeclared charset would otherwise all look alike.
    pub(super) fn text<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        let charset = self.charset.as_deref().unwrap_or("utf-8");
        if let Ok(text) = str::from_utf8(bytes)
            && (charset.eq_ignore_ascii_case("utf-8") || text.is_ascii() && is_ascii_superset(charset))
        {
            return Cow::Borrowed(text);
        }
        charset_decoder(charset.as_bytes())
            .map(|decode| decode(bytes))
            .filter(|text| !text.contains(char::REPLACEMENT_CHARACTER))
            .map_or_else(|| bytes.iter().map(|&b| char::from(b)).collect(), Cow::Owned)
    }
}

/// Whether ASCII bytes mean themselves in `charset`. Not so in those that use escapes or two bytes for everything.
fn is_ascii_superset(charset: &str) -> bool {
    let name = charset.to_ascii_lowercase();
    !["utf-7", "utf-16", "utf-32", "iso-2022", "iso2022", "csiso2022", "hz", "ucs", "unicode-1-1"]
        .iter()
        .any(|prefix| name.replace('_', "-").starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(head: &str, body: &[u8]) -> String {
        let mime = Mime::of(head.as_bytes());
        mime.text(&mime.decoded(body)).into_owned()
    }

    #[test]
    fn one_text_in_many_encodings() {
        let plain = "Content-Type: text/plain; charset=utf-8\r\n\r\n";
        assert_eq!(decode(plain, "Grüße".as_bytes()), "Grüße");
        assert_eq!(decode("Content-Type: text/plain; charset=ISO-8859-1\r\n\r\n", b"Gr\xfc\xdfe"), "Grüße");
        let qp = "content-transfer-encoding: Quoted-Printable\r\nContent-Type: text/plain; charset=\"utf-8\"\r\n\r\n";
        assert_eq!(decode(qp, b"Gr=C3=\r\n=BC=C3=9Fe"), "Grüße");
        let base64 =
            "Content-Type: text/plain;\r\n charset=utf-8\r\nContent-Transfer-Encoding: BASE64\r\n\r\n";
        assert_eq!(decode(base64, b"R3LDvMOf\r\nZQ==\r\n"), "Grüße");
        let jis = "Content-Type: text/plain; charset=ISO-2022-JP\r\n\r\n";
        assert_eq!(decode(jis, b"\x1b$B4A;z\x1b(B"), "漢字");
    }

    /// Two texts in an undeclared charset must not become one row of replacement characters.
    #[test]
    fn undeclared_charsets_stay_apart() {
        assert_ne!(decode("\r\n", b"\xc4\xe3\xba\xc3"), decode("\r\n", b"\xd0\xbb\xd0\xbb"));
        let unknown = "Content-Type: text/plain; charset=x-nonsense\r\n\r\n";
        assert_ne!(decode(unknown, b"\xc4\xe3"), decode(unknown, b"\xd0\xbb"));
    }

    #[test]
    fn damaged_encodings_are_shown_as_they_are() {
        let base64 = "Content-Transfer-Encoding: base64\r\n\r\n";
        assert_eq!(decode(base64, b"not <base64> at all!"), "not <base64> at all!");
        let qp = "Content-Transfer-Encoding: quoted-printable\r\n\r\n";
        assert_eq!(decode(qp, b"5 = 6 =ZZ"), "5 = 6 =ZZ");
    }
}
