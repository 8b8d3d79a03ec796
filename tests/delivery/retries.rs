// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages that were refused temporarily and come again.

use bulkmark_testing::mta::Kind;
use bulkmark_testing::rig::{NEWS, Rig, message, message_with_id};
use bulkmark_testing::smtp::Origin;

with_both!(a_retry_after_a_tempfail_is_not_counted_again, what_differs_from_a_refused_message_is_no_retry);

const TEMPFAIL: &str =
    "[thresholds]\nbody = 2\n[actions]\nbulk = \"tempfail\"\ntempfail-reply = \"451 4.7.1 {count}\"\n";

fn a_retry_after_a_tempfail_is_not_counted_again(kind: Kind) {
    let Some(mut rig) = Rig::start(kind, TEMPFAIL) else { return };
    rig.send("a@box.test", &message("", NEWS)).expect(250);
    let refused = message_with_id("again@sender.test", "", NEWS);
    for _ in 0..3 {
        assert_eq!(rig.send("b@box.test", &refused).expect(451).text, "4.7.1 2");
    }
    rig.kill_and_restart();
    assert_eq!(rig.send("b@box.test", &refused).expect(451).text, "4.7.1 2");
    // It is still bulk, and if only marked it is delivered as the second copy.
    rig.reload("[thresholds]\nbody = 2\n");
    let header = rig.verdict_for("b@box.test", &refused);
    assert_eq!(header, "bulk; body=2; threshold=2; host=mx.test");
}

fn what_differs_from_a_refused_message_is_no_retry(kind: Kind) {
    let Some(rig) = Rig::start(kind, TEMPFAIL) else { return };
    rig.send("a@box.test", &message("", NEWS)).expect(250);
    let refused = message_with_id("again@sender.test", "", NEWS);
    assert_eq!(rig.send("b@box.test", &refused).expect(451).text, "4.7.1 2");
    assert_eq!(rig.send("c@box.test", &refused).expect(451).text, "4.7.1 3", "another recipient");
    let other_id = message_with_id("another@sender.test", "", NEWS);
    assert_eq!(rig.send("b@box.test", &other_id).expect(451).text, "4.7.1 4", "another Message-ID");
    let mut elsewhere = rig.from(Origin { ip: "192.0.2.26", ..Origin::default() });
    let reply = elsewhere.send("news@sender.test", &["b@box.test"], &refused).expect(451);
    assert_eq!(reply.text, "4.7.1 5", "another client");
    let reply = rig.outside().send("other@sender.test", &["b@box.test"], &refused).expect(451);
    assert_eq!(reply.text, "4.7.1 6", "another sender");
    // One of two recipients is new.
    let reply = rig.outside().send("news@sender.test", &["b@box.test", "d@box.test"], &refused).expect(451);
    assert_eq!(reply.text, "4.7.1 7", "one recipient more");
}
