// SPDX-License-Identifier: GPL-3.0-or-later
//! SpamAssassin's plugin Pyzor at the Pyzor interface, with the reference client that it runs, and with its own client in Perl.

use crate::guide::{shown, shown_below};
use crate::pyzor::{DIGEST, LETTER, ask, counts, open, pyzor};
use crate::spamassassin::run;
use bulkmark_testing::Site;
use std::fs;
use std::net::SocketAddr;

/// The plugin's lines from docs/interfaces.md, with this site's files and its interface's address, the rule, and more lines.
fn rules(site: &Site, at: SocketAddr, more: &str) -> String {
    let home = site.path("pyzor");
    fs::create_dir_all(&home).unwrap();
    let servers = shown("/etc/spamassassin/pyzor/servers").replace("127.0.0.1:24441", &at.to_string());
    assert!(servers.contains(&at.to_string()), "{servers}");
    fs::write(home.join("servers"), servers).unwrap();
    let shown = shown("/etc/spamassassin/bulkmark-pyzor.cf")
        .replace("/etc/spamassassin/pyzor", &home.display().to_string());
    format!(
        "{shown}{more}full PYZOR_CHECK eval:check_pyzor()\nscore PYZOR_CHECK 1\n\
         add_header all Status \"_YESNO_ tests=_TESTS_\"\nadd_header all Pyzor _PYZOR_\n"
    )
}

/// Checks the plugin with these rules: nothing hits until enough reporters reported it, the last of them by `spamassassin -r` if `reports`;
/// the digest of the empty text, which it makes of a message with too little text, never hits.
fn checks(reports: bool, rules: impl Fn(&Site, SocketAddr) -> String) {
    let mut site = Site::new("");
    let (_daemon, at) = open(&mut site, "count = \"reports\"\n");
    let rules = rules(&site, at);
    let run = |arguments: &[&str], message: &[u8]| {
        let arguments = [arguments, &["-D", "pyzor"]].concat();
        run(&site, "loadplugin Mail::SpamAssassin::Plugin::Pyzor\n", &rules, &arguments, message)
    };
    let hits = |message: &[u8], (expected, told): (bool, &str)| {
        let checked = run(&["-t"], message).unwrap();
        let status = checked.lines().find(|line| line.starts_with("X-Spam-Status: ")).unwrap_or_default();
        assert_eq!(status.contains("PYZOR_CHECK"), expected, "{checked}");
        assert!(checked.contains(&format!("X-Spam-Pyzor: {told}")), "{told}: {checked}");
    };
    let nothing = b"Subject: x\n\nok\n".as_slice();
    if run(&["-t"], nothing).is_none() {
        return;
    }
    hits(LETTER.as_bytes(), (false, "Reported 0 times, welcomelisted 0 times."));
    for _ in 0..4 {
        ask("127.0.0.1", at, "report", DIGEST);
    }
    hits(LETTER.as_bytes(), (false, "Reported 4 times, welcomelisted 0 times."));
    let told = if reports {
        run(&["-r"], LETTER.as_bytes()).unwrap()
    } else {
        ask("127.0.0.1", at, "report", DIGEST)
    };
    assert_eq!(counts(at, DIGEST), "Count: 5\nWL-Count: 0\n\n", "{told}");
    hits(LETTER.as_bytes(), (true, "Reported 5 times, welcomelisted 0 times."));
    run(&["-r"], nothing).unwrap();
    hits(nothing, (false, "Reported 0 times, welcomelisted 10000 times."));
}

#[test]
fn spamassassin_checks_and_reports() {
    let Some(client) = pyzor("1.0.0") else { return };
    let client = client.display().to_string();
    checks(true, |site, at| rules(site, at, "").replace("/usr/bin/pyzor", &client));
}

/// It sends no user, which the reference server treats as anonymous, too. Its reports in 4.0.1 have the digest of the empty text, whatever
/// the message.
#[test]
fn spamassassin_checks_by_its_own_client() {
    checks(false, |site, at| {
        let servers = site.path("pyzor/servers").display().to_string();
        let instead = shown_below("interfaces.md", "### SpamAssassin's plugin Pyzor", "pyzor_path");
        let instead = instead.replace("/etc/spamassassin/pyzor/servers", &servers);
        let rules = rules(site, at, &instead);
        let is_kept = |line: &&str| !line.starts_with("pyzor_path ") && !line.starts_with("pyzor_options ");
        rules.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
    });
}
