// SPDX-License-Identifier: GPL-3.0-or-later
//! Mail that the daemon verifies itself, behind a real Postfix: signatures of a real OpenDKIM and bad ones, and a name server with the
//! answers that a test needs, or none.

use crate::AT_ONCE;
use bulkmark_testing::dkim::Signing;
use bulkmark_testing::dns::Dns;
use bulkmark_testing::mta::Kind;
use bulkmark_testing::program;
use bulkmark_testing::rig::{NEWS, Rig};
use bulkmark_testing::signer::{Form, Signer};
use bulkmark_testing::smtp::Origin;
use std::process::Command;

const KEY: &str = "sel._domainkey.shop.example";

/// A site on which bulk is refused at once, unless the list wants it, with more settings of `[authentication]`.
struct Site {
    rig: Rig,
    dns: Dns,
    list: String,
}

impl Site {
    fn start(list: &str, more: &str) -> Option<Self> {
        Self::start_as(Kind::Postfix, None, list, more)
    }

    /// Starts it with this mail server, and behind a milter that signs.
    fn start_as(kind: Kind, signing: Option<&Signing>, list: &str, more: &str) -> Option<Self> {
        let (mut site, dns) = (Rig::tcp_site(""), Dns::start());
        let file = site.path("list");
        std::fs::write(&file, list).unwrap();
        site.extra = extra(&file.display().to_string(), &dns, more);
        let milters = signing.map(|signing| format!("smtpd_milters={}, {}", signing.milter, site.listen));
        let rig = Rig::start_with(kind, site, &milters.as_deref().into_iter().collect::<Vec<_>>())?;
        Some(Self { rig, dns, list: file.display().to_string() })
    }

    /// The reply code for a message from a client at this address.
    fn code_from(&self, ip: &str, sender: &str, recipient: &str, message: &[u8]) -> u16 {
        self.rig.from(Origin { ip, ..Origin::default() }).send(sender, &[recipient], message).code
    }

    fn code(&self, message: &[u8]) -> u16 {
        self.code_from("192.0.2.25", "bounce@elsewhere.example", "a@box.test", message)
    }

    /// The verdict in the message that arrives at this recipient, who must get no other.
    fn verdict(&self, recipient: &str, message: &[u8]) -> String {
        assert_eq!(self.code_from("192.0.2.25", "bounce@elsewhere.example", recipient, message), 250);
        self.rig.mta.wait_for_mail(recipient, 1)[0].verdict()
    }

    fn reload(&mut self, more: &str) {
        let extra = extra(&self.list, &self.dns, more);
        self.rig.reload(&extra);
    }

    fn run(&self, arguments: &[&str]) -> String {
        let (command, rest) = arguments.split_first().unwrap();
        let mut all: Vec<_> = command.split(' ').collect();
        let config = self.rig.site.config();
        let config = config.to_str().unwrap();
        if command.starts_with("config") {
            all.push(config);
        } else {
            all.extend(["--config", config]);
        }
        let output = Command::new(program()).args(all).args(rest).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }
}

fn extra(list: &str, dns: &Dns, more: &str) -> String {
    format!(
        "{more}{AT_ONCE}[actions]\nbulk = \"reject\"\n[whitelist]\nfiles = [\"{list}\"]\n[authentication]\nauthenticate = \
         \"self\"\nnameservers = [\"{}\"]\n",
        dns.address
    )
}

/// A message of the shop, with more fields.
fn news(fields: &str) -> Vec<u8> {
    letter("news@shop.example", fields, NEWS)
}

fn letter(from: &str, fields: &str, body: &str) -> Vec<u8> {
    format!(
        "From: The Shop <{from}>\nTo: Friends <friends@box.test>\nSubject: News\nDate: Sat, 21 Nov 2026 10:00:00 +0000\n\
         Message-ID: <1@shop.example>\n{fields}\n{body}"
    )
    .into_bytes()
}

/// The fields above and below the signature must be unchanged, to the last blank.
#[test]
fn what_a_real_opendkim_signed_is_verified() {
    let Some(key) = Signer::new(2048) else { return };
    for form in ["simple/simple", "relaxed/relaxed"] {
        let Some(signing) = Signing::start(&key, form) else { return };
        let Some(site) = Site::start_as(Kind::Postfix, Some(&signing), "dkim shop.example\n", "") else {
            return;
        };
        site.dns.text(KEY, &key.record);
        let body = format!("{NEWS}.a line with a dot\n..and two\n \nlast \t words  \n\n\n");
        for (n, (fields, body)) in [
            ("", NEWS),
            (
                "Cc:no@blank.example\nReply-To:\tone@tab.example\nReferences:  <two@blanks.example>\nIn-Reply-To: <end@x.example> \n",
                &*body,
            ),
            ("References: <one@x.example>\n\t<two@x.example>\n   <three@x.example>\nIn-Reply-To:\n <next@line.example>\nCc: \n", NEWS),
        ]
        .iter()
        .enumerate()
        {
            let (to, message) = (format!("{n}@box.test"), letter("news@shop.example", fields, body));
            assert_eq!(
                site.code_from("192.0.2.7", "news@shop.example", &to, &message),
                250,
                "{form} {fields:?}"
            );
            let mail = &site.rig.mta.wait_for_mail(&to, 1)[0];
            assert!(mail.verdict().starts_with("whitelisted; "), "{form} {fields:?}: {mail:?}");
            assert!(mail.0.contains(&format!("c={form}")) && mail.0.contains("\nX-Bulkmark: "), "{mail:?}");
            // Not signed.
            assert_eq!(site.code(&message), 550);
            // The delivered message can still be verified.
            let file = site.rig.write(&format!("{n}.eml"), &mail.0);
            let explained = site.run(&["explain", &file]);
            assert!(explained.contains("\ndkim shop.example: verified\n"), "{form} {fields:?}: {explained}");
        }
    }
}

/// Sendmail passes on header fields in its own form, and takes ours in another.
#[test]
fn sendmail_hands_on_what_was_signed() {
    let Some(key) = Signer::new(2048) else { return };
    let Some(site) = Site::start_as(Kind::Sendmail, None, "dkim shop.example\n", "") else { return };
    site.dns.text(KEY, &key.record);
    let letter = news("References: <one@x.example>\n\t<two@x.example>\nReply-To:   <blanks@shop.example>\n");
    let signed = key.sign(&letter, &Form::default());
    assert_eq!(site.verdict("a@box.test", &signed).split(';').next(), Some("whitelisted"));
    let mail = &site.rig.mta.wait_for_mail("a@box.test", 1)[0];
    assert!(mail.0.contains("\nX-Bulkmark: whitelisted"), "{mail:?}");
    assert_eq!(site.code(&letter), 550);
}

#[test]
fn what_is_not_of_the_signer_is_refused() {
    let (Some(key), Some(weak)) = (Signer::new(2048), Signer::new(512)) else { return };
    let Some(other) = Signer::new(2048) else { return };
    let list = "dkim shop.example\nlist-id <sale.shop.example> & dkim lists.example\n";
    let Some(site) = Site::start(list, "") else { return };
    let dns = &site.dns;
    dns.text(KEY, &key.record);
    dns.text("sel._domainkey.lists.example", &key.record);
    dns.text("weak._domainkey.shop.example", &weak.record);
    dns.text("old._domainkey.shop.example", "v=DKIM1; k=rsa; p=");
    let (news, form) = (news(""), Form::default());
    let good = key.sign(&news, &form);
    assert_eq!(site.verdict("good@box.test", &good).split(';').next(), Some("whitelisted"));
    let text = |message: &[u8]| String::from_utf8(message.to_vec()).unwrap();
    let prepend = |fields: &str, message: &[u8]| [fields.as_bytes(), message].concat();
    let length = text(&news).split_once("\n\n").unwrap().1.len();
    for (what, message) in [
        ("unsigned", news.clone()),
        ("forged", other.sign(&news, &form)),
        ("another body", text(&good).replace("forty", "fifty").into_bytes()),
        ("another subject", text(&good).replace("Subject: News", "Subject: Olds").into_bytes()),
        ("revoked", key.sign(&news, &Form { selector: "old", ..form })),
        ("no key", key.sign(&news, &Form { selector: "none", ..form })),
        ("another domain", key.sign(&news, &Form { domain: "evil.example", ..form })),
        ("a part", key.sign(&news, &Form { length: Some(length), ..form })),
        ("nothing of the body", key.sign(&news, &Form { length: Some(0), ..form })),
        ("SHA-1", key.sign(&news, &Form { hash: "sha1", ..form })),
        ("512 bits", weak.sign(&news, &Form { selector: "weak", ..form })),
        ("not its author", key.sign(&news, &Form { fields: "To:Subject:Date", ..form })),
        ("expired", key.sign(&news, &Form { more: "t=1000000000; x=1000000001; ", ..form })),
        ("two authors", prepend("From: <evil@evil.example>\n", &good)),
        ("not of that list", key.sign(&news, &Form { domain: "lists.example", ..form })),
    ] {
        assert_eq!(site.code(&message), 550, "{what}");
    }
    // A server that refuses such a query would seem to be down.
    for selector in ["a..b", "x%20y", &"x".repeat(64)] {
        assert_eq!(site.code(&key.sign(&news, &Form { selector, ..form })), 550, "{selector}");
    }
    let listed = letter("news@shop.example", "List-Id: <sale.shop.example>\n", NEWS);
    assert_eq!(site.code(&key.sign(&listed, &Form { domain: "lists.example", ..form })), 250);

    // A few bad ones above the good one do not matter; many do.
    let bad = text(&other.sign(&news, &form)).lines().next().unwrap().to_owned() + "\n";
    assert_eq!(site.code(&prepend(&bad.repeat(4), &good)), 250);
    assert_eq!(site.code(&prepend(&bad.repeat(5), &good)), 550);
    // Signers that no entry names are not looked up.
    assert_eq!((dns.asked("sel._domainkey.evil.example"), dns.asked("_dmarc.shop.example")), (0, 0));
}

/// Wanted mail is not refused while DNS does not answer; and no message waits longer than allowed.
#[test]
fn without_an_answer_bulk_is_only_marked() {
    let Some(key) = Signer::new(2048) else { return };
    let Some(mut site) = Site::start("dkim shop.example\n", "verdict-deadline = \"20s\"\n") else { return };
    let dns = site.dns.clone();
    dns.is_silent_for(KEY);
    dns.fails_for("broken._domainkey.shop.example");
    let signed = key.sign(&news(""), &Form::default());
    let broken = key.sign(&news(""), &Form { selector: "broken", ..Form::default() });
    assert!(site.verdict("a@box.test", &signed).contains("; unverified=timeout"));
    assert!(dns.asked(KEY) > 0);
    site.rig.daemon.log.wait_for(0, "only marked: DNS did not answer within 4 s");
    site.reload("");
    assert!(site.verdict("b@box.test", &broken).contains("; unverified=dns"));
    site.rig.daemon.log.wait_for(0, "verdict=bulk");
    site.rig.daemon.log.wait_for(0, "unverified=dns");
    // This does not affect other mail.
    assert_eq!(site.code(&news("")), 550);
    let changed = String::from_utf8(broken.clone()).unwrap().replace("forty", "fifty");
    assert_eq!(site.code(changed.as_bytes()), 550);
    // No answers at all; for longer than a message may wait in total.
    dns.be_silent(true);
    let despite = "act-despite = [\"stale\", \"unverified\"]\n";
    site.reload("");
    let config = site.rig.site.extra.clone();
    let config = config.replace(AT_ONCE, &format!("{despite}verdict-deadline = \"3s\"\n{AT_ONCE}"));
    site.rig.reload(&config);
    assert_eq!(site.code(&signed), 550);
    site.reload("verdict-deadline = \"20s\"\n");
    let config = site.rig.site.extra.replace(AT_ONCE, &format!("{despite}{AT_ONCE}"));
    site.rig.reload(&config);
    assert_eq!(site.code(&signed), 550);
    site.rig.daemon.log.wait_for(0, "treated as unverified");
    site.reload("");
    dns.be_silent(false);
    dns.text(KEY, &key.record);
    assert_eq!(site.code(&signed), 250);
}

/// A withdrawn key is not accepted any more once its time is over; until then it is not looked up again.
#[test]
fn keys_are_kept_for_as_long_as_they_say() {
    let Some(key) = Signer::new(2048) else { return };
    let Some(site) = Site::start("dkim shop.example\n", "") else { return };
    site.dns.text(KEY, &key.record);
    let signed = key.sign(&news(""), &Form::default());
    assert_eq!(site.code(&signed), 250);
    site.dns.text(KEY, "v=DKIM1; p=");
    assert_eq!(site.code(&signed), 550);
    site.dns.text(KEY, &key.record);
    site.dns.keep(3600);
    assert_eq!(site.code(&signed), 250);
    let asked = site.dns.asked(KEY);
    site.dns.remove(KEY);
    assert_eq!((site.code(&signed), site.dns.asked(KEY)), (250, asked));
}

#[test]
fn a_sender_is_known_by_its_client() {
    let Some(site) = Site::start("spf shop.example\nspf news@club.example\nspf named.example\n", "") else {
        return;
    };
    let dns = &site.dns;
    dns.text("shop.example", "v=spf1 include:_spf.shop.example a:out.shop.example -all");
    dns.text("_spf.shop.example", "v=spf1 ip4:192.0.2.64/28 -all");
    dns.at("out.shop.example", "192.0.2.99");
    dns.text("club.example", "v=spf1 ip4:192.0.2.65 ~all");
    dns.text("evil.example", "v=spf1 +all");
    // By the name in EHLO.
    dns.text("named.example", "v=spf1 exists:%{h}.known.example -all");
    dns.at("client.test.known.example", "127.0.0.2");
    let code = |ip, sender| site.code_from(ip, sender, "a@box.test", &news(""));
    for (ip, sender) in [
        ("192.0.2.65", "bounce@shop.example"),
        ("192.0.2.99", "bounce@SHOP.example"),
        ("192.0.2.65", "news@club.example"),
        ("192.0.2.65", "news@named.example"),
    ] {
        assert_eq!(code(ip, sender), 250, "{ip} {sender}");
    }
    for (ip, sender) in [
        ("192.0.2.98", "bounce@shop.example"),
        ("192.0.2.65", "other@club.example"),
        ("192.0.2.66", "news@club.example"),
        ("192.0.2.65", "bounce@evil.example"),
        ("192.0.2.65", ""),
    ] {
        assert_eq!(code(ip, sender), 550, "{ip} {sender}");
    }
    assert_eq!(dns.asked("evil.example"), 0);
}

#[test]
fn an_author_is_known_by_what_is_aligned() {
    let Some(key) = Signer::new(2048) else { return };
    let Some(site) = Site::start("dmarc .shop.example\ndmarc strict.example\n", "") else { return };
    let dns = &site.dns;
    dns.text("_dmarc.shop.example", "v=DMARC1; p=none");
    dns.text("_dmarc.strict.example", "v=DMARC1; p=reject; adkim=s; aspf=s");
    for domain in
        ["shop.example", "mail.shop.example", "other.example", "mail.strict.example", "strict.example"]
    {
        dns.text(&format!("sel._domainkey.{domain}"), &key.record);
        dns.text(domain, "v=spf1 ip4:192.0.2.65 -all");
    }
    let code = |author: &str, signer: &str, ip: &str, sender: &str| {
        let letter = letter(author, "", NEWS);
        let message = match signer {
            "" => letter,
            domain => key.sign(&letter, &Form { domain, ..Form::default() }),
        };
        site.code_from(ip, sender, "a@box.test", &message)
    };
    let (away, home, bounce) = ("192.0.2.25", "192.0.2.65", "b@other.example");
    for (author, signer, ip, sender) in [
        ("a@shop.example", "shop.example", away, bounce),
        ("a@shop.example", "mail.shop.example", away, bounce),
        ("a@news.shop.example", "mail.shop.example", away, bounce),
        ("a@strict.example", "strict.example", away, bounce),
        ("a@shop.example", "", home, "b@mail.shop.example"),
        ("a@strict.example", "other.example", home, "b@strict.example"),
    ] {
        assert_eq!(code(author, signer, ip, sender), 250, "{author} {signer} {ip} {sender}");
    }
    for (author, signer, ip, sender) in [
        ("a@shop.example", "other.example", away, bounce),
        ("a@shop.example", "", home, bounce),
        ("a@shop.example", "", away, "b@shop.example"),
        ("a@strict.example", "mail.strict.example", away, bounce),
        ("a@strict.example", "", home, "b@mail.strict.example"),
        ("a@shop.example, b@other.example", "shop.example", away, bounce),
    ] {
        assert_eq!(code(author, signer, ip, sender), 550, "{author} {signer} {ip} {sender}");
    }
}

/// Mail that is not bulk, or that a list wants anyhow, causes no lookups; nor does an entry for somebody else.
#[test]
fn only_what_matters_is_asked() {
    let Some(key) = Signer::new(2048) else { return };
    let list = "recipient anna@box.test & dkim shop.example\nsender friend@sender.test\n";
    let Some(mut site) = Site::start(list, "") else { return };
    let dns = site.dns.clone();
    dns.text(KEY, &key.record);
    let signed = key.sign(&news(""), &Form::default());
    assert_eq!(site.code_from("192.0.2.25", "friend@sender.test", "anna@box.test", &signed), 250);
    assert_eq!(site.code_from("192.0.2.25", "b@sender.test", "bert@box.test", &signed), 550);
    let rare = site.rig.site.extra.replace("body = 1\n", "body = 1000\n");
    site.rig.reload(&rare);
    assert_eq!(site.code_from("192.0.2.25", "b@sender.test", "anna@box.test", &signed), 250);
    assert_eq!(dns.all_asked(), [""; 0]);
    site.reload("");
    assert_eq!(site.code_from("192.0.2.25", "b@sender.test", "anna@box.test", &signed), 250);
    assert_eq!(dns.all_asked(), [KEY]);
}

#[test]
fn commands_tell_what_is_missing() {
    let Some(key) = Signer::new(2048) else { return };
    let Some(mut site) = Site::start("dkim shop.example\n", "") else { return };
    site.dns.text(KEY, &key.record);
    let weak = key.sign(&news(""), &Form { hash: "sha1", ..Form::default() });
    let file = site.rig.write("weak.eml", &String::from_utf8(weak).unwrap());
    let explained = site.run(&["explain", &file]);
    assert!(explained.contains("dkim shop.example: not verified: it is made by SHA-1"), "{explained}");
    let part = key.sign(&news(""), &Form { length: Some(9), ..Form::default() });
    let file = site.rig.write("part.eml", &String::from_utf8(part).unwrap());
    let explained = site.run(&["explain", &file]);
    assert!(explained.contains("not verified: it covers the beginning of the body only"), "{explained}");
    let doctor = site.run(&["doctor"]);
    assert!(doctor.contains(&format!("{}: an answer in ", site.dns.address)), "{doctor}");
    let (nobody, config) = (site.rig.write("resolv.conf", ""), "[authentication]\nauthenticate = \"self\"\n");
    let config = site.rig.write("milter.toml", config);
    let program = program();
    let script = format!("mount --bind {nobody} /etc/resolv.conf && exec {program} config check {config}");
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("authentication.authenticate is \"self\", but no name server is known: "),
        "{told}"
    );
    site.dns.be_silent(true);
    site.reload("verdict-deadline = \"20s\"\n");
    let doctor = site.run(&["doctor"]);
    assert!(doctor.contains("name servers") && doctor.contains(&site.dns.address), "{doctor}");
    assert!(!doctor.contains("an answer in") && doctor.contains("authentication.nameservers"), "{doctor}");
}
