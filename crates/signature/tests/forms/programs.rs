// SPDX-License-Identifier: GPL-3.0-or-later
//! Text by programs is no author's text: reports, attached text, calendars, encrypted text.

use super::reading::{
    LEGAL, OTHER, TEXT, html_part, multi, near, paragraphs, plain, reads, shared, text_part,
};
use bulkmark_signature::near::Thing;

const STATUS: &str = "Content-Type: message/delivery-status\n\nAction: failed";

/// A report as a mail server or a person sends it.
fn report(from: &str, parts: &[&str]) -> String {
    format!("From: Mail <{from}>\n{}", multi("multipart/report", parts))
}

const SHOWN: &str = "This receipt only says that the message was shown on the computer of the recipient. It does not say that anybody has \
                     read or understood the message, nor when.";

const RECEIPT: &str = "Content-Type: message/disposition-notification\n\nDisposition: displayed";

#[test]
fn a_report_is_the_message_that_it_encloses() {
    let message = format!("Content-Type: message/rfc822\n\n{}", plain(TEXT));
    let words = text_part(OTHER);
    for (from, status) in [("MAILER-DAEMON@mx.example", STATUS), ("postmaster@mx.example", RECEIPT)] {
        reads(report(from, &[&words, status, &message]));
        let headers = format!("Content-Type: text/rfc822-headers\n\nSubject: {}", TEXT.replace('\n', " "));
        assert!(near(report(from, &[&words, status, &headers])).is_empty());
    }
    // A report of a report.
    let inner = report("mailer-daemon@mx.example", &[&words, STATUS, &message]);
    let inner = format!("Content-Type: message/rfc822\n\n{inner}");
    reads(report("postmaster@mx.example", &[&html_part(OTHER), STATUS, &inner]));
    // A receipt, which a mail program sends in the name of a person.
    reads(report("ann@example.org", &[&text_part(SHOWN), RECEIPT, &message]));
    assert!(near(report("ann@example.org", &[&text_part(SHOWN), RECEIPT])).is_empty());
}

#[test]
fn false_reports_are_read() {
    reads(multi("multipart/report", &[&html_part(TEXT)]));
    reads(multi("multipart/report; report-type=delivery-status", &[&text_part(TEXT)]));
    let message = format!("Content-Type: message/rfc822\n\n{}", plain(TEXT));
    let (first, second) = TEXT.split_at(TEXT.find("Order").unwrap());
    let second = format!("Content-Type: message/rfc822\n\n{}", plain(second));
    reads(multi("multipart/report", &[&text_part(first), &second]));
    // Its own words are a mail server's only if a mail server sent the status, with the message that it is about.
    for (from, status) in
        [("postmaster@mx.example", STATUS), ("offers@example.com", STATUS), ("offers@example.com", RECEIPT)]
    {
        reads(report(from, &[&text_part(TEXT), status]));
    }
    reads(multi("multipart/report", &[&html_part(TEXT), STATUS]));
    let about = "Content-Type: message/rfc822\n\nSubject: x\n\nx";
    assert!(near(report("postmaster@mx.example", &[&text_part(TEXT), STATUS, about])).is_empty());
    let long = TEXT.repeat(5);
    let of_daemon = near(report("postmaster@mx.example", &[&text_part(&long), STATUS, about]));
    assert!(shared(&of_daemon, &near(plain(&long))) >= 7, "no server writes that much");
    // Fifty words of a person.
    let few = TEXT.split_inclusive(' ').take(50).collect::<String>();
    for parts in [&[&*text_part(&few), STATUS][..], &[&text_part(&few), STATUS, about]] {
        assert!(shared(&near(report("ann@example.org", parts)), &near(plain(&few))) >= 7);
    }
    // Few words with a link are no receipt either.
    let short = "<p>Look at <a href='https://shop.example/offers'>these offers</a> of the week, which end on Sunday night at ten</p>";
    for status in [STATUS, RECEIPT] {
        assert!(!near(report("offers@example.com", &[&html_part(short), status])).is_empty());
    }
    // A message beside a report is a message by itself.
    let report = multi("multipart/report", &[&text_part(SHOWN), RECEIPT]);
    let both = multi("multipart/mixed", &[&report, &message]);
    reads(format!("From: mailer-daemon@mx.example\n{both}"));
}

/// A part that is attached.
fn attached(kind: &str, text: &str) -> String {
    format!("Content-Type: {kind}\nContent-Disposition: attachment; filename=x\n\n{text}")
}

#[test]
fn attached_text_is_a_file() {
    let mixed = |parts: &[&str]| multi("multipart/mixed", parts);
    for kind in ["text/plain", "text/csv", "text/x-patch", "text/vcard", "text/calendar"] {
        let file = attached(kind, OTHER);
        reads(mixed(&[&text_part(TEXT), &file]));
        reads(mixed(&[&file, &text_part(TEXT)]));
        let file = attached(kind, TEXT);
        for note in ["", "see attached"] {
            assert!(shared(&near(mixed(&[&text_part(note), &file])), &near(plain(TEXT))) > 6, "{kind}");
        }
        // Beside a few words, the words identify the message.
        let long = attached(kind, &format!("{TEXT}{OTHER}{LEGAL}"));
        let beside = |note: &str| near(mixed(&[&text_part(note), &long]));
        let (one, other) = (beside("Here is our list"), beside("As we said on Monday"));
        assert!(matches!(one.things[..], [(Thing::File(0), _)]) && one.slots.is_empty(), "{kind}");
        assert_eq!(one.things, other.things);
        assert_ne!(one.rest, other.rest);
    }
    reads(mixed(&[&text_part(TEXT), &attached("text/html", &paragraphs(OTHER))]));
    reads(mixed(&["Content-Type: text/plain\n\n", &attached("text/html", &paragraphs(TEXT))]));
}

#[test]
fn a_calendar_is_the_text_that_people_wrote() {
    let calendar = |method: &str| {
        let text = TEXT.replace('\n', "\\n").replace(',', "\\,");
        format!(
            "Content-Type: text/calendar; method={method}\n\nBEGIN:VCALENDAR\nPRODID:A program of five words\nMETHOD:{method}\nBEGIN:VTIMEZONE\n\
             TZID:Somewhere in the middle of Europe\nEND:VTIMEZONE\nBEGIN:VEVENT\nUID:x\nDESCRIPTION:{text}\nLOCATION:here\nEND:VEVENT\nEND:VCALENDAR\n"
        )
    };
    let empty = "Content-Type: text/plain\n\n";
    for kind in ["multipart/alternative", "multipart/mixed"] {
        reads(multi(kind, &[empty, &calendar("REQUEST")]));
        assert!(near(multi(kind, &[empty, &calendar("REPLY")])).is_empty());
    }
    reads(calendar("PUBLISH"));
    assert!(near(calendar("reply")).is_empty());
    // A few words beside an invitation do not hide it.
    let few = &*text_part("You are invited, please answer\n");
    for parts in [[few, &calendar("REQUEST")], [&calendar("REQUEST"), few]] {
        assert!(shared(&near(multi("multipart/alternative", &parts)), &near(plain(TEXT))) >= 5);
    }
}

/// Rows of marks and of invisible characters say nothing, so they hide neither a quote nor the text below a rule.
#[test]
fn marks_above_a_text_are_no_answer() {
    let quoted: String = TEXT.lines().map(|line| format!("> {line}\n")).collect();
    for marks in ["\u{2500}".repeat(30), "\u{200b}".repeat(40), "* ".repeat(30), "\u{2800}".repeat(20)] {
        let raw = format!("Content-Type: text/plain; charset=utf-8\n\n{marks}\n\n{quoted}");
        reads(raw);
    }
    let rule = "-".repeat(40);
    for unseen in ["\u{200b}", "\u{feff}", "\u{34f}"] {
        let above = format!("Look at this\n{}\n", unseen.repeat(500));
        let raw = format!("Content-Type: text/plain; charset=utf-8\n\n{above}{rule}\n{TEXT}");
        assert!(shared(&near(raw), &near(plain(TEXT))) >= 5);
        let leave = format!("{above}To unsubscribe, read this:\n{TEXT}");
        let raw = format!("Content-Type: text/plain; charset=utf-8\n\n{leave}");
        assert!(shared(&near(raw), &near(plain(TEXT))) >= 5);
    }
    // Pictographs may be an answer.
    let raw = format!("Content-Type: text/plain; charset=utf-8\n\n{}\n\n{quoted}", "\u{1F44D}".repeat(8));
    assert_eq!(shared(&near(raw), &near(plain(TEXT))), 0);
}

#[test]
fn encrypted_text_is_ignored() {
    let lines: String = (0..40u64)
        .map(|i| format!("{:0>60}\n", format!("{:X}", i.wrapping_mul(0x9E37_79B9_7F4A_7C15))))
        .collect();
    let block = |name: &str| {
        format!(
            "-----BEGIN {name}-----\nVersion: A program 1.2\nComment: that can be had from one of many places for no money\n\n{lines}-----END {name}-----\n"
        )
    };
    for name in ["PGP MESSAGE", "PGP PUBLIC KEY BLOCK", "CERTIFICATE"] {
        assert!(near(plain(&block(name))).is_empty());
        assert!(near(plain(&format!("Here is my key.\n\n{}", block(name)))).is_empty());
        reads(plain(&format!("{}{TEXT}", block(name))));
        for page in [
            format!("<pre>{}</pre>", block(name)),
            block(name).lines().map(|line| format!("<div>{line}</div>")).collect(),
            block(name).replace('\n', "<br>\n"),
        ] {
            assert!(near(format!("Content-Type: text/html\n\n{page}")).is_empty(), "{page}");
        }
    }
}
