// SPDX-License-Identifier: GPL-3.0-or-later
//! Payload of whole messages.

use super::Payload;
use crate::near;
use bulkmark_mail::RawMessage;
use bulkmark_types::{FederationKey, Kind, Signature};
use proptest::prelude::*;

const NUMBER: &str = "+44 20 7946 0958";

/// The payload signature of a message with any text.
fn payload(raw: &[u8]) -> Option<Signature> {
    let (raw, key) = (RawMessage::from_bytes(raw), FederationKey::public());
    let mut reader = near::reader(&key, false).with_payload();
    raw.visit(&mut reader);
    reader.finish().payload.finish(&key, &raw.correspondents()).map(|(_, signature)| signature)
}

fn of(kind: Payload, content: &str) -> Signature {
    FederationKey::public().signature(Kind::Payload, &[&[kind as u8], content.as_bytes()])
}

/// The contents that it was made of, among some candidates.
fn seen(raw: &str) -> Vec<&'static str> {
    const KNOWN: [(&str, Payload); 7] = [
        ("+442079460958", Payload::Telephone),
        ("pay@mail.example", Payload::Address),
        ("me@home.example", Payload::Address),
        ("a.example/x", Payload::Site),
        ("b.example", Payload::Site),
        ("DE89370400440532013000", Payload::Iban),
        ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", Payload::Wallet),
    ];
    let found = payload(raw.as_bytes()).into_iter();
    found
        .map(|found| {
            let known = KNOWN.iter().find(|(content, kind)| of(*kind, content) == found);
            known.map_or("?", |(content, _)| *content)
        })
        .collect()
}

#[test]
fn a_number_is_found_wherever_a_reader_sees_it() {
    for part in [
        format!("\n\nCall {NUMBER} now.\n"),
        format!("\n\nA longer line with some more words in it.\n\nRegards\nTim\n{NUMBER}\n"),
        "; charset=utf-8\n\n\u{FF0B}４４.20.７９４６.0958\n".to_owned(),
    ] {
        assert_eq!(seen(&format!("Content-Type: text/plain{part}")), ["+442079460958"], "{part}");
    }
    for html in [
        "<p>+44 <b>20</b> 79<i>46</i> 09<!-- x -->58",
        "<p>+44&nbsp;20&#8203;7946&thinsp;0958",
        "<p><a href='tel:+44-20-7946-0958'>call</a>",
        "<table><tr><td>Call<td>0044 20 7946 0958</table>",
        "<a href=https://wa.me/442079460958>chat</a>",
    ] {
        assert_eq!(seen(&format!("Content-Type: text/html\n\n{html}")), ["+442079460958"], "{html}");
    }
}

#[test]
fn nothing_is_found_where_no_reader_sees_it() {
    let long = "This line has more words than those of a name.";
    for raw in [
        format!("Content-Type: text/html\n\n<p>{long}<img src=x alt='{NUMBER}' title='{NUMBER}'>"),
        format!("Content-Type: text/html\n\n<p>{long}<p style='display:none'>{NUMBER}</p>"),
        format!(
            "Content-Type: text/html\n\n<title>{NUMBER}</title><p>{long}<!-- {NUMBER} --><script>{NUMBER}</script>"
        ),
        format!(
            "Content-Type: text/html\n\n<p>{long}<blockquote type=cite>{NUMBER} <a href=http://a.example/x>x</a></blockquote>"
        ),
        format!("\n{long}\n> {NUMBER}\nOn Monday x <pay@mail.example> wrote:\n> {NUMBER}\n"),
        format!("\n{long}\n-----Original Message-----\nFrom: pay@mail.example\n\n{NUMBER}\n"),
        format!("Subject: {NUMBER}\nX-Phone: {NUMBER}\n\n{long}\n"),
        format!("Content-Type: application/pdf\n\n{NUMBER}\n"),
    ] {
        assert_eq!(seen(&raw), Vec::<&str>::new(), "{raw}");
    }
}

#[test]
fn a_message_that_only_quotes_is_its_quote() {
    assert_eq!(seen(&format!("\nFYI\n\n> Please do call\n> {NUMBER}\n")), ["+442079460958"]);
    let quote = "<blockquote type=cite><a href=http://a.example/x>some words are here</a></blockquote>";
    assert_eq!(seen(&format!("Content-Type: text/html\n\n{quote}")), ["a.example/x"]);
}

#[test]
fn the_shown_alternative_is_read() {
    let raw = format!(
        "Content-Type: multipart/alternative; boundary=b\n\n--b\n\nsee http://b.example\n--b\nContent-Type: text/html\n\n\
         <p>Some words and {NUMBER}\n--b--\n"
    );
    assert_eq!(seen(&raw), ["+442079460958"]);
}

#[test]
fn answers_and_recipients() {
    let text = "\n\nDear me@home.example, write to pay@mail.example\n";
    assert_eq!(seen(&format!("From: x@home.example\nTo: ME@home.example{text}")), ["pay@mail.example"]);
    assert_eq!(
        seen(&format!("From: x@home.example\nCc: Me <me+tag@home.example>{text}")),
        ["pay@mail.example"]
    );
    let hello = "\n\nHello, how are you?\n";
    assert_eq!(
        seen(&format!("From: x@home.example\nReply-To: Pay <pay+1@mail.example>{hello}")),
        ["pay@mail.example"]
    );
    assert!(seen(&format!("From: pay@mail.example\nReply-To: pay@mail.example{hello}")).is_empty());
}

/// In any other content and any order.
#[test]
fn the_rarest_kind_is_chosen() {
    let wallet = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa";
    let mut lines = vec!["http://a.example/x", "write to pay@mail.example", "call +44 20 7946 0958"];
    lines.extend(["DE89 3704 0044 0532 0130 00", wallet]);
    let rarest = ["a.example/x", "pay@mail.example", "+442079460958", "DE89370400440532013000", wallet];
    for (n, rarest) in rarest.into_iter().enumerate() {
        let text = |lines: &mut dyn Iterator<Item = &&str>| {
            lines.fold(String::new(), |all, line| format!("{all}\n{line}"))
        };
        assert_eq!(seen(&text(&mut lines[..=n].iter())), [rarest]);
        assert_eq!(seen(&text(&mut lines[..=n].iter().rev())), [rarest]);
    }
    let many = |order: &mut dyn Iterator<Item = u8>| {
        let lines: String = order.map(|n| format!("\nwrite to a{n}@b.example")).collect();
        payload(lines.as_bytes())
    };
    assert!(many(&mut (0..9)).is_some());
    assert_eq!(many(&mut (0..9)), many(&mut (0..9).rev()));
}

#[test]
fn many_sites_are_no_payload() {
    let links = |n: usize| (0..n).map(|n| format!("http://a{n}.example/x\n")).collect::<String>();
    assert!(payload(format!("\n{}", links(10)).as_bytes()).is_some());
    assert!(payload(format!("\n{}", links(11)).as_bytes()).is_none());
    // Links to one site do not count as many sites.
    let links: String = (100..200).map(|n| format!("http://a.example/x/{n}/y\n")).collect();
    assert!(payload(format!("\n{links}").as_bytes()).is_some());
}

/// All mail of a list has its footer.
#[test]
fn footers_have_none() {
    let text = "A longer line with some words in it.";
    assert_eq!(seen(&format!("\n{text}\n-- \n{NUMBER}\n")), Vec::<&str>::new());
    assert_eq!(seen(&format!("\n{text} {NUMBER}\n-- \n{NUMBER}\n")), ["+442079460958"]);
}

/// The signature of the worked example in docs/signatures.md.
#[test]
fn a_signature_by_hand() {
    let found = payload(b"\nCall (212) 555-0100 today.\n").unwrap();
    assert_eq!(found, of(Payload::Telephone, "+12125550100"));
    assert_eq!(found.to_string(), "719d18343e6f6121eac3c4fcd406983c");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any bytes are read without a panic, and the rewritten text around a payload does not matter.
    #[test]
    fn nothing_panics(
        head in "(Content-Type: (text/html|text/plain|multipart/mixed; boundary=b)\n)?(To|Reply-To|From): \\PC{0,30}\n",
        body in prop::collection::vec(any::<u8>(), 0..400),
        words in prop::collection::vec("[a-z]{2,9}", 0..40),
    ) {
        let raw = [head.as_bytes(), b"\n", &body, b"\n<p>\n", words.join(" ").as_bytes()].concat();
        payload(&raw);
        let raw = format!("\n{}\n{NUMBER}\n", words.join(" "));
        prop_assert_eq!(seen(&raw), ["+442079460958"]);
    }
}
