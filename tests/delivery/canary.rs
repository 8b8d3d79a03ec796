// SPDX-License-Identifier: GPL-3.0-or-later
//! The message that is always bulk.

use bulkmark_testing::mta::Kind;
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::smtp::Origin;
use bulkmark_testing::{Site, program, status};
use std::io::Write;
use std::process::{Command, Stdio};

with_both!(it_is_bulk_on_any_white_list_and_counted_nowhere, it_meets_what_bulk_meets, a_reply_is_none);

/// The output of `bulkmark canary`.
fn canary(site: &Site) -> Vec<u8> {
    let output = Command::new(program())
        .args(["canary", "--from", "news@sender.test", "--to", "a@box.test", "--config"])
        .arg(site.config())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn it_is_bulk_on_any_white_list_and_counted_nowhere(kind: Kind) {
    let mut site = Rig::tcp_site("");
    let list = site.path("list");
    let client = kind.seen("192.0.2.0/24");
    std::fs::write(&list, format!("sender sender.test\nip {client}\nrecipient a@box.test\n")).unwrap();
    site.extra = format!("[whitelist]\nfiles = [\"{}\"]\n", list.display());
    let Some(rig) = Rig::start_with(kind, site, &[]) else { return };
    let marked = "bulk; reason=canary; host=mx.test";
    let canary = canary(&rig.site);
    for _ in 0..3 {
        rig.send("a@box.test", &canary).expect(250);
    }
    for mail in rig.mta.wait_for_mail("a@box.test", 3) {
        assert_eq!(mail.verdict(), marked);
        assert_eq!(mail.header("From"), ["news@sender.test"]);
    }
    rig.daemon.log.wait_for(0, " verdict=bulk reason=canary action=mark ");
    let found = status(&rig.site);
    let counted: u64 = found["ledger"]["slices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|slice| slice["signatures"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, 0, "{found}");
    let (code, told) = rig.site.check(&canary);
    assert_eq!((code, &*told), (1, "{\"verdict\":\"bulk\",\"reason\":\"canary\"}\n"));
    let letter = rig.write("canary.eml", std::str::from_utf8(&canary).unwrap());
    let output =
        Command::new(program()).args(["explain", &letter, "--config"]).arg(rig.site.config()).output();
    let told = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(told.contains(": bulk, since it is the canary, which is always bulk"), "{told}");

    // Messages of exempt clients are not examined.
    let login = Origin { login: Some("anna"), ..Origin::default() };
    rig.from(login).send("news@sender.test", &["b@box.test"], &canary).expect(250);
    let header = rig.mta.wait_for_mail("b@box.test", 1)[0].verdict();
    assert_eq!(header, "exempt; reason=authenticated; host=mx.test");
}

/// An answer to a canary passes, however it quotes it; and so does the canary of another site.
fn a_reply_is_none(kind: Kind) {
    let Some(rig) = Rig::start(kind, "[actions]\nbulk = \"reject\"\n") else { return };
    let text = String::from_utf8(canary(&rig.site)).unwrap();
    let body = text.split_once("\n\n").unwrap().1;
    let marked: String = body.lines().map(|line| format!("> {line}\n")).collect();
    for (to, quoted) in [("a@box.test", &*marked), ("b@box.test", body)] {
        let reply = format!("{NEWS}-----Original Message-----\nFrom: {to}\n\n{quoted}");
        assert!(rig.verdict_for(to, &message("", &reply)).starts_with("clean; body=1;"), "{quoted}");
    }
    let other = Site::new("");
    drop(other.start());
    let [ours, theirs] = [&rig.site, &other].map(canary);
    assert!(rig.verdict_for("c@box.test", &theirs).starts_with("clean; body="));
    rig.send("c@box.test", &ours).expect(550);
}

fn it_meets_what_bulk_meets(kind: Kind) {
    let Some(mut rig) = Rig::start(kind, "[actions]\nbulk = \"reject\"\n") else { return };
    let canary = canary(&rig.site);
    let reply = rig.send("a@box.test", &canary).expect(550);
    assert!(reply.text.starts_with("5.7.1 bulk mail refused (id "), "{reply:?}");
    rig.reload("[actions]\nbulk = \"tempfail\"\nnear = \"reject\"\n");
    rig.send("a@box.test", &canary).expect(451);
    rig.reload("[actions]\nbulk = \"quarantine\"\n");
    rig.send("a@box.test", &canary).expect(250);
    let held = rig.mta.held();
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].verdict(), "bulk; reason=canary; host=mx.test");
    assert!(rig.mta.delivered("a@box.test").is_empty());
}

#[test]
fn the_command_sendmail_takes_it_as_it_is() {
    let site = Rig::tcp_site("exempt = [\"authenticated\"]\n");
    let Some(rig) = Rig::start_with(Kind::Postfix, site, &["non_smtpd_milters=$smtpd_milters"]) else {
        return;
    };
    let mut sendmail = Command::new("sendmail")
        .arg("-C")
        .arg(rig.mta.path("etc"))
        .arg("-t")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    sendmail.stdin.take().unwrap().write_all(&canary(&rig.site)).unwrap();
    assert!(sendmail.wait().unwrap().success());
    assert_eq!(rig.mta.wait_for_mail("a@box.test", 1)[0].verdict(), "bulk; reason=canary; host=mx.test");
}

/// Sender and recipient are in it, and invalid addresses are refused.
#[test]
fn addresses_that_are_none_are_refused() {
    let site = Site::new("");
    drop(site.start());
    let text = String::from_utf8(canary(&site)).unwrap();
    assert!(text.starts_with("From: news@sender.test\nTo: a@box.test\nSubject: "), "{text}");
    let output = Command::new(program()).args(["canary", "--to", "a@b\nBcc: c@d"]).output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("expected an address such as postmaster@example.org"), "{told}");
}
