// SPDX-License-Identifier: GPL-3.0-or-later
//! Any damage to a transfer encoding is skipped, and any bytes are text in any charset.

#![no_main]

use bulkmark_mail::{File, RawMessage, Text, Visitor};
use libfuzzer_sys::fuzz_target;

const CHARSETS: [&str; 12] = [
    "utf-8",
    "us-ascii",
    "iso-2022-jp",
    "shift_jis",
    "euc-jp",
    "big5",
    "gb18030",
    "euc-kr",
    "windows-1251",
    "utf-16",
    "utf-7",
    "x-unknown",
];

/// The text shown from the only part.
#[derive(Default)]
struct Shown(Vec<u8>);

impl Visitor for Shown {
    fn text(&mut self, text: Text<'_>) {
        self.0 = text.shown.as_bytes().to_vec();
    }
    fn html(&mut self, html: Text<'_>) {
        self.0 = html.shown.as_bytes().to_vec();
    }
    fn file(&mut self, file: File<'_>) {
        self.0 = file.shown.to_vec();
    }
    fn message(&mut self, _: &[&[u8]]) {}
    fn message_end(&mut self) {}
}

fn shown(head: &str, body: &[u8]) -> Vec<u8> {
    let raw = [head.as_bytes(), b"\r\n\r\n", body].concat();
    let mut shown = Shown::default();
    RawMessage::from_bytes(&raw).visit(&mut shown);
    shown.0
}

/// Base64 without padding, with foreign characters after each `step` characters.
fn base64(bytes: &[u8], step: usize) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, &b| bits << 8 | u32::from(b)) << (8 * (3 - group.len()));
        for i in 0..=group.len() {
            out.push(DIGITS[(bits >> (18 - 6 * i)) as usize & 63]);
        }
    }
    out.chunks(step).flat_map(|digits| [digits, b"!\r\n\xff"].concat()).collect()
}

fuzz_target!(|data: &[u8]| {
    let [choice, data @ ..] = data else { return };
    let choice = usize::from(*choice);
    if !data.is_empty() {
        let head = "Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64";
        assert_eq!(shown(head, &base64(data, 1 + choice % 80)), data);
        // All is escaped, after an invalid escape.
        let escaped: String = data.iter().map(|b| format!("={b:02x}=\r\n")).collect();
        let head = "Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: quoted-printable";
        let body = format!("=zz{escaped}");
        assert_eq!(shown(head, body.as_bytes()), [b"=zz", data].concat());
    }
    for encoding in ["base64", "quoted-printable", "8bit"] {
        for kind in ["plain", "html"] {
            let charset = CHARSETS[choice % CHARSETS.len()];
            let head = format!(
                "Content-Type: text/{kind}; charset={charset}\r\nContent-Transfer-Encoding: {encoding}"
            );
            let text = shown(&head, data);
            // A byte becomes a character of three bytes at most.
            assert!(text.len() <= 3 * data.len() + 8, "{} bytes of {}", text.len(), data.len());
        }
    }
});
