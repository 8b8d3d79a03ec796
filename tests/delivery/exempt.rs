// SPDX-License-Identifier: GPL-3.0-or-later
//! Mail that is not judged, and which of its header fields are trusted.

use crate::{AT_ONCE, BULK_AT_ONCE, count};
use bulkmark_testing::mta::Kind;
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::smtp::Origin;
use std::io::Write;
use std::process::{Command, Stdio};

with_both!(
    mail_from_loopback_is_neither_judged_nor_counted,
    mail_of_networks_and_users_of_our_own_is_neither_judged_nor_counted,
    whoever_is_exempt_can_be_made_not_to_be,
    forged_headers_are_removed,
    ours_is_the_first_of_more_headers_than_are_removed,
    headers_from_networks_of_our_own_stay
);

fn mail_from_loopback_is_neither_judged_nor_counted(kind: Kind) {
    let Some(mut rig) = Rig::start(kind, &format!("exempt = [\"loopback\", \"authenticated\"]\n{AT_ONCE}"))
    else {
        return;
    };
    rig.local().send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    assert_eq!(rig.mta.wait_for_mail("a@box.test", 1)[0].verdict(), "exempt; reason=loopback; host=mx.test");
    rig.reload(&format!("exempt = [\"authenticated\"]\n{AT_ONCE}"));
    rig.local().send("news@sender.test", &["b@box.test"], &message("", NEWS)).expect(250);
    assert_eq!(rig.mta.wait_for_mail("b@box.test", 1)[0].verdict(), BULK_AT_ONCE);
}

fn mail_of_networks_and_users_of_our_own_is_neither_judged_nor_counted(kind: Kind) {
    let networks = kind.seen("198.51.100.0/24");
    let extra = format!(
        "exempt-networks = [\"{networks}\"]\n{AT_ONCE}[actions]\nbulk = \"reject\"\nreject-reply = \"550 5.7.1 seen {{count}} times\"\n"
    );
    let Some(rig) = Rig::start(kind, &extra) else { return };
    let network = Origin { ip: "198.51.100.3", ..Origin::default() };
    let login = Origin { login: Some("anna"), ..Origin::default() };
    for (reason, origin) in [("network", network), ("authenticated", login)] {
        let mut client = rig.from(origin);
        let recipient = format!("{reason}@box.test");
        client.send("news@sender.test", &[&recipient], &message("", NEWS)).expect(250);
        let header = rig.mta.wait_for_mail(&recipient, 1)[0].verdict();
        assert_eq!(header, format!("exempt; reason={reason}; host=mx.test"));
    }
    let reply = rig.send("a@box.test", &message("", NEWS)).expect(550);
    assert!(reply.text.contains("seen 1 times"), "{reply:?}");
}

#[test]
fn mail_submitted_to_postfix_on_the_machine_itself_is_exempt() {
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

fn whoever_is_exempt_can_be_made_not_to_be(kind: Kind) {
    let extra = format!("exempt = []\n{AT_ONCE}");
    let Some(rig) = Rig::start(kind, &extra) else { return };
    let login = Origin { login: Some("anna"), ..Origin::default() };
    rig.local().send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    rig.from(login).send("news@sender.test", &["b@box.test"], &message("", NEWS)).expect(250);
    assert_eq!(count(&rig.mta.wait_for_mail("a@box.test", 1)[0].verdict()), "bulk; body=1; threshold=1");
    assert_eq!(count(&rig.mta.wait_for_mail("b@box.test", 1)[0].verdict()), "bulk; body=2; threshold=1");
}

const FORGED: &str = "X-Bulkmark: clean; body=1; host=mx.test\nSubject2: between\nx-bulkmark: exempt\n\
                      X-BULKMARK: whitelisted;\n body=0\n";

fn forged_headers_are_removed(kind: Kind) {
    let Some(rig) = Rig::start(kind, AT_ONCE) else { return };
    rig.send("a@box.test", &message(FORGED, NEWS)).expect(250);
    let mail = &rig.mta.wait_for_mail("a@box.test", 1)[0];
    assert_eq!(mail.verdict(), BULK_AT_ONCE);
    assert_eq!(mail.header("Subject2"), ["between"]);
    // A client that only logged in is no mail server of ours.
    let login = Origin { login: Some("anna"), ..Origin::default() };
    rig.from(login).send("news@sender.test", &["b@box.test"], &message(FORGED, NEWS)).expect(250);
    let mail = &rig.mta.wait_for_mail("b@box.test", 1)[0];
    assert_eq!(mail.verdict(), "exempt; reason=authenticated; host=mx.test");
}

fn ours_is_the_first_of_more_headers_than_are_removed(kind: Kind) {
    let Some(rig) = Rig::start(kind, AT_ONCE) else { return };
    rig.send("a@box.test", &message(&"X-Bulkmark: clean\n".repeat(1001), NEWS)).expect(250);
    let headers = rig.mta.wait_for_mail("a@box.test", 1)[0].header("X-Bulkmark");
    assert_eq!(headers.len(), 2, "all but the last one are removed");
    assert!(headers[0].starts_with("bulk; body=1; "), "{headers:?}");
}

fn headers_from_networks_of_our_own_stay(kind: Kind) {
    let extra = format!("exempt-networks = [\"{}\"]\n", kind.seen("198.51.100.0/24"));
    let Some(rig) = Rig::start(kind, &extra) else { return };
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
