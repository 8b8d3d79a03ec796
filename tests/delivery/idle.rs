// SPDX-License-Identifier: GPL-3.0-or-later
//! Silent clients take all connections to the milter.

use bulkmark_testing::crlf;
use bulkmark_testing::milter::{Client, session};
use bulkmark_testing::mta::Kind;
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::smtp::Client as SmtpClient;

with_both!(mail_comes_through_beside_connections_that_say_nothing, a_session_that_lost_its_connection);

const CROWDED: &str = "max-connections = 2\nidle-timeout = \"300ms\"\n";

fn mail_comes_through_beside_connections_that_say_nothing(kind: Kind) {
    let Some(rig) = Rig::start(kind, CROWDED) else { return };
    for n in 0..3 {
        let held = [introduced(&rig), Client::open(&rig.daemon)];
        let header = rig.verdict_for(&format!("a{n}@box.test"), &message("", NEWS));
        assert!(header.starts_with("clean; body="), "{header}");
        drop(held);
    }
}

/// An SMTP session whose milter connection was closed between two of its messages: the mail server acts as configured for a missing
/// milter, as long as that session lasts; the next one has its own connection.
fn a_session_that_lost_its_connection(kind: Kind) {
    for accept in [false, true] {
        let settings: &[&str] = match (kind, accept) {
            (_, false) => &[],
            (Kind::Postfix, true) => &["milter_default_action=accept"],
            // Its m4 configuration decides this; the other tests have that.
            (Kind::Sendmail, true) => return,
        };
        let Some(rig) = Rig::start_with(kind, Rig::tcp_site(CROWDED), settings) else { return };
        let mut slow = rig.outside();
        slow.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
        rig.mta.wait_for_mail("a@box.test", 1)[0].verdict();
        // Other clients take all places, one after the other, including that of the silent session.
        drop([0, 1, 2].map(|_| introduced(&rig)));
        for n in 1..=2 {
            let code = send(&mut slow, "b@box.test");
            assert_eq!(code, if accept { 250 } else { 451 }, "message {n} after that");
        }
        if accept {
            let unmarked = rig.mta.wait_for_mail("b@box.test", 2);
            assert!(unmarked.iter().all(|mail| mail.header("X-Bulkmark").is_empty()), "{unmarked:?}");
        }
        assert_eq!(
            rig.verdict_for("c@box.test", &message("", NEWS)),
            "clean; body=2; threshold=20; host=mx.test"
        );
    }
}

/// A connection that has announced its client.
fn introduced(rig: &Rig) -> Client {
    let mut client = session(&rig.daemon);
    client.flush();
    client
}

/// Sends a message; returns the code of the first refused command, or of the last one.
fn send(client: &mut SmtpClient, recipient: &str) -> u16 {
    for command in ["MAIL FROM:<news@sender.test>", &format!("RCPT TO:<{recipient}>"), "DATA"] {
        let code = client.command(command).code;
        if code != 250 && code != 354 {
            client.command("RSET").expect(250);
            return code;
        }
    }
    client.write(&crlf(std::str::from_utf8(&message("", NEWS)).unwrap()));
    client.end_data().code
}
