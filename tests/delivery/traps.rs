// SPDX-License-Identifier: GPL-3.0-or-later
//! Traps behind a real Postfix: mail sent to them is nominated, and the next copy to somebody is spam.

use bulkmark_testing::milter::{ALL_ACTIONS, ALL_OPTIONS, Client as Milter, Mail};
use bulkmark_testing::mta::Kind;
use bulkmark_testing::page::{STATUS, metrics};
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::signer::{Form, Signer};
use bulkmark_testing::smtp::Origin;
use bulkmark_testing::{Site, program, status, wait_for_some};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// One person's report is enough, and leads to a refusal.
const REFUSING: &str = "[thresholds]\nspam = 1\n[actions]\nspam = \"reject\"\n";

fn start(traps: &str) -> Option<Rig> {
    let site = Rig::tcp_site("");
    fs::write(site.path("wanted"), "sender wanted.test\n").unwrap();
    fs::write(site.path("traps"), "# none\n").unwrap();
    let extra = extra(&site, traps);
    Rig::start_with(Kind::Postfix, Site { extra, ..site }, &["virtual_mailbox_domains=box.test, trap.test"])
}

fn extra(site: &Site, traps: &str) -> String {
    let wanted = site.path("wanted").display().to_string();
    let traps = traps.replace("FILE", &site.path("traps").display().to_string());
    format!(
        "{STATUS}{REFUSING}[whitelist]\nfiles = [\"{wanted}\"]\n[user-reports]\nown-domains = [\"box.test\"]\n[traps]\n{traps}"
    )
}

fn code(rig: &Rig, sender: &str, recipients: &[&str], message: &[u8]) -> u16 {
    rig.outside().send(sender, recipients, message).code
}

/// Another text, which has no reports yet.
fn letter(about: &str) -> Vec<u8> {
    let words: String = (0..40).map(|n| format!("{about}{n} ")).collect();
    message("", &format!("{words}\n"))
}

fn sprung(rig: &Rig, result: &str) -> f64 {
    metrics(&rig.daemon)[&format!("bulkmark_traps_messages_total{{result=\"{result}\"}}")]
}

#[test]
fn what_is_sent_to_a_trap_is_spam_for_all() {
    let Some(mut rig) = start("recipients = [\"old@box.test\", \"@trap.test\", \"FILE\"]") else { return };
    assert_eq!(code(&rig, "a@sender.test", &["anna@box.test"], &letter("before")), 250);
    assert_eq!(code(&rig, "a@sender.test", &["Old+x@box.test"], &message("", NEWS)), 250);
    rig.daemon.log.wait_for(0, "trap=nominated");
    // The report is on disk before the answer.
    rig.kill_and_restart();
    assert_eq!(code(&rig, "b@sender.test", &["anna@box.test"], &message("", NEWS)), 550);
    assert_eq!(rig.mta.wait_for_mail("Old+x@box.test", 1).len(), 1, "it is delivered, unless told otherwise");
    // A trap reports a text once, however often it gets it; another one reports separately.
    assert_eq!(code(&rig, "b@sender.test", &["old@box.test"], &message("", NEWS)), 550);
    assert_eq!([sprung(&rig, "known"), sprung(&rig, "nominated")], [1.0, 0.0]);
    let elsewhere = Origin { ip: "203.0.113.7", ..Origin::default() };
    rig.from(elsewhere).send("b@sender.test", &["any@trap.test"], &message("", NEWS)).expect(550);
    assert_eq!([sprung(&rig, "known"), sprung(&rig, "nominated")], [1.0, 1.0]);

    let words = |result: &str| {
        metrics(&rig.daemon)[&format!("bulkmark_user_reports_total{{side=\"spam\",result=\"{result}\"}}")]
    };
    assert_eq!([words("known"), words("counted"), words("refused")], [1.0, 1.0, 0.0]);

    // Mail with twice the necessary weight gets no more reports, to save room.
    assert_eq!(code(&rig, "b@sender.test", &["more@trap.test"], &message("", NEWS)), 550);
    assert_eq!([sprung(&rig, "known"), sprung(&rig, "nominated")], [2.0, 1.0]);

    // A changed file is read again soon.
    fs::write(rig.site.path("traps"), "web@box.test\n").unwrap();
    let mut letters = (0..).map(|n| letter(&format!("file{n}x")));
    wait_for_some("the trap of the file", || {
        let letter = letters.next()?;
        assert_eq!(code(&rig, "a@sender.test", &["web@box.test"], &letter), 250);
        (code(&rig, "a@sender.test", &["anna@box.test"], &letter) == 550).then_some(())
    });
    // Half the weight is not enough.
    let half = extra(&rig.site, "recipients = [\"old@box.test\", \"@trap.test\"]\nweight = 0.5\n");
    rig.reload(&half);
    assert_eq!(code(&rig, "a@sender.test", &["old@box.test"], &letter("half")), 250);
    assert_eq!(code(&rig, "a@sender.test", &["anna@box.test"], &letter("half")), 250);
    // Nor are both together, if the mail comes from one network; and names of one domain are one trap.
    let from = |ip: &'static str, to: &[&str]| {
        rig.from(Origin { ip, ..Origin::default() }).send("a@sender.test", to, &letter("half")).code
    };
    assert_eq!(code(&rig, "a@sender.test", &["x@trap.test"], &letter("half")), 250);
    rig.daemon
        .log
        .wait_for(0, "the trap @trap.test says nothing, since another one was told of this mailing");
    assert_eq!(code(&rig, "a@sender.test", &["anna@box.test"], &letter("half")), 250);
    for ip in ["203.0.113.7", "203.0.114.7", "203.0.115.7"] {
        assert_eq!(from(ip, &["old@box.test"]), 250, "{ip}");
    }
    assert_eq!(code(&rig, "a@sender.test", &["anna@box.test"], &letter("half")), 250);
    assert_eq!(from("203.0.116.7", &["x@trap.test"]), 250);
    assert_eq!(code(&rig, "a@sender.test", &["anna@box.test"], &letter("half")), 550);
}

/// Several messages to many names of a trap's domain count as one reporter.
#[test]
fn all_names_of_a_domain_are_one_trap() {
    let site = Site::new(
        "[traps]\nrecipients = [\"@trap.test\", \".below.test\", \"old@\"]\n[actions]\nspam = \"reject\"\n",
    );
    let daemon = site.start();
    let mail = Mail::text("the circular of a club");
    for (n, domain) in (0..).zip(["@trap.test", "@a.below.test", "@b.below.test", "@trap.test"]) {
        let mut client = Milter::connect(&daemon);
        client.client("client.example.org", &format!("203.0.{n}.7"));
        let recipients = (0..10).map(|i| format!("x{n}{i}{domain}")).collect();
        assert_eq!(client.message(&Mail { recipients, ..mail.clone() }).reply, "c");
    }
    let mut club = Milter::connect(&daemon);
    club.client("client.example.org", "198.51.100.7");
    let answer = club.message(&mail);
    assert_eq!((&*answer.reply, answer.header().starts_with("spam")), ("c", false), "{answer:?}");
    let said = reported(&site);
    assert_eq!(said, 2, "one word of each domain");
}

/// The reporters of the one reported mailing.
fn reported(site: &Site) -> usize {
    let output = Command::new(program())
        .args(["report", "list", "--json", "--config"])
        .arg(site.config())
        .output()
        .unwrap();
    let all: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    all["reporters"].as_array().unwrap_or_else(|| panic!("{all}")).len()
}

/// Mail that its readers want, and mail of known senders, is not nominated.
#[test]
fn what_is_no_spam_is_not_nominated() {
    let Some(rig) = start("recipients = [\"old@box.test\"]") else { return };
    let anna = Origin { login: Some("anna"), ..Origin::default() };
    // White-listed, from own users, empty.
    assert_eq!(code(&rig, "news@wanted.test", &["old@box.test"], &letter("wanted")), 250);
    assert_eq!(code(&rig, "anna@box.test", &["old@box.test"], &letter("own")), 250);
    assert_eq!(code(&rig, "a@sender.test", &["old@box.test"], &message("", "")), 250);
    rig.from(anna).send("anna@elsewhere.test", &["old@box.test"], &letter("outbound")).expect(250);
    rig.local().send("a@sender.test", &["old@box.test"], &letter("local")).expect(250);
    for about in ["wanted", "own", "outbound", "local"] {
        assert_eq!(code(&rig, "a@sender.test", &["anna@box.test"], &letter(about)), 250, "{about}");
    }
    let results = ["nominated", "known", "whitelisted", "refused"].map(|result| sprung(&rig, result));
    assert_eq!(results, [0.0, 0.0, 1.0, 2.0]);
    let why = rig.daemon.log.wait_for(0, "a trap got it, and it is not nominated: anna@box.test");
    assert!(why.contains("user-reports.own-domains"), "{why}");

    // White-listed mail to a trap is listed in the status, also after a restart.
    let wanted = |rig: &Rig| status(&rig.site)["traps"]["wanted"]["old@box.test"].clone();
    assert_eq!(
        (wanted(&rig)["messages"].as_u64(), wanted(&rig)["entry"].as_str().unwrap().ends_with("wanted:1")),
        (Some(1), true)
    );
    let Rig { mta, daemon, site, kind } = rig;
    assert!(daemon.terminate().success());
    let rig = Rig { daemon: site.start(), mta, site, kind };
    assert_eq!(wanted(&rig)["messages"], 1);
    let output = Command::new(program())
        .args(["doctor", "--json", "--config"])
        .arg(rig.site.config())
        .output()
        .unwrap();
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let told = all["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|found| found["check"] == "traps")
        .unwrap_or_else(|| panic!("{all}"));
    assert_eq!(told["level"], "warning", "{told}");
    assert!(
        told.to_string().contains("old@box.test gets mail from white-listed senders: 1 message"),
        "{told}"
    );
}

/// Own users are no strangers, whether or not their mail is judged.
#[test]
fn what_own_users_send_to_a_trap_is_not_nominated() {
    let site = Rig::tcp_site("");
    let own = "[outbound.match]\nclient = \"192.0.2.10\"\n";
    let extra = format!("exempt = [\"loopback\"]\n{REFUSING}{own}[traps]\nrecipients = [\"old@box.test\"]\n");
    let Some(rig) = Rig::start_with(Kind::Postfix, Site { extra, ..site }, &[]) else { return };
    let anna = Origin { login: Some("anna"), ..Origin::default() };
    let web = Origin { ip: "192.0.2.10", ..Origin::default() };
    for (origin, about) in [(anna, "login"), (web, "outbound")] {
        rig.from(origin).send("a@sender.test", &["old@box.test"], &letter(about)).expect(250);
        assert_eq!(code(&rig, "a@sender.test", &["anna@box.test"], &letter(about)), 250, "{about}");
        assert_eq!(code(&rig, "a@sender.test", &["old@box.test"], &letter(about)), 250, "{about}");
        assert_eq!(code(&rig, "a@sender.test", &["anna@box.test"], &letter(about)), 550, "{about}");
    }
}

/// If DNS cannot decide whether a white list wants the mail, a trap reports nothing.
#[test]
fn a_trap_says_nothing_of_what_may_be_wanted() {
    let Some(key) = Signer::new(2048) else { return };
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let site = Rig::tcp_site("");
    fs::write(site.path("wanted"), "dkim friends.test\n").unwrap();
    let extra = format!(
        "verdict-deadline = \"20s\"\n{REFUSING}[whitelist]\nfiles = [\"{}\"]\n[traps]\nrecipients = [\"old@box.test\"]\n[authentication]\n\
         authenticate = \"self\"\nnameservers = [\"{}\"]\n",
        site.path("wanted").display(),
        silent.local_addr().unwrap()
    );
    let Some(rig) = Rig::start_with(Kind::Postfix, Site { extra, ..site }, &[]) else { return };
    let signed = key.sign(&letter("signed"), &Form { domain: "friends.test", ..Form::default() });
    assert_eq!(code(&rig, "a@sender.test", &["old@box.test"], &signed), 250);
    rig.daemon.log.wait_for(0, "says nothing, since it is not known whether a white list wants it");
    assert_eq!(code(&rig, "a@sender.test", &["anna@box.test"], &signed), 250);
}

#[test]
fn traps_are_discarded_and_others_get_their_mail() {
    let Some(rig) = start("recipients = [\"@trap.test\"]\ndiscard = true") else { return };
    assert_eq!(code(&rig, "a@sender.test", &["a@trap.test", "b@trap.test"], &letter("alone")), 250);
    rig.daemon.log.wait_for(0, "trap=nominated action=discard");
    assert_eq!(code(&rig, "a@sender.test", &["anna@box.test"], &letter("alone")), 550);
    // Also an empty message, and one that others get refused.
    assert_eq!(code(&rig, "a@sender.test", &["a@trap.test"], &message("", "")), 250);
    assert_eq!(code(&rig, "a@sender.test", &["a@trap.test"], &letter("alone")), 250);
    // Together with a recipient who is no trap.
    assert_eq!(code(&rig, "a@sender.test", &["a@trap.test", "ben@box.test"], &letter("mixed")), 250);
    rig.mta.wait_for_mail("ben@box.test", 1);
    assert!(rig.mta.delivered("a@trap.test").is_empty() && rig.mta.delivered("b@trap.test").is_empty());
    assert_eq!(code(&rig, "a@sender.test", &["anna@box.test"], &letter("mixed")), 550);
}

/// With a mail server that cannot remove recipients, all get the message.
#[test]
fn a_mail_server_that_cannot_take_recipients_out_delivers_to_all() {
    const DELETE_RCPT: u32 = 0x08;
    let site = Site::new("[traps]\nrecipients = [\"@trap.test\"]\ndiscard = true\n");
    let daemon = site.start();
    let mail = Mail {
        recipients: vec!["x@trap.test".to_owned(), "ben@box.test".to_owned()],
        ..Mail::text("to a trap and to somebody")
    };
    for (actions, removed) in
        [(ALL_ACTIONS, vec!["<x@trap.test>".to_owned()]), (ALL_ACTIONS & !DELETE_RCPT, vec![])]
    {
        let mut client = Milter::open_at(&daemon.address);
        client.negotiate(6, actions, ALL_OPTIONS);
        assert_eq!(client.actions & DELETE_RCPT, actions & DELETE_RCPT);
        client.client("client.example.org", "192.0.2.7");
        let answer = client.message(&mail);
        assert_eq!((&*answer.reply, answer.taken_out), ("c", removed));
    }
}
