// SPDX-License-Identifier: GPL-3.0-or-later
//! Wanted mail, however often it comes.

use crate::AT_ONCE;
use bulkmark_testing::mta::Kind;
use bulkmark_testing::program;
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::smtp::{Origin, Reply};
use std::process::Command;

with_both!(
    mail_of_a_client_on_the_white_list_is_wanted,
    mail_that_the_white_list_knows_by_itself_is_wanted,
    a_text_on_the_white_list_is_wanted,
    an_included_white_list_is_named_in_the_header,
    bulk_that_some_recipients_want_is_marked_and_not_refused,
    bulk_that_all_recipients_want_is_wanted
);

/// A site on which everything is bulk except mail on the white list `text`.
fn with_whitelist(kind: Kind, text: &str, action: &str) -> Option<Rig> {
    let mut site = Rig::tcp_site("");
    let list = site.path("list");
    std::fs::write(&list, text).unwrap();
    site.extra =
        format!("{AT_ONCE}[actions]\nbulk = \"{action}\"\n[whitelist]\nfiles = [\"{}\"]\n", list.display());
    Rig::start_with(kind, site, &[])
}

/// The header of a message that the white list wants, with its own count.
fn wanted(rig: &Rig, count: u32, file: &str, line: u32) -> String {
    let file = rig.site.path(file);
    format!("whitelisted; body={count}; threshold=1; host=mx.test; whitelist={}:{line}", file.display())
}

fn mail_of_a_client_on_the_white_list_is_wanted(kind: Kind) {
    let list = format!(
        "ip {}\nip {}   # a network\nhost mail.wanted.test\nhost .below.test\n",
        kind.seen("198.51.100.7"),
        kind.seen("203.0.113.0/24")
    );
    let Some(rig) = with_whitelist(kind, &list, "reject") else { return };
    let clients = [
        (Origin { ip: "198.51.100.7", ..Origin::default() }, Some(1)),
        (Origin { ip: "198.51.100.8", ..Origin::default() }, None),
        (Origin { ip: "203.0.113.99", ..Origin::default() }, Some(2)),
        (Origin { ip: "192.0.2.31", name: Some("mail.wanted.test"), ..Origin::default() }, Some(3)),
        (Origin { ip: "192.0.2.32", name: Some("mail.unwanted.test"), ..Origin::default() }, None),
        (Origin { ip: "192.0.2.33", name: Some("a.b.below.test"), ..Origin::default() }, Some(4)),
    ];
    for (n, (origin, line)) in (1..).zip(clients) {
        let recipient = format!("reader{n}@box.test");
        let reply = rig.from(origin).send("news@sender.test", &[&recipient], &message("", NEWS));
        expect_wanted(&rig, reply, n, line);
    }
}

/// The n-th copy is delivered to its reader by the line of the white list, or refused if there is none.
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

fn mail_that_the_white_list_knows_by_itself_is_wanted(kind: Kind) {
    let list = "sender bounces@wanted.test\nfrom editor@wanted.test\nlist-id <news.wanted.test>\nsender <>\n";
    let Some(rig) = with_whitelist(kind, list, "reject") else { return };
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

fn a_text_on_the_white_list_is_wanted(kind: Kind) {
    let Some(mut rig) = with_whitelist(kind, "", "reject") else { return };
    let file = rig.write("news.eml", std::str::from_utf8(&message("", NEWS)).unwrap());
    let output = Command::new(program()).args(["signature", &file]).output().unwrap();
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

fn an_included_white_list_is_named_in_the_header(kind: Kind) {
    let Some(mut rig) = with_whitelist(kind, "", "reject") else { return };
    rig.write("list", "# the next line\ninclude more\n");
    rig.write("more", "\n\nsender sender.test\n");
    let extra = rig.site.extra.clone();
    rig.reload(&extra);
    assert_eq!(rig.verdict_for("a@box.test", &message("", NEWS)), wanted(&rig, 1, "more", 3));
}

fn bulk_that_some_recipients_want_is_marked_and_not_refused(kind: Kind) {
    let Some(rig) = with_whitelist(kind, "recipient wants@box.test\n", "reject") else { return };
    rig.send("b@box.test", &message("", NEWS)).expect(550);
    let recipients = ["a@box.test", "wants@box.test", "c@box.test"];
    rig.outside().send("news@sender.test", &recipients, &message("", NEWS)).expect(250);
    let expected =
        format!("bulk; body=4; threshold=1; host=mx.test; whitelist={}:1", rig.site.path("list").display());
    for recipient in recipients {
        assert_eq!(rig.mta.wait_for_mail(recipient, 1)[0].verdict(), expected);
    }
}

fn bulk_that_all_recipients_want_is_wanted(kind: Kind) {
    let Some(rig) = with_whitelist(kind, "recipient wants@box.test\nrecipient too@box.test\n", "reject")
    else {
        return;
    };
    rig.outside()
        .send("news@sender.test", &["too@box.test", "wants@box.test"], &message("", NEWS))
        .expect(250);
    assert_eq!(rig.mta.wait_for_mail("wants@box.test", 1)[0].verdict(), wanted(&rig, 2, "list", 2));
}
