// SPDX-License-Identifier: GPL-3.0-or-later
//! The actions on bulk.

use crate::{AT_ONCE, BULK_AT_ONCE};
use bulkmark_testing::mta::Kind;
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::wait_for_some;

with_both!(
    marked_bulk_is_delivered_with_the_header_alone_added,
    rejected_bulk_is_refused_with_550,
    the_answer_of_a_refusal_is_what_is_configured,
    tempfailed_bulk_is_refused_with_451,
    discarded_bulk_is_accepted_and_never_delivered,
    quarantined_bulk_is_accepted_and_held_with_its_header
);

fn marked_bulk_is_delivered_with_the_header_alone_added(kind: Kind) {
    let Some(rig) = Rig::start(kind, AT_ONCE) else { return };
    rig.send("a@box.test", &message("X-Other: stays\n", NEWS)).expect(250);
    let mail = &rig.mta.wait_for_mail("a@box.test", 1)[0];
    assert_eq!(mail.verdict(), BULK_AT_ONCE);
    assert_eq!(mail.header("X-Other"), ["stays"]);
    assert!(mail.0.ends_with(&format!("\n\n{NEWS}")), "{}", mail.0);
}

fn rejected_bulk_is_refused_with_550(kind: Kind) {
    let Some(rig) = Rig::start(kind, "[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n") else {
        return;
    };
    rig.send("a@box.test", &message("", NEWS)).expect(250);
    let reply = rig.send("b@box.test", &message("", NEWS)).expect(550);
    let expected = "5.7.1 bulk mail refused (id ";
    assert!(reply.text.starts_with(expected) && reply.text.ends_with(')'), "{reply:?}");
    // The id in the answer is the message's id in the mail log.
    let id = &reply.text[expected.len()..reply.text.len() - 1];
    match kind {
        Kind::Postfix => drop(rig.mta.wait_for_log(&format!("{id}: milter-reject: END-OF-MESSAGE"))),
        // It logs to syslog only. Its ids have 14 characters.
        Kind::Sendmail => assert_eq!(id.len(), 14, "{reply:?}"),
    }
    rig.daemon.log.wait_for(0, &format!("{id}: client="));
    rig.mta.wait_for_mail("a@box.test", 1);
    assert!(rig.mta.delivered("b@box.test").is_empty());
}

fn the_answer_of_a_refusal_is_what_is_configured(kind: Kind) {
    let Some(mut rig) = Rig::start(
        kind,
        "[thresholds]\nbody = 1\n[actions]\nbulk = \"reject\"\nreject-reply = \
         \"554 5.7.99 {count} of {threshold} at {host}, message {id}; no bulk, please\"\n",
    ) else {
        return;
    };
    let reply = rig.send("a@box.test", &message("", NEWS)).expect(554);
    let id = reply.text.strip_prefix("5.7.99 1 of 1 at mx.test, message ").expect(&reply.text);
    let id = id.strip_suffix("; no bulk, please").expect(&reply.text);
    assert!(id.len() >= 6 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
    rig.reload(
        "[thresholds]\nbody = 1\n[actions]\nbulk = \"tempfail\"\ntempfail-reply = \"450 4.2.1 later: {count}\"\n",
    );
    let reply = rig.send("a@box.test", &message("", NEWS)).expect(450);
    assert_eq!(reply.text, "4.2.1 later: 2");
}

fn tempfailed_bulk_is_refused_with_451(kind: Kind) {
    let Some(rig) = Rig::start(kind, "[thresholds]\nbody = 1\n[actions]\nbulk = \"tempfail\"\n") else {
        return;
    };
    let reply = rig.send("a@box.test", &message("", NEWS)).expect(451);
    assert!(reply.text.starts_with("4.7.1 bulk mail, try again later (id "), "{reply:?}");
    assert!(rig.mta.is_idle() && rig.mta.delivered("a@box.test").is_empty());
}

fn discarded_bulk_is_accepted_and_never_delivered(kind: Kind) {
    let Some(rig) = Rig::start(kind, "[thresholds]\nbody = 2\n[actions]\nbulk = \"discard\"\n") else {
        return;
    };
    rig.send("a@box.test", &message("", NEWS)).expect(250);
    rig.send("b@box.test", &message("", NEWS)).expect(250);
    rig.mta.wait_for_mail("a@box.test", 1);
    // An accepted message is in the queue until it is delivered.
    wait_for_some("an empty queue", || rig.mta.is_idle().then_some(()));
    assert!(rig.mta.delivered("b@box.test").is_empty());
}

fn quarantined_bulk_is_accepted_and_held_with_its_header(kind: Kind) {
    let Some(rig) = Rig::start(kind, "[thresholds]\nbody = 2\n[actions]\nbulk = \"quarantine\"\n") else {
        return;
    };
    rig.send("a@box.test", &message("", NEWS)).expect(250);
    rig.send("b@box.test", &message("", NEWS)).expect(250);
    let held = rig.mta.held();
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].verdict(), "bulk; body=2; threshold=2; host=mx.test");
    if kind == Kind::Sendmail {
        assert_eq!(held[0].header("Held"), ["bulk mail (bulkmark)"]);
    }
    rig.mta.wait_for_mail("a@box.test", 1);
    assert!(rig.mta.delivered("b@box.test").is_empty());
}
