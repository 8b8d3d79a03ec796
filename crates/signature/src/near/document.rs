// SPDX-License-Identifier: GPL-3.0-or-later
//! Documents that are equal except for noise in each copy: an identifier, a date, invisible members or objects.
//!
//! A ZIP file is its members, a PDF its streams. Only all main pieces together identify a document: a shared letterhead, shared fonts or
//! styles do not.

use flate2::read::DeflateDecoder;
use memchr::memmem;
use sha2::{Digest, Sha256};
use std::io::Read;

/// Members of a ZIP file, and streams of a PDF, that are looked at.
const MAX_PIECES: usize = 4096;

/// A piece smaller than the largest of its kind by this factor may be noise.
const MINOR: usize = 8;

/// Bytes at the end of a ZIP file that hold the end of its directory: 22, and a comment.
const END: usize = 22 + (1 << 16);

/// Bytes before a stream of a PDF that are searched for its dictionary.
const DICTIONARY: usize = 2048;

/// Bytes of text that are unpacked from all documents of a message.
pub(super) const MAX_TEXT: usize = 2 << 20;

/// Members of an office document that hold its text.
const TEXTS: [&[u8]; 3] = [b"word/document.xml", b"xl/sharedStrings.xml", b"content.xml"];

/// Elements in these that end a line.
const LINES: [&[u8]; 8] =
    [b"w:p", b"w:tc", b"w:br", b"si", b"text:p", b"text:h", b"text:line-break", b"table:table-cell"];

/// The digest of a document's main pieces, without noise. `None` for other files, and for forms, whose main pieces are the same however
/// they are filled in. Linear in the bytes.
pub(super) fn digest(bytes: &[u8]) -> Option<[u8; 32]> {
    let mut pieces = if is_zip(bytes) { of_members(bytes)? } else { of_streams(bytes)? };
    let largest = |kind| pieces.iter().filter(|p: &&Piece| p.kind == kind).map(|p| p.size).max().unwrap_or(0);
    let least = [Kind::Other, Kind::Picture].map(|kind| largest(kind) / MINOR);
    pieces.retain(|piece| piece.size >= least[piece.kind as usize]);
    let mut digests: Vec<[u8; 32]> = pieces.into_iter().map(|piece| piece.digest).collect();
    digests.sort_unstable();
    digests.dedup();
    // The prefix keeps it apart from digests of whole files.
    let mut hash = Sha256::new_with_prefix(b"document pieces\0");
    digests.iter().for_each(|digest| hash.update(digest));
    (!digests.is_empty()).then(|| hash.finalize().into())
}

/// The text of an office document, a line for each paragraph. `left` is reduced by the bytes unpacked.
pub(super) fn text(bytes: &[u8], left: &mut usize) -> Option<String> {
    if !is_zip(bytes) {
        return None;
    }
    let member = members(bytes)?.take(MAX_PIECES).find(|member| TEXTS.contains(&member.name))?;
    let header = bytes.get(member.offset..)?;
    let (name, extra) = (short(header, 26)?, short(header, 28)?);
    let data = header.get(30 + name + extra..).filter(|_| is_zip(header))?;
    let data = data.get(..member.packed)?;
    let mut unpacked = Vec::new();
    let limit = *left as u64;
    match member.method {
        0 => unpacked.extend_from_slice(&data[..data.len().min(*left)]),
        // The part before an error counts.
        8 => drop(DeflateDecoder::new(data).take(limit).read_to_end(&mut unpacked)),
        _ => return None,
    }
    *left = left.saturating_sub(unpacked.len());
    Some(without_tags(&unpacked))
}

/// The kinds of pieces of which a document has large and small ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Other,
    Picture,
}

/// A part of a document.
#[derive(Debug)]
struct Piece {
    kind: Kind,
    /// In bytes.
    size: usize,
    digest: [u8; 32],
}

fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// A member of a ZIP file, by its central directory (APPNOTE 6.3, 4.3.12).
struct Member<'a> {
    name: &'a [u8],
    method: usize,
    crc: &'a [u8],
    packed: usize,
    size: usize,
    offset: usize,
}

/// A little-endian number of two bytes.
fn short(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?)))
}

/// A little-endian number of four bytes.
fn long(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}

/// The members of a ZIP file in the order of its directory, up to the first damage.
fn members(bytes: &[u8]) -> Option<impl Iterator<Item = Member<'_>>> {
    let tail = &bytes[bytes.len().saturating_sub(END)..];
    let end = &tail[memmem::rfind(tail, b"PK\x05\x06")?..];
    let mut rest = bytes.get(long(end, 16)?..)?;
    Some(std::iter::from_fn(move || {
        rest.starts_with(b"PK\x01\x02").then_some(())?;
        let (name, extra, comment) = (short(rest, 28)?, short(rest, 30)?, short(rest, 32)?);
        let member = Member {
            name: rest.get(46..46 + name)?,
            method: short(rest, 10)?,
            crc: rest.get(16..20)?,
            packed: long(rest, 20)?,
            size: long(rest, 24)?,
            offset: long(rest, 42)?,
        };
        rest = rest.get(46 + name + extra + comment..)?;
        Some(member)
    }))
}

/// The members of a ZIP file by checksum and size, without those that programs put into every document.
fn of_members(bytes: &[u8]) -> Option<Vec<Piece>> {
    let is_known = |member: &Member<'_>| member.size == 0 || is_of_program(member.name);
    let mut pieces = Vec::new();
    for member in members(bytes)?.take(MAX_PIECES).filter(|member| !is_known(member)) {
        // Newer encryption leaves the checksum out.
        if member.crc == [0; 4] {
            return None;
        }
        let digest = Sha256::new_with_prefix(member.crc).chain_update(member.size.to_le_bytes());
        let kind = if is_picture(member.name) { Kind::Picture } else { Kind::Other };
        pieces.push(Piece { kind, size: member.size, digest: digest.finalize().into() });
    }
    Some(pieces)
}

/// Whether this member of an office document is made by the program: styles, settings, author and date.
fn is_of_program(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 12] = [
        b"[Content_Types].xml",
        b"styles.xml",
        b"stylesWithEffects.xml",
        b"settings.xml",
        b"webSettings.xml",
        b"fontTable.xml",
        b"numbering.xml",
        b"calcChain.xml",
        b"meta.xml",
        b"mimetype",
        b"manifest.xml",
        b"manifest.rdf",
    ];
    const FOLDERS: [&[u8]; 7] = [
        b"docProps/",
        b"_rels/",
        b"/theme/",
        b"customXml/",
        b"Thumbnails/",
        b"Configurations2/",
        b"/slideLayouts/",
    ];
    let last = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
    NAMES.contains(&last)
        || name.ends_with(b".rels")
        || FOLDERS.iter().any(|folder| memmem::find(name, folder).is_some())
}

fn is_picture(name: &[u8]) -> bool {
    let end = name.rsplit(|&b| b == b'.').next().unwrap_or_default();
    [&b"png"[..], b"jpg", b"jpeg", b"gif", b"emf", b"wmf", b"bmp", b"tiff"]
        .iter()
        .any(|e| end.eq_ignore_ascii_case(e))
}

/// The streams of a PDF as stored (ISO 32000-1, 7.3.8): pages, forms, pictures. Fonts, colour profiles and metadata are left out: unrelated
/// documents of one program share them.
fn of_streams(bytes: &[u8]) -> Option<Vec<Piece>> {
    memmem::find(&bytes[..bytes.len().min(1024)], b"%PDF-")?;
    if memmem::find(bytes, b"/AcroForm").is_some() {
        return None;
    }
    let mut pieces = Vec::new();
    // Start of the bytes behind the stream before, and of the search.
    let (mut start, mut from) = (0, 0);
    while let Some(found) = bytes.get(from..).and_then(|rest| memmem::find(rest, b"stream")) {
        let before = from + found;
        from = before + b"stream".len();
        let window = &bytes[start.max(before.saturating_sub(DICTIONARY))..before];
        if !window.trim_ascii_end().ends_with(b">>") {
            continue;
        }
        let data = &bytes[from..];
        let end = memmem::find(data, b"endstream").unwrap_or(data.len());
        start = from + end;
        from = start + b"endstream".len();
        let dictionary = &window[memmem::rfind(window, b"obj").unwrap_or(0)..];
        if let Some(kind) = kind_of(dictionary).filter(|_| pieces.len() < MAX_PIECES) {
            let stream = data[..end].trim_ascii();
            pieces.push(Piece { kind, size: stream.len(), digest: Sha256::digest(stream).into() });
        }
    }
    Some(pieces)
}

/// The kind of a stream with this dictionary; `None` if it is no content.
fn kind_of(dictionary: &[u8]) -> Option<Kind> {
    const PROGRAMS: [&[u8]; 9] = [
        b"/Length1",
        b"/Type1C",
        b"/CIDFontType0C",
        b"/OpenType",
        b"/Metadata",
        b"/XRef",
        b"/ObjStm",
        b"/Alternate",
        b"/N ",
    ];
    let has = |name: &[u8]| memmem::find(dictionary, name).is_some();
    if PROGRAMS.iter().any(|name| has(name)) {
        return None;
    }
    Some(if has(b"/Image") { Kind::Picture } else { Kind::Other })
}

/// The text between the tags of XML. Five references are decoded; numeric ones stay as written.
fn without_tags(xml: &[u8]) -> String {
    let mut text = Vec::with_capacity(xml.len() / 4);
    let mut rest = xml;
    while let Some(start) = memchr::memchr(b'<', rest) {
        text.extend_from_slice(&rest[..start]);
        let tag = &rest[start + 1..];
        let Some(end) = memchr::memchr(b'>', tag) else { return finish(&text) };
        let tag_end = tag[..end].strip_prefix(b"/").or_else(|| tag[..end].strip_suffix(b"/"));
        if tag_end.is_some_and(|name| LINES.contains(&name)) {
            text.push(b'\n');
        }
        rest = &tag[end + 1..];
    }
    text.extend_from_slice(rest);
    finish(&text)
}

fn finish(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let known = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    if text.contains('&') {
        known.into_iter().fold(text.into_owned(), |text, (name, c)| text.replace(name, c))
    } else {
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    /// A ZIP file of these members.
    fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut file, mut directory) = (Vec::new(), Vec::new());
        for (name, content) in members {
            let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            packer.write_all(content).unwrap();
            let packed = packer.finish().unwrap();
            // Not a real checksum, but one that differs with the content.
            let crc: [u8; 4] = *Sha256::digest(content).first_chunk().unwrap();
            let number = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
            let half = |n: usize| u16::try_from(n).unwrap().to_le_bytes();
            let common = [
                &[20, 0, 0, 0, 8, 0, 0, 0, 0, 0][..],
                &crc,
                &number(packed.len()),
                &number(content.len()),
                &half(name.len()),
                &[0, 0],
            ]
            .concat();
            directory.extend(
                [b"PK\x01\x02", &[20, 0][..], &common, &[0; 10], &number(file.len()), name.as_bytes()]
                    .concat(),
            );
            file.extend([b"PK\x03\x04", &common[..], name.as_bytes(), &packed].concat());
        }
        let number = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
        let end =
            [b"PK\x05\x06", &[0; 8][..], &number(directory.len()), &number(file.len()), &[0, 0]].concat();
        [file, directory, end].concat()
    }

    fn pdf(objects: &[(&str, &[u8])], id: &str) -> Vec<u8> {
        let mut file = format!("%PDF-1.5\n%{id}\n").into_bytes();
        for (dictionary, stream) in objects {
            file.extend(
                [b"1 0 obj\n<<", dictionary.as_bytes(), b">>\nstream\n", stream, b"\nendstream\nendobj\n"]
                    .concat(),
            );
        }
        file.extend(format!("trailer <</ID [<{id}>]>>\n%%EOF\n{id}").bytes());
        file
    }

    /// Bytes that do not repeat.
    fn noise(seed: u8, length: usize) -> Vec<u8> {
        (0..length.div_ceil(32))
            .flat_map(|i| Sha256::digest([&[seed][..], &i.to_le_bytes()].concat()))
            .take(length)
            .collect()
    }

    #[test]
    fn a_pdf_is_its_pages_and_pictures() {
        let (page, picture, font) = (noise(1, 2000), noise(2, 50_000), noise(3, 20_000));
        let of = |page: &[u8], picture: &[u8], font: &[u8], id: &str| {
            digest(&pdf(
                &[
                    ("/Length 9", page),
                    ("/Subtype/Image", picture),
                    ("/Length1 9", font),
                    ("/Type/Metadata", id.as_bytes()),
                    ("", id.as_bytes()),
                ],
                id,
            ))
        };
        let one = of(&page, &picture, &font, "a");
        assert!(one.is_some());
        assert_eq!(one, of(&page, &picture, &noise(9, 100), "another identifier"));
        // A letter with the same head, and another picture on the same page.
        assert_ne!(one, of(&noise(4, 2000), &picture, &font, "a"));
        assert_ne!(one, of(&page, &noise(5, 50_000), &font, "a"));
        assert_eq!(digest(&pdf(&[("/AcroForm", &page)], "a")), None);
        assert_eq!(digest(b"%PDF-1.5 without a stream"), None);
        assert_eq!(digest(b"no document, but a stream"), None);
    }

    #[test]
    fn a_zip_file_is_its_main_members() {
        let (program, theme) = (noise(1, 9000), noise(2, 90_000));
        let of = |program: &[u8], small: &[u8], core: &str| {
            let members: [(&str, &[u8]); 4] = [
                ("a/offer.bin", program),
                (core, core.as_bytes()),
                ("docProps/core.xml", small),
                ("word/theme/theme1.xml", &theme),
            ];
            digest(&zip(&members))
        };
        let one = of(&program, b"small", "readme-1");
        assert!(one.is_some());
        assert_eq!(one, of(&program, &noise(3, 5000), "readme-two"));
        assert_ne!(one, of(&noise(4, 9000), b"small", "readme-1"));
        assert_eq!(digest(&zip(&[("word/styles.xml", &theme)])), None);
    }

    #[test]
    fn the_text_of_an_office_document_is_read() {
        let xml = b"<?xml version=\"1.0\"?><w:p><w:r><w:t>Cheap &amp; go</w:t></w:r><w:r><w:t>od</w:t></w:r></w:p><w:p>one</w:p>";
        let mut left = MAX_TEXT;
        let document = zip(&[("[Content_Types].xml", b"no"), ("word/document.xml", xml)]);
        assert_eq!(text(&document, &mut left).as_deref(), Some("Cheap & good\none\n"));
        assert_eq!(left, MAX_TEXT - xml.len());
        assert_eq!(text(&zip(&[("a", b"no")]), &mut left), None);
        // A ZIP bomb is unpacked only up to the limit.
        let bomb = zip(&[("word/document.xml", &vec![b'x'; 1 << 24])]);
        let mut left = 1000;
        assert_eq!(text(&bomb, &mut left).map(|text| text.len()), Some(1000));
        assert_eq!((text(&bomb, &mut left), left), (Some(String::new()), 0));
    }

    proptest! {
        /// Any damage is read without a panic.
        #[test]
        fn any_document_is_read(kind in 0..2, changes in prop::collection::vec((0..2000usize, 0..=255u8), 0..20), cut in 0..2000usize) {
            let mut bytes = if kind == 0 {
                zip(&[("word/document.xml", &noise(1, 900)), ("a", b"b")])
            } else {
                pdf(&[("/Length 9", &noise(1, 900)), ("/Image", b"endstream stream")], "x")
            };
            for (at, b) in changes {
                let length = bytes.len();
                bytes[at % length] = b;
            }
            bytes.truncate(bytes.len().max(cut) - cut.min(bytes.len()) / 8);
            digest(&bytes);
            text(&bytes, &mut 10_000);
        }
    }
}
