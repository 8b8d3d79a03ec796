// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages whose structure hides their text or their files from programs, and not from readers.

use super::reading::{OTHER, TEXT, all, html_part, multi, near, paragraphs, plain, reads, shared, text_part};
use bulkmark_samples::encode::base64_lines;
use bulkmark_signature::near::{Near, Thing};

fn mixed(body: &str) -> String {
    format!("Content-Type: multipart/mixed; boundary=b\n\n{body}")
}

#[track_caller]
fn reads_most(raw: impl AsRef<[u8]>) {
    assert!(
        shared(&near(raw.as_ref()), &near(plain(TEXT))) >= 5,
        "{}",
        String::from_utf8_lossy(raw.as_ref())
    );
    assert!(all(raw.as_ref()).body.is_ok());
}

#[test]
fn text_beside_blank_parts_is_read() {
    let html = html_part(TEXT);
    for blank in
        ["\n", "Content-Type: text/html\n\n<html></html>", "Content-Type: application/pgp-signature\n\nx"]
    {
        reads(mixed(&format!("{TEXT}\n--b\n{blank}\n--b--\n")));
        reads(mixed(&format!("--b\n{blank}\n--b--\n{TEXT}")));
        reads(mixed(&format!("--b\n{blank}\n--b--\n--b\n{html}\n--b--\n")));
        reads_most(mixed(&format!("--b junk\n\n{TEXT}\n--b\n{blank}\n--b--\n")));
    }
    let by_return = html.replace('\n', "\r");
    reads(mixed(&format!("--b\n{by_return}\n--b--\n")));
    reads(mixed(&format!("--b\n{html}\n--b--\n")).replace('\n', "\r"));
    // Empty messages of unrelated people have nothing in common but the note of their program.
    let note = "This is a multi-part message in MIME format.\n";
    assert!(all(mixed(&format!("{note}--b\n\n\n--b--\n")).as_bytes()).is_empty());
}

#[test]
fn many_parts_hide_no_other() {
    let html = html_part(TEXT);
    reads(mixed(&format!("{}--b\n{html}\n--b--\n", "--b\n\n\n".repeat(1000))));
    reads_most(mixed(&format!("{}--b\n{html}\n--b--\n", "--b\n\n\n".repeat(20_000))));
    let tiny = "--b\n\nx\n".repeat(1000);
    let raw = format!("Content-Type: multipart/alternative; boundary=b\n\n{tiny}--b\n{html}\n--b--\n");
    reads(raw);
}

/// As an attachment of that type would be: if there is nearly no other text.
#[test]
fn files_of_bytes_are_read_by_their_names() {
    let file = |name: &str, content: &str| {
        format!(
            "Content-Type: application/octet-stream; name={name}\nContent-Disposition: attachment; filename={name}\n\n{content}"
        )
    };
    let html = paragraphs(TEXT);
    let calendar = format!(
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDESCRIPTION:{}\nEND:VEVENT\nEND:VCALENDAR\n",
        TEXT.replace('\n', "\\n")
    );
    let drawing =
        format!("<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"><text>{TEXT}</text></svg>");
    for (name, content) in [
        ("a.html", &html),
        ("a.htm", &html),
        ("a.txt", &TEXT.to_owned()),
        ("a.ics", &calendar),
        ("a.svg", &drawing),
        ("a.eml", &plain(TEXT)),
    ] {
        let file = file(name, content);
        for note in ["", "see it"] {
            reads_most(multi("multipart/mixed", &[&text_part(note), &file]));
        }
        if name != "a.eml" {
            assert_eq!(
                near(multi("multipart/mixed", &[&text_part(OTHER), &file])),
                near(plain(OTHER)),
                "{name}"
            );
        }
    }
    reads_most(multi(
        "multipart/mixed",
        &[&text_part(""), &format!("Content-Type: image/svg+xml\n\n{drawing}")],
    ));
}

/// Bytes that do not repeat.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 59) as u8 % 26)
    };
    (0..length).map(next).collect()
}

fn files(near: &Near) -> Vec<String> {
    let files = near.things.iter().filter(|(thing, _)| matches!(thing, Thing::File(_)));
    files.map(|(_, signature)| signature.to_string()).collect()
}

#[test]
fn small_files_do_not_hide_a_large_one() {
    let file = |bytes: &str| format!("Content-Type: application/pdf\n\n{bytes}");
    let large = file(&noise(1, 20_000));
    let alone = files(&near(multi("multipart/mixed", &[&text_part("Look"), &large])));
    assert_eq!(alone.len(), 1);
    for number in [2, 10] {
        let small: Vec<String> = (0..number).map(|n| file(&noise(100 + n, 2000))).collect();
        let mut parts: Vec<&str> = small.iter().map(String::as_str).collect();
        parts.insert(0, "\nLook");
        parts.push(&large);
        assert!(files(&near(multi("multipart/mixed", &parts))).contains(&alone[0]));
    }
}

/// Identical pages that only run a script, or text without words, are one file.
#[test]
fn attached_text_without_words_is_known_by_its_bytes() {
    let of = |name: &str, text: &str| {
        let file = format!(
            "Content-Type: text/{name}\nContent-Disposition: attachment; filename=x.{name}\n\n{text}"
        );
        files(&near(multi("multipart/mixed", &[&text_part("Look"), &file])))
    };
    let script = |n: u64| format!("<html><script>{}</script></html>", noise(n, 4000));
    assert_eq!(of("html", &script(1)).len(), 1);
    assert_eq!(of("html", &script(1)), of("html", &script(1)));
    assert_ne!(of("html", &script(1)), of("html", &script(2)));
    assert_eq!(of("plain", &"=;=\n".repeat(600)).len(), 1);
    let reply = format!(
        "BEGIN:VCALENDAR\nMETHOD:REPLY\nBEGIN:VEVENT\nX:{}\nEND:VEVENT\nEND:VCALENDAR\n",
        noise(3, 3000)
    );
    assert_eq!(of("calendar", &reply), Vec::<String>::new(), "a form");
}

/// A page of squares, as PNG.
fn picture(seed: u64, side: usize) -> Vec<u8> {
    let squares = noise(seed, side * side / 64).into_bytes();
    let pixel = |at: usize| {
        if squares[at / side / 8 * (side / 8) + at % side / 8].is_multiple_of(2) { 20 } else { 250 }
    };
    let pixels: Vec<u8> = (0..side * side).map(pixel).collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side as u32, side as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    bytes
}

#[test]
fn pictures_in_addresses_are_attached_ones() {
    let page = |html: &str| format!("Content-Type: text/html\n\n<html><body>{html}</body></html>");
    let image = |seed, side| {
        format!(
            "<img src=\"data:image/png;base64,{}\">",
            base64_lines(&picture(seed, side), 76).replace("\r\n", "\n")
        )
    };
    let attached = |seed| {
        let png = base64_lines(&picture(seed, 320), 76);
        let parts =
            format!("Content-Type: image/png\nContent-ID: <i>\nContent-Transfer-Encoding: base64\n\n{png}");
        multi("multipart/related", &[&page("<img src=cid:i>"), &parts])
    };
    let found = all(page(&image(1, 320)).as_bytes());
    assert!(matches!(found.near.things[..], [(Thing::Band(0), _), ..]) && found.body.is_ok());
    assert_eq!(found.near, near(attached(1)));
    assert_ne!(found.near.things, near(attached(2)).things);
    // It does not matter beside a text, and a dot is no content.
    assert_eq!(near(page(&format!("{}{}", paragraphs(TEXT), image(1, 320)))), near(plain(TEXT)));
    assert!(all(page(&image(1, 8)).as_bytes()).is_empty());
    // No more pictures are read than of attached ones.
    let many: String = (0..40).map(|seed| image(seed, 64)).collect();
    assert!(all(page(&many).as_bytes()).near.things.len() <= 8);
}
