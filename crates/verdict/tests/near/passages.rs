// SPDX-License-Identifier: GPL-3.0-or-later
//! Near signatures: copies that differ share them, and other messages do not.

use crate::memory::Ledger;
use bulkmark_mail::RawMessage;
use bulkmark_signature::near::{Near, stray};
use bulkmark_signature::{Settings, Signatures, signatures};
use bulkmark_types::{FederationKey, Signature};

const TEXT: &str = "Dear friend,\n\
    our autumn sale has begun, and as one of our best customers you are invited to look at it before anybody else.\n\
    All watches are half the price until Sunday, and the delivery is free wherever you live. We have more than four\n\
    hundred models of all famous makers, and each of them comes with a certificate and a box of polished wood.\n\
    Please visit our shop in the old harbour, or order by telephone; our staff will answer all of your questions with\n\
    pleasure. Remember that this offer ends when the last watch is sold, so do not wait too long, your neighbours will\n\
    not wait either. Yours sincerely, the team of the watch house by the river.\n";

const OTHER: &str = "The committee met again on Tuesday to discuss the repairs of the northern bridge, which has been closed\n\
    since the flood in spring. Two companies have sent their plans, and both would need eight months for the work.\n\
    The treasurer explained that the money is there for one of them only, and that the county has to agree first.\n\
    It was decided to ask for a third plan, with wooden beams, and to meet once more before the end of November.\n\
    Meanwhile school buses go round by the mill, as the children know well enough by now.\n";

fn all(raw: &[u8]) -> Signatures {
    signatures(&RawMessage::from_bytes(raw), &FederationKey::public(), &Settings::default())
}

fn near(raw: &[u8]) -> Near {
    all(raw).near
}

fn plain(text: &str) -> Vec<u8> {
    format!("Subject: x\n\n{text}").into_bytes()
}

fn html(body: &str) -> Vec<u8> {
    format!("Content-Type: text/html; charset=utf-8\n\n<html><body>{body}</body></html>").into_bytes()
}

fn paragraphs(text: &str) -> String {
    text.lines().map(|line| format!("<p>{line}</p>\n")).collect()
}

/// The second message counts as a copy of the first, with nearly every key: each chooses other passages.
#[track_caller]
fn joined(a: &[u8], b: &[u8]) {
    let joins = |key: &u8| {
        let mut ledger = Ledger::under(*key);
        ledger.see(a);
        ledger.see(b) == 2
    };
    let keys = (0..8).filter(joins).count();
    assert!(keys >= 7, "joined under {keys} keys of 8:\n{}", String::from_utf8_lossy(b));
}

#[track_caller]
fn apart(a: &[u8], b: &[u8]) {
    let mut ledger = Ledger::default();
    ledger.see(a);
    assert!(ledger.see(b) <= 1, "joined:\n{}", String::from_utf8_lossy(b));
}

#[test]
fn eight_signatures_at_most_and_always_the_same() {
    let first = near(&plain(TEXT));
    assert_eq!(first.slots.len(), 8);
    assert_eq!(first, near(&plain(TEXT)));
    assert!(first.reported().count() <= 8);
    let key = FederationKey::from_bytes(b"another key of a federation").unwrap();
    let other = signatures(&RawMessage::from_bytes(&plain(TEXT)), &key, &Settings::default()).near;
    assert!(first.reported().all(|a| other.reported().all(|b| a != b)));
    let off = Settings { near: false, ..Settings::default() };
    let off = signatures(&RawMessage::from_bytes(&plain(TEXT)), &FederationKey::public(), &off);
    assert!(off.near.is_empty() && off.body.is_ok());
}

#[test]
fn text_around_and_inside() {
    let line =
        "Purple elephants seldom borrow the kettle, said a voice behind seven yellow mountains of paper.";
    for (before, behind) in
        [(line, ""), ("", line), (line, line), ("Dear Robert Clark,", "kx83jd92ks0 qq91zk3")]
    {
        joined(&plain(TEXT), &plain(&format!("{before}\n{TEXT}{behind}\n")));
    }
    let inside =
        TEXT.replace("price until", "price 8djw7dh2k1 until").replace("old harbour", "old quivering harbour");
    joined(&plain(TEXT), &plain(&inside));
    let other_name = TEXT.replace("Dear friend", "Hello Mary.Miller@example.net");
    joined(&plain(TEXT), &plain(&other_name));
}

#[test]
fn words_that_are_changed() {
    let changes: [&[(&str, &str)]; 5] = [
        &[("sale", "$ale"), ("watches", "w@tches"), ("price", "pr1ce"), ("free", "fr33"), ("offer", "0ffer")],
        // Cyrillic letters.
        &[("sale", "s\u{430}le"), ("house", "h\u{43e}use"), ("price", "\u{440}ri\u{441}\u{435}")],
        &[("watches", "wat\u{200b}ches"), ("delivery", "deliv\u{ad}ery"), ("harbour", "har\u{2060}bour")],
        &[
            ("watches", "timepieces"),
            ("begun", "started"),
            ("visit", "see"),
            ("pleasure", "joy"),
            ("famous", "great"),
        ],
        &[
            ("customers", "custmers"),
            ("hundred", "hundrred"),
            ("telephone", "telehpone"),
            ("questions", "qestions"),
        ],
    ];
    for change in changes {
        let text = change.iter().fold(TEXT.to_owned(), |text, (from, to)| text.replace(from, to));
        assert_ne!(text, TEXT);
        joined(&plain(TEXT), &plain(&text));
    }
    joined(&plain(TEXT), &plain(&TEXT.to_uppercase()));
}

#[test]
fn white_space_and_wrapping() {
    joined(&plain(TEXT), &plain(&TEXT.replace(' ', "  ").replace("\n", " \n\n")));
    let words: Vec<&str> = TEXT.split_whitespace().collect();
    let narrow = words.chunks(7).map(|line| line.join(" ")).collect::<Vec<_>>().join("\n");
    joined(&plain(TEXT), &plain(&narrow));
}

#[test]
fn the_same_in_another_form() {
    joined(&plain(TEXT), &html(&paragraphs(TEXT)));
    let alternative = |plain: &str, html: &str| {
        format!(
            "Content-Type: multipart/alternative; boundary=b\n\n--b\n\n{plain}\n--b\nContent-Type: text/html\n\n{html}\n--b--\n"
        )
        .into_bytes()
    };
    joined(&html(&paragraphs(TEXT)), &alternative(TEXT, &paragraphs(TEXT)));
    // A hidden alternative does not matter.
    joined(&html(&paragraphs(TEXT)), &alternative(OTHER, &paragraphs(TEXT)));
    apart(&plain(OTHER), &alternative(OTHER, &paragraphs(TEXT)));
    let utf16 = TEXT.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let utf16 = [b"Content-Type: text/plain; charset=utf-16be\n\n".to_vec(), utf16].concat();
    joined(&plain(TEXT), &utf16);
}

#[test]
fn hidden_text_in_html_does_not_matter() {
    let noise = |n: usize| {
        [
            format!("<span style=\"display:none\">hidden{n} words{n} of{n} noise{n}</span>"),
            format!("<!-- comment{n} with{n} words{n} -->"),
            format!("<font color=#ffffff>white{n} on{n} white{n} text{n}</font>"),
            format!("<a href=\"http://x{n}.shop.example/?id={n}\"></a>"),
        ]
        .concat()
    };
    let noisy = |n: usize| {
        TEXT.split_inclusive(' ')
            .enumerate()
            .map(|(i, word)| word.to_owned() + &noise(100 * n + i))
            .collect::<String>()
    };
    joined(&html(&noisy(1)), &html(&noisy(2)));
    joined(&html(TEXT), &html(&noisy(3)));
    apart(&html(OTHER), &html(&noisy(4)));
}

#[test]
fn unrelated_messages_share_nothing() {
    apart(&plain(TEXT), &plain(OTHER));
    let short = [
        "Thanks, see you on Monday then.",
        "Please see the attached file and let me know if you have any questions.",
    ];
    apart(&plain(short[0]), &plain(short[1]));
    apart(&plain("ok"), &plain("ok"));
}

#[test]
fn footers_and_quotes_do_not_tie() {
    let legal = "This message and its attachments are confidential and meant for the named recipient only. If you are not\n\
        that person, delete it, tell the sender, and do not copy or use it. Opinions are those of the author.\n";
    let list = "_______________________________________________\ntalk mailing list\ntalk@lists.example.org\nhttp://lists.example.org/talk\n";
    for footer in [
        format!("-- \nJohn Smith, Sales\n{legal}"),
        list.to_owned(),
        format!("\n-----Original Message-----\n{OTHER}"),
    ] {
        apart(
            &plain(&format!("{TEXT}{footer}")),
            &plain(&format!("Thank you, we will come back to this next week, after the fair.\n{footer}")),
        );
    }
    let quoted: String = TEXT.lines().map(|line| format!("> {line}\n")).collect();
    apart(
        &plain(TEXT),
        &plain(&format!("No, thank you, my old watch still goes well enough for me.\n{quoted}")),
    );
    let cited = format!(
        "<p>No, thank you, my old watch still goes well enough for me.</p><blockquote type=cite>{TEXT}</blockquote>"
    );
    apart(&html(TEXT), &html(&cited));
}

const OF_DAEMON: &str = "From: MAILER-DAEMON@mx.example.org\n";

fn report(text: &str) -> String {
    format!(
        "Content-Type: multipart/report; report-type=delivery-status; boundary=r\n\n--r\n\n{text}\n--r\n\
         Content-Type: message/delivery-status\n\nAction: failed\n--r\nContent-Type: text/rfc822-headers\n\nSubject: x\n--r--\n"
    )
}

#[test]
fn reports_of_programs_have_none() {
    let near_of = |text: &str| near(format!("{OF_DAEMON}{}", report(text)).as_bytes());
    assert!(near_of(TEXT).is_empty());
    let alternatives = "Content-Type: multipart/alternative; boundary=a\n\n--a\n\n";
    assert!(near_of(&format!("{alternatives}{TEXT}\n--a--\n")).is_empty());
    // A person's text is read, whatever it is called.
    assert!(!near(report(TEXT).as_bytes()).is_empty());
}

/// A report inside a message does not affect the signatures of the rest.
#[test]
fn only_the_report_inside_a_message_is_ignored() {
    let mixed = |parts: &[&str]| {
        let parts: String = parts.iter().map(|part| format!("--b\n{part}\n")).collect();
        format!("{OF_DAEMON}Content-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n").into_bytes()
    };
    let (text, other) = (format!("\n{TEXT}"), report(OTHER));
    let of_text = near(&plain(TEXT));
    let empty = "Content-Type: multipart/report; boundary=r\n\n--r--\n";
    let unbounded = "Content-Type: multipart/report\n\n";
    for parts in [[empty, &*text], [&*text, empty], [&*text, unbounded], [&*other, &*text], [&*text, &*other]]
    {
        let raw = mixed(&parts);
        assert_eq!(near(&raw), of_text, "{}", String::from_utf8_lossy(&raw));
    }
    // Also below an enclosed message, and among alternatives.
    let enclosed = format!("Content-Type: message/rfc822\n\n{empty}");
    assert_eq!(near(&mixed(&[&*text, &*enclosed])), of_text);
    let alternatives = format!(
        "{OF_DAEMON}Content-Type: multipart/alternative; boundary=a\n\n--a\n{text}\n--a\n{other}\n--a--\n"
    );
    assert_eq!(near(alternatives.as_bytes()), of_text);
    // A message without parts is no report; mail programs show it as text.
    let called = format!("Content-Type: multipart/report; boundary=r\n\n{TEXT}");
    assert_eq!(near(called.as_bytes()), of_text);
}

/// A message with a picture of these bytes.
fn picture(text: &str, byte: u8, noise: &str) -> Vec<u8> {
    pictures(text, &[byte], noise)
}

/// A message with pictures, each of its bytes.
fn pictures(text: &str, kinds: &[u8], noise: &str) -> Vec<u8> {
    let gif = |&kind: &u8| format!("--b\nContent-Type: image/gif\n\n{}{noise}\n", picture_bytes(kind));
    let gifs: String = kinds.iter().map(gif).collect();
    format!("Content-Type: multipart/mixed; boundary=b\n\n--b\n\n{text}\n{gifs}--b--\n").into_bytes()
}

fn picture_bytes(byte: u8) -> String {
    let bytes: Vec<u8> =
        (0..6000u32).map(|i| b'a' + ((i * i / 7 + u32::from(byte) * i) % 26) as u8).collect();
    String::from_utf8(bytes).unwrap()
}

/// Twelve messages are twelve, however often each has its picture.
#[test]
fn the_same_file_twice_counts_once() {
    for kinds in [&[1][..], &[1, 1], &[1, 1, 1, 1], &[1, 1, 2], &[2, 1, 2]] {
        let mut ledger = Ledger::default();
        let counts: Vec<_> = (1..=12).map(|_| ledger.see(&pictures("buy now", kinds, ""))).collect();
        assert_eq!(counts, (1..=12).collect::<Vec<_>>(), "{kinds:?}");
    }
    // The second place is for another file.
    assert_eq!(near(&pictures("buy now", &[1, 1, 2], "")), near(&pictures("buy now", &[1, 2], "")));
    let among = |kinds: &[u8]| {
        let parts: String = kinds
            .iter()
            .map(|&kind| format!("--a\nContent-Type: image/gif\n\n{}\n", picture_bytes(kind)))
            .collect();
        near(format!("Content-Type: multipart/alternative; boundary=a\n\n{parts}--a--\n").as_bytes())
    };
    assert_eq!(among(&[1, 1, 2]), among(&[1, 2]));
}

#[test]
fn files_and_links_count_where_there_is_no_text() {
    joined(&picture("", 1, ""), &picture("", 1, "noise at the end"));
    joined(&picture("buy now", 1, ""), &picture("buy now", 1, "noise at the end"));
    apart(&picture("wow", 1, ""), &picture("wow", 2, ""));
    // If there is text, the file belongs to it.
    apart(&picture(TEXT, 1, ""), &picture(OTHER, 1, ""));
    let links = |id: usize| {
        html(&format!(
            "<a href='http://pills.example/autumn-sale-of-pills?u={id}'>x</a>\
             <a href='http://pills.example/to-the-order-form?u={id}'>y</a><img src='http://pills.example/{id}.png'>"
        ))
    };
    joined(&links(1), &links(2));
    // A single link belongs to the words beside it.
    let link = |what: &str| plain(&format!("{what} http://news.example/{}", what.len()));
    apart(&link("look"), &link("interesting"));
}

/// Different people send links to the same large sites.
#[test]
fn links_to_other_pages_of_one_site_are_other_links() {
    let films = |a: &str, b: &str| {
        plain(&format!("look https://video.example/watch?v={a} https://video.example/watch?v={b}\n"))
    };
    apart(&films("a1", "b1"), &films("a2", "b2"));
    joined(&films("a1", "b1"), &films("a1", "b1"));
}

/// The links of a footer do not identify the few words above it.
#[test]
fn links_below_a_text_are_no_message() {
    let mut ledger = Ledger::default();
    let footer: String =
        (0..5).map(|n| format!("<a href='https://site{n}.example/the-company-itself'>s</a> ")).collect();
    let words: Vec<&str> = OTHER.split_whitespace().collect();
    let counts: Vec<u32> = words
        .chunks_exact(4)
        .map(|own| ledger.see(&html(&format!("<p>{}</p>{footer}", own.join(" ")))))
        .collect();
    assert!(counts.iter().all(|&count| count <= 4), "{counts:?}");
}

/// A file that keeps coming with different words loses its weight after a few messages.
#[test]
fn a_file_with_different_text_each_time_loses_its_weight() {
    for length in [3, 20] {
        let mut ledger = Ledger::default();
        let words: Vec<&str> = OTHER.split_whitespace().collect();
        let counts: Vec<u32> = (0..60)
            .map(|n| {
                let mut text: Vec<String> =
                    (0..length).map(|i| words[(n * 7 + i * (n + 3)) % words.len()].to_owned()).collect();
                text.insert(3, format!("word{n}"));
                ledger.see(&picture(&text.join(" "), 1, ""))
            })
            .collect();
        assert!(counts.iter().all(|&count| count <= 6), "{counts:?}");
    }
    // The same picture with the same few words goes on counting.
    let mut ledger = Ledger::default();
    let last = (0..60).map(|_| ledger.see(&picture("buy now", 1, ""))).last();
    assert_eq!(last, Some(60));
}

/// Copies with half of their text different are still counted.
#[test]
fn copies_with_much_other_text_go_on_counting() {
    let mut ledger = Ledger::default();
    let filler = |n: usize| (0..25).map(|i| format!("filler{n}x{}", i * n)).collect::<Vec<_>>().join(" ");
    let count = (0..100).map(|n| ledger.see(&plain(&format!("{TEXT}{}\n", filler(n))))).last();
    assert!(count > Some(60), "{count:?}");
}

#[test]
fn strays_are_signatures_of_their_own() {
    let (key, signature) = (FederationKey::public(), Signature::from_bytes([7; 16]));
    assert_ne!(stray(&key, signature), signature);
    assert_eq!(stray(&key, signature), stray(&key, signature));
}
