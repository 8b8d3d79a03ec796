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
    assert_eq!(related("", &["\none", "\ntwo"]), ["html one", "html two (aside)"]);
    let parts = ["\none", "Content-ID: <r>\n\ntwo"];
    assert_eq!(related("; start=\"<r>\"", &parts), ["html one (aside)", "html two"]);
}

#[test]
fn lines_that_flow_are_joined() {
    assert_eq!(join_lines("one tw \r\no \n-- \r\nx"), "one two-- \r\nx");
}

#[test]
fn depth_and_number_are_bounded() {
    let nested = "Content-Type: message/rfc822\n\n".repeat(1000) + "\ntext";
    let shown = script(&nested);
    assert_eq!(shown.len(), 2 * MAX_DEPTH + 1);
    assert!(shown[MAX_DEPTH].starts_with("text Content-Type"));

    let many = "Content-Type: multipart/mixed; boundary=b\n\n".to_owned() + &"--b\n\nx\n".repeat(10_000);
    let shown = script(&many);
    assert_eq!(shown.len(), MAX_PARTS + 1);
    assert!(shown[MAX_PARTS].starts_with("attachment \r\nx\r\n--b"));
}
