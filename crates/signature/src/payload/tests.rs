// SPDX-License-Identifier: GPL-3.0-or-later
//! Payload of whole messages.

use super::{MAX_REPORTED, Payload, Payloads};
use bulkmark_mail::RawMessage;
use bulkmark_types::{FederationKey, Kind, Signature};
use proptest::prelude::*;

const NUMBER: &str = "+44 20 7946 0958";

fn payload(raw: &[u8]) -> Payloads {
    crate::payload(&RawMessage::from_bytes(raw).unwrap(), &FederationKey::public())
}

fn of(kind: Payload, content: &str) -> Signature {
    FederationKey::public().signature(Kind::Payload, &[&[kind as u8], content.as_bytes()])
}

/// Kind and content of what is found, of these that it may be.
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
    let all = payload(raw.as_bytes()).all;
    all.iter()
        .map(|found| {
            let known = KNOWN.iter().find(|(content, kind)| of(*kind, content) == found.signature);
            known.map_or("?", |(content, kind)| {
                assert_eq!(*kind, found.kind);
                content
            })
        })
        .collect()
}

#[test]
fn a_number_is_found_wherever_a_reader_sees_it() {
    for part in [
        format!("\n\nCall {NUMBER} now.\n"),
        format!("\n\nA longer line with some words in it.\n-- \nCall {NUMBER} now.\n"),
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
fn a_message_that_only_quotes_is_what_it_quotes() {
    assert_eq!(seen(&format!("\nFYI\n\n> Please do call\n> {NUMBER}\n")), ["+442079460958"]);
    let quote = "<blockquote type=cite><a href=http://a.example/x>some words are here</a></blockquote>";
    assert_eq!(seen(&format!("Content-Type: text/html\n\n{quote}")), ["a.example/x"]);
}

#[test]
fn of_alternatives_the_shown_one_is_read() {
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

#[test]
fn the_rarest_come_first_and_few_of_each() {
    let many: String =
        (0..9).map(|n| format!("http://a{n}.example/x a{n}@b.example +44 20 7946 095{n}\n")).collect();
    let raw = format!(
        "\n{many}DE89 3704 0044 0532 0130 00 or\n1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa\n-- \nsee http://b.example\n"
    );
    let found = payload(raw.as_bytes()).all;
    assert_eq!(found.len(), MAX_REPORTED);
    let kinds: Vec<Payload> = found.iter().map(|found| found.kind).collect();
    let three = |kind| [kind; 3];
    let expected =
        [&[Payload::Wallet, Payload::Iban], &three(Payload::Telephone)[..], &three(Payload::Address)]
            .concat();
    assert_eq!(kinds, expected);
    // Their order in the message does not matter.
    let turned: String = raw.lines().rev().map(|line| format!("{line}\n")).collect();
    assert_eq!(payload(format!("\n{}", turned.replace("-- \n", "")).as_bytes()).all, found);
}

#[test]
fn many_sites_say_nothing() {
    let links = |n: usize| (0..n).map(|n| format!("http://a{n}.example/x\n")).collect::<String>();
    assert_eq!(payload(format!("\n{}", links(10)).as_bytes()).all.len(), 3);
    assert_eq!(payload(format!("\n{}", links(11)).as_bytes()).all.len(), 0);
    // As many links to one site do.
    let links: String = (100..200).map(|n| format!("http://a.example/x/{n}/y\n")).collect();
    assert!(payload(format!("\n{links}").as_bytes()).all.iter().any(|found| found.kind == Payload::Site));
}

#[test]
fn footers_are_told() {
    let text = "A longer line with some words in it.";
    let in_footer =
        |raw: &str| payload(raw.as_bytes()).all.iter().map(|found| found.in_footer).collect::<Vec<_>>();
    assert_eq!(in_footer(&format!("\n{text}\n-- \n{NUMBER}\n")), [true]);
    assert_eq!(in_footer(&format!("\n{text} {NUMBER}\n-- \n{NUMBER}\n")), [false]);
}

/// The signature of the worked example in docs/signatures.md.
#[test]
fn a_signature_by_hand() {
    let found = payload(b"\nCall (212) 555-0100 today.\n").all;
    assert_eq!(found[0].signature, of(Payload::Telephone, "+12125550100"));
    assert_eq!(found[0].signature.to_string(), "719d18343e6f6121eac3c4fcd406983c");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the bytes are; and the rewritten text around a payload does not matter.
    #[test]
    fn nothing_panics(
        head in "(Content-Type: (text/html|text/plain|multipart/mixed; boundary=b)\n)?(To|Reply-To|From): \\PC{0,30}\n",
        body in prop::collection::vec(any::<u8>(), 0..400),
        words in prop::collection::vec("[a-z]{2,9}", 0..40),
    ) {
        let raw = [head.as_bytes(), b"\n", &body, b"\n<p>\n", words.join(" ").as_bytes()].concat();
        prop_assert!(payload(&raw).all.len() <= MAX_REPORTED);
        let raw = format!("\n{}\n{NUMBER}\n", words.join(" "));
        prop_assert!(seen(&raw).contains(&"+442079460958"));
    }
}
