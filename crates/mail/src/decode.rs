// SPDX-License-Identifier: GPL-3.0-or-later
//! Header fields: the senders of a message, and how to read its parts.

use super::authres::signing_domain;
use super::structured::Structured;
use super::transfer::Encoding;
use mail_parser::{HeaderName, MessageParser};
use std::sync::LazyLock;

static FIELD_PARSER: LazyLock<MessageParser> =
    LazyLock::new(|| MessageParser::new().header_address(HeaderName::From));
static SUBJECT_PARSER: LazyLock<MessageParser> =
    LazyLock::new(|| MessageParser::new().header_text(HeaderName::Subject));

/// Sender, list and message id from the header. Addresses and the list id are in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// Addresses of the From field.
    pub from: Vec<String>,
    /// The text in angle brackets in List-Id, or the whole value without brackets.
    pub list_id: Option<String>,
    /// The Message-ID as written.
    pub message_id: Option<String>,
    /// The values of the first Authentication-Results fields, from the top.
    pub authentication_results: Vec<String>,
    /// The domains of its first DKIM signatures, in lower case, not verified.
    pub signed_by: Vec<String>,
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
            } else if name.eq_ignore_ascii_case(b"authentication-results") {
                fields.authentication_results.push(text());
            } else if name.eq_ignore_ascii_case(b"dkim-signature") {
                fields.signed_by.extend(signing_domain(&text()));
            }
        }
        fields
    }
}

/// The addresses in the header of a message, in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Correspondents {
    /// From the From field.
    pub from: Vec<String>,
    /// From the Reply-To field.
    pub reply_to: Vec<String>,
    /// From the To and Cc fields, as far as [`RawMessage`](super::RawMessage) keeps them.
    pub to: Vec<String>,
}

impl Correspondents {
    /// Reads the fields of a header block.
    pub(super) fn of(head: &[u8]) -> Self {
        let mut all = Self::default();
        for field in fields_of(head) {
            let Some((name, value)) = name_and_value(field) else { continue };
            let is = |wanted: &[u8]| name.eq_ignore_ascii_case(wanted);
            let kept = if is(b"from") {
                &mut all.from
            } else if is(b"reply-to") {
                &mut all.reply_to
            } else if is(b"to") || is(b"cc") {
                &mut all.to
            } else {
                continue;
            };
            kept.extend(addresses(&[b"From: ", value].concat()));
        }
        all
    }
}

/// The readable text of a Subject field's value.
#[must_use]
pub fn subject(value: &[u8]) -> String {
    let field = [b"Subject: ", value.trim_ascii(), b"\r\n\r\n"].concat();
    let message = SUBJECT_PARSER.parse_headers(&field);
    message.as_ref().and_then(|message| message.subject()).unwrap_or_default().to_owned()
}

pub(super) fn addresses(field: &[u8]) -> Vec<String> {
    let with_end = [field, b"\r\n\r\n"].concat();
    let message = FIELD_PARSER.parse_headers(&with_end);
    let from = message.as_ref().and_then(|m| m.from());
    from.into_iter().flat_map(|list| list.iter()).filter_map(|a| a.address()).map(str::to_lowercase).collect()
}

/// The fields of a header block, each with its continuation lines and without its final line end.
pub(super) fn fields_of(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    exact_fields_of(head).map(<[u8]>::trim_ascii_end)
}

/// The same fields, unchanged and with their line ends.
pub(super) fn exact_fields_of(mut head: &[u8]) -> impl Iterator<Item = &[u8]> {
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
        Some(field)
    })
}

/// The fields of a header block: for each the name, and the value behind the colon, with folds and without its final line end.
pub fn header_fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    exact_fields_of(head).filter_map(|field| {
        let field = field.strip_suffix(b"\n").unwrap_or(field);
        let field = field.strip_suffix(b"\r").unwrap_or(field);
        let colon = memchr::memchr(b':', field)?;
        Some((&field[..colon], &field[colon + 1..]))
    })
}

/// Splits a field at its colon; neither side is trimmed of inner folds.
pub(super) fn name_and_value(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', field)?;
    Some((field[..colon].trim_ascii(), field[colon + 1..].trim_ascii()))
}

/// Bytes of a MIME field that are read; a long file name takes some hundreds.
const MAX_MIME: usize = 8 << 10;

/// Bytes of a Content-ID, as long as a line may be (RFC 5322, 2.1.1).
const MAX_ID: usize = 998;

/// Fields of one name that are read.
const MAX_SAME: usize = 4;

/// The values of the first fields with that name.
fn structured(head: &[u8], wanted: &str) -> impl Iterator<Item = Structured> {
    let fields = fields_of(head).filter_map(name_and_value);
    let values = fields.filter(move |(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()));
    values.take(MAX_SAME).map(|(_, value)| Structured::of(&value[..value.len().min(MAX_MIME)]))
}

/// The Content-ID without angle brackets. It is compared with ids in HTML, which are never long.
fn content_id(head: &[u8]) -> Option<String> {
    let mut fields = fields_of(head).filter_map(name_and_value);
    let (_, value) = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"content-id"))?;
    let id = str::from_utf8(value).ok()?.trim_start_matches('<').trim_end_matches('>').trim();
    (!id.is_empty() && id.len() <= MAX_ID).then(|| id.to_owned())
}

/// The MIME header of one entity. All names are in lower case.
#[derive(Debug)]
pub(super) struct Mime {
    /// Type and subtype, where given.
    pub(super) media: Option<(String, String)>,
    pub(super) boundary: Option<String>,
    pub(super) charset: Option<String>,
    pub(super) encoding: Encoding,
    /// Whether the blank at the end of a text line belongs to the line break (RFC 3676, 4.1).
    pub(super) deletes_blanks: bool,
    /// In a multipart: the Content-ID of the root part.
    pub(super) start: Option<String>,
    /// The Content-ID without angle brackets.
    pub(super) id: Option<String>,
    pub(super) is_attachment: bool,
    /// Whether it only accompanies the root part.
    pub(super) is_related: bool,
    /// The type by the name of its file, if that is a text or a message.
    named: Option<(&'static str, &'static str)>,
}

/// The type of a file of this name, if it is a text or a message.
fn type_of_name(name: &str) -> Option<(&'static str, &'static str)> {
    let decoded = name.contains("=?").then(|| subject(name.as_bytes()));
    let name = decoded.as_deref().unwrap_or(name).trim_end_matches(['.', ' ']);
    let (_, extension) = name.rsplit_once('.')?;
    Some(match &*extension.to_ascii_lowercase() {
        "html" | "htm" | "xhtml" | "shtml" => ("text", "html"),
        "txt" | "asc" | "md" | "csv" => ("text", "plain"),
        "ics" => ("text", "calendar"),
        "svg" => ("text", "svg+xml"),
        "eml" => ("message", "rfc822"),
        _ => return None,
    })
}

impl Mime {
    /// Reads the MIME fields of a header block. Of several fields with one name, the first usable one counts.
    pub(super) fn of(head: &[u8]) -> Self {
        let mut mime = Self {
            media: None,
            boundary: None,
            charset: None,
            encoding: Encoding::Identity,
            deletes_blanks: false,
            start: None,
            id: None,
            is_attachment: false,
            is_related: false,
            named: None,
        };
        if head.is_empty() {
            return mime;
        }
        mime.id = content_id(head);
        let content_type = structured(head, "content-type").find_map(|field| Some((field.media()?, field)));
        if let Some((media, field)) = content_type {
            mime.media = Some(media);
            mime.boundary = field.parameter("boundary").filter(|boundary| !boundary.is_empty());
            mime.charset = field.parameter("charset");
            mime.start = field.parameter("start").map(|id| id.trim_matches(['<', '>']).to_owned());
            let is_yes = |value: String| value.eq_ignore_ascii_case("yes");
            let is_flowed = |value: String| value.eq_ignore_ascii_case("flowed");
            mime.deletes_blanks = field.parameter("format").is_some_and(is_flowed)
                && field.parameter("delsp").is_some_and(is_yes);
            mime.named = field.parameter("name").and_then(|name| type_of_name(&name));
        }
        let mut encodings = structured(head, "content-transfer-encoding");
        mime.encoding =
            encodings.find_map(|field| Encoding::named(&field.value)).unwrap_or(Encoding::Identity);
        let disposition = structured(head, "content-disposition").find(|field| !field.value.is_empty());
        if let Some(field) = disposition {
            // A mail program shows the part of any other value, also of this word in quotes or behind a comment.
            let values = fields_of(head).filter_map(name_and_value);
            let mut values = values.filter(|(name, _)| name.eq_ignore_ascii_case(b"content-disposition"));
            let is_bare = |value: &[u8]| {
                let word = value.split(|b| b.is_ascii_whitespace() || b";,".contains(b)).next();
                word.is_some_and(|word| word.eq_ignore_ascii_case(b"attachment"))
            };
            mime.is_attachment = values.find(|(_, value)| !value.is_empty()).is_some_and(|(_, v)| is_bare(v));
            let named = field.parameter("filename").and_then(|name| type_of_name(&name));
            mime.named = named.or(mime.named);
        }
        mime
    }

    /// The type of a file of bytes by its name, by which programs open it; also that of a drawing, which is text.
    pub(super) fn by_name(&self, media: (&str, &str)) -> Option<(&'static str, &'static str)> {
        match media {
            ("image", "svg+xml") => Some(("text", "svg+xml")),
            ("application", "pgp") => Some(("text", "plain")),
            // A cryptographic signature, whatever its name.
            ("application", "pkcs7-signature" | "x-pkcs7-signature" | "pgp-signature") => None,
            ("text" | "multipart" | "message" | "image" | "audio" | "video" | "font" | "model", _) => None,
            _ => self.named,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charset;

    fn decode(head: &str, body: &[u8]) -> String {
        let mime = Mime::of(head.as_bytes());
        charset::exact(&mime.encoding.exact(body), mime.charset.as_deref()).0.into_owned()
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

    #[test]
    fn damaged_encodings_are_shown_as_they_are() {
        let base64 = "Content-Transfer-Encoding: base64\r\n\r\n";
        assert_eq!(decode(base64, b"not <base64> at all!"), "not <base64> at all!");
        let qp = "Content-Transfer-Encoding: quoted-printable\r\n\r\n";
        assert_eq!(decode(qp, b"5 = 6 =ZZ"), "5 = 6 =ZZ");
    }

    /// RFC 3676 defines `delsp` for flowed text alone.
    #[test]
    fn only_flowed_text_deletes_blanks() {
        let deletes = |parameters: &str| {
            Mime::of(format!("Content-Type: text/plain; {parameters}\r\n\r\n").as_bytes()).deletes_blanks
        };
        assert!(deletes("format=Flowed; delsp=yes") && deletes("delsp=YES; format=flowed"));
        assert!(!deletes("delsp=yes") && !deletes("format=fixed; delsp=yes") && !deletes("format=flowed"));
    }

    #[test]
    fn the_content_id_is_read() {
        let id = |head: &str| Mime::of(head.as_bytes()).id;
        assert_eq!(id("Content-Type: image/png\r\ncontent-id:\r\n <a@b>\r\n\r\n").as_deref(), Some("a@b"));
        assert_eq!(id("Content-ID: <>\r\n\r\n"), None);
        assert_eq!(id(&format!("Content-ID: {}\r\n\r\n", "x".repeat(2000))), None);
        // It takes no room from the fields needed to read the part.
        let head = format!("Content-ID: {}\r\nContent-Type: text/html\r\n\r\n", "x".repeat(MAX_MIME));
        assert_eq!(Mime::of(head.as_bytes()).media, Some(("text".to_owned(), "html".to_owned())));
    }
}
