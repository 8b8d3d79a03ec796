// SPDX-License-Identifier: GPL-3.0-or-later
//! The text of a message that its near signatures are made from.

use bulkmark_mail::RawMessage;
use bulkmark_signature::near::{ContextKind, Near, Thing, positions};
use bulkmark_signature::{Settings, Signatures, signatures};
use bulkmark_types::FederationKey;

pub(crate) const TEXT: &str = "Dear friend,\n\
    the bakery by the old mill opens a second shop in spring, and everybody who comes on the first day gets a warm loaf.\n\
    We bake with flour from the valley, without hurry, and each bread rests for a night before it sees the oven.\n\
    Order cakes for birthdays by telephone, three days before; our confectioner makes them with the fruit of the season.\n\
    On Sundays there is breakfast at the long table, with eggs of our own hens and as much coffee as you can drink.\n\
    Please tell your neighbours, bring your children, and ask for the sweet rolls, for they never last until noon.\n";

pub(crate) const OTHER: &str = "The harbour office has counted boats again, and there are fewer than ever before in these forty years.\n\
    Fees were raised twice, and those who fish for a living moved to the next bay where the ice is still cheap.\n\
    A meeting about it will be held in the school, with the mayor, two biologists and whoever else wants to speak.\n";

pub(crate) const LEGAL: &str = "This message is meant for the person named above and may hold matters that are not public. Whoever gets it\n\
    by mistake is asked to tell the sender and to remove all copies from his systems without reading or using them.\n";

pub(crate) fn all(raw: &[u8]) -> Signatures {
    signatures(&RawMessage::from_bytes(raw), &FederationKey::public(), &Settings::default())
}

/// Without the signature of its last words, which are part of its text.
pub(crate) fn near(raw: impl AsRef<[u8]>) -> Near {
    let mut near = all(raw.as_ref()).near;
    near.contexts.retain(|context| context.kind != ContextKind::Last);
    near
}

pub(crate) fn plain(text: &str) -> String {
    format!("Subject: x\n\n{text}")
}

fn page(body: &str) -> String {
    format!("Content-Type: text/html; charset=utf-8\n\n<html><body>{body}</body></html>")
}

pub(crate) fn paragraphs(text: &str) -> String {
    text.lines().map(|line| format!("<p>{line}</p>\n")).collect()
}

/// A multipart of parts, each with its header.
pub(crate) fn multi(kind: &str, parts: &[&str]) -> String {
    let boundary = kind.split(';').next().unwrap_or_default().replace('/', "-");
    let parts: String = parts.iter().map(|part| format!("--{boundary}\n{part}\n")).collect();
    format!("Content-Type: {kind}; boundary=\"{boundary}\"\n\n{parts}--{boundary}--\n")
}

pub(crate) fn text_part(text: &str) -> String {
    format!("Content-Type: text/plain\n\n{text}")
}

pub(crate) fn html_part(text: &str) -> String {
    format!("Content-Type: text/html\n\n{}", paragraphs(text))
}

fn quoted(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}\n")).collect()
}

/// The number of slots in which one reports a passage that the other looks up.
pub(crate) fn shared(a: &Near, b: &Near) -> usize {
    let slots = a.slots.iter().zip(&b.slots);
    slots.filter(|(a, b)| b.passages.iter().any(|(_, signature)| *signature == a.reported())).count()
}

/// Its own text alone, without contexts.
fn own(near: Near) -> Near {
    Near { contexts: Vec::new(), ..near }
}

#[track_caller]
pub(crate) fn reads(raw: impl AsRef<[u8]>) {
    let raw = raw.as_ref();
    assert_eq!(own(near(raw)), near(plain(TEXT)), "{}", String::from_utf8_lossy(raw));
}

#[track_caller]
fn reads_with_some_words(raw: &str) {
    assert!(shared(&near(plain(TEXT)), &near(raw)) >= 5, "{raw}");
}

#[track_caller]
fn reads_nothing_of_it(raw: &str) {
    assert_eq!(shared(&near(plain(TEXT)), &near(raw)), 0, "{raw}");
}

#[test]
fn a_message_that_is_all_quoted_is_its_quote() {
    for by in ["> ", ">", "Tim> ", ">> ", "> > > "] {
        reads(plain(&quoted(TEXT, by)));
        reads(plain(&format!("On 3 May 2026, Tim Tester <tim@example.org> wrote:\n{}", quoted(TEXT, by))));
    }
    let fields = "From: Tim Tester\nSent: Monday\nTo: you\nSubject: bread\n\n";
    for mark in ["-----Original Message-----\n", "---------- Forwarded message ---------\n", ""] {
        reads(plain(&format!("{mark}{fields}{TEXT}")));
        reads(plain(&format!("\n\n{mark}{fields}{}", quoted(TEXT, "> "))));
        // Own words without content.
        reads_with_some_words(&plain(&format!("FYI\n\n{mark}{fields}{TEXT}")));
    }
    for (start, end) in [
        ("<div class=\"gmail_quote\">", "</div>"),
        ("<blockquote type=cite>", "</blockquote>"),
        ("<div class='gmail_quote'><blockquote type=cite>", "</blockquote></div>"),
    ] {
        reads(page(&format!("{start}{}{end}", paragraphs(TEXT))));
        reads(page(&format!("<p></p>{start}{}{end}", paragraphs(&quoted(TEXT, "&gt; ")))));
    }
}

/// Ten answers to one letter are not ten copies of it.
#[test]
fn an_answer_is_not_the_answered_message() {
    for answer in ["Yes, fine with me.", "Thank you!\n\nI will come.", "No."] {
        let name = "On 3 May 2026, at ten, Tim Tester wrote:";
        let raw = plain(&format!("{answer} See you.\n\n{name}\n{}", quoted(TEXT, "> ")));
        reads_nothing_of_it(&raw);
        assert!(near(&raw).slots.is_empty(), "who is answered is no text of one's own: {raw}");
        reads_nothing_of_it(&plain(&format!("{answer} See you.\n-----Original Message-----\n{TEXT}")));
        reads_nothing_of_it(&page(&format!(
            "<p>{answer} See you.</p><div class=gmail_quote>{}</div>",
            paragraphs(TEXT)
        )));
    }
    // An answer may have no words.
    for answer in ["http://docs.example.org/baking", "cumsum(c(x[1],pmax(0,diff(x))))*x"] {
        let raw = plain(&format!("{answer}\n\n{}", quoted(TEXT, "> ")));
        reads_nothing_of_it(&raw);
    }
    // Below a text, or with a quote in its middle.
    assert_eq!(own(near(plain(&format!("{}{OTHER}", quoted(TEXT, "> "))))), near(plain(OTHER)));
    // The answer may be in another part than the quote.
    reads_nothing_of_it(&multi(
        "multipart/mixed",
        &[&text_part("Yes, fine with me."), &text_part(&quoted(TEXT, "> "))],
    ));
}

#[test]
fn text_that_begins_with_a_rule_is_the_message() {
    for rule in
        ["--", "-- ", "\n\n----------------------------------------", "=====================", "--\n\n--"]
    {
        reads(plain(&format!("{rule}\n{TEXT}")));
        reads(plain(&format!("{rule}\n{TEXT}-- \nTim Tester\nBakery\n")));
    }
    // A title in a box.
    let row = "*".repeat(30);
    reads_with_some_words(&plain(&format!("{row}\nThe bakery\n{row}\n{TEXT}")));
    reads(plain(&quoted(&format!("-- \n{TEXT}"), "> ")));
}

/// A signature or a list footer stays unread beside any word, and beside a file.
#[test]
fn a_footer_is_not_the_message() {
    let footer = format!("-- \nTim Tester, Head of Sales, Example Corporation\n{LEGAL}");
    assert!(near(plain(&format!("Thanks!\n{footer}"))).is_empty());
    assert!(near(plain(&format!("http://docs.example.org/baking\n{footer}"))).slots.is_empty());
    let of_list = text_part(&format!("{}\n{LEGAL}", "_".repeat(40)));
    assert!(near(multi("multipart/mixed", &[&text_part("Yes, fine."), &of_list])).is_empty());
    assert_eq!(near(multi("multipart/mixed", &[&text_part(TEXT), &of_list])), near(plain(TEXT)));
    let bytes: String = (0..3000u32).map(|i| char::from(b'a' + (i * i % 26) as u8)).collect();
    let file = format!("Content-Type: application/pdf\n\n{bytes}");
    let scan = near(multi("multipart/mixed", &[&text_part(&format!("\n\n{footer}")), &file]));
    assert!(scan.slots.is_empty() && scan.things.len() == 1);
}

#[test]
fn links_of_unread_text_are_ignored() {
    let links = "<a href='http://one.example/'></a> <a href='http://two.example/'></a> <a href='http://three.example/'></a>";
    let of = |body: &str| near(page(&format!("{body}{links}"))).things;
    assert!(matches!(of("")[..], [(Thing::Links, _)]));
    assert_eq!(of(&format!("<blockquote type=cite>{OTHER}</blockquote>Yes")), []);
    assert_eq!(of(&format!("Yes<p>-- </p>{}", paragraphs(LEGAL))), []);
    // A word that was left out is not much.
    assert!(matches!(of("Yes<p>-- </p>Tim<br>")[..], [(Thing::Links, _)]));
}

#[test]
fn the_richest_alternative_is_read() {
    let stub =
        text_part("Your program cannot show this letter, please click here to open it in a browser now.");
    let unknown = |kind: &str| format!("Content-Type: {kind}\n\n{OTHER}");
    let html = &*html_part(TEXT);
    for parts in [
        &[html, &stub][..],
        &[&stub, html],
        &[html, &unknown("text/x-abcde")],
        &[html, &unknown("text/calendar; method=REQUEST")],
        &[&unknown("text/watch-html"), html, &unknown("text/x-amp-html")],
        &[&text_part(TEXT), &unknown("text/directory")],
        &[&html_part(OTHER), html],
        // Invisible content is not shown.
        &[&text_part(TEXT), "Content-Type: text/html\n\n<html><body></body></html>"],
        &[&unknown("text/x-abcde"), &text_part(TEXT), "Content-Type: text/html\n\n"],
        &[&stub, &multi("multipart/related", &[html, "Content-Type: image/png\n\nx"])],
        &[&multi("multipart/related", &[html, "Content-Type: image/png\n\nx"]), &stub],
        &[&stub, &multi("multipart/mixed", &[html, "Content-Type: text/html\n\n<br>"])],
    ] {
        reads(multi("multipart/alternative", parts));
    }
    // No other alternative has words.
    reads(multi(
        "multipart/alternative",
        &["Content-Type: text/plain\n\n", &format!("Content-Type: text/x-abcde\n\n{TEXT}")],
    ));
}

/// All parts of an alternative belong to it, and attachments of another one stay attached.
#[test]
fn an_alternative_may_have_parts() {
    let (first, second) = TEXT.split_at(TEXT.find("Order").unwrap());
    let file = format!("Content-Type: application/pdf\n\n{}", "0123456789abcdef".repeat(100));
    let mixed = multi("multipart/mixed", &[&html_part(first), &file, &html_part(second)]);
    reads(multi("multipart/alternative", &[&text_part(OTHER), &mixed]));
    let short = "Content-Type: text/html\n\n<p>look</p>";
    let with = near(multi(
        "multipart/alternative",
        &[&multi("multipart/mixed", &[&text_part("see"), &file]), short],
    ));
    assert!(matches!(with.things[..], [(Thing::File(0), _)]));
}

/// Texts that differ in long numbers alone are one text, beside a file as well.
#[test]
fn numbers_are_alike() {
    let with = |number: &str| near(plain(&TEXT.replace(" the ", &format!(" the {number} "))));
    assert_eq!(with("70319").slots, with("INV-1234567").slots);
    assert_ne!(with("70319").slots, with("12").slots);
    let file = format!("Content-Type: application/pdf\n\n{}", "0123456789abcdef".repeat(100));
    let beside = |text: &str| near(multi("multipart/mixed", &[&text_part(text), &file]));
    assert_eq!(beside("Invoice 123456 attached"), beside("Invoice INV-99001 attached"));
}

#[test]
fn a_line_is_no_footer_of_itself() {
    let line = TEXT.replace('\n', " ") + "To unsubscribe, write to us.";
    assert_eq!(near(plain(&line)).slots.len(), 8);
    assert_eq!(shared(&near(page(&line)), &near(plain(&line))), 8);
}

/// A message with a broken structure is its text.
#[test]
fn no_text_is_lost_with_the_structure() {
    let mixed = |body: &str| format!("Content-Type: multipart/mixed; boundary=b\n\n{body}");
    for body in [
        format!("--b\nContent-Type: text/plain\n{TEXT}--b--\n"),
        format!("--b and more\n\n{TEXT}--b--\n"),
        format!("--b\nContent-Type: message/rfc822\n\n{TEXT}--b--\n"),
        format!("--b\nContent-Type: TEXT (none) / plain (none)\n\n{TEXT}"),
        format!(
            "--b\nContent-Type: text/enriched\n\n<bold>{}</bold>--b--",
            TEXT.replace("the", "t<x>h</x>e")
        ),
    ] {
        reads_with_some_words(&mixed(&body));
    }
    assert_eq!(shared(&near(mixed(&format!("{TEXT}--b--\n"))), &near(plain(TEXT))), 8);
    assert_eq!(shared(&near(format!("Subject: x\n{TEXT}")), &near(plain(TEXT))), 8);
    reads(format!("Subject: x\nContent-Type: multipart/mixed; boundary=b\n \n--b\n\n{TEXT}--b--"));
    let nested = (0..40).fold(text_part(TEXT), |inner, n| multi(&format!("multipart/x{n}"), &[&inner]));
    assert!(shared(&near(nested), &near(plain(TEXT))) > 2);
    // In a file the header alone is no text, nor is a header against the rules.
    assert!(all(b"Subject: one two three four five six\nX: seven eight nine\n").is_empty());
}

#[test]
fn words_go_on_behind_tags_that_take_no_place() {
    for tag in [
        "<x>",
        "<x-y></x-y>",
        "</zz>",
        "<time>",
        "<meta name=x>",
        "<input type=hidden>",
        "<img src=u: width=0>",
        "<style>p{}</style>",
        "<wbr>",
    ] {
        reads(page(&paragraphs(&TEXT.replace("th", &format!("t{tag}h")))));
    }
    assert_ne!(near(page(&paragraphs(&TEXT.replace("th", "t<br>h")))), near(plain(TEXT)));
    let noise =
        near(page(&format!("<template>{OTHER}</template>{}<video>{OTHER}</video>", paragraphs(TEXT))));
    assert_eq!(shared(&noise, &near(plain(TEXT))), 7);
}

#[test]
fn old_charsets_and_encodings_are_read() {
    for (field, body) in [
        ("Content-Type: text/plain; charset=cp437", TEXT.to_owned()),
        ("Content-Type: text/plain; charset=hz-gb-2312", TEXT.to_owned()),
        (
            "Content-Type: text/plain; charset=utf-32be",
            TEXT.chars().flat_map(|c| ['\0', '\0', '\0', c]).collect(),
        ),
        ("Content-Transfer-Encoding: quoted-printable (comment)", TEXT.replace('w', "=77")),
        ("Content-Transfer-Encoding: Quoted-Printable;", TEXT.replace('w', "=77")),
        (
            "Content-Transfer-Encoding: \"quoted-printable\"\nContent-Transfer-Encoding: 7bit",
            TEXT.replace('w', "=77"),
        ),
        ("Content-Type: text/plain; format=flowed; delsp=yes", TEXT.replace("the ", "th \ne ")),
    ] {
        reads(format!("{field}\n\n{body}"));
    }
}

/// A text with blanks at these letters.
fn spread(text: &str, blank: impl Fn(usize) -> bool) -> String {
    let letters = text.chars().filter(|c| !c.is_whitespace()).enumerate();
    let mut spread = String::new();
    for (i, c) in letters {
        spread.push(c);
        if blank(i) {
            spread.push(if i % 60 == 59 { '\n' } else { ' ' });
        }
    }
    spread
}

#[test]
fn blanks_do_not_matter_in_disguised_words() {
    let apart = near(plain(&spread(TEXT, |_| true)));
    assert_eq!(apart.slots.len(), 8);
    for (n, text) in [
        spread(TEXT, |i| i % 7 != 3),
        spread(TEXT, |i| i % 2 == 0),
        spread(TEXT, |i| i * i % 5 < 3),
        spread(TEXT, |i| i % 60 == 59),
        spread(TEXT, |_| false),
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(near(plain(text)), apart, "{n}");
    }
    // A letter per cell, and joined words in spans with margins.
    let cells: String =
        TEXT.chars().filter(|c| !c.is_whitespace()).map(|c| format!("<td>{c}</td>")).collect();
    assert_eq!(near(page(&cells)), apart);
    let spans: String = TEXT.split_whitespace().map(|word| format!("<span class=a>{word}</span>")).collect();
    assert_eq!(near(page(&spans)), apart);
    // Digits for letters, and another word in the middle.
    let other =
        TEXT.replace("bakery", "b@kery").replace("oven", "0ven").replace("breakfast", "a midnight supper");
    assert!(shared(&apart, &near(plain(&spread(&other, |_| true)))) >= 5);
    assert_eq!(shared(&apart, &near(plain(&spread(&OTHER.repeat(2), |_| true)))), 0);
}

/// One word in spaced letters is one word, within an ordinary text.
#[test]
fn letters_that_stand_apart_are_a_word() {
    let with = |word: &str| near(plain(&TEXT.replace("bakery", word)));
    assert_eq!(with("b a k e r y"), with("B. a. k. e. r. y."));
    assert!(shared(&with("b a k e r y"), &near(plain(TEXT))) >= 5);
    let message = RawMessage::from_bytes(plain(&TEXT.replace("bakery", "b a k e r y")).as_bytes());
    let positions = positions(&message, &FederationKey::public());
    let joined: String = positions.iter().map(|position| position.word.to_lowercase()).collect();
    assert!(joined.contains("bakery"), "{joined}");
    assert!(positions.iter().filter(|position| position.word.len() == 1).count() < "bakery".len() + 3);
    // Numbers and tables stay as they are.
    let table = "a 1 2 3 b 4 5 6 and c 7 8 9 then d\n".repeat(3);
    let other = "a 3 2 1 b 6 5 4 and c 9 8 7 then d\n".repeat(3);
    assert_eq!(shared(&near(plain(&table)), &near(plain(&other))), 0);
}

/// A few words above a disguised text are recognised together with it; ten people who answer one letter write other words, or sign with
/// other names.
#[test]
fn few_words_above_a_quote_are_recognised_with_it() {
    let of = |words: &str, name: &str, text: &str| {
        let near = near(plain(&format!("{words}\n{name}\n\n{}", quoted(text, "> "))));
        near.things.first().map(|(thing, signature)| {
            assert_eq!(*thing, Thing::Answer);
            *signature
        })
    };
    for words in ["Please see below", "Please look at this offer of ours today"] {
        let first = of(words, "", TEXT);
        assert!(first.is_some());
        // One more word in the quoted text, outside the drawn passages.
        assert_eq!(first, of(words, "", &format!("{TEXT}\nYours 8471\n")));
        assert_ne!(first, of("Thank you for the letter", "", TEXT));
        assert_ne!(first, of(words, "", OTHER));
    }
    let answer = "Thank you for this very kind letter.";
    assert_ne!(of(answer, "Tim", TEXT), of(answer, "Ann", TEXT));
    assert_eq!(of("", "", TEXT), None);
    assert!(near(plain("Please look at this offer\n")).is_empty());
}

/// Invisible characters, and text written from right to left.
#[test]
fn letters_are_read_as_they_are_seen() {
    let words = |change: &dyn Fn(&str) -> String| {
        TEXT.split_inclusive('\n')
            .map(|line| line.split(' ').map(change).collect::<Vec<_>>().join(" "))
            .collect::<String>()
    };
    let inside = |mark: &str| {
        words(&|word| {
            let middle = word.chars().take(word.chars().count() / 2).map(char::len_utf8).sum();
            let (start, end) = word.split_at(middle);
            if start.is_empty() { word.to_owned() } else { format!("{start}{mark}{end}") }
        })
    };
    let header = "Content-Type: text/plain; charset=utf-8\n\n";
    for mark in [
        "\u{1}", "\u{b}", "\u{c}", "\u{1f}", "\u{2028}", "\u{2029}", "\u{85}", "\u{17b4}", "\u{200b}",
        "\u{1ab0}", "\u{20d0}",
    ] {
        reads(format!("{header}{}", inside(mark)));
    }
    // Between all letters, too.
    for mark in ["\u{200b}", "\u{336}", "\u{fe0f}"] {
        let all = TEXT.chars().map(|c| if c.is_alphabetic() { format!("{c}{mark}") } else { c.to_string() });
        reads(format!("{header}{}", all.collect::<String>()));
    }
    let mathematical = |c: char| match c {
        'a'..='z' => char::from_u32(c as u32 - 'a' as u32 + 0x1_d41a).unwrap(),
        c => c,
    };
    reads(format!("{header}{}", TEXT.chars().map(mathematical).collect::<String>()));
    let reversed: String =
        TEXT.lines().map(|line| format!("\u{202e}{}\n", line.chars().rev().collect::<String>())).collect();
    reads(format!("{header}{reversed}"));
    let turned: String = TEXT
        .lines()
        .map(|line| format!("<p><bdo dir=rtl>{}</bdo></p>", line.chars().rev().collect::<String>()))
        .collect();
    reads(page(&turned));
}

#[test]
fn boxes_are_read_in_the_order_in_which_they_stand() {
    let lines: Vec<String> = TEXT.lines().map(|line| format!("<div>{line}</div>")).collect();
    let reversed: String = lines.iter().rev().map(String::as_str).collect();
    reads(page(&format!("<div style='display:flex;flex-direction:column-reverse'>{reversed}</div>")));
    reads(page(&format!(
        "<style>.o{{display:flex;flex-flow:wrap column-reverse}}</style><section class=o>{reversed}</section>"
    )));
    let numbered: String = lines
        .iter()
        .enumerate()
        .rev()
        .map(|(n, line)| line.replace("<div>", &format!("<div style='order:{n}'>")))
        .collect();
    reads(page(&format!("<div style='display:grid'>{numbered}</div>")));
    let letters = TEXT
        .replace("bakery", "<b style='display:inline-flex;flex-flow:row-reverse'><i>kery</i><i>ba</i></b>");
    reads(page(&paragraphs(&letters)));
    // Without such boxes, order numbers and directions have no effect.
    let flowing: String =
        lines.concat().replace("<div>", "<div style='order:-1;flex-direction:row-reverse'>");
    reads(page(&flowing));
}

/// A PDF with noise in each copy, below few words; bills of one company share all but a page.
#[test]
fn documents_are_known_by_their_main_pieces() {
    let long = |seed: &str| (0..400).map(|i| format!("{seed}{}", i * i)).collect::<Vec<_>>().join(" ");
    let message = |page: &str, noise: &str| {
        let pdf = format!(
            "%PDF-1.4\n%{noise}\n1 0 obj\n<</Length 9>>\nstream\n{}\nendstream\nendobj\n2 0 obj\n<</Subtype/Image>>\nstream\n{}\nendstream\n\
             endobj\n3 0 obj\n<</Type/Metadata>>\nstream\n{noise}\nendstream\nendobj\ntrailer <</ID [<{noise}>]>>\n",
            long(page),
            long("logo").repeat(9),
        );
        near(multi(
            "multipart/mixed",
            &[
                &text_part("See the bill"),
                &format!("Content-Type: application/pdf\nContent-Disposition: attachment\n\n{pdf}"),
            ],
        ))
    };
    let files = |near: &Near| {
        near.things.iter().filter(|(t, _)| matches!(t, Thing::File(_))).map(|(_, s)| *s).collect::<Vec<_>>()
    };
    let one = files(&message("a", "1"));
    assert_eq!(one.len(), 1);
    assert_eq!(one, files(&message("a", "another one 9")));
    assert_ne!(one, files(&message("b", "1")));
}
