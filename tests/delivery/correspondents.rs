// SPDX-License-Identifier: GPL-3.0-or-later
//! Mail from an address that an own user wrote to is not refused: outbound and inbound mail through a real Postfix, forgers, and kills.

use bulkmark_testing::dns::Dns;
use bulkmark_testing::mta::Kind;
use bulkmark_testing::page::{STATUS, metrics};
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::signer::{Form, Signer};
use bulkmark_testing::smtp::Origin;
use bulkmark_testing::{program, status};
use std::process::Command;

/// Everything is bulk, and refused.
const REFUSING: &str = "[thresholds]\nbody = 1\nmin-sources = 1\n[actions]\nbulk = \"reject\"\n";

const BEN: &str = "ben@friends.test";
const HOST: Origin<'_> = Origin { ip: "192.0.2.70", name: Some("mx1.friends.test"), login: None };
const STRANGER: Origin<'_> = Origin { ip: "192.0.2.66", name: Some("mx.elsewhere.test"), login: None };

fn start(extra: &str) -> Option<Rig> {
    let site = Rig::tcp_site(&format!("{REFUSING}{extra}"));
    Rig::start_with(Kind::Postfix, site, &["virtual_mailbox_domains=box.test, friends.test"])
}

fn letter(from: &str) -> Vec<u8> {
    let text = String::from_utf8(message("", NEWS)).unwrap();
    text.replace("From: Harbour Museum <news@sender.test>", &format!("From: <{from}>")).into_bytes()
}

/// The reply code for bulk from this client.
fn code(rig: &Rig, origin: Origin<'_>, sender: &str, recipients: &[&str]) -> u16 {
    rig.from(origin).send(sender, recipients, &letter(sender)).code
}

/// Sends an ordinary letter from a user who logged in.
#[track_caller]
fn write(rig: &Rig, login: &str, sender: &str, recipients: &[&str], fields: &str) {
    let origin = Origin { login: Some(login), ..Origin::default() };
    rig.from(origin).send(sender, recipients, &message(fields, "See you on Monday, then.\n")).expect(250);
}

#[test]
fn who_was_written_to_is_not_refused_and_who_says_so_only_is() {
    let Some(mut rig) = start(STATUS) else { return };
    assert_eq!(code(&rig, HOST, BEN, &["anna@box.test"]), 550);
    write(&rig, "anna", "Anna@box.test", &[BEN], "");
    // An acknowledged letter is on disk.
    rig.kill_and_restart();
    assert_eq!(code(&rig, HOST, "Ben@friends.test", &["anna+news@box.test"]), 250);
    let mail = &rig.mta.wait_for_mail("anna+news@box.test", 1)[0];
    assert_eq!(mail.verdict(), "bulk; body=2; threshold=1; host=mx.test; held=correspondent");
    rig.daemon.log.wait_for(0, "held=correspondent");
    // Other senders, forgers of Ben's name, or other recipients.
    assert_eq!(code(&rig, HOST, "carl@friends.test", &["anna@box.test"]), 550);
    assert_eq!(code(&rig, STRANGER, BEN, &["anna@box.test"]), 550);
    assert_eq!(code(&rig, Origin { name: None, ..HOST }, BEN, &["anna@box.test"]), 550);
    assert_eq!(code(&rig, HOST, BEN, &["dora@box.test"]), 550);
    // Both recipients get one answer.
    assert_eq!(code(&rig, HOST, BEN, &["dora@box.test", "anna@box.test"]), 250);
    assert_eq!(
        rig.mta.wait_for_mail("dora@box.test", 1)[0].verdict().split("held=").nth(1),
        Some("correspondent")
    );
    assert_eq!(status(&rig.site)["correspondents"], 1);
    let metrics = metrics(&rig.daemon);
    assert_eq!([metrics["bulkmark_correspondents"], metrics["bulkmark_messages_spared_total"]], [1.0, 2.0]);
    // Users write through this milter, and no key names their domains.
    let doctor = |rig: &Rig| {
        let output =
            Command::new(program()).args(["doctor", "--config"]).arg(rig.site.config()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let warning = "users write mail through this milter, and user-reports.own-domains is empty";
    assert!(doctor(&rig).contains(warning), "{}", doctor(&rig));
    rig.reload(&format!("{REFUSING}{STATUS}[user-reports]\nown-domains = [\"box.test\"]\n"));
    assert!(!doctor(&rig).contains(warning), "{}", doctor(&rig));
}

/// Where mail is verified, the result counts and the client's name does not.
#[test]
fn what_is_verified_is_from_whom_it_says() {
    let Some(key) = Signer::new(2048) else { return };
    let dns = Dns::start();
    dns.text("sel._domainkey.friends.test", &key.record);
    dns.text("friends.test", "v=spf1 ip4:192.0.2.71 -all");
    let extra = format!("[authentication]\nauthenticate = \"self\"\nnameservers = [\"{}\"]\n", dns.address);
    let Some(rig) = start(&extra) else { return };
    write(&rig, "anna", "anna@box.test", &[BEN], "");
    let signed = key.sign(&letter(BEN), &Form { domain: "friends.test", ..Form::default() });
    let forged = key.sign(&letter(BEN), &Form { domain: "evil.test", ..Form::default() });
    let send = |ip: &str, sender: &str, message: &[u8]| {
        let origin = Origin { ip, name: Some("mx1.friends.test"), login: None };
        rig.from(origin).send(sender, &["anna@box.test"], message).code
    };
    let ip = STRANGER.ip;
    assert_eq!(send(ip, "bounce@mailer.test", &signed), 250, "by the author's signature");
    assert_eq!(send(ip, "bounce@mailer.test", &forged), 550);
    assert_eq!(send(ip, BEN, &letter("news@mailer.test")), 550);
    assert_eq!(send("192.0.2.71", BEN, &letter("news@mailer.test")), 250, "by its sender's network");
    // Somebody else's signed letter cannot be passed off as Ben's.
    let other = key.sign(&letter("eve@friends.test"), &Form { domain: "friends.test", ..Form::default() });
    assert_eq!(send(ip, BEN, &other), 550);

    let file = rig.write("signed.eml", std::str::from_utf8(&signed).unwrap());
    let run = |command: &str, more: &[&str]| {
        let output = Command::new(program())
            .args([command, "--config"])
            .arg(rig.site.config())
            .args(["--ip", ip, "--sender", "bounce@mailer.test"])
            .args(more)
            .arg(&file)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    // A forger of Ben's address does not end the correspondence with Ben; Ben's signature does.
    let report = |message: &[u8]| {
        let file = rig.write("reported.eml", std::str::from_utf8(message).unwrap());
        assert!(report(&rig, "anna@box.test", &file, &[]).contains("counted as spam"));
        send(ip, "bounce@mailer.test", &signed)
    };
    assert_eq!(report(&forged), 250, "another domain's signature");
    assert_eq!(report(&letter(BEN)), 250, "none at all");
    let why = "only marked, since a recipient wrote to whom it is from, and that is verified";
    for command in ["check", "explain"] {
        assert!(run(command, &["--recipient", "anna@box.test"]).contains(why), "{command}");
        assert!(!run(command, &["--recipient", "dora@box.test"]).contains(why), "{command}");
    }
    assert_eq!(report(&signed), 550);
}

/// The output of `bulkmark report add` for a message in a file.
fn report(rig: &Rig, user: &str, file: &str, more: &[&str]) -> String {
    let (verb, more) = if let ["forget"] = more { ("forget", &[][..]) } else { ("add", more) };
    let output = Command::new(program())
        .args(["report", verb, "--user", user, "--control"])
        .arg(rig.site.path("control.sock"))
        .args(more)
        .arg(file)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn newsletters_and_programs_write_to_nobody() {
    let Some(mut rig) = start("") else { return };
    let many: Vec<String> = (0..20).map(|n| format!("reader{n}@box.test")).collect();
    let many: Vec<&str> = many.iter().map(|to| &**to).chain([BEN]).collect();
    write(&rig, "anna", "anna@box.test", &many, "");
    write(&rig, "anna", "anna@box.test", &[BEN], "Auto-Submitted: auto-replied\n");
    write(&rig, "anna", "", &[BEN], "");
    rig.local()
        .send("anna@box.test", &[BEN], &message("", "Nobody logged in for this letter.\n"))
        .expect(250);
    assert_eq!(code(&rig, HOST, BEN, &["anna@box.test"]), 550);
    assert_eq!(status(&rig.site)["correspondents"], 0);
    // Under a policy of her own, and under the default one.
    write(&rig, "anna", "anna@box.test", &[BEN], "Auto-Submitted: no\n");
    assert_eq!(code(&rig, HOST, BEN, &["anna@box.test"]), 250);
    let policy = "[[policy]]\nname = \"strict\"\nmatch = { recipient = \"anna@box.test\" }\nactions = { correspondents = \"off\" }\n";
    rig.reload(&format!("{REFUSING}{policy}"));
    assert_eq!(code(&rig, HOST, BEN, &["anna@box.test"]), 550);
    rig.reload(&format!("{REFUSING}correspondents = \"off\"\n"));
    assert_eq!(code(&rig, HOST, BEN, &["anna@box.test"]), 550);
}

/// A user who wrote to a spammer can end that by reporting the next message as spam; nobody else can do it in their place.
#[test]
fn a_user_ends_a_correspondence() {
    let Some(rig) = start("spam = \"reject\"\n[user-reports]\ntrust = { new-reporter = 1.0 }\n") else {
        return;
    };
    write(&rig, "anna", "anna@box.test", &[BEN], "");
    assert_eq!(code(&rig, HOST, BEN, &["anna@box.test"]), 250);
    let mail = &rig.mta.wait_for_mail("anna@box.test", 1)[0].0;
    let file = rig.write("mail.eml", mail);
    let report = |user: &str, more: &[&str]| report(&rig, user, &file, more);
    for user in ["dora@box.test", "root"] {
        let told = report(user, &[]);
        assert!(told.contains("refused: its recipient wrote to ben@friends.test"), "{told}");
    }
    assert!(report("dora@box.test", &["--force"]).contains("counted as spam"));
    assert_eq!(code(&rig, HOST, BEN, &["anna@box.test"]), 250, "it is Anna's");
    // Spam with Ben's address from somebody else, as in Anna's mailbox: without a mark of the milter's, or with a forged one beside its own.
    let strange = letter(BEN).iter().map(|&byte| char::from(byte)).collect::<String>();
    let mark = "X-Bulkmark: bulk; body=2; threshold=1; host=mx.test; held=correspondent\r\n";
    let own = "X-Bulkmark: exempt; reason=network; host=mx.test\r\n";
    for (n, marks) in ["", &[mark, own].concat()].into_iter().enumerate() {
        let text = format!("Return-Path: <{BEN}>\r\nDelivered-To: anna@box.test\r\n{marks}{strange}");
        let forged = rig.write(&format!("forged{n}.eml"), &text);
        let told = self::report(&rig, "anna", &forged, &[]);
        assert!(told.contains("counted as spam"), "{told}");
        rig.daemon
            .log
            .wait_for(0, "that correspondence goes on, since it is not proven that it is from there");
        assert_eq!(code(&rig, HOST, BEN, &["anna@box.test"]), 250, "{marks}");
        self::report(&rig, "anna", &forged, &["forget"]);
    }
    assert!(report("anna", &[]).contains("counted as spam"));
    assert_eq!(code(&rig, HOST, BEN, &["anna@box.test"]), 550);
}

/// An account that was taken over gains no correspondents.
#[test]
fn who_is_over_the_limit_writes_to_nobody() {
    let limit = "[outbound]\nrecipients = 2\n[outbound.match]\nclient = \"192.0.2.10\"\n";
    let Some(rig) = start(limit) else { return };
    let web = Origin { ip: "192.0.2.10", ..Origin::default() };
    let write = |to: &str| {
        rig.from(web).send("anna@box.test", &[to], &message("", "See you on Monday.\n")).expect(250);
    };
    ["x@box.test", "y@box.test", "z@box.test", BEN].into_iter().for_each(write);
    assert_eq!(code(&rig, HOST, BEN, &["anna@box.test"]), 550);
    assert_eq!(status(&rig.site)["correspondents"], 1);
}

/// Mail of an outbound service is judged, so bulk is no letter there.
#[test]
fn what_the_outbound_rule_names_is_written_by_own_users() {
    let Some(rig) = start("[outbound.match]\nclient = \"192.0.2.10\"\n") else { return };
    let web = Origin { ip: "192.0.2.10", ..Origin::default() };
    rig.from(web).send("anna@box.test", &[BEN], &letter("anna@box.test")).expect(250);
    assert_eq!(code(&rig, HOST, BEN, &["anna@box.test"]), 550, "it was a newsletter");
    rig.from(web).send("anna@box.test", &[BEN], &message("", "See you on Monday.\n")).expect(250);
    assert_eq!(code(&rig, HOST, BEN, &["anna@box.test"]), 250);
}
