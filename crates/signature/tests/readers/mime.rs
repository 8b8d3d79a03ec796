// SPDX-License-Identifier: GPL-3.0-or-later
//! Structures and fields that programs write, or write wrongly.

/// As in `structure::BROKEN`: multiparts and types.
pub(super) const MIME: &[(&str, &str, &str)] = &[
    (
        "boundary that ends with a blank",
        "Content-Type: multipart/mixed; boundary=\"b \"~",
        "--b ~~{a}~--b --~",
    ),
    ("boundary on two lines", "Content-Type: multipart/mixed; boundary=\"b~ c\"~", "--b c~~{a}~--b c--~"),
    (
        "boundary by pieces",
        "Content-Type: multipart/mixed; boundary*0=b; boundary*1=\"c\"~",
        "--bc~~{a}~--bc--~",
    ),
    (
        "boundary in percent code",
        "Content-Type: multipart/mixed; boundary*=us-ascii''b%20c~",
        "--b c~~{a}~--b c--~",
    ),
    ("boundary in other quotes", "Content-Type: multipart/mixed; boundary='b'~", "--'b'~~{a}~--'b'--~"),
    ("two boundaries", "Content-Type: multipart/mixed; boundary=b; boundary=c~", "--b~~{a}~--b--~"),
    ("boundary with an escape", "Content-Type: multipart/mixed; boundary=\"b\\c\"~", "--bc~~{a}~--bc--~"),
    ("boundary of hyphens", "Content-Type: multipart/mixed; boundary=\"--\"~", "----~~{a}~------~"),
    (
        "boundary with blanks around the sign",
        "Content-Type: multipart/mixed; boundary = b~",
        "--b~~{a}~--b--~",
    ),
    ("boundary in capitals", "Content-Type: multipart/mixed; BOUNDARY=\"b\"~", "--b~~{a}~--b--~"),
    ("boundary without a semicolon", "Content-Type: multipart/mixed boundary=b~", "--b~~{a}~--b--~"),
    (
        "long boundary",
        "Content-Type: multipart/mixed; boundary=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb~",
        "--bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb~~{a}~--bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb--~",
    ),
    ("blank before a delimiter", "Content-Type: multipart/mixed; boundary=b~", "--b~~{a}~ --b~~{b}~--b--~"),
    ("parts behind the end", "Content-Type: multipart/mixed; boundary=b~", "--b~~{a}~--b--~--b~~{b}~--b--~"),
    (
        "end of the outer inside",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~Content-Type: multipart/mixed; boundary=c~~--c~~{a}~--b~~{b}~--b--~",
    ),
    (
        "inner boundary that begins as the outer",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~Content-Type: multipart/alternative; boundary=b1~~--b1~~{a}~--b1--~--b--~",
    ),
    (
        "part of blanks",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~ ~ ~--b~Content-Type: text/html~~<p>{a}</p>~--b--~",
    ),
    ("no version, with parts", "Content-Type: multipart/mixed; boundary=b~X-A: b~", "--b~~{a}~--b--~"),
    (
        "alternative in related",
        "Content-Type: multipart/related; boundary=b; type=\"multipart/alternative\"~",
        "--b~Content-Type: multipart/alternative; boundary=c~~--c~~{a}~--c~Content-Type: text/html~~<p>{b}</p>~--c--~--b~Content-Type: image/png~Content-ID: <i>~~zzz~--b--~",
    ),
    (
        "mixed in an alternative",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~~{a}~--b~Content-Type: multipart/mixed; boundary=c~~--c~Content-Type: text/html~~<p>{b}</p>~--c~Content-Type: application/pdf~Content-Disposition: inline; filename=zzz.pdf~~zzz~--c~Content-Type: text/html~~<p>{c}</p>~--c--~--b--~",
    ),
    (
        "alternative of page and calendar",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/html~~<p>{b}</p>~--b~Content-Type: text/calendar; method=PUBLISH~~BEGIN:VCALENDAR~BEGIN:VEVENT~SUMMARY:zzz~END:VEVENT~END:VCALENDAR~--b--~",
    ),
    (
        "alternative that is attached",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/html~Content-Disposition: attachment; filename=zzz.html~~<p>{b}</p>~--b--~",
    ),
    (
        "alternative for a watch",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/watch-html~~<b>{b}</b>~--b~Content-Type: text/html~~<p>{c}</p>~--b--~",
    ),
    (
        "alternative of a hidden page",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/html~~<p style='display:none'>{b}</p>~--b--~",
    ),
    (
        "alternative of a message",
        "Content-Type: multipart/alternative; boundary=b~",
        "--b~~{a}~--b~Content-Type: message/rfc822~~Subject: zzz~~{b}~--b--~",
    ),
    (
        "signed parts",
        "Content-Type: multipart/signed; boundary=b; protocol=\"application/pkcs7-signature\"; micalg=sha-256~",
        "--b~Content-Type: multipart/alternative; boundary=c~~--c~~{a}~--c~Content-Type: text/html~~<p>{b}</p>~--c--~--b~Content-Type: application/pkcs7-signature; name=smime.p7s~Content-Transfer-Encoding: base64~~MIIB~--b--~",
    ),
    (
        "signed without a signature",
        "Content-Type: multipart/signed; boundary=b; protocol=\"application/pgp-signature\"~",
        "--b~~{a}~--b--~",
    ),
    ("parallel", "Content-Type: multipart/parallel; boundary=b~", "--b~~{a}~--b~~{b}~--b--~"),
    (
        "form data",
        "Content-Type: multipart/form-data; boundary=b~",
        "--b~Content-Disposition: form-data; name=x~~{a}~--b--~",
    ),
    ("replaced", "Content-Type: multipart/x-mixed-replace; boundary=b~", "--b~~{a}~--b~~{b}~--b--~"),
    (
        "apple double",
        "Content-Type: multipart/appledouble; boundary=b~",
        "--b~Content-Type: application/applefile~Content-Transfer-Encoding: base64~~AAUWBw==~--b~Content-Type: text/html~~<p>{a}</p>~--b--~",
    ),
    (
        "voice",
        "Content-Type: multipart/voice-message; boundary=b~",
        "--b~~{a}~--b~Content-Type: audio/wav~~zzz~--b--~",
    ),
    (
        "message in global form",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~{a}~--b~Content-Type: message/global~~Subject: zzz~~{b}~--b--~",
    ),
    ("message of news", "Content-Type: message/news~", "Subject: zzz~~{a}~"),
    (
        "part whose header begins with a blank",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~ Content-Type: text/html~~<p>{a}</p>~--b--~",
    ),
    (
        "part with two headers",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~Content-Type: text/plain~~{a}~--b--~",
    ),
    (
        "inline page beside text",
        "Content-Type: multipart/mixed; boundary=b~",
        "--b~~{a}~--b~Content-Type: text/html; name=zzz.html~Content-Disposition: inline; filename=zzz.html~~<p>{b}</p>~--b--~",
    ),
    ("file of bytes named as text", "Content-Type: application/octet-stream; name=zzz.txt~", "{a}~"),
    (
        "type of pages",
        "Content-Type: application/xhtml+xml; charset=utf-8~",
        "<html xmlns='http://www.w3.org/1999/xhtml'><body><p>{a}</p></body></html>~",
    ),
    (
        "page with a mark of bytes",
        "Content-Type: text/html; charset=utf-8~",
        "\u{feff}<html><body><p>{a}</p></body></html>~",
    ),
    (
        "page with an XML declaration",
        "Content-Type: text/html; charset=utf-8~",
        "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><html><body><p>{a} gar\u{e7}on</p></body></html>~",
    ),
    (
        "page with another charset in it",
        "Content-Type: text/html; charset=utf-8~",
        "<html><head><meta charset=iso-8859-1></head><body><p>{a} gar\u{e7}on</p></body></html>~",
    ),
    (
        "page with its charset in it",
        "Content-Type: text/html~",
        "<html><head><meta http-equiv=content-type content='text/html; charset=utf-8'></head><body><p>{a} gar\u{e7}on</p></body></html>~",
    ),
    ("markdown", "Content-Type: text/markdown; charset=utf-8~", "{a}~~{b}~"),
    ("text of Windows", "Content-Type: text/plain; charset=utf-8; x-mac-type=0; name=zzz.txt~", "{a}~~{b}~"),
    ("form feeds and tabs", "Content-Type: text/plain; charset=utf-8~", "{a}\u{c}~\t{b}\u{b} {a}~"),
    ("lines of one dot", "Content-Type: text/plain~", "{a}~.~..~{b}~"),
    ("From in the text", "Content-Type: text/plain~", "{a}~>From here {b}~From there {c}~"),
    ("flowed and stuffed", "Content-Type: text/plain; format=flowed~", " From here {a} ~ gar {b} ~den~"),
    ("references in a text", "Content-Type: text/plain~", "{a} &amp; gar&shy;den <b>bold</b> {b}~"),
];
/// Bodies in quoted-printable.
pub(super) const CODES: &[(&str, &str, &str)] = &[
    (
        "quoted, sign alone at ends",
        "Content-Transfer-Encoding: quoted-printable~",
        "{a} gar=~den {b}=20~{c}=~~",
    ),
    (
        "quoted, line ends in code",
        "Content-Transfer-Encoding: quoted-printable~",
        "{a} one=0D=0Atwo=0Athree {b}~",
    ),
    (
        "quoted, letter over two lines",
        "Content-Type: text/plain; charset=utf-8~Content-Transfer-Encoding: quoted-printable~",
        "{a} caf=C3=~=A9 gar=C3=A7on {b}~",
    ),
    (
        "quoted, no letter behind a sign",
        "Content-Transfer-Encoding: quoted-printable~",
        "{a} one=ZZ two== three=4 {b}~",
    ),
    ("quoted-printable without a hyphen", "Content-Transfer-Encoding: quotedprintable~", "{a} gar=64en {b}~"),
    ("quoted and a comment", "Content-Transfer-Encoding: quoted-printable (zzz)~", "{a} gar=64en {b}~"),
    ("quoted, upper case", "Content-Transfer-Encoding: QUOTED-PRINTABLE~", "{a} gar=64en {b}~"),
    ("eight bits with a hyphen", "Content-Transfer-Encoding: 8-bit~", "{a} gar=64en~"),
    ("binary", "Content-Transfer-Encoding: binary~", "{a} gar=64en~"),
];
