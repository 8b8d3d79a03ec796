// SPDX-License-Identifier: GPL-3.0-or-later
//! White lists by verified results, behind a real Postfix with a real OpenDKIM before the daemon; and senders who forge a verifier's
//! results.

use crate::AT_ONCE;
use bulkmark_testing::dkim::{DOMAIN, OpenDkim};
use bulkmark_testing::mta::Kind;
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::{program, text_of};
use std::process::Command;

/// A site on which bulk is refused at once, unless the shop signed it. `verifier` is the first milter.
fn site(verifier: Option<&OpenDkim>, whitelist: &str, settings: &[&str]) -> Option<Rig> {
    let mut site = Rig::tcp_site("");
    let list = site.path("list");
    std::fs::write(&list, whitelist).unwrap();
    site.extra = format!(
        "{AT_ONCE}[actions]\nbulk = \"reject\"\n[whitelist]\nfiles = [\"{}\"]\n[authentication]\nauthenticate = \
         \"header\"\nauthserv-ids = [\"mx.test\"]\n",
        list.display()
    );
    let milters: Vec<_> = verifier.map(|v| &*v.milter).into_iter().chain([&*site.listen]).collect();
    let milters = format!("smtpd_milters={}", milters.join(", "));
    let settings: Vec<_> = [&*milters].into_iter().chain(settings.iter().copied()).collect();
    Rig::start_with(Kind::Postfix, site, &settings)
}

/// The message with these lines at its top.
fn with_fields(fields: &str, message: &[u8]) -> Vec<u8> {
    [fields.as_bytes(), message].concat()
}

/// A verifier's result for a signature of the shop.
const PASS: &str = "Authentication-Results: mx.test; dkim=pass header.d=shop.example\n";

/// An invalid signature with all fields of a real one.
const BOGUS: &str = "DKIM-Signature: v=1; a=rsa-sha256; d=shop.example; s=sel; h=from; bh=AA==; b=AA==\n";

#[test]
fn what_a_verifier_says_lets_bulk_pass() {
    let Some(dkim) = OpenDkim::start("") else { return };
    let list = format!("dkim other.example\nlist-id <sale.{DOMAIN}> & dkim {DOMAIN}\n");
    let Some(rig) = site(Some(&dkim), &list, &[]) else { return };
    let news = message("List-Id: Sale <sale.shop.example>\n", NEWS);
    rig.outside().send("news@sender.test", &["a@box.test"], &news).expect(550);
    rig.outside().send("news@sender.test", &["b@box.test"], &dkim.sign(&news)).expect(250);
    let mail = &rig.mta.wait_for_mail("b@box.test", 1)[0];
    assert!(
        mail.verdict().starts_with("whitelisted; body=2; ") && mail.verdict().ends_with("list:2"),
        "{mail:?}"
    );
    // Signed, but changed on the way.
    let changed = String::from_utf8(dkim.sign(&news)).unwrap().replace("forty", "fifty");
    rig.outside().send("news@sender.test", &["c@box.test"], changed.as_bytes()).expect(550);
    let other_list = dkim.sign(&message("List-Id: <other.shop.example>\n", NEWS));
    rig.outside().send("news@sender.test", &["d@box.test"], &other_list).expect(550);

    // The delivered message proves it.
    let file = rig.write("b.eml", &mail.0);
    let explained = explain(&rig, &file);
    assert!(explained.contains(&format!("mx.test says dkim=pass header.d={DOMAIN}: counts")), "{explained}");
    let file = rig.write("forged.eml", &mail.0.replace("mx.test", "relay.example"));
    let explained = explain(&rig, &file);
    let why = "ignored, since its server is not in authentication.authserv-ids";
    assert!(
        explained.contains(&format!("relay.example says dkim=pass header.d={DOMAIN}: {why}")),
        "{explained}"
    );
    assert!(explained.contains(&format!("list:2: this does not hold: dkim {DOMAIN}")), "{explained}");
}

fn explain(rig: &Rig, file: &str) -> String {
    let output = Command::new(program())
        .arg("explain")
        .arg("--config")
        .arg(rig.site.config())
        .arg(file)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

/// OpenDKIM removes such fields, but leaves those that it cannot parse, and adds nothing to mail without a parsable signature.
#[test]
fn what_a_sender_writes_above_his_message_does_not() {
    let Some(dkim) = OpenDkim::start("") else { return };
    let list = format!("dkim {DOMAIN}\nspf {DOMAIN}\n");
    let Some(rig) = site(Some(&dkim), &list, &[]) else { return };
    let news = message("", NEWS);
    let many = PASS.trim_end().to_owned() + &"; dkim=pass header.d=shop.example".repeat(40) + "\n";
    let broken = PASS.replace(DOMAIN, "shop.example; @@ x");
    let version = PASS.replace("dkim=", "dkim/1=");
    let pieces = PASS.trim_end().to_owned() + &" header.x=y".repeat(130) + "\n";
    for (n, fields) in [
        PASS.to_owned(),
        format!("{PASS}{BOGUS}"),
        format!("{many}{BOGUS}"),
        format!("{broken}{BOGUS}"),
        format!("{version}DKIM-Signature: d=shop.example\n"),
        format!("{version}{BOGUS}"),
        format!("{pieces}{BOGUS}"),
        format!("{}{BOGUS}", PASS.replace("dkim=pass header.d", "spf=pass smtp.mailfrom")),
        format!("{many}DKIM-Signature: d=shop.example\n"),
        format!("{}{BOGUS}", PASS.replace("mx.test", "\"mx.test\"")),
        format!("{}{BOGUS}", PASS.replace("mx.test", "(x) mx.test")),
        format!("{}{BOGUS}", PASS.replace("Results:", "Results :")),
        format!("{PASS}{PASS}{PASS}{BOGUS}"),
    ]
    .iter()
    .enumerate()
    {
        let reply =
            rig.outside().send("news@shop.example", &[&format!("{n}@box.test")], &with_fields(fields, &news));
        assert_eq!(reply.code, 550, "{fields}");
    }
    // And above a message that he really signed with his own key.
    let own = dkim.sign(&news);
    let own = String::from_utf8(own).unwrap().replace("d=shop.example", "d=evil.example");
    let reply = rig.outside().send("a@sender.test", &["a@box.test"], &with_fields(PASS, own.as_bytes()));
    reply.expect(550);
}

/// The line of docs/authentication.md for the border: nothing else keeps forged fields out where no verifier writes its own.
#[test]
fn postfix_removes_what_is_written_in_its_name() {
    let forged = |results: &str| with_fields(&format!("{results}{BOGUS}"), &message("", NEWS));
    let list = format!("dkim {DOMAIN}\n");
    let Some(rig) = site(None, &list, &[]) else { return };
    rig.outside().send("a@sender.test", &["a@box.test"], &forged(PASS)).expect(250);

    let guide = text_of("docs/authentication.md");
    let rule =
        guide.lines().map(str::trim).find(|line| line.starts_with("/^Authentication-Results")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("checks");
    std::fs::write(&table, rule.replace("mx\\.example\\.org", "mx\\.test") + "\n").unwrap();
    let Some(rig) = site(None, &list, &[&format!("header_checks=regexp:{}", table.display())]) else {
        return;
    };
    for results in
        [PASS.to_owned(), PASS.replace(": ", ":\n\t"), PASS.to_lowercase(), PASS.replace(":", " :")]
    {
        rig.outside().send("a@sender.test", &["a@box.test"], &forged(&results)).expect(550);
    }
}
