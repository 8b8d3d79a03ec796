// SPDX-License-Identifier: GPL-3.0-or-later
//! SpamAssassin with the plugin of this package.

use crate::asking::{HELD, called_spam, judge, metrics, site, start};
use crate::guide::{packaged, shown};
use crate::spamassassin::{delivered, run, write};
use bulkmark_testing::Site;
use bulkmark_testing::letters::{count, letter};
use bulkmark_testing::milter::{Mail, session};
use std::fs;
use std::path::PathBuf;

/// The package's lines that load the plugin from a site, and its settings with the socket there.
fn lines(site: &Site) -> (String, String) {
    fs::write(site.path("Bulkmark.pm"), packaged("spamassassin/Bulkmark.pm")).unwrap();
    let here = site.directory.path().display().to_string();
    let plugin = packaged("spamassassin/bulkmark.pre").replace("/usr/share/bulkmark/spamassassin", &here);
    let socket = site.path("http.sock").display().to_string();
    (plugin, packaged("spamassassin/bulkmark.cf").replace("/run/bulkmark/http.sock", &socket))
}

/// The directories of rules and of the site's own files, with the plugin and more lines; for programs that include SpamAssassin.
pub(crate) fn files(site: &Site, local: &str) -> (PathBuf, PathBuf) {
    let (plugin, rules) = lines(site);
    write(site, &plugin, &format!("{rules}{local}"));
    (site.path("rules"), site.path("spamassassin"))
}

/// SpamAssassin's result for a message, with the files of the package and more lines of local.cf; none if it is not installed.
fn check(site: &Site, local: &str, message: &[u8]) -> Option<String> {
    let (plugin, rules) = lines(site);
    let local = format!("{rules}{local}\nadd_header all Status \"tests=_TESTS_\"\n");
    run(site, &plugin, &local, &["-t", "-D", "bulkmark"], message)
}

/// The lines of docs/interfaces.md for local.cf, without those for TCP.
fn tags() -> String {
    let shown = shown("/etc/spamassassin/local.cf");
    shown.lines().filter(|line| !line.starts_with("bulkmark_")).map(|line| format!("{line}\n")).collect()
}

/// One campaign, whose copies come by turns to the milter and to SpamAssassin, is counted as one; from the threshold on the rules hit.
#[test]
fn milter_and_plugin_count_alike() {
    let site = site("exempt = [\"authenticated\"]\n[thresholds]\nbody = 4\nnear = 5\n", "", "");
    let daemon = start(&site);
    for n in [1, 3] {
        assert_eq!(session(&daemon).message(&Mail::raw(&letter(1))).count(), Some(n));
        // With its own queue id, as each copy has.
        let copy = String::from_utf8(delivered(1)).unwrap().replace("4TEST", &format!("4TEST{n}"));
        let Some(told) = check(&site, &tags(), copy.as_bytes()) else { return };
        let (m, verdict) = (n + 1, if n == 3 { "bulk" } else { "clean" });
        let field = format!("X-Spam-Bulkmark: {verdict}, body {m}, near {m}");
        assert!(told.contains(&field), "{told}");
        assert_eq!(told.contains("BULKMARK_BULK"), n == 3, "{told}");
        assert!(!told.contains("BULKMARK_NEAR") && !told.contains("BULKMARK_10X"), "{told}");
    }
    let line = daemon.log.wait_for(0, "interface=http");
    assert!(line.contains("client=h.example[192.0.2.7]") && line.contains("4TEST1"), "{line}");
    for _ in 5..40 {
        judge(&site, "?ip=192.0.2.7", &letter(1));
    }
    let copy = String::from_utf8(delivered(1)).unwrap().replace("4TEST", "4TEST40");
    let told = check(&site, &tags(), copy.as_bytes()).unwrap();
    for rule in
        ["BULKMARK_BULK", "BULKMARK_NEAR", "BULKMARK_10X", "bulkmark: bulk, since its body count is 40"]
    {
        assert!(told.contains(rule), "{rule}: {told}");
    }
    let told = check(&site, "bulkmark_count 0\n", &letter(1)).unwrap();
    assert!(told.contains("BULKMARK_BULK"), "{told}");
    assert_eq!(count(&site, &letter(1)), 40, "with bulkmark_count 0 it only asks");
}

/// By TCP with a token, as in docs/interfaces.md; the white list has its rule. With a wrong token the log shows why.
#[test]
fn by_tcp_with_a_token() {
    let mut site = Site::new("");
    let (token, list) = (site.path("token"), site.path("list"));
    fs::write(&token, "0123456789abcdef0123\n").unwrap();
    fs::write(&list, "ip 192.0.2.7\n").unwrap();
    site.extra = format!(
        "[thresholds]\nbody = 1\n[whitelist]\nfiles = [{list:?}]\n[interfaces.http]\nlisten = \"127.0.0.1:0\"\ntoken-file = {token:?}\n"
    );
    let daemon = site.start();
    let line = daemon.log.wait_for(0, "the interface http is at");
    let local = shown("/etc/spamassassin/local.cf")
        .replace("127.0.0.1:8725", line.rsplit(' ').next().unwrap())
        .replace("/etc/spamassassin/bulkmark-token", &token.display().to_string());
    let Some(told) = check(&site, &local, &delivered(1)) else { return };
    assert!(told.contains("BULKMARK_WHITELIST") && !told.contains("BULKMARK_BULK"), "{told}");
    fs::write(&token, "0123456789abcdef0124\n").unwrap();
    let told = check(&site, &local, &delivered(1)).unwrap();
    assert!(!told.contains("BULKMARK_") && told.contains(": 401: a token is needed"), "{told}");
}

/// Without an interface, and with one that does not answer, the message passes, and the log shows why.
#[test]
fn mail_flows_without_an_answer() {
    let site = site("", "", "");
    let daemon = start(&site);
    daemon.signal("STOP");
    let hangs = check(&site, "bulkmark_timeout 1\n", &delivered(1));
    let Some(told) = hangs else { return };
    assert!(!told.contains("BULKMARK_") && told.contains("within 1 s"), "{told}");
    daemon.kill();
    let told = check(&site, "", &delivered(1)).unwrap();
    assert!(!told.contains("BULKMARK_") && told.contains(": cannot connect: "), "{told}");
    assert!(told.contains("X-Spam-Status: tests=HAS_SUBJECT"), "{told}");
}

/// Mail reported as spam has its rule, before there is enough of it to be bulk.
#[test]
fn reported_spam_has_its_rule() {
    let site = site("[user-reports]\ntrust = { new-reporter = 1.0 }\n[thresholds]\nspam = 1\n", "", "");
    let _daemon = start(&site);
    metrics(&site, "", &delivered(1));
    metrics(&site, "spam", &delivered(1));
    let Some(told) = check(&site, "", &letter(1)) else { return };
    assert!(told.contains("tests=BULKMARK_SPAM,HAS_SUBJECT"), "{told}");
}

/// A message that is only marked, since a recipient wrote to its sender, has no score for user reports.
#[test]
fn mail_of_correspondents_is_not_scored_as_spam() {
    let site = Site::new("");
    for (more, rules) in [("", "BULKMARK_SPAM,HAS_SUBJECT"), (HELD, "HAS_SUBJECT")] {
        let interface = called_spam(more);
        let local = format!("bulkmark_server 127.0.0.1:{}\n", interface.port);
        let Some(told) = check(&site, &local, &letter(1)) else { return };
        assert!(told.contains(&format!("tests={rules}")), "{told}");
    }
}
