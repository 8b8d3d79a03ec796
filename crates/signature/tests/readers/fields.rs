// SPDX-License-Identifier: GPL-3.0-or-later
//! Content-Type, Content-Transfer-Encoding and character sets, in valid and common invalid forms.

use super::rows::{Row, Writer, message};
use bulkmark_samples::encode::{base64, base64_lines, quoted_printable};

/// Values of Content-Type of a page.
const PAGES: &[&str] = &[
    "text/html",
    "TEXT/HTML",
    "text/html;",
    "text/html charset=utf-8",
    "text/html, charset=utf-8",
    "text/html; charset",
    "text/html; charset=",
    "text/html; charset=\"utf-8",
    "text/html; charset=utf-8; charset=koi8-r",
    "text / html",
    "text/ html",
    "text/html (page)",
    "(page) text/html",
    "\"text/html\"",
    "text/html; name=\"a;b\"",
    "text/html; charset=zzz",
    "text/html; charset*=us-ascii''utf-8",
    "html",
    "text",
    "text/",
    "/html",
    "",
    "text\\html",
    "text/html\r\n ;\r\n charset=utf-8",
    "text/html; =x",
    "text/html; x; y=z",
    "text/xhtml",
    "application/xhtml+xml",
];

/// Values of Content-Transfer-Encoding of a text that is in base64.
const ENCODINGS: &[&str] = &[
    "base64",
    "BASE64",
    " base64 ",
    "base64 (comment)",
    "(comment) base64",
    "base64;",
    "base64; x=y",
    "\"base64\"",
    "base-64",
    "x-base64",
    "base64 zzz",
    "base64,",
    "",
    "zzz",
    "8bit",
    "=?utf-8?q?base64?=",
    "'base64'",
    "Base64 ;charset=utf-8",
    "base64base64",
];

/// Names of character sets, with bytes in each for a few words.
const CHARSETS: &[(&str, &[u8])] = &[
    ("us-ascii", b"garden report"),
    ("iso-8859-1", b"gar\xe7on caf\xe9"),
    ("ISO_8859-1", b"gar\xe7on caf\xe9"),
    ("latin1", b"gar\xe7on caf\xe9"),
    ("\"iso-8859-1\"", b"gar\xe7on caf\xe9"),
    ("windows-1252", b"caf\xe9 \x9coil"),
    ("cp1252", b"caf\xe9 \x9coil"),
    ("iso-8859-2", b"\xb1li\xb6 \xbfur"),
    ("iso-8859-15", b"\xbdil caf\xe9"),
    ("koi8-r", b"\xd0\xd2\xc9\xd7\xc5\xd4 \xcd\xc9\xd2"),
    ("windows-1251", b"\xef\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0"),
    ("iso-8859-5", b"\xdf\xe0\xd8\xd2\xd5\xe2"),
    ("gb2312", b"\xc4\xe3\xba\xc3 \xca\xc0\xbd\xe7"),
    ("gbk", b"\xc4\xe3\xba\xc3"),
    ("gb18030", b"\xc4\xe3\xba\xc3"),
    ("hz-gb-2312", b"~{Dc:C~} garden"),
    ("big5", b"\xa7A\xa6n"),
    ("shift_jis", b"\x82\xb1\x82\xf1\x82\xc9\x82\xbf"),
    ("iso-2022-jp", b"\x1b$B$3$s$K$A$O\x1b(B garden"),
    ("iso-2022-kr", b"\x1b$)C\x0e>H3g\x0f garden"),
    ("euc-jp", b"\xa4\xb3\xa4\xf3"),
    ("euc-kr", b"\xbe\xc8\xb3\xe7"),
    ("utf-7", b"caf+AOk- garden"),
    ("unicode-1-1-utf-7", b"caf+AOk- garden"),
    ("utf-8", "café привет 你好".as_bytes()),
    ("utf8", "café привет".as_bytes()),
    ("utf-16", b"\xfe\xff\0g\0a\0r\0d\0e\0n\0 \0a\0n\0d\0 \0r\0e\0p\0o\0r\0t"),
    ("utf-16le", b"g\0a\0r\0d\0e\0n\0 \0a\0n\0d\0 \0r\0e\0p\0o\0r\0t\0"),
    ("utf-32", b"\0\0\xfe\xff\0\0\0g\0\0\0a\0\0\0r"),
    ("cp437", b"caf\x82 gar\x87on"),
    ("ibm850", b"caf\x82 gar\x87on"),
    ("macintosh", b"caf\x8e gar\x8don"),
    ("tis-620", b"\xca\xc7\xd1\xca\xb4\xd5"),
    ("unknown-8bit", "café".as_bytes()),
    ("zzz", "café".as_bytes()),
    ("utf-8", b"caf\xe9 gar\xe7on"),
    ("iso-8859-1", "café garçon".as_bytes()),
    ("us-ascii", "café привет".as_bytes()),
    ("utf8mb4", "café привет".as_bytes()),
    ("UTF_8", "café привет".as_bytes()),
    ("cp65001", "café привет".as_bytes()),
    ("utf-8-sig", "café привет".as_bytes()),
    ("3Dutf-8", "café привет".as_bytes()),
    ("'utf-8'", "café привет".as_bytes()),
    ("windows-31j", b"\x82\xb1\x82\xf1\x82\xc9\x82\xbf"),
    ("x-sjis", b"\x82\xb1\x82\xf1\x82\xc9\x82\xbf"),
    ("x-gbk", b"\xc4\xe3\xba\xc3"),
    ("ks_c_5601-1987", b"\xbe\xc8\xb3\xe7"),
    ("ansi_x3.4-1968", b"garden report"),
    ("iso8859-1", b"gar\xe7on caf\xe9"),
    ("iso88591", b"gar\xe7on caf\xe9"),
    ("ISO-8859-1//TRANSLIT", b"gar\xe7on caf\xe9"),
    ("win-1251", b"\xef\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0"),
    ("windows1251", b"\xef\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0"),
    ("x-cp1251", b"\xef\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0"),
    ("koi8-u", b"\xd0\xd2\xc9\xd7\xc5\xd4 \xcd\xc9\xd2"),
    ("iso-8859-8-i", b"\xf9\xec\xe5\xed \xf9\xec\xe5\xed"),
    ("big5-hkscs", b"\xa7A\xa6n"),
    ("iso-2022-jp-2", b"\x1b$B$3$s$K$A$O\x1b(B garden"),
    ("utf-16be", b"\0g\0a\0r\0d\0e\0n\0 \0a\0n\0d\0 \0r\0e\0p\0o\0r\0t"),
    ("x-mac-cyrillic", b"\xef\xf0\xe8\xe2\xe5\xf2"),
    ("viscii", b"Ti\xaang Vi\xaet"),
    ("gb18030", b"\x81\x30\x86\x30 \xc4\xe3"),
];

/// All of them.
pub(super) fn rows(rows: &mut Vec<Row>) {
    for value in PAGES {
        let name = format!("type/{}", value.escape_default());
        let mut writer = Writer::new(&name);
        let page = format!("<p>{}</p>\r\n<p>{}</p>", writer.words(24), writer.words(12));
        rows.push(Row::new(&name, message(&format!("Content-Type: {value}\r\n"), page)));
    }
    for value in ENCODINGS {
        let name = format!("encoding/{}", value.replace(' ', "_"));
        let body = base64(Writer::new(&name).words(30).as_bytes());
        let fields = format!("Content-Type: text/plain\r\nContent-Transfer-Encoding: {value}\r\n");
        rows.push(Row::new(&name, message(&fields, body)));
    }
    for (number, (charset, bytes)) in CHARSETS.iter().enumerate() {
        let name = format!("charset/{number} {charset}");
        let mut writer = Writer::new(&name);
        let wide = charset.starts_with("utf-16") || charset.starts_with("utf-32");
        let [before, after] = [(); 2].map(|()| if wide { String::new() } else { writer.words(16) });
        let text = [before.as_bytes(), b" ", bytes, b" ", after.as_bytes()].concat();
        let body = base64(if wide { bytes } else { &text });
        let fields =
            format!("Content-Type: text/plain; charset={charset}\r\nContent-Transfer-Encoding: base64\r\n");
        rows.push(Row::new(&name, message(&fields, body)));
    }
    transfer(rows);
    fields_of_a_message(rows);
}

/// Bodies with errors in their transfer encoding.
fn transfer(rows: &mut Vec<Row>) {
    let mut add = |name: &str, encoding: &str, body: &dyn Fn(&str) -> String| {
        let name = format!("transfer/{name}");
        let mut writer = Writer::new(&name);
        let text = [(); 3].map(|()| writer.words(12)).join("\r\n");
        let fields = format!("Content-Type: text/plain\r\nContent-Transfer-Encoding: {encoding}\r\n");
        rows.push(Row::new(&name, message(&fields, body(&text))));
    };
    let quoted = |text: &str| quoted_printable(text.as_bytes(), 40, &|i| i % 7 == 0);
    add("quoted-printable", "quoted-printable", &quoted);
    add("quoted-printable in small digits", "quoted-printable", &|text| {
        quoted(text).replace("=6E", "=6e").replace("=6F", "=6f")
    });
    add("quoted-printable with a stray sign", "quoted-printable", &|text| {
        format!("{text} a=b =zz one=\r\n{text}")
    });
    add("quoted-printable with blanks at ends", "quoted-printable", &|text| {
        quoted(text).replace("=\r\n", "= \t\r\n")
    });
    add("quoted-printable that ends with a sign", "quoted-printable", &|text| format!("{text}="));
    add("base64 without padding", "base64", &|text| {
        base64(text.as_bytes()).trim_end().trim_end_matches('=').to_owned()
    });
    add("base64 with blanks and signs", "base64", &|text| base64(text.as_bytes()).replace('a', "a !-"));
    add("base64 and a text below", "base64", &|text| {
        format!("{}\r\n-- \r\nList footer.\r\n", base64(text.as_bytes()))
    });
    add("base64 in two pieces", "base64", &|text| {
        format!("{}{}", base64(b"The garden report "), base64(text.as_bytes()))
    });
    add("base64 that is text", "base64", &|text| text.to_owned());
    add("base64, each line for itself", "base64", &|text| {
        text.lines().map(|line| base64(format!("{line}\r\n").as_bytes())).collect()
    });
    add("base64 in short lines", "base64", &|text| base64_lines(text.as_bytes(), 4));
    add("base64 in one line", "base64", &|text| base64(text.as_bytes()).replace("\r\n", ""));
    add("base64 behind an empty line", "base64", &|text| format!("\r\n\r\n{}", base64(text.as_bytes())));
    add("base64 with quote marks", "base64", &|text| base64_lines(text.as_bytes(), 60).replace('\n', "\n> "));
    add("base64 in the letters of addresses", "base64", &|text| {
        base64(format!("{text} é>>>???ÿÿÿ {text}").as_bytes()).replace('+', "-").replace('/', "_")
    });
    add("base64 with entities", "base64", &|text| base64(text.as_bytes()).replace('=', "&#61;"));
    add("uuencode", "x-uuencode", &|_| "begin 644 a.txt\r\n-9V%R9&5N(')E<&]R=\r\n`\r\nend\r\n".to_owned());
}

/// Fields that are repeated, folded or in another form.
fn fields_of_a_message(rows: &mut Vec<Row>) {
    for (name, fields) in [
        ("two types", "Content-Type: text/plain\r\nContent-Type: text/html\r\n"),
        ("two types, page first", "Content-Type: text/html\r\nContent-Type: text/plain\r\n"),
        (
            "two encodings",
            "Content-Type: text/plain\r\nContent-Transfer-Encoding: 8bit\r\nContent-Transfer-Encoding: base64\r\n",
        ),
        (
            "two encodings, base64 first",
            "Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\nContent-Transfer-Encoding: 8bit\r\n",
        ),
        ("blank before the colon", "Content-Type : text/html\r\n"),
        ("no blank behind the colon", "Content-Type:text/html\r\n"),
        ("folded before the value", "Content-Type:\r\n text/html\r\n"),
        ("name in capitals", "CONTENT-TYPE: text/html\r\n"),
        ("no version of MIME", "Content-Type: text/html\r\nX-MIME-Version: 0\r\n"),
        ("flowed", "Content-Type: text/plain; format=flowed\r\n"),
        ("flowed, blanks deleted", "Content-Type: text/plain; format=flowed; delsp=yes\r\n"),
    ] {
        let name = format!("field/{name}");
        let mut writer = Writer::new(&name);
        let text = format!("<p>{}</p>\r\n", writer.words(24));
        let body = match name.as_str() {
            name if name.contains("encodings") => base64(writer.words(24).as_bytes()),
            name if name.contains("flowed") => {
                format!("{} gar \r\nden {}\r\n", writer.words(24), writer.words(8))
            }
            _ => text,
        };
        rows.push(Row::new(&name, message(fields, body)));
    }
}
