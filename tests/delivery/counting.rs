// SPDX-License-Identifier: GPL-3.0-or-later
//! Which messages are counted, and which count as the same.

use crate::{AT_ONCE, count};
use bulkmark_testing::crlf;
use bulkmark_testing::mta::Kind;
use bulkmark_testing::rig::{NEWS, Rig, message};
use std::thread;

with_both!(
    nineteen_copies_are_clean_and_the_twentieth_is_bulk,
    another_text_has_a_count_of_its_own,
    of_messages_that_come_at_a_time_each_gets_a_count_of_its_own,
    a_message_to_25_recipients_is_bulk_at_once,
    a_message_counts_once_where_messages_are_counted,
    recipients_that_were_refused_are_not_counted,
    a_message_that_is_broken_off_is_not_counted,
    encodings_and_line_lengths_of_one_text_share_one_count,
    a_message_with_little_in_it_is_not_counted
);

fn nineteen_copies_are_clean_and_the_twentieth_is_bulk(kind: Kind) {
    let Some(rig) = Rig::start(kind, "") else { return };
    rig.expect_bulk_at_the_twentieth(&mut rig.outside());
}

fn another_text_has_a_count_of_its_own(kind: Kind) {
    let Some(rig) = Rig::start(kind, "") else { return };
    assert_eq!(count(&rig.verdict_for("a@box.test", &message("", NEWS))), "clean; body=1; threshold=20");
    let other = message("", &NEWS.replace("Saturday", "Sunday"));
    assert_eq!(count(&rig.verdict_for("b@box.test", &other)), "clean; body=1; threshold=20");
    assert_eq!(count(&rig.verdict_for("c@box.test", &message("", NEWS))), "clean; body=2; threshold=20");
}

fn of_messages_that_come_at_a_time_each_gets_a_count_of_its_own(kind: Kind) {
    let Some(rig) = Rig::start(kind, "") else { return };
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

fn a_message_to_25_recipients_is_bulk_at_once(kind: Kind) {
    let Some(rig) = Rig::start(kind, "") else { return };
    let recipients: Vec<_> = (0..25).map(|n| format!("reader{n}@box.test")).collect();
    let recipients: Vec<_> = recipients.iter().map(String::as_str).collect();
    rig.outside().send("news@sender.test", &recipients, &message("", NEWS)).expect(250);
    for recipient in recipients {
        let mail = &rig.mta.wait_for_mail(recipient, 1)[0];
        assert_eq!(mail.verdict(), "bulk; body=25; threshold=20; host=mx.test; held=messages");
    }
}

fn a_message_counts_once_where_messages_are_counted(kind: Kind) {
    let Some(rig) = Rig::start(kind, "[counting]\nper = \"message\"\n") else { return };
    let recipients: Vec<_> = (0..25).map(|n| format!("reader{n}@box.test")).collect();
    let recipients: Vec<_> = recipients.iter().map(String::as_str).collect();
    rig.outside().send("news@sender.test", &recipients, &message("", NEWS)).expect(250);
    assert_eq!(count(&rig.mta.wait_for_mail(recipients[7], 1)[0].verdict()), "clean; body=1; threshold=20");
    assert_eq!(count(&rig.verdict_for("more@box.test", &message("", NEWS))), "clean; body=2; threshold=20");
}

fn recipients_that_were_refused_are_not_counted(kind: Kind) {
    let Some(rig) = Rig::start(kind, "") else { return };
    let mut client = rig.outside();
    let envelope = ["a@box.test", "b@elsewhere.test", "c@elsewhere.test", "d@box.test"];
    let (mail, replies) = client.envelope("news@sender.test", &envelope);
    mail.expect(250);
    // Postfix replies 554, Sendmail 550.
    assert_eq!(replies.iter().map(|reply| reply.code / 100).collect::<Vec<_>>(), [2, 5, 5, 2]);
    client.data(&message("", NEWS)).expect(250);
    assert_eq!(count(&rig.mta.wait_for_mail("a@box.test", 1)[0].verdict()), "clean; body=2; threshold=20");
}

fn a_message_that_is_broken_off_is_not_counted(kind: Kind) {
    let Some(rig) = Rig::start(kind, "") else { return };
    let mut client = rig.outside();
    client.envelope("news@sender.test", &["a@box.test"]).0.expect(250);
    client.command("RSET").expect(250);
    client.envelope("news@sender.test", &["a@box.test"]).0.expect(250);
    client.command("DATA").expect(354);
    client.write(&crlf(NEWS));
    drop(client);
    assert_eq!(count(&rig.verdict_for("b@box.test", &message("", NEWS))), "clean; body=1; threshold=20");
}

fn encodings_and_line_lengths_of_one_text_share_one_count(kind: Kind) {
    let Some(rig) = Rig::start(kind, "") else { return };
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

fn a_message_with_little_in_it_is_not_counted(kind: Kind) {
    let Some(rig) = Rig::start(kind, AT_ONCE) else { return };
    for (n, body) in
        ["", "thanks\n", "Thanks, see you!\n-- \nAnna Example, Harbour Museum, Pilot House, Quay 7\n"]
            .into_iter()
            .enumerate()
    {
        let header = rig.verdict_for(&format!("reader{n}@box.test"), &message("", body));
        assert_eq!(header, "exempt; reason=low-information; host=mx.test");
    }
}
