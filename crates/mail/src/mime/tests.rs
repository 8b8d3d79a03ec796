// SPDX-License-Identifier: GPL-3.0-or-later
//! Parts of messages, in valid and broken structures.

use super::*;

/// Records the calls, a line each.
#[derive(Default)]
struct Script(Vec<String>);

impl Visitor for Script {
    fn text(&mut self, text: Text<'_>) {
        self.0.push(format!("text {}", text.exact));
    }
    fn html(&mut self, html: Text<'_>) {
        let aside = if html.is_attachment { " (aside)" } else { "" };
        self.0.push(format!("html {}{aside}", html.exact));
    }
    fn file(&mut self, file: File<'_>) {
        self.0.push(format!("attachment {}", String::from_utf8_lossy(file.exact)));
    }
    fn message(&mut self, fields: &[&[u8]]) {
        self.0.push(format!("message {}", String::from_utf8_lossy(&fields.join(&b'|'))));
    }
    fn message_end(&mut self) {
        self.0.push("end".to_owned());
    }
}

fn script(raw: &str) -> Vec<String> {
    let mut script = Script::default();
    walk(raw.replace('\n', "\r\n").as_bytes(), &mut script);
    script.0
}

#[test]
fn parts_in_order() {
    let raw = "Content-Type: multipart/mixed; boundary=\"b 1\"\n\npreamble\n--b 1\n\none\n--b 1x\n\
               --b 1  \nContent-Type: multipart/alternative; boundary=c\n\n--c\nContent-Type: text/plain\n\ntwo\n\
               --c\nContent-Type: text/html\n\n<p>three\n--c--\n\
               --b 1\nContent-Type: text/html; name=x.html\nContent-Disposition: attachment\n\n<p>four\n\
               --b 1\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\nZml2ZQ==\n\
               --b 1\nContent-Type: application/pkcs7-signature\n\nxyz\n--b 1--\nepilogue\n";
    assert_eq!(
        script(raw),
        ["text one\r\n--b 1x", "text two", "html <p>three", "text <p>four", "attachment five"]
    );
}

#[test]
fn enclosed_messages() {
    let raw = "Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: s\n t\nFrom: f\nX: y\n\none\n\
               --b\nContent-Type: message/rfc822\n\nContent-Type: text/html\n\n<b>two\n--b--\n";
    assert_eq!(
        script(raw),
        ["message f|||s\r\n t|", "text one", "end", "message ||||", "html <b>two", "end"]
    );
}

#[test]
fn broken_structure_is_still_shown() {
    assert_eq!(script(""), ["text "]);
    assert_eq!(script("\nbody"), ["text body"]);
    assert_eq!(script("Content-Type: multipart/mixed\n\none"), ["text one"]);
    assert_eq!(script("Content-Type: multipart/mixed; boundary=b\n\none"), ["text one"]);
    assert_eq!(script("Content-Type: multipart/mixed; boundary=b\n\n--b\n\none"), ["text one"]);
    assert_eq!(script("Content-Type: multipart/mixed; boundary=b\n\n--b\n--b"), ["text ", "text "]);
    assert_eq!(script("Content-Type: multipart/mixed; boundary=b\n\none\n--b--"), ["text one"]);
    let parts = |body: &str| script(&format!("Content-Type: multipart/mixed; boundary=b\n\n{body}\n--b--"));
    assert_eq!(parts("--b x\n\none\n--b y"), ["text one", "text "]);
    // A header without an end.
    let html = "Content-Type: text/html";
    assert_eq!(parts(&format!("--b\n{html}\none two: three")), ["html one two: three"]);
    assert_eq!(parts(&format!("--b\n{html}\nNote: one\nmore: two")), ["html Note: one\r\nmore: two"]);
    assert_eq!(parts(&format!("--b\nno field\n{html}\n\none")), ["html one"]);
    assert_eq!(
        parts("--b\nContent-Type: message/rfc822\n\none, two\n\nthree"),
        ["message ||||", "text one, two\r\n\r\nthree", "end"]
    );
    assert_eq!(
        script("Content-Type: message/rfc822\n\nSubject: s\nFrom: f\n"),
        ["message f|||s|", "text ", "end"]
    );
    let by_return = "Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b--";
    let mut script = Script::default();
    walk(by_return.replace('\n', "\r").replacen("b\r\r", "b\n\n", 1).as_bytes(), &mut script);
    assert_eq!(script.0, ["text one"]);
}

#[test]
fn the_root_of_related_parts_is_shown() {
    let related = |kind: &str, parts: &[&str]| {
        let parts: String =
            parts.iter().map(|part| format!("--b\nContent-Type: text/html\n{part}\n")).collect();
        script(&format!("Content-Type: multipart/related; boundary=b{kind}\n\n{parts}--b--"))
    };
    let frame = "\none <img src='cid:r'>";
    assert_eq!(
        related("", &[frame, "Content-ID: <r>\n\ntwo"]),
        [&format!("html {}", &frame[1..]), "html two (aside)"]
    );
    // Mail programs show a page that the root does not name.
    assert_eq!(related("", &["\none", "Content-ID: <r>\n\ntwo"]), ["html one", "html two"]);
    assert_eq!(related("", &[frame, "\ntwo"]).last().map(String::as_str), Some("html two"));
    let parts = ["Content-ID: <q>\n\none", "Content-ID: <r>\n\ntwo <img src=cid:q>"];
    assert_eq!(related("; start=\"<r>\"", &parts), ["html one", "html two <img src=cid:q>"]);
    let plain = "Content-Type: multipart/related; boundary=b\n\n--b\n\none\n--b\nContent-ID: <r>\nContent-Type: text/html\n\ntwo\n--b--";
    assert_eq!(script(plain), ["text one", "html two"]);
}

#[test]
fn only_a_bare_word_makes_a_file_of_a_part() {
    let page = |disposition: &str| {
        script(&format!("Content-Type: text/html\nContent-Disposition: {disposition}\n\none"))
    };
    for file in ["attachment", "ATTACHMENT; filename=x", "attachment ;x"] {
        assert_eq!(page(file), ["text one"], "{file}");
    }
    for shown in ["\"attachment\"", "(c) attachment", "attachment\"", "inline", "x; attachment"] {
        assert_eq!(page(shown), ["html one"], "{shown}");
    }
    for name in ["x.asc", "x.md", "x.csv"] {
        assert_eq!(
            script(&format!("Content-Type: application/octet-stream; name={name}\n\none")),
            ["text one"]
        );
    }
    assert_eq!(script("Content-Type: application/pgp\n\none"), ["text one"]);
}

#[test]
fn lines_that_flow_are_joined() {
    assert_eq!(join_lines("one tw \r\no \n-- \r\nx"), "one two-- \r\nx");
}

const MIXED: &str = "Content-Type: multipart/mixed; boundary=b\n\n";

#[test]
fn text_beside_blank_parts_is_shown() {
    let html = "Content-Type: text/html";
    let blank = [
        "",
        "\n \u{200b}\n",
        &format!("{html}\n\n"),
        &format!(
            "{html}\n\n<html><head><title>t</title><style>p{{}}</style></head><!-- c > --><body>&nbsp;<p> </body></html>"
        ),
        "Content-Type: application/pgp-signature; name=x.asc\n\nxyz",
        "Content-Type: multipart/mixed; boundary=c\n\n--c\n\n\n--c--",
    ];
    for part in blank {
        let last = |body: String| script(&format!("{MIXED}{body}")).pop();
        assert_eq!(last(format!("one two\n--b\n{part}\n--b--\n")).as_deref(), Some("text one two"), "{part}");
        assert_eq!(last(format!("--b\n{part}\n--b--\none two")).as_deref(), Some("text one two"), "{part}");
        assert_eq!(
            last(format!("one\n--b\n{part}\n--b--\n\n--b--\ntwo")).as_deref(),
            Some("text one\r\ntwo")
        );
        // Parts behind the end.
        let more = format!("--b\n{part}\n--b--\n\n--b\n{html}\n\n<p>one\n--b--\n");
        assert_eq!(last(more).as_deref(), Some("html <p>one"), "{part}");
        let junk = format!("--b junk\n\none\n--b\n{part}\n--b--\n");
        assert_eq!(last(junk).as_deref(), Some("text --b junk\r\n\r\none"), "{part}");
    }
    // A part with content is enough.
    for part in [
        "\n.",
        "Content-Type: image/png\n\nx",
        &format!("{html}\n\n<img src=x>"),
        &format!("{html}\n\n<a>&#65;</a>"),
    ] {
        assert_eq!(script(&format!("{MIXED}one\n--b\n{part}\n--b--\ntwo")).len(), 1, "{part}");
    }
    // Programs say in front of the parts that these are for other programs.
    let note = "This is a multi-part message in MIME format.\n\n";
    assert_eq!(script(&format!("{MIXED}{note}--b\n\n\n--b--\n")), ["text "]);
    assert_eq!(script(&format!("{MIXED}{note}one\n--b\n\n\n--b--\n")), ["text ", "text one"]);
}

#[test]
fn a_return_alone_ends_a_line_of_a_header() {
    let mut script = Script::default();
    let mixed = "Content-Type: multipart/mixed; boundary=b\n\n";
    let part = "Content-Type: text/html\rContent-Transfer-Encoding: quoted-printable\r\r<p>=6Fne\ntwo";
    walk(format!("{mixed}--b\n{part}\n--b--\n").as_bytes(), &mut script);
    assert_eq!(script.0, ["html <p>one\ntwo"]);
    let mut script = Script::default();
    let part = "Content-Type: text/html\r\r\nContent-Transfer-Encoding: quoted-printable\r\r\n\r\r\n<p>=6Fne";
    walk(format!("{mixed}--b\n{part}\n--b--\n").as_bytes(), &mut script);
    assert!(script.0[0].starts_with("html") && script.0[0].ends_with("<p>one"), "several returns are one");
}

#[test]
fn files_are_read_by_their_names() {
    let of = |head: &str, body: &str| script(&format!("{MIXED}--b\n{head}\n\n{body}\n--b--"));
    let octets = "Content-Type: application/octet-stream";
    for name in ["a.html", "b.HTM", "c.x.xhtml", "d.svg", "e.txt", "f.ics", "g.html. "] {
        assert_eq!(of(&format!("{octets}; name=\"{name}\""), "<p>one"), ["text <p>one"], "{name}");
        let by_disposition =
            format!("Content-Type: application/x-zzz\nContent-Disposition: inline; filename=\"{name}\"");
        assert_eq!(of(&by_disposition, "<p>one"), ["text <p>one"], "{name}");
    }
    // "page.html"
    assert_eq!(of(&format!("{octets}; name=\"=?utf-8?B?cGFnZS5odG1s?=\""), "one"), ["text one"]);
    assert_eq!(of("Content-Type: image/svg+xml", "<svg>one"), ["text <svg>one"]);
    let enclosed = of(&format!("{octets}; name=x.eml"), "Subject: s\n\none");
    assert_eq!(enclosed, ["message |||s|", "text one", "end"]);
    for head in [
        format!("{octets}; name=x.pdf"),
        format!("{octets}; name=html"),
        "Content-Type: image/png; name=x.html".to_owned(),
    ] {
        assert_eq!(of(&head, "one"), ["attachment one"], "{head}");
    }
    assert_eq!(of(&format!("{octets}; name=x.html"), "\0one"), ["attachment \0one"], "no text");
}

#[test]
fn messages_of_any_kind_are_shown() {
    let of = |kind: &str| script(&format!("Content-Type: message/{kind}\n\nSubject: s\n\none"));
    assert_eq!(of("news"), ["message |||s|", "text one", "end"]);
    for kind in ["partial; id=x; number=1", "zzz", "delivery-status"] {
        assert_eq!(of(kind), ["text Subject: s\r\n\r\none"], "{kind}");
    }
    let status = "--b\nContent-Type: message/delivery-status\n\none\n--b--";
    assert_eq!(
        script(&format!("Content-Type: multipart/report; boundary=b\n\n{status}")),
        ["attachment one"]
    );
    assert_eq!(script(&format!("{MIXED}{status}")), ["text one"]);
}

#[test]
fn blank_parts_take_no_place() {
    let blank = "--b\n\n\n".repeat(MAX_PARTS);
    let html = "--b\nContent-Type: text/html\n\n<p>one\n--b--";
    assert_eq!(script(&format!("{MIXED}{blank}{html}")).pop().as_deref(), Some("html <p>one"));
    // The last part is read whatever their number, and in an alternative it is the one shown.
    for (kind, parts) in [
        ("mixed", "--b\n\nx\n".repeat(5000)),
        ("alternative", "--b\n\nx\n".repeat(5000)),
        ("mixed", blank.repeat(50)),
    ] {
        let raw = format!("Content-Type: multipart/{kind}; boundary=b\n\n{parts}{html}");
        let shown = script(&raw);
        assert_eq!(shown.last().map(String::as_str), Some("html <p>one"), "{kind}");
        assert!(shown.len() < MAX_PARTS + MAX_BLANK + 3);
    }
    let inner = |text: &str| format!("Content-Type: multipart/mixed; boundary=c\n\n--c\n\n{text}\n--c--");
    let many = "--b\n\nx\n".repeat(MAX_PARTS);
    let raw = format!("{MIXED}{many}--b\n{}\n--b\n{}\n--b--\n", inner("one"), inner("two"));
    let shown = script(&raw);
    assert!(shown[MAX_PARTS].contains("one"));
    assert_eq!(shown[MAX_PARTS + 1..], ["text two"]);
}

#[test]
fn depth_and_number_are_bounded() {
    let nested = "Content-Type: message/rfc822\n\n".repeat(1000) + "\ntext";
    let shown = script(&nested);
    assert_eq!(shown.len(), 2 * MAX_DEPTH + 1);
    assert!(shown[MAX_DEPTH].starts_with("text Content-Type"));

    let many = "Content-Type: multipart/mixed; boundary=b\n\n".to_owned() + &"--b\n\nx\n".repeat(10_000);
    let shown = script(&many);
    assert_eq!(shown.len(), MAX_PARTS + 2);
    assert!(shown[MAX_PARTS].starts_with("text \r\nx\r\n\r\nx\r\n"));
    assert_eq!(shown[MAX_PARTS + 1], "text x\r\n");
}

/// Style sheets of many small pages insert no more text than those of one large page may.
#[test]
fn the_pages_of_a_message_share_their_work() {
    struct Shown(usize);
    impl Visitor for Shown {
        fn text(&mut self, _: Text<'_>) {}
        fn html(&mut self, html: Text<'_>) {
            crate::pieces(html.shown, html.work, &mut |piece| {
                if let crate::Piece::Text(text) = piece {
                    self.0 += text.len();
                }
            });
        }
        fn file(&mut self, _: File<'_>) {}
        fn message(&mut self, _: &[&[u8]]) {}
        fn message_end(&mut self) {}
    }
    let page = format!("<style>p::before{{content:'{}'}}</style>{}", "word ".repeat(200), "<p>".repeat(30));
    let part = format!("--b\r\nContent-Type: text/html\r\n\r\n{page}\r\n");
    let message = format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{}--b--\r\n", part.repeat(200));
    let mut shown = Shown(0);
    walk(message.as_bytes(), &mut shown);
    assert!((200_000..300_000).contains(&shown.0), "{} bytes of text in {} bytes", shown.0, message.len());
}
