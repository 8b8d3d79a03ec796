// SPDX-License-Identifier: GPL-3.0-or-later
//! White lists use the results of a real OpenDMARC behind a real OpenDKIM, and of a real rspamd.

use crate::AT_ONCE;
use bulkmark_testing::dkim::{DOMAIN, OpenDkim};
use bulkmark_testing::dns::Dns;
use bulkmark_testing::mta::Kind;
use bulkmark_testing::rig::{NEWS, Rig};
use bulkmark_testing::smtp::Origin;
use bulkmark_testing::verifiers::Verifier;

const LIST: &str = "dkim shop.example\nspf club.example\ndmarc author.example\n";

/// A site on which bulk is refused at once, unless the verifiers before it report the results that the list requires.
fn site(milters: &[&str], ids: &str) -> Option<Rig> {
    let mut site = Rig::tcp_site("");
    let list = site.path("list");
    std::fs::write(&list, LIST).unwrap();
    site.extra = format!(
        "{AT_ONCE}[actions]\nbulk = \"reject\"\n[whitelist]\nfiles = [\"{}\"]\n[authentication]\nauthenticate = \
         \"header\"\nauthserv-ids = [\"{ids}\"]\nmethods = [\"dkim\", \"spf\", \"dmarc\"]\n",
        list.display()
    );
    let milters = format!("smtpd_milters={}, {}", milters.join(", "), site.listen);
    Rig::start_with(Kind::Postfix, site, &[&milters])
}

fn records(dns: &Dns) {
    for domain in [DOMAIN, "club.example", "author.example"] {
        dns.text(domain, "v=spf1 ip4:192.0.2.65 -all");
    }
    dns.text("_dmarc.author.example", "v=DMARC1; p=none");
    dns.text("_dmarc.club.example", "v=DMARC1; p=none");
}

fn letter(author: &str) -> Vec<u8> {
    format!(
        "From: Somebody <news@{author}>\nTo: Friends <friends@box.test>\nSubject: News\nDate: Sat, 21 Nov 2026 10:00:00 \
         +0000\nMessage-ID: <1@{author}>\n\n{NEWS}"
    )
    .into_bytes()
}

/// A field in the verifier's name.
fn forged(results: &str, message: &[u8]) -> Vec<u8> {
    let bogus = "DKIM-Signature: v=1; a=rsa-sha256; d=shop.example; s=sel; h=from; bh=AA==; b=AA==";
    [format!("Authentication-Results: mx.test; {results}\n{bogus}\n").as_bytes(), message].concat()
}

fn what_they_say_counts(rig: &Rig, dkim: &OpenDkim) {
    let code = |ip, sender: &str, message: &[u8]| {
        rig.from(Origin { ip, ..Origin::default() }).send(sender, &["a@box.test"], message).code
    };
    let (home, away) = ("192.0.2.65", "192.0.2.25");
    let signed = dkim.sign(&letter(DOMAIN));
    let changed = String::from_utf8(signed.clone()).unwrap().replace("forty", "fifty").into_bytes();
    for (what, expected, ip, sender, message) in [
        ("signed", 250, away, "b@elsewhere.example", signed.clone()),
        ("changed", 550, away, "b@elsewhere.example", changed),
        ("unsigned", 550, away, "b@shop.example", letter(DOMAIN)),
        ("its client", 250, home, "b@club.example", letter("club.example")),
        ("not its client", 550, away, "b@club.example", letter("club.example")),
        ("its author", 250, home, "b@author.example", letter("author.example")),
        ("not its author", 550, home, "b@club.test", letter("author.example")),
        ("signed by another", 250, away, "b@elsewhere.example", dkim.sign(&letter("author.example"))),
    ] {
        let found = code(ip, sender, &message);
        let delivered = rig.mta.delivered("a@box.test");
        assert_eq!(found, expected, "{what}; delivered before: {delivered:?}");
    }
    // OpenDMARC would believe forged SPF results.
    for field in
        ["Received-SPF: pass", "Authentication-Results: mx.test; spf=pass smtp.mailfrom=b@author.example"]
    {
        let message = [field.as_bytes(), b"\n", &letter("author.example")].concat();
        assert_eq!(code(away, "b@author.example", &message), 550, "{field}");
    }
    for results in [
        "dkim=pass header.d=shop.example",
        "spf=pass smtp.mailfrom=author.example",
        "spf=pass smtp.mailfrom=club.example",
        "dmarc=pass header.from=author.example",
    ] {
        for author in [DOMAIN, "club.example", "author.example"] {
            let message = forged(results, &letter(author));
            assert_eq!(code(away, &format!("b@{author}"), &message), 550, "{results} from {author}");
        }
    }
}

#[test]
fn opendmarc_tells_what_it_verified() {
    let Some(dns) = Dns::start_on_usual_port() else { return };
    let (Some(dkim), Some(dmarc)) = (OpenDkim::start("AlwaysAddARHeader yes\n"), Verifier::opendmarc(&dns))
    else {
        return;
    };
    records(&dns);
    let Some(rig) = site(&[&dkim.milter, &dmarc.milter], "mx.test") else { return };
    what_they_say_counts(&rig, &dkim);
}

#[test]
fn rspamd_tells_what_it_verified() {
    let dns = Dns::start();
    let (Some(dkim), Some(rspamd)) = (OpenDkim::start(""), Verifier::rspamd(&dns)) else { return };
    records(&dns);
    dns.text(&format!("sel._domainkey.{DOMAIN}"), &dkim.record);
    let Some(rig) = site(&[&rspamd.milter], "mx.test") else { return };
    what_they_say_counts(&rig, &dkim);
}
