// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon behind a real Postfix: what senders are told, and what recipients get.
//!
//! Each test has a Postfix and a daemon of its own. Clients say by XCLIENT where they come from, since mail from
//! loopback is exempt.

mod common;

use common::mta::{Kind, Mta, NEWS, Rig, message, message_with_id};
use common::smtp::{Client, Origin, Reply};
use common::{PATIENCE, Site, crlf};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

/// The first copy is bulk already: for tests of what is done with bulk.
const AT_ONCE: &str = "[thresholds]\nbody = 1\n";

const BULK_AT_ONCE: &str = "bulk; body=1; threshold=1; host=mx.test";

fn rig(extra: &str) -> Option<Rig> {
    Rig::start(Kind::Postfix, extra)
}

/// A header without the rest of its line from `host` on.
fn count(header: &str) -> &str {
    header.split("; host=").next().unwrap()
}

// Counting

#[test]
fn nineteen_copies_are_clean_and_the_twentieth_is_bulk() {
    let Some(rig) = rig("") else { return };
    rig.expect_bulk_at_the_twentieth(&mut rig.outside());
}

#[test]
fn another_text_has_a_count_of_its_own() {
    let Some(rig) = rig("") else { return };
    assert_eq!(count(&rig.verdict_for("a@box.test", &message("", NEWS))), "clean; body=1; threshold=20");
    let other = message("", &NEWS.replace("Saturday", "Sunday"));
    assert_eq!(count(&rig.verdict_for("b@box.test", &other)), "clean; body=1; threshold=20");
    assert_eq!(count(&rig.verdict_for("c@box.test", &message("", NEWS))), "clean; body=2; threshold=20");
}

#[test]
fn of_messages_that_come_at_a_time_each_gets_a_count_of_its_own() {
    let Some(rig) = rig("") else { return };
    thread::scope(|scope| {
        for n in 0..6 {
            let rig = &rig;
            scope.spawn(move || {
                let mut client = rig.outside();
                for _ in 0..5 {
                    client
                        .send(&format!("news{n}@sender.test"), &["a@box.test"], &message("", NEWS))
                        .expect(250);
                }
            });
        }
    });
    let mails = rig.mta.wait_for_mail("a@box.test", 30);
    let mut found: Vec<_> = mails.iter().map(|mail| count(&mail.verdict()).to_owned()).collect();
    let verdict = |n| if n < 20 { "clean" } else { "bulk" };
    let mut expected: Vec<_> = (1..=30).map(|n| format!("{}; body={n}; threshold=20", verdict(n))).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_message_to_25_recipients_is_bulk_at_once() {
    let Some(rig) = rig("") else { return };
    let recipients: Vec<_> = (0..25).map(|n| format!("reader{n}@box.test")).collect();
    let recipients: Vec<_> = recipients.iter().map(String::as_str).collect();
    rig.outside().send("news@sender.test", &recipients, &message("", NEWS)).expect(250);
    for recipient in recipients {
        let mail = &rig.mta.wait_for_mail(recipient, 1)[0];
        assert_eq!(mail.verdict(), "bulk; body=25; threshold=20; host=mx.test");
    }
}

#[test]
fn a_message_counts_once_where_messages_are_counted() {
    let Some(rig) = rig("[counting]\nper = \"message\"\n") else { return };
    let recipients: Vec<_> = (0..25).map(|n| format!("reader{n}@box.test")).collect();
    let recipients: Vec<_> = recipients.iter().map(String::as_str).collect();
    rig.outside().send("news@sender.test", &recipients, &message("", NEWS)).expect(250);
    assert_eq!(count(&rig.mta.wait_for_mail(recipients[7], 1)[0].verdict()), "clean; body=1; threshold=20");
    assert_eq!(count(&rig.verdict_for("more@box.test", &message("", NEWS))), "clean; body=2; threshold=20");
}

#[test]
fn recipients_that_postfix_refused_are_not_counted() {
    let Some(rig) = rig("") else { return };
    let mut client = rig.outside();
    let envelope = ["a@box.test", "b@elsewhere.test", "c@elsewhere.test", "d@box.test"];
    let (mail, replies) = client.envelope("news@sender.test", &envelope);
    mail.expect(250);
    assert_eq!(replies.iter().map(|reply| reply.code).collect::<Vec<_>>(), [250, 554, 554, 250]);
    client.data(&message("", NEWS)).expect(250);
    assert_eq!(count(&rig.mta.wait_for_mail("a@box.test", 1)[0].verdict()), "clean; body=2; threshold=20");
}

#[test]
fn a_message_that_is_broken_off_is_not_counted() {
    let Some(rig) = rig("") else { return };
    let mut client = rig.outside();
    client.envelope("news@sender.test", &["a@box.test"]).0.expect(250);
    client.command("RSET").expect(250);
    client.envelope("news@sender.test", &["a@box.test"]).0.expect(250);
    client.command("DATA").expect(354);
    client.write(&crlf(NEWS));
    drop(client);
    assert_eq!(count(&rig.verdict_for("b@box.test", &message("", NEWS))), "clean; body=1; threshold=20");
}

#[test]
fn encodings_and_line_lengths_of_one_text_share_one_count() {
    let Some(rig) = rig("") else { return };
    let text = "Grüße aus dem Hafen: die Mühle mahlt wieder, und am Sonntag öffnet das Café am Kai.\n\
                Wer früh kommt, bekommt noch einen Platz an der Sonne.\n";
    let quoted = "Gr=C3=BC=C3=9Fe aus dem Hafen: die M=C3=BChle mahlt wieder, und am Sonntag =\n\
                  =C3=B6ffnet das Caf=C3=A9 am Kai.\nWer fr=C3=BCh kommt, bekommt noch einen Platz an der Sonne.\n";
    let latin = "Gr=FC=DFe aus dem Hafen: die M=FChle mahlt wieder, und am Sonntag =F6ffnet das Caf=E9 am Kai.=\n\n\
                 Wer fr=FCh kommt, bekommt noch einen Platz an der Sonne.\n";
    let base64 = "R3LDvMOfZSBhdXMgZGVtIEhhZmVuOiBkaWUgTcO8aGxlIG1haGx0IHdpZWRlciwgdW5kIGFtIFNv\n\
                  bm50YWcgw7ZmZm5ldCBkYXMgQ2Fmw6kgYW0gS2FpLgpXZXIgZnLDvGgga29tbXQsIGJla29tbXQg\n\
                  bm9jaCBlaW5lbiBQbGF0eiBhbiBkZXIgU29ubmUuCg==\n";
    let rewrapped = text.replace('\n', " ").replace(" und ", "\nund ").replace("Platz ", "Platz\n") + "\n";
    let forms = [
        ("utf-8", "8bit", text),
        ("utf-8", "quoted-printable", quoted),
        ("iso-8859-1", "quoted-printable", latin),
        ("utf-8", "base64", base64),
        ("utf-8", "8bit", &*rewrapped),
    ];
    for (n, (charset, encoding, body)) in forms.into_iter().enumerate() {
        let fields = format!(
            "MIME-Version: 1.0\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: {encoding}\n"
        );
        let header = rig.verdict_for(&format!("reader{n}@box.test"), &message(&fields, body));
        assert_eq!(count(&header), format!("clean; body={}; threshold=20", n + 1), "{charset} {encoding}");
    }
}

#[test]
fn a_message_with_little_in_it_is_not_counted() {
    let Some(rig) = rig(AT_ONCE) else { return };
    for (n, body) in
        ["", "thanks\n", "Thanks, see you!\n-- \nAnna Example, Harbour Museum, Pilot House, Quay 7\n"]
            .into_iter()
            .enumerate()
    {
        let header = rig.verdict_for(&format!("reader{n}@box.test"), &message("", body));
        assert_eq!(header, "exempt; reason=low-information; host=mx.test");
    }
}

// What is done with bulk

#[test]
fn marked_bulk_is_delivered_with_the_header_alone_added() {
    let Some(rig) = rig(AT_ONCE) else { return };
    rig.send("a@box.test", &message("X-Other: stays\n", NEWS)).expect(250);
    let mail = &rig.mta.wait_for_mail("a@box.test", 1)[0];
    assert_eq!(mail.verdict(), BULK_AT_ONCE);
    assert_eq!(mail.header("X-Other"), ["stays"]);
    assert!(mail.0.ends_with(&format!("\n\n{NEWS}")), "{}", mail.0);
}

#[test]
fn rejected_bulk_is_refused_with_550() {
    let Some(rig) = rig("[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n") else { return };
    rig.send("a@box.test", &message("", NEWS)).expect(250);
    let reply = rig.send("b@box.test", &message("", NEWS)).expect(550);
    let expected = "5.7.1 bulk mail refused: seen 2 times, threshold 2 (id ";
    assert!(reply.text.starts_with(expected) && reply.text.ends_with(')'), "{reply:?}");
    // The id in the answer is the one by which the mail log knows the message.
    let id = &reply.text[expected.len()..reply.text.len() - 1];
    rig.mta.wait_for_log(&format!("{id}: milter-reject: END-OF-MESSAGE"));
    rig.daemon.log.wait_for(0, &format!("{id}: client="));
    rig.mta.wait_for_mail("a@box.test", 1);
    assert!(rig.mta.delivered("b@box.test").is_empty());
}

#[test]
fn the_answer_of_a_refusal_is_what_is_configured() {
    let Some(mut rig) = rig(
        "[thresholds]\nbody = 1\n[actions]\nbulk = \"reject\"\n[actions.reject]\ncode = 554\n\
                         status = \"5.7.99\"\ntext = \"{count} of {threshold} at {host}, message {id}; no bulk, please\"\n",
    ) else {
        return;
    };
    let reply = rig.send("a@box.test", &message("", NEWS)).expect(554);
    let id = reply.text.strip_prefix("5.7.99 1 of 1 at mx.test, message ").expect(&reply.text);
    let id = id.strip_suffix("; no bulk, please").expect(&reply.text);
    assert!(id.len() >= 6 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
    rig.reload(
        "[thresholds]\nbody = 1\n[actions]\nbulk = \"tempfail\"\n[actions.tempfail]\ncode = 450\n\
                status = \"4.2.1\"\ntext = \"later: {count}\"\n",
    );
    let reply = rig.send("a@box.test", &message("", NEWS)).expect(450);
    assert_eq!(reply.text, "4.2.1 later: 2");
}

#[test]
fn tempfailed_bulk_is_refused_with_451() {
    let Some(rig) = rig("[thresholds]\nbody = 1\n[actions]\nbulk = \"tempfail\"\n") else { return };
    let reply = rig.send("a@box.test", &message("", NEWS)).expect(451);
    assert!(
        reply.text.starts_with("4.7.1 bulk mail: seen 1 times, threshold 1, try again later (id "),
        "{reply:?}"
    );
    assert!(rig.mta.is_idle() && rig.mta.delivered("a@box.test").is_empty());
}

#[test]
fn discarded_bulk_is_accepted_and_never_delivered() {
    let Some(rig) = rig("[thresholds]\nbody = 2\n[actions]\nbulk = \"discard\"\n") else { return };
    rig.send("a@box.test", &message("", NEWS)).expect(250);
    rig.send("b@box.test", &message("", NEWS)).expect(250);
    rig.mta.wait_for_log("milter-discard: END-OF-MESSAGE");
    rig.mta.wait_for_mail("a@box.test", 1);
    // What Postfix accepted is in its queue until it is delivered.
    common::mta::wait_until("an empty queue", || rig.mta.is_idle().then_some(()));
    assert!(rig.mta.delivered("b@box.test").is_empty());
}

#[test]
fn quarantined_bulk_is_accepted_and_held_with_its_header() {
    let Some(rig) = rig("[thresholds]\nbody = 2\n[actions]\nbulk = \"quarantine\"\n") else { return };
    rig.send("a@box.test", &message("", NEWS)).expect(250);
    rig.send("b@box.test", &message("", NEWS)).expect(250);
    let held = rig.mta.held();
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].verdict(), "bulk; body=2; threshold=2; host=mx.test");
    rig.mta.wait_for_mail("a@box.test", 1);
    assert!(rig.mta.delivered("b@box.test").is_empty());
}

// Retries

const TEMPFAIL: &str =
    "[thresholds]\nbody = 2\n[actions]\nbulk = \"tempfail\"\n[actions.tempfail]\ntext = \"{count}\"\n";

#[test]
fn a_retry_after_a_tempfail_is_not_counted_again() {
    let Some(mut rig) = rig(TEMPFAIL) else { return };
    rig.send("a@box.test", &message("", NEWS)).expect(250);
    let refused = message_with_id("again@sender.test", "", NEWS);
    for _ in 0..3 {
        assert_eq!(rig.send("b@box.test", &refused).expect(451).text, "4.7.1 2");
    }
    rig.kill_and_restart();
    assert_eq!(rig.send("b@box.test", &refused).expect(451).text, "4.7.1 2");
    // Still it is bulk, and when it is only marked it is delivered as the second copy.
    rig.reload("[thresholds]\nbody = 2\n");
    let header = rig.verdict_for("b@box.test", &refused);
    assert_eq!(header, "bulk; body=2; threshold=2; host=mx.test");
}

#[test]
fn what_differs_from_a_refused_message_is_no_retry() {
    let Some(rig) = rig(TEMPFAIL) else { return };
    rig.send("a@box.test", &message("", NEWS)).expect(250);
    let refused = message_with_id("again@sender.test", "", NEWS);
    assert_eq!(rig.send("b@box.test", &refused).expect(451).text, "4.7.1 2");
    assert_eq!(rig.send("c@box.test", &refused).expect(451).text, "4.7.1 3", "another recipient");
    let other_id = message_with_id("another@sender.test", "", NEWS);
    assert_eq!(rig.send("b@box.test", &other_id).expect(451).text, "4.7.1 4", "another Message-ID");
    let mut elsewhere = rig.from(Origin { ip: "198.51.100.9", ..Origin::default() });
    let reply = elsewhere.send("news@sender.test", &["b@box.test"], &refused).expect(451);
    assert_eq!(reply.text, "4.7.1 5", "another client");
    let reply = rig.outside().send("other@sender.test", &["b@box.test"], &refused).expect(451);
    assert_eq!(reply.text, "4.7.1 6", "another sender");
    // Of two recipients one is new.
    let reply = rig.outside().send("news@sender.test", &["b@box.test", "d@box.test"], &refused).expect(451);
    assert_eq!(reply.text, "4.7.1 7", "one recipient more");
}

// White lists

/// A site on which everything is bulk that is not on the white list `text`.
fn with_whitelist(text: &str, action: &str) -> Option<Rig> {
    let mut site = Rig::tcp_site("");
    let list = site.path("list");
    std::fs::write(&list, text).unwrap();
    site.extra =
        format!("{AT_ONCE}[actions]\nbulk = \"{action}\"\n[whitelist]\nfiles = [\"{}\"]\n", list.display());
    Rig::start_with(Kind::Postfix, site, &[])
}

/// The header of a message that the white list wants, with its own count.
fn wanted(rig: &Rig, count: u32, file: &str, line: u32) -> String {
    let file = rig.site.path(file);
    format!("whitelisted; body={count}; threshold=1; host=mx.test; whitelist={}:{line}", file.display())
}

#[test]
fn mail_of_a_client_on_the_white_list_is_wanted() {
    let list = "ip 198.51.100.7\nip 203.0.113.0/24   # a network\nhost mail.wanted.test\nhost .below.test\n";
    let Some(rig) = with_whitelist(list, "reject") else { return };
    let clients = [
        (Origin { ip: "198.51.100.7", ..Origin::default() }, Some(1)),
        (Origin { ip: "198.51.100.8", ..Origin::default() }, None),
        (Origin { ip: "203.0.113.99", ..Origin::default() }, Some(2)),
        (Origin { name: Some("mail.wanted.test"), ..Origin::default() }, Some(3)),
        (Origin { name: Some("mail.unwanted.test"), ..Origin::default() }, None),
        (Origin { name: Some("a.b.below.test"), ..Origin::default() }, Some(4)),
    ];
    for (n, (origin, line)) in (1..).zip(clients) {
        let recipient = format!("reader{n}@box.test");
        let reply = rig.from(origin).send("news@sender.test", &[&recipient], &message("", NEWS));
        expect_wanted(&rig, reply, n, line);
    }
}

/// The n-th copy is delivered to its reader by the line of the white list, or refused where there is none.
#[track_caller]
fn expect_wanted(rig: &Rig, reply: Reply, n: u32, line: Option<u32>) {
    if let Some(line) = line {
        reply.expect(250);
        let mail = &rig.mta.wait_for_mail(&format!("reader{n}@box.test"), 1)[0];
        assert_eq!(mail.verdict(), wanted(rig, n, "list", line));
    } else {
        reply.expect(550);
    }
}

#[test]
fn mail_that_the_white_list_knows_by_itself_is_wanted() {
    let list = "sender bounces@wanted.test\nfrom editor@wanted.test\nlist-id <news.wanted.test>\nsender <>\n";
    let Some(rig) = with_whitelist(list, "reject") else { return };
    let own = |from: &str, fields: &str| {
        let text = String::from_utf8(message(fields, NEWS)).unwrap();
        text.replace("From: Harbour Museum <news@sender.test>", from).into_bytes()
    };
    let from = "From: Harbour Museum <news@sender.test>";
    let messages = [
        ("bounces@wanted.test", own(from, ""), Some(1)),
        ("news@wanted.test", own(from, ""), None),
        ("news@sender.test", own("From: \"The Editor\" <Editor@Wanted.test>", ""), Some(2)),
        ("news@sender.test", own(from, "List-Id: The Harbour <news.wanted.test>\n"), Some(3)),
        ("news@sender.test", own(from, "List-Id: The Harbour <other.wanted.test>\n"), None),
        ("", own(from, ""), Some(4)),
    ];
    for (n, (sender, message, line)) in (1..).zip(messages) {
        let recipient = format!("reader{n}@box.test");
        let reply = rig.outside().send(sender, &[&recipient], &message);
        expect_wanted(&rig, reply, n, line);
    }
}

#[test]
fn a_text_on_the_white_list_is_wanted() {
    let Some(mut rig) = with_whitelist("", "reject") else { return };
    let file = rig.write("news.eml", std::str::from_utf8(&message("", NEWS)).unwrap());
    let output = Command::new(common::BULKMARK).args(["signature", &file]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed = printed.lines().next().unwrap();
    let signature = printed.rsplit('\t').next().unwrap();
    rig.send("a@box.test", &message("", NEWS)).expect(550);
    rig.write("list", &format!("# {printed}\nsignature {signature}\n"));
    let extra = rig.site.extra.clone();
    rig.reload(&extra);
    assert_eq!(rig.verdict_for("b@box.test", &message("", NEWS)), wanted(&rig, 2, "list", 2));
    rig.send("c@box.test", &message("", &NEWS.replace("forty", "fifty"))).expect(550);
}

#[test]
fn an_included_white_list_is_named_in_the_header() {
    let Some(mut rig) = with_whitelist("", "reject") else { return };
    rig.write("list", "# the next line\ninclude more\n");
    rig.write("more", "\n\nsender sender.test\n");
    let extra = rig.site.extra.clone();
    rig.reload(&extra);
    assert_eq!(rig.verdict_for("a@box.test", &message("", NEWS)), wanted(&rig, 1, "more", 3));
}

#[test]
fn bulk_that_some_recipients_want_is_marked_and_not_refused() {
    let Some(rig) = with_whitelist("recipient wants@box.test\n", "reject") else { return };
    rig.send("b@box.test", &message("", NEWS)).expect(550);
    let recipients = ["a@box.test", "wants@box.test", "c@box.test"];
    rig.outside().send("news@sender.test", &recipients, &message("", NEWS)).expect(250);
    let expected =
        format!("bulk; body=4; threshold=1; host=mx.test; whitelist={}:1", rig.site.path("list").display());
    for recipient in recipients {
        assert_eq!(rig.mta.wait_for_mail(recipient, 1)[0].verdict(), expected);
    }
}

#[test]
fn bulk_that_all_recipients_want_is_wanted() {
    let Some(rig) = with_whitelist("recipient wants@box.test\nrecipient too@box.test\n", "reject") else {
        return;
    };
    rig.outside()
        .send("news@sender.test", &["too@box.test", "wants@box.test"], &message("", NEWS))
        .expect(250);
    assert_eq!(rig.mta.wait_for_mail("wants@box.test", 1)[0].verdict(), wanted(&rig, 2, "list", 2));
}

// Mail that is not looked at

#[test]
fn exempt_mail_is_neither_judged_nor_counted() {
    let extra = format!("exempt-networks = [\"198.51.100.0/24\"]\n{AT_ONCE}[actions]\nbulk = \"reject\"\n");
    let Some(rig) = rig(&extra) else { return };
    let network = Origin { ip: "198.51.100.3", ..Origin::default() };
    let login = Origin { login: Some("anna"), ..Origin::default() };
    for (reason, mut client) in
        [("loopback", rig.local()), ("network", rig.from(network)), ("authenticated", rig.from(login))]
    {
        let recipient = format!("{reason}@box.test");
        client.send("news@sender.test", &[&recipient], &message("", NEWS)).expect(250);
        let header = rig.mta.wait_for_mail(&recipient, 1)[0].verdict();
        assert_eq!(header, format!("exempt; reason={reason}; host=mx.test"));
    }
    let reply = rig.send("a@box.test", &message("", NEWS)).expect(550);
    assert!(reply.text.contains("seen 1 times"), "{reply:?}");
}

#[test]
fn mail_submitted_on_the_machine_itself_is_exempt() {
    let site = Rig::tcp_site(AT_ONCE);
    let Some(rig) = Rig::start_with(Kind::Postfix, site, &["non_smtpd_milters=$smtpd_milters"]) else {
        return;
    };
    let mut sendmail = Command::new("sendmail")
        .arg("-C")
        .arg(rig.mta.path("etc"))
        .args(["-f", "root@box.test", "a@box.test"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    sendmail.stdin.take().unwrap().write_all(&message("", NEWS)).unwrap();
    assert!(sendmail.wait().unwrap().success());
    let header = rig.mta.wait_for_mail("a@box.test", 1)[0].verdict();
    assert_eq!(header, "exempt; reason=loopback; host=mx.test");
}

#[test]
fn whoever_is_exempt_can_be_made_not_to_be() {
    let extra = format!("exempt-loopback = false\nexempt-authenticated = false\n{AT_ONCE}");
    let Some(rig) = rig(&extra) else { return };
    let login = Origin { login: Some("anna"), ..Origin::default() };
    rig.local().send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    rig.from(login).send("news@sender.test", &["b@box.test"], &message("", NEWS)).expect(250);
    assert_eq!(count(&rig.mta.wait_for_mail("a@box.test", 1)[0].verdict()), "bulk; body=1; threshold=1");
    assert_eq!(count(&rig.mta.wait_for_mail("b@box.test", 1)[0].verdict()), "bulk; body=2; threshold=1");
}

const FORGED: &str = "X-Bulkmark: clean; body=1; host=mx.test\nSubject2: between\nx-bulkmark: exempt\n\
                      X-BULKMARK: whitelisted;\n body=0\n";

#[test]
fn forged_headers_are_removed() {
    let Some(rig) = rig(AT_ONCE) else { return };
    rig.send("a@box.test", &message(FORGED, NEWS)).expect(250);
    let mail = &rig.mta.wait_for_mail("a@box.test", 1)[0];
    assert_eq!(mail.verdict(), BULK_AT_ONCE);
    assert_eq!(mail.header("Subject2"), ["between"]);
    // Somebody who only logged in is no mail server of ours.
    let login = Origin { login: Some("anna"), ..Origin::default() };
    rig.from(login).send("news@sender.test", &["b@box.test"], &message(FORGED, NEWS)).expect(250);
    let mail = &rig.mta.wait_for_mail("b@box.test", 1)[0];
    assert_eq!(mail.verdict(), "exempt; reason=authenticated; host=mx.test");
}

#[test]
fn headers_from_networks_of_our_own_stay() {
    let Some(rig) = rig("exempt-networks = [\"198.51.100.0/24\"]\n") else { return };
    let own = Origin { ip: "198.51.100.3", ..Origin::default() };
    let marked = message("X-Bulkmark: bulk; body=77; threshold=20; host=front.test\n", NEWS);
    rig.from(own).send("news@sender.test", &["a@box.test"], &marked).expect(250);
    let headers = rig.mta.wait_for_mail("a@box.test", 1)[0].header("X-Bulkmark");
    let expected = ["bulk; body=77; threshold=20; host=front.test", "exempt; reason=network; host=mx.test"];
    assert!(
        headers.len() == 2 && expected.iter().all(|header| headers.contains(&(*header).to_owned())),
        "{headers:?}"
    );
}

// Life of the daemon

#[test]
fn a_reload_changes_threshold_action_and_white_list() {
    let Some(mut rig) = rig("[thresholds]\nbody = 5\n") else { return };
    // A connection that was open before feels it, too.
    let mut client = rig.outside();
    client.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    assert_eq!(count(&rig.mta.wait_for_mail("a@box.test", 1)[0].verdict()), "clean; body=1; threshold=5");
    rig.reload("[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n");
    client.send("news@sender.test", &["b@box.test"], &message("", NEWS)).expect(550);
    let list = rig.write("list", "sender sender.test\n");
    rig.reload(&format!(
        "[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n[whitelist]\nfiles = [\"{list}\"]\n"
    ));
    client.send("news@sender.test", &["c@box.test"], &message("", NEWS)).expect(250);
    let expected = format!("whitelisted; body=3; threshold=2; host=mx.test; whitelist={list}:1");
    assert_eq!(rig.mta.wait_for_mail("c@box.test", 1)[0].verdict(), expected);
    // A list alone can be changed as well.
    rig.write("list", "sender other.test\n");
    let extra = rig.site.extra.clone();
    rig.reload(&extra);
    client.send("news@sender.test", &["d@box.test"], &message("", NEWS)).expect(550);
}

#[test]
fn a_wrong_configuration_is_named_and_the_old_one_stays() {
    let Some(mut rig) = rig("[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n") else { return };
    rig.send("a@box.test", &message("", NEWS)).expect(250);
    rig.site.extra = "[thresholds]\nbody = -1\n[actions]\nbulk = \"mark\"\n".to_owned();
    let path = rig.site.config();
    let line =
        1 + std::fs::read_to_string(&path).unwrap().lines().position(|line| line == "body = -1").unwrap();
    let told = rig.daemon.reload();
    assert!(told.contains(&format!("{}:{line}:8: thresholds.body: found -1", path.display())), "{told}");
    assert!(told.contains("the old configuration stays in force"), "{told}");
    rig.send("b@box.test", &message("", NEWS)).expect(550);
}

#[test]
fn a_killed_daemon_has_lost_no_count() {
    let Some(mut rig) = rig("") else { return };
    for n in 1..=6 {
        let header = rig.verdict_for(&format!("reader{n}@box.test"), &message("", NEWS));
        assert_eq!(count(&header), format!("clean; body={n}; threshold=20"));
        if n % 2 == 0 {
            rig.kill_and_restart();
        }
    }
}

#[test]
fn a_message_under_way_is_judged_before_the_daemon_ends() {
    let Some(rig) = rig(AT_ONCE) else { return };
    let mut client = rig.outside();
    client.envelope("news@sender.test", &["a@box.test"]).0.expect(250);
    client.command("DATA").expect(354);
    client.write(b"From: news@sender.test\r\nMessage-ID: <slow@sender.test>\r\n\r\n");
    let Rig { mta, daemon, .. } = rig;
    daemon.signal("TERM");
    daemon.log.wait_for(0, "ending: no more connections are taken");
    client.write(&crlf(NEWS));
    client.end_data().expect(250);
    assert_eq!(mta.wait_for_mail("a@box.test", 1)[0].verdict(), BULK_AT_ONCE);
    let log = daemon.log.clone();
    assert_eq!(daemon.wait().code(), Some(0));
    log.wait_for(0, "bulkmark ended");
}

#[test]
fn an_idle_connection_does_not_keep_the_daemon() {
    let Some(rig) = rig("") else { return };
    let mut client = rig.outside();
    client.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    let Rig { daemon, .. } = rig;
    assert_eq!(daemon.terminate().code(), Some(0));
}

#[test]
fn a_unix_socket_serves_as_well_as_tcp() {
    let Some(mut rig) = Rig::start_with(Kind::Postfix, Site::unix(""), &[]) else { return };
    assert!(rig.daemon.address.starts_with("unix:/"));
    assert_eq!(count(&rig.verdict_for("a@box.test", &message("", NEWS))), "clean; body=1; threshold=20");
    // The socket file of a killed daemon does not keep the next one from starting.
    rig.kill_and_restart();
    assert_eq!(count(&rig.verdict_for("b@box.test", &message("", NEWS))), "clean; body=2; threshold=20");
}

#[test]
fn without_the_daemon_postfix_does_its_default_action() {
    let Some(mut rig) = rig("") else { return };
    let mut before = rig.outside();
    before.envelope("news@sender.test", &["a@box.test"]).0.expect(250);
    rig.daemon.child.kill().unwrap();
    rig.daemon.child.wait().unwrap();
    before.command("DATA").expect(451);
    let mail = rig.outside().command("MAIL FROM:<news@sender.test>").expect(451);
    assert!(mail.text.starts_with("4.7.1"), "{mail:?}");
    rig.daemon = rig.site.start();
    let header = rig.verdict_for("b@box.test", &message("", NEWS));
    assert_eq!(count(&header), "clean; body=1; threshold=20");
}

#[test]
fn without_the_daemon_mail_flows_where_postfix_is_told_so() {
    let site = Rig::tcp_site("");
    let Some(mta) = Mta::start(Kind::Postfix, &site.listen, &["milter_default_action=accept"]) else {
        return;
    };
    let mut client = Client::connect_as(mta.port, Origin::default());
    client.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    assert!(mta.wait_for_mail("a@box.test", 1)[0].header("X-Bulkmark").is_empty());
}

#[test]
fn garbage_on_the_milters_port_does_not_disturb_mail() {
    let Some(rig) = rig("") else { return };
    let pieces: [&[u8]; 8] = [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0\0\0\0",
        b"\0\0\0\x01",
        b"\xFF\xFF\xFF\xFFO",
        b"\x00\x00\x00\x05O\0\0",
        b"\x00\x00\x00\x0DO\0\0\0\x06\0\0\x01\xFF\0\x1F\xFF\xFF\0\0\0\x01E\0\0\0\x01B",
        b"\x00\x00\x00\x0DO\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
    ];
    let address = rig.daemon.tcp();
    thread::scope(|scope| {
        // Some say their nonsense and go, some wait for an answer; all while mail comes in.
        for (n, piece) in pieces.iter().cycle().take(64).enumerate() {
            scope.spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                // Whoever hangs up first is right.
                let _ = stream.write_all(piece);
                if n % 2 == 0 {
                    let _ = stream.shutdown(Shutdown::Write);
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    let _ = stream.read_to_end(&mut Vec::new());
                }
            });
        }
        let mut client = rig.outside();
        for _ in 0..10 {
            client.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
        }
    });
    let header = rig.verdict_for("b@box.test", &message("", NEWS));
    assert_eq!(count(&header), "clean; body=11; threshold=20");
    assert_eq!(rig.mta.wait_for_mail("a@box.test", 10).len(), 10);
    let Rig { daemon, mta, .. } = rig;
    drop(mta);
    assert_eq!(daemon.terminate().code(), Some(0));
}
