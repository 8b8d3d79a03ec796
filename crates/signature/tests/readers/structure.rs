// SPDX-License-Identifier: GPL-3.0-or-later
//! Multipart messages, and broken parts.

use super::mime::{CODES, MIME};
use super::rows::{Row, Writer, message};
use bulkmark_samples::encode::base64;

/// Further header fields and a body, with passages for `{a}` and so on; `{A}` is `{a}` in base64, and `~` is a line end.
const BROKEN: &[(&str, &str, &str)] = &[
    ("no parts", "Content-Type: multipart/mixed; boundary=b~", "{a}~"),
    ("closing delimiter alone", "Content-Type: multipart/mixed; boundary=b~", "{a}~--b--~"),
    ("no closing delimiter", "Content-Type: multipart/mixed; boundary=b~", "--b~~{a}~--b~~{b}~"),
    ("text behind a delimiter", "Content-Type: multipart/mixed; boundary=b~", "--b zzz~~{a}~--b--~"),
    ("blanks behind a delimiter", "Content-Type: multipart/mixed; boundary=b~", "--b  \t~~{a}~--b--  ~"),
    ("part without a header", "Content-Type: multipart/mixed; boundary=b~", "--b~~{a}~--b~~{b}~--b--~"),
    (
        "header runs into text",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~Content-Type: text/plain~{a}~{b}~--b--~",
    ),
    ("part without an empty line", "Content-Type: multipart/mixed; boundary=b~", "--b~{a}~{b}~--b--~"),
    (
        "boundary in quotes",
        "Content-Type: multipart/mixed; boundary=\"b c'()+_,-./:=?\"~",
        "--b c'()+_,-./:=?~~{a}~--b c'()+_,-./:=?--~",
    ),
    ("boundary without quotes", "Content-Type: multipart/mixed; boundary=b=_c~", "--b=_c~~{a}~--b=_c--~"),
    (
        "boundary in another case",
        "Content-Type: MULTIPART/Mixed; BOUNDARY=Bb~",
        "--Bb~~{a}~--bb~~{b}~--Bb--~",
    ),
    ("boundary with a comment", "Content-Type: multipart/mixed (x); boundary=b (y)~", "--b~~{a}~--b--~"),
    (
        "boundary that begins another",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~Content-Type: multipart/alternative; boundary=bb~~--bb~~{a}~--bb--~--b~~{b}~--b--~",
    ),
    (
        "same boundary inside",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~Content-Type: multipart/mixed; boundary=b~~--b~~{a}~--b--~",
    ),
    ("no boundary", "Content-Type: multipart/mixed~", "--b~~{a}~--b--~"),
    ("empty boundary", "Content-Type: multipart/mixed; boundary=\"\"~", "--~~{a}~----~"),
    (
        "preamble and epilogue",
        "Content-Type: multipart/mixed; boundary=b~",
        "zzz zzz~--b~~{a}~--b--~yyy yyy~",
    ),
    ("delimiter inside of a line", "Content-Type: multipart/mixed; boundary=b~", "--b~~{a} --b {b}~--b--~"),
    ("parts of no bytes", "Content-Type: multipart/mixed; boundary=b~", "--b~~--b~~{a}~--b~--b--~"),
    ("unknown kind of parts", "Content-Type: multipart/zzz; boundary=b~", "--b~~{a}~--b~~{b}~--b--~"),
    (
        "encoded multipart",
        "Content-Type: multipart/mixed; boundary=b~Content-Transfer-Encoding: base64~",
        "--b~~{a}~--b--~",
    ),
    (
        "alternatives",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/html~~<p>{b}</p>~--b--~",
    ),
    (
        "alternatives, page first",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~Content-Type: text/html~~<p>{b}</p>~--b~~{a}~--b--~",
    ),
    (
        "alternatives, last unknown",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~~{a}~--b~Content-Type: application/zzz~~{b}~--b--~",
    ),
    (
        "alternatives, last empty",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/html~~~--b--~",
    ),
    (
        "alternatives, last for a phone",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/html~~<p>{b}</p>~--b~Content-Type: text/x-amp-html~~<html amp4email><body>{c}</body></html>~--b--~",
    ),
    (
        "alternatives with parts",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~~{a}~--b~Content-Type: multipart/related; boundary=c~~--c~Content-Type: text/html~~<p>{b}</p>~--c--~--b--~",
    ),
    (
        "three alternatives of one type",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~~{a}~--b~~{b}~--b~~{c}~--b--~",
    ),
    (
        "one alternative",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~Content-Type: text/html~~<p>{a}</p>~--b--~",
    ),
    (
        "related",
        "Content-Type: multipart/related; boundary=b~",
        "--b~Content-Type: text/html~~<p>{a}</p>~--b~Content-Type: image/png~Content-ID: <i>~~zzz~--b--~",
    ),
    (
        "related with a second page",
        "Content-Type: multipart/related; boundary=b~",
        "--b~Content-Type: text/html~~<p>{a}</p>~--b~Content-Type: text/html~~<p>{b}</p>~--b--~",
    ),
    (
        "related that starts later",
        "Content-Type: multipart/related; boundary=b; start=\"<s@x>\"~",
        "--b~Content-Type: text/html~~<p>{a}</p>~--b~Content-Type: text/html~Content-ID: <s@x>~~<p>{b}</p>~--b--~",
    ),
    (
        "mixed texts",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/html~~<p>{b}</p>~--b~~{c}~--b--~",
    ),
    (
        "signed",
        "Content-Type: multipart/signed; boundary=b; protocol=\"application/pgp-signature\"; micalg=pgp-sha256~",
        "--b~~{a}~--b~Content-Type: application/pgp-signature~~zzz~--b--~",
    ),
    (
        "report of a person",
        "Content-Type: multipart/report; boundary=b; report-type=delivery-status~",
        "--b~~{a}~--b~Content-Type: message/delivery-status~~Reporting-MTA: dns; zzz~--b--~",
    ),
    (
        "attached text",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/plain~Content-Disposition: attachment; filename=zzz.txt~~{b}~--b--~",
    ),
    (
        "inline text with a name",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/plain; name=zzz.txt~Content-Disposition: inline; filename=zzz.txt~~{b}~--b--~",
    ),
    (
        "attached page",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/html~Content-Disposition: attachment; filename=zzz.html~~<p>{b}</p>~--b--~",
    ),
    (
        "page as a file of bytes",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~{a}~--b~Content-Type: application/octet-stream; name=zzz.html~Content-Disposition: inline~~<html><p>{b}</p></html>~--b--~",
    ),
    (
        "disposition that nobody knows",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~Content-Disposition: zzz~~{a}~--b~Content-Disposition: (x) inline~~{b}~--b--~",
    ),
    (
        "the message as an attachment",
        "Content-Type: text/plain~Content-Disposition: attachment; filename=zzz.txt~",
        "{a}~",
    ),
    (
        "text of other kinds",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/csv~~one,two~--b~Content-Type: text/zzz~~{b}~--b--~",
    ),
    ("enriched", "Content-Type: text/enriched~", "<bold>{a}</bold>~~<param>zzz</param>{b} <<x~"),
    ("richtext", "Content-Type: text/richtext~", "<bold>{a}</bold><nl>{b}~"),
    (
        "enclosed message",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~{a}~--b~Content-Type: message/rfc822~~Subject: zzz~~{b}~--b--~",
    ),
    ("enclosed message alone", "Content-Type: message/rfc822~", "Subject: zzz~From: x@example.org~~{a}~"),
    (
        "enclosed message without a header",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~{a}~--b~Content-Type: message/rfc822~~~{b}~--b--~",
    ),
    (
        "enclosed message of parts",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~{a}~--b~Content-Type: message/rfc822~~Content-Type: multipart/mixed; boundary=c~~--c~~{b}~--c~Content-Type: text/html~~<p>{c}</p>~--c--~--b--~",
    ),
    (
        "enclosed message in base64",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~{a}~--b~Content-Type: message/rfc822~Content-Transfer-Encoding: base64~~{A}~--b--~",
    ),
    (
        "digest",
        "Content-Type: multipart/digest; boundary=b~",
        "--b~~Subject: zzz~~{a}~--b~~Subject: yyy~~{b}~--b--~",
    ),
    ("partial", "Content-Type: message/partial; id=x; number=1; total=1~", "Subject: zzz~~{a}~"),
    ("uuencoded file in a text", "Content-Type: text/plain~", "{a}~~begin 644 zzz.txt~%>GIZ>GH~`~end~~{b}~"),
    (
        "file of two pages",
        "Content-Type: text/html~",
        "<html><body>{a}</body></html><html><body>{b}</body></html>~",
    ),
    ("page that is called plain", "Content-Type: text/plain~", "<html><body>{a}</body></html>~"),
    ("text that is called page", "Content-Type: text/html~", "{a}~~{b}~"),
];

/// All of them.
pub(super) fn rows(rows: &mut Vec<Row>) {
    for (name, fields, body) in BROKEN.iter().chain(MIME).chain(CODES) {
        let name = format!("structure/{name}");
        let mut writer = Writer::new(&name);
        // Enough for a text.
        let body = body.replace("{a}", &format!("{} {{a}}", writer.words(20)));
        let encoded = base64(format!("Subject: zzz\r\n\r\n{}\r\n", writer.words(12)).as_bytes());
        let body = writer.fill(&body.replace("{A}", encoded.trim_end()));
        rows.push(Row::new(&name, message(&fields.replace('~', "\r\n"), body.replace('~', "\r\n"))));
    }
    deep(rows);
    lines(rows);
}

/// Multiparts in multiparts, and messages in messages.
fn deep(rows: &mut Vec<Row>) {
    for levels in [10, 33] {
        let name = format!("structure/{levels} levels");
        let mut body = format!("\r\n{}\r\n", Writer::new(&name).words(40));
        for level in 0..levels {
            body = format!(
                "Content-Type: multipart/mixed; boundary=b{level}x\r\n\r\n--b{level}x\r\n{body}\r\n--b{level}x--\r\n"
            );
        }
        let (fields, body) = body.split_once("\r\n\r\n").unwrap();
        rows.push(Row::new(&name, message(&format!("{fields}\r\n"), body)));
    }
}

/// Line ends, and ends of headers.
fn lines(rows: &mut Vec<Row>) {
    let text = |name: &str| {
        let mut writer = Writer::new(name);
        [(); 3].map(|()| writer.words(14)).join("\r\n")
    };
    for (name, end) in [("line feeds", "\n"), ("carriage returns", "\r"), ("line feeds and returns", "\n\r")]
    {
        let name = format!("structure/{name}");
        let raw = message("", text(&name)).into_iter().filter(|&b| b != b'\r').collect::<Vec<u8>>();
        rows.push(Row::new(&name, String::from_utf8(raw).unwrap().replace('\n', end).into_bytes()));
    }
    for (name, before) in [
        ("header with a line that is no field", "zzz\r\n"),
        ("header with an empty name", ": zzz\r\n"),
        ("header with a blank in a name", "Content Type: text/html\r\n"),
        ("header that ends with blanks", "X-A: b\r\n \t\r\n"),
        ("header with a From line", ">From zzz\r\n"),
    ] {
        let name = format!("structure/{name}");
        rows.push(Row::new(&name, message(before, text(&name))));
    }
    let name = "structure/long line";
    rows.push(Row::new(name, message("", Writer::new(name).words(3000))));
    let name = "structure/null bytes";
    rows.push(Row::new(name, message("", text(name).replace("the", "the\0"))));
}
