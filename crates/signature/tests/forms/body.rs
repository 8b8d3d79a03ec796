// SPDX-License-Identifier: GPL-3.0-or-later
//! The `body` signature: changes that it ignores, changes that it detects, and its released form.

use bulkmark_mail::RawMessage;
use bulkmark_samples::encode::base64_lines;
use bulkmark_samples::writing::{Part, Piece, Style, mail, write};
use bulkmark_signature::{Settings, signatures};
use bulkmark_types::{FederationKey, LowInformation, Signature};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn signed(raw: &[u8]) -> Result<Signature, LowInformation> {
    bulkmark_signature::body(&RawMessage::from_bytes(raw), &FederationKey::public(), &Settings::default())
}

fn signature(raw: &[u8]) -> Signature {
    signed(raw).expect("enough words")
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}",
        "[A-Z][a-z]{2,6}[.,!]",
        "[a-zàéîõüßÿ]{1,6}",
        "[а-я]{2,7}",
        "[一-三園芸市春花]{1,4}"
    ]
}

fn style() -> impl Strategy<Value = Style> {
    prop::collection::vec(any::<u32>(), 4..12).prop_map(|numbers| Style(numbers, 0))
}

fn link() -> impl Strategy<Value = String> {
    "https://[a-z]{3,8}\\.example/[a-z0-9]{0,8}(\\?a=[a-z]{1,4}&b=[0-9]{1,3})?"
}

/// Enough words that there is always a signature.
fn opening() -> impl Strategy<Value = Part> {
    prop::collection::vec(word(), 0..30).prop_map(|words| {
        let start = "one two three four five six seven eight".split(' ').map(str::to_owned).collect();
        Part::Text(std::iter::once(start).chain(words.chunks(5).map(<[String]>::to_vec)).collect())
    })
}

fn part() -> impl Strategy<Value = Part> {
    let piece = prop_oneof![3 => word().prop_map(Piece::Word), 1 => link().prop_map(Piece::Link)];
    let leaf = prop_oneof![
        prop::collection::vec(prop::collection::vec(word(), 1..6), 1..6).prop_map(Part::Text),
        prop::collection::vec(piece, 1..20).prop_map(Part::Html),
        // Line ends are no part of an attachment's digest, so the last byte is another one.
        prop::collection::vec(1u8..9, 1..200).prop_map(Part::File),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (
                prop::sample::select(vec!["mixed", "alternative", "related"]),
                prop::collection::vec(inner.clone(), 1..4)
            )
                .prop_map(|(sub, parts)| Part::Multipart(sub, parts)),
            ("[A-Z][a-z]{1,9}( [a-z]{1,9}){0,3}", inner)
                .prop_map(|(subject, content)| Part::Message(subject, Box::new(content))),
        ]
    })
}

fn message() -> impl Strategy<Value = Part> {
    (opening(), prop::collection::vec(part(), 0..3)).prop_map(|(first, mut parts)| {
        parts.insert(0, first);
        Part::Multipart("mixed", parts)
    })
}

/// The leaves and enclosed messages, each changed in turn.
fn changed(content: &Part) -> Vec<(&'static str, Part)> {
    match content {
        Part::Text(lines) => {
            let mut more = lines.clone();
            more[0].push("another".to_owned());
            let mut fewer = lines.clone();
            fewer[0].pop();
            vec![("a word more", Part::Text(more)), ("a word less", Part::Text(fewer))]
        }
        Part::Html(pieces) => {
            let mut all = vec![("a word more", [&pieces[..], &[Piece::Word("another".to_owned())]].concat())];
            all.extend((0..pieces.len()).map(|i| {
                let mut pieces = pieces.clone();
                match &mut pieces[i] {
                    Piece::Word(word) => word.push('x'),
                    Piece::Link(target) => target.push('x'),
                }
                ("a word or link", pieces)
            }));
            all.into_iter().map(|(what, pieces)| (what, Part::Html(pieces))).collect()
        }
        Part::File(bytes) => {
            let mut other = bytes.clone();
            other[0] ^= 0x40;
            vec![("a byte", Part::File(other)), ("a byte more", Part::File([&bytes[..], b"x"].concat()))]
        }
        Part::Multipart(sub, parts) => {
            let mut all = Vec::new();
            for (i, part) in parts.iter().enumerate() {
                for (what, part) in changed(part) {
                    let mut parts = parts.clone();
                    parts[i] = part;
                    all.push((what, Part::Multipart(sub, parts)));
                }
                if i > 0 && parts[i - 1] != *part {
                    let mut parts = parts.clone();
                    parts.swap(i - 1, i);
                    all.push(("swapped parts", Part::Multipart(sub, parts)));
                }
            }
            let added = [&parts[..], &[Part::File(b"new".to_vec())]].concat();
            all.push(("an attachment more", Part::Multipart(sub, added)));
            for (i, _) in parts.iter().enumerate().filter(|(_, part)| matches!(part, Part::File(_))) {
                let mut parts = parts.clone();
                parts.remove(i);
                all.push(("an attachment less", Part::Multipart(sub, parts)));
            }
            all
        }
        Part::Message(subject, content) => {
            let with = |subject: String, content: Part| Part::Message(subject, Box::new(content));
            let mut all = vec![(
                "the subject of an enclosed message",
                with(format!("{subject}x"), (**content).clone()),
            )];
            all.extend(changed(content).into_iter().map(|(what, c)| (what, with(subject.clone(), c))));
            all
        }
    }
}

/// Contents with the same words: adjacent parts of the same words are one.
fn canonical_text(part: &Part) -> String {
    match part {
        Part::Text(lines) => format!("T{}", lines.concat().concat()),
        Part::Html(pieces) => format!("H{pieces:?}"),
        Part::File(bytes) => format!("F{bytes:?}"),
        Part::Multipart(_, parts) => parts.iter().map(canonical_text).collect(),
        Part::Message(subject, content) => {
            format!("M{}{}E", subject.replace(' ', ""), canonical_text(content))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// However a message is encoded, its signature is the same.
    #[test]
    fn the_way_of_writing_does_not_matter(content in message(), a in style(), b in style()) {
        let (a, b) = (mail(&content, &mut a.clone()), mail(&content, &mut b.clone()));
        prop_assert_eq!(signature(&a), signature(&b), "{}\n=====\n{}",
            String::from_utf8_lossy(&a), String::from_utf8_lossy(&b));
    }

    /// Every change of the content changes the signature, even if the message is encoded in the same way.
    #[test]
    fn every_change_of_the_content_matters(content in message(), style in style()) {
        let before = signature(&mail(&content, &mut style.clone()));
        for (what, other) in changed(&content) {
            if canonical_text(&other) == canonical_text(&content) {
                continue;
            }
            if let Ok(after) = signed(&mail(&other, &mut style.clone())) {
                prop_assert_ne!(before, after, "{} changed nothing: {:?}", what, other);
            }
        }
    }

    /// A cryptographic signature over the message is no content: the message is the same with or without any kind of signature.
    #[test]
    fn signing_does_not_matter(content in message(), bytes in prop::collection::vec(any::<u8>(), 0..50),
                               kind in 0usize..3, style in style()) {
        let media = ["application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature"][kind];
        let inner = write(&content, &mut style.clone());
        let with_signature = [
            b"From: a@example.org\r\nContent-Type: multipart/signed; boundary=sig\r\n\r\n--sig\r\n", &inner[..],
            format!("\r\n--sig\r\nContent-Type: {media}; name=s\r\nContent-Transfer-Encoding: base64\r\n\r\n{}--sig--\r\n",
                base64_lines(&bytes, 76)).as_bytes(),
        ].concat();
        prop_assert_eq!(signature(&with_signature), signature(&mail(&content, &mut style.clone())));
    }
}

/// Charsets whose encoders would be long: the same sentence, encoded elsewhere.
#[test]
fn charsets_of_several_bytes() {
    // "Spring garden fair: peas and marigolds" in Japanese and Chinese.
    let cases: [(&str, &str, &[u8]); 4] = [
        ("春園芸市", "iso-2022-jp", b"\x1b$B=U1`7];T\x1b(B"),
        ("春園芸市", "shift_jis", b"\x8ft\x89\x80\x8c|\x8es"),
        ("春園芸市", "euc-jp", b"\xbd\xd5\xb1\xe0\xb7\xdd\xbb\xd4"),
        ("尊敬的读者", "gb2312", b"\xd7\xf0\xbe\xb4\xb5\xc4\xb6\xc1\xd5\xdf"),
    ];
    for (text, charset, bytes) in cases {
        let head = |charset: &str| format!("Content-Type: text/plain; charset={charset}\r\n\r\n");
        let english = " one two three four five six seven eight\r\n";
        let foreign = [head(charset).as_bytes(), bytes, english.as_bytes()].concat();
        let utf8 = format!("{}{text}{english}", head("utf-8"));
        assert_eq!(signature(&foreign), signature(utf8.as_bytes()), "{charset}");
    }
}

/// Unrelated short messages must not share a signature, so they have none.
#[test]
fn short_messages_have_none() {
    let plain =
        |text: &str| signed(format!("Content-Type: text/plain; charset=utf-8\r\n\r\n{text}").as_bytes());
    let page =
        |html: &str| signed(format!("Content-Type: text/html; charset=utf-8\r\n\r\n{html}").as_bytes());
    for text in [
        "",
        "\r\n\r\n",
        "thanks",
        "Thanks!\r\n\r\nThanks\r\n",
        "Sent from my iPhone\r\n",
        "Sent from my Samsung Galaxy smartphone.\r\n",
        "ok\r\n-- \r\nErika Mustermann, Head of Sales, Example Ltd, 1 Long Lane, Smallville, Somewhere\r\n",
    ] {
        assert!(plain(text).is_err(), "{text:?}");
        assert!(page(&format!("<p>{text}</p>")).is_err() || text.contains("-- "), "{text:?}");
    }
    assert!(page("<html><body><div><p>&nbsp;</p></div></body></html>").is_err());
    assert_eq!(plain("Vielen Dank").unwrap_err().words, 2);

    assert!(plain("Today only: half the price on every winter coat.").is_ok());
    let empty = "Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n";
    assert!(signed(empty.as_bytes()).is_err());
    assert!(signed(format!("{empty}JVBERi0=\r\n").as_bytes()).is_ok());
}

/// Character references do not split words: the guard counts the same words in each form of a message.
#[test]
fn references_do_not_split_words() {
    let page =
        |html: &str| signed(format!("Content-Type: text/html; charset=utf-8\r\n\r\n{html}").as_bytes());
    let (letters, references) =
        (page("<p>Grüße für Österreich</p>"), page("<p>Gr&uuml;&szlig;e f&uuml;r &Ouml;sterreich</p>"));
    assert_eq!(letters.map_err(|e| e.words), references.map_err(|e| e.words));
}

#[test]
fn characters_without_ink_do_not_matter() {
    let text = |inside: &str| {
        signature(
            format!(
                "Content-Type: text/plain; charset=utf-8\r\n\r\nOnly today: half the price on every win{inside}ter coat"
            )
            .as_bytes(),
        )
    };
    for inside in ["\u{2800}", "\u{fff9}", "\u{fffa}", "\u{fffb}", "\u{1d159}", "\u{200b}", "\u{c}"] {
        assert_eq!(text(inside), text(""), "{inside:?}");
    }
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name)
}

/// The released canonical form. Sites exchange and store these signatures, so released lines of tests/data/signatures.tsv never change. A
/// change of the canonical form needs a new kind with another name (`body/2`), and lines for it.
#[test]
fn the_released_form_stays() {
    let golden = std::fs::read_to_string(data("signatures.tsv")).unwrap();
    let golden: Vec<_> = golden.lines().filter(|l| !l.starts_with('#') && !l.contains(" from ")).collect();
    let mut read = 0;
    for lines in golden.chunk_by(|a, b| a.split('\t').next() == b.split('\t').next()) {
        let name = lines[0].split('\t').next().unwrap();
        let raw = String::from_utf8(std::fs::read(data("mail").join(name)).unwrap()).unwrap();
        // With the line ends of a file, and with those on the wire.
        for raw in [raw.clone(), raw.replace('\n', "\r\n")] {
            assert_eq!(lines_of(name, raw.as_bytes()), lines);
            read += 1;
        }
    }
    assert!(read >= 30);
}

/// The lines of a message in the file of released signatures.
fn lines_of(name: &str, raw: &[u8]) -> Vec<String> {
    let message = RawMessage::from_bytes(raw);
    let found = signatures(&message, &FederationKey::public(), &Settings::default());
    let body = match found.body {
        Ok(signature) => Some(format!("{name}\tbody\t{signature}")),
        Err(reason) if found.near.is_empty() => Some(format!("{name}\tnone\t{reason}")),
        Err(_) => None,
    };
    let near = found.near.reported().map(|signature| format!("{name}\tnear\t{signature}"));
    let contexts = found.near.reported_contexts().map(|signature| format!("{name}\tcontext\t{signature}"));
    let payload = found.near.payload.map(|signature| format!("{name}\tpayload\t{signature}"));
    body.into_iter().chain(near).chain(contexts).chain(payload).collect()
}
