// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon behind a real Sendmail: what senders are told, and what recipients get.
//!
//! Sendmail has no XCLIENT, so all clients are on loopback, which the daemon is told not to exempt. Sendmail delivers
//! before it answers.

mod common;

use common::mta::{Kind, NEWS, Rig, message, message_with_id};
use std::fs;
use std::path::PathBuf;

const FROM_LOOPBACK: &str = "exempt-loopback = false\n";

fn rig(extra: &str) -> Option<Rig> {
    Rig::start(Kind::Sendmail, &format!("{FROM_LOOPBACK}{extra}"))
}

/// Sends a message to one recipient, which must be taken, and returns the header with which it is delivered.
#[track_caller]
fn verdict_for(rig: &Rig, recipient: &str, message: &[u8]) -> String {
    rig.local().send("news@sender.test", &[recipient], message).expect(250);
    rig.mta.wait_for_mail(recipient, 1)[0].verdict()
}

/// Files of held messages in Sendmail's queue.
fn held(rig: &Rig) -> Vec<PathBuf> {
    let files = fs::read_dir(rig.mta.path("mqueue")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.file_name().unwrap().to_str().unwrap().starts_with("hf")).collect()
}

#[test]
fn nineteen_copies_are_clean_and_the_twentieth_is_bulk() {
    let Some(rig) = rig("") else { return };
    rig.expect_bulk_at_the_twentieth(&mut rig.local());
}

#[test]
fn a_message_counts_for_each_recipient_that_sendmail_took() {
    let Some(rig) = rig("") else { return };
    let mut recipients: Vec<_> = (0..24).map(|n| format!("reader{n}@box.test")).collect();
    recipients.insert(3, "nobody@elsewhere.test".to_owned());
    let recipients: Vec<_> = recipients.iter().map(String::as_str).collect();
    let mut client = rig.local();
    let (mail, replies) = client.envelope("news@sender.test", &recipients);
    mail.expect(250);
    assert_eq!(replies.iter().filter(|reply| reply.code == 250).count(), 24);
    replies[3].clone().expect(550);
    client.data(&message("", NEWS)).expect(250);
    let header = rig.mta.wait_for_mail("reader9@box.test", 1)[0].verdict();
    assert_eq!(header, "bulk; body=24; threshold=20; host=mx.test");
}

#[test]
fn marked_bulk_is_delivered_and_forged_headers_are_removed() {
    let Some(rig) = rig("[thresholds]\nbody = 1\n") else { return };
    let fields = "X-Bulkmark: clean; body=1; host=mx.test\nX-Other: between\nx-bulkmark: exempt\n\
                  X-BULKMARK: whitelisted;\n body=0\n";
    assert_eq!(
        verdict_for(&rig, "a@box.test", &message(fields, NEWS)),
        "bulk; body=1; threshold=1; host=mx.test"
    );
    let mail = &rig.mta.wait_for_mail("a@box.test", 1)[0];
    assert_eq!(mail.header("X-Other"), ["between"]);
    assert!(mail.0.ends_with(&format!("\n\n{NEWS}")), "{}", mail.0);
}

#[test]
fn rejected_bulk_is_refused_with_the_configured_answer() {
    let Some(mut rig) = rig("[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n") else { return };
    let first = rig.local().send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    assert!(first.text.contains("accepted"), "{first:?}");
    let reply = rig.local().send("news@sender.test", &["b@box.test"], &message("", NEWS)).expect(550);
    let expected = "5.7.1 bulk mail refused: seen 2 times, threshold 2 (id ";
    let id = reply.text.strip_prefix(expected).expect(&reply.text).trim_end_matches(')');
    // Sendmail's ids have 14 characters.
    assert_eq!(id.len(), 14, "{reply:?}");
    assert!(rig.mta.delivered("b@box.test").is_empty());
    rig.reload(&format!(
        "{FROM_LOOPBACK}[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n[actions.reject]\ncode = 554\n\
         status = \"5.7.99\"\ntext = \"{{count}} of {{threshold}} at {{host}}\"\n"
    ));
    let reply = rig.local().send("news@sender.test", &["b@box.test"], &message("", NEWS)).expect(554);
    assert_eq!(reply.text, "5.7.99 3 of 2 at mx.test");
}

#[test]
fn a_retry_after_a_tempfail_is_not_counted_again() {
    let extra =
        "[thresholds]\nbody = 2\n[actions]\nbulk = \"tempfail\"\n[actions.tempfail]\ntext = \"{count}\"\n";
    let Some(mut rig) = rig(extra) else { return };
    let send = |rig: &Rig, recipient: &str, message: &[u8]| {
        rig.local().send("news@sender.test", &[recipient], message)
    };
    send(&rig, "a@box.test", &message("", NEWS)).expect(250);
    let refused = message_with_id("again@sender.test", "", NEWS);
    assert_eq!(send(&rig, "b@box.test", &refused).expect(451).text, "4.7.1 2");
    assert_eq!(send(&rig, "b@box.test", &refused).expect(451).text, "4.7.1 2");
    rig.kill_and_restart();
    assert_eq!(send(&rig, "b@box.test", &refused).expect(451).text, "4.7.1 2");
    assert_eq!(send(&rig, "c@box.test", &refused).expect(451).text, "4.7.1 3");
    assert!(rig.mta.delivered("b@box.test").is_empty());
}

#[test]
fn discarded_bulk_is_accepted_and_never_delivered() {
    let Some(rig) = rig("[thresholds]\nbody = 2\n[actions]\nbulk = \"discard\"\n") else { return };
    let mut client = rig.local();
    client.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    client.send("news@sender.test", &["b@box.test"], &message("", NEWS)).expect(250);
    client
        .send("news@sender.test", &["c@box.test"], &message("", &NEWS.replace("forty", "fifty")))
        .expect(250);
    rig.mta.wait_for_mail("a@box.test", 1);
    rig.mta.wait_for_mail("c@box.test", 1);
    assert!(rig.mta.delivered("b@box.test").is_empty() && held(&rig).is_empty());
}

#[test]
fn quarantined_bulk_is_accepted_and_held_with_its_header() {
    let Some(rig) = rig("[thresholds]\nbody = 2\n[actions]\nbulk = \"quarantine\"\n") else { return };
    let mut client = rig.local();
    client.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    client.send("news@sender.test", &["b@box.test"], &message("", NEWS)).expect(250);
    let held = held(&rig);
    assert_eq!(held.len(), 1);
    let envelope = String::from_utf8_lossy(&fs::read(&held[0]).unwrap()).into_owned();
    // Sendmail's own notation: a q line is the reason, an H line a header.
    assert!(envelope.contains("\nqbulk mail (bulkmark)\n"), "{envelope}");
    assert!(
        envelope.contains("X-Bulkmark: bulk; body=2; near=2; threshold=2; near-threshold=20; host=mx.test\n"),
        "{envelope}"
    );
    rig.mta.wait_for_mail("a@box.test", 1);
    assert!(rig.mta.delivered("b@box.test").is_empty());
}

#[test]
fn exempt_mail_is_neither_judged_nor_counted() {
    let Some(mut rig) = Rig::start(Kind::Sendmail, "[thresholds]\nbody = 1\n") else { return };
    assert_eq!(verdict_for(&rig, "a@box.test", &message("", NEWS)), "exempt; reason=loopback; host=mx.test");
    rig.reload("exempt-loopback = false\nexempt-networks = [\"127.0.0.0/8\"]\n[thresholds]\nbody = 1\n");
    let marked = message("X-Bulkmark: bulk; body=77; threshold=20; host=front.test\n", NEWS);
    rig.local().send("news@sender.test", &["b@box.test"], &marked).expect(250);
    let headers = rig.mta.wait_for_mail("b@box.test", 1)[0].header("X-Bulkmark");
    let expected = ["bulk; body=77; threshold=20; host=front.test", "exempt; reason=network; host=mx.test"];
    assert!(
        headers.len() == 2 && expected.iter().all(|header| headers.contains(&(*header).to_owned())),
        "{headers:?}"
    );
    rig.reload("exempt-loopback = false\n[thresholds]\nbody = 1\n");
    assert_eq!(
        verdict_for(&rig, "c@box.test", &message("", NEWS)),
        "bulk; body=1; threshold=1; host=mx.test"
    );
}

#[test]
fn a_killed_daemon_has_lost_no_count() {
    let Some(mut rig) = rig("") else { return };
    for n in 1..=4 {
        let header = verdict_for(&rig, &format!("reader{n}@box.test"), &message("", NEWS));
        assert_eq!(header, format!("clean; body={n}; threshold=20; host=mx.test"));
        rig.kill_and_restart();
    }
}

#[test]
fn without_the_daemon_mail_is_refused_for_the_moment() {
    let Some(mut rig) = rig("") else { return };
    rig.daemon.child.kill().unwrap();
    rig.daemon.child.wait().unwrap();
    rig.local().command("MAIL FROM:<news@sender.test>").expect(451);
    rig.daemon = rig.site.start();
    let header = verdict_for(&rig, "a@box.test", &message("", NEWS));
    assert_eq!(header, "clean; body=1; threshold=20; host=mx.test");
}
