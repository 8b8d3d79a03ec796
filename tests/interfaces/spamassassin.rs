// SPDX-License-Identifier: GPL-3.0-or-later
//! SpamAssassin with its own DCC plugin.

use crate::asking::{counts, metrics, site, start};
use crate::guide::shown;
use bulkmark_testing::letters::{count, letter};
use bulkmark_testing::{Site, skip};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The line that loads SpamAssassin's DCC plugin, from docs/interfaces.md.
pub(crate) fn dcc() -> String {
    shown("/etc/spamassassin/bulkmark-dcc.pre")
}

/// The same letter with the field of the mail server that accepted it.
pub(crate) fn delivered(n: usize) -> Vec<u8> {
    let received = "Received: from h.example (h.example [192.0.2.7])\r\n\tby mx.test (Postfix) with ESMTP id 4TEST\r\n\t\
                    for <u@box.test>; Mon, 23 Nov 2026 12:00:00 +0000 (UTC)\r\n";
    [received.as_bytes(), &letter(n)].concat()
}

/// The lines of docs/interfaces.md for the DCC plugin, with this site's socket, and its rule.
pub(crate) fn rules(site: &Site) -> String {
    let interface = site.path("dccifd.sock").display().to_string();
    let rules = shown("/etc/spamassassin/bulkmark-dcc.cf").replace("/run/bulkmark/dccifd.sock", &interface);
    format!("{rules}full DCC_CHECK eval:check_dcc()\nscore DCC_CHECK 3\n")
}

/// Runs SpamAssassin with its DCC plugin, as in docs/interfaces.md, on a message; none if it is not installed.
fn spamassassin(site: &Site, arguments: &[&str], message: &[u8]) -> Option<String> {
    let rules = format!("{}add_header all Status \"_YESNO_ tests=_TESTS_\"\n", rules(site));
    run(site, &dcc(), &rules, arguments, message)
}

/// Writes these plugins and rules into the directories `rules` and `spamassassin` of a site.
pub(crate) fn write(site: &Site, plugins: &str, local: &str) {
    let (rules, own) = (site.path("rules"), site.path("spamassassin"));
    for directory in [&rules, &own] {
        fs::create_dir_all(directory).unwrap();
    }
    fs::write(rules.join("one.cf"), "header HAS_SUBJECT exists:Subject\n").unwrap();
    fs::write(own.join("local.pre"), format!("loadplugin Mail::SpamAssassin::Plugin::Check\n{plugins}"))
        .unwrap();
    let patience: String =
        [("DCC", "dcc"), ("Razor2", "razor"), ("Pyzor", "pyzor"), ("Bulkmark", "bulkmark")]
            .map(|(plugin, key)| {
                format!("ifplugin Mail::SpamAssassin::Plugin::{plugin}\n{key}_timeout 60\nendif\n")
            })
            .concat();
    fs::write(own.join("local.cf"), format!("dns_available no\nskip_rbl_checks 1\n{patience}{local}"))
        .unwrap();
}

/// Runs SpamAssassin with these plugins and rules on a message; none if it is not installed.
pub(crate) fn run(
    site: &Site,
    plugins: &str,
    local: &str,
    arguments: &[&str],
    message: &[u8],
) -> Option<String> {
    if Command::new("spamassassin").arg("--version").output().is_err() {
        skip("spamassassin is not installed");
        return None;
    }
    write(site, plugins, local);
    let (rules, own) = (site.path("rules"), site.path("spamassassin"));
    let mut child = Command::new("spamassassin")
        .args(arguments)
        .args(["-x", "-C"])
        .arg(&rules)
        .arg(format!("--siteconfigpath={}", own.display()))
        .env("HOME", site.directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(message).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// A message checked by SpamAssassin is counted, and bulk hits its rule, from the same count on as at the milter.
#[test]
fn bulk_hits_dcc_check() {
    let site = site("", "", "");
    let daemon = start(&site);
    let Some(checked) = spamassassin(&site, &["-t"], &delivered(1)) else { return };
    assert!(!checked.contains("DCC_CHECK"), "{checked}");
    assert_eq!(count(&site, &letter(1)), 1, "{checked}");
    let line = daemon.log.wait_for(0, "interface=dccifd");
    assert!(line.contains("client=h.example[192.0.2.7]"), "{line}");
    for _ in 2..20 {
        metrics(&site, "", &delivered(1));
    }
    let checked = spamassassin(&site, &["-t"], &delivered(1)).unwrap();
    assert!(checked.contains("DCC_CHECK"), "{checked}");
    assert_eq!(count(&site, &letter(1)), 20);
}

/// A message reported by SpamAssassin is nominated, and not counted once more.
#[test]
fn a_report_nominates() {
    let site = site("[user-reports]\ntrust = { new-reporter = 1.0 }\n[thresholds]\nspam = 1\n", "", "");
    let _daemon = start(&site);
    assert_eq!(counts(&metrics(&site, "", &delivered(1))), "Body=1 Fuz1=1 Fuz2=1");
    let Some(told) = spamassassin(&site, &["-r", "-D", "dcc"], &delivered(1)) else { return };
    let (_, check) = site.check(&letter(1));
    let check: Value = serde_json::from_str(&check).unwrap_or_else(|e| panic!("{e}: {check}"));
    assert_eq!(
        (check["verdict"].as_str(), check["body"]["count"].as_u64()),
        (Some("spam"), Some(1)),
        "{told}"
    );
    let checked = spamassassin(&site, &["-t"], &delivered(1)).unwrap();
    assert!(checked.contains("DCC_CHECK"), "mail that users report as spam is many: {checked}");
}
