// SPDX-License-Identifier: GPL-3.0-or-later
//! rspamd with the module of this package.

use crate::asking::{HELD, called_spam, metrics, site, start};
use crate::guide::{packaged, shown};
use crate::rspamd::{Rspamd, Version};
use bulkmark_testing::letters::{count, letter};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::{Site, wait_until};
use serde_json::Value;
use std::fs;

/// As in docs/interfaces.md, with `local` as local.d/bulkmark.conf.
fn module(version: &Version, local: String) -> Option<Rspamd> {
    with_files(version, local, &[])
}

/// The same with more files.
fn with_files(version: &Version, local: String, more: &[(&str, String)]) -> Option<Rspamd> {
    let packages = format!("{}/packaging", env!("CARGO_MANIFEST_DIR"));
    let patience = if local.contains("timeout") { "" } else { "timeout = 60s;\n" };
    let included = shown("/etc/rspamd/rspamd.conf.local").replace("/usr/share/bulkmark", &packages);
    let files = [
        ("rspamd.conf.local", included),
        ("plugins.d/bulkmark.lua", packaged("rspamd/bulkmark.lua")),
        ("local.d/bulkmark.conf", local + patience),
    ];
    Rspamd::start(version, &[&files, more].concat())
}

/// The module for the Unix socket of a site.
pub(crate) fn at_socket(version: &Version, site: &Site, more: &str) -> Option<Rspamd> {
    module(version, format!("servers = \"{}\";\n{more}", site.path("http.sock").display()))
}

/// The options of a symbol.
pub(crate) fn options(symbol: &Value) -> Vec<&str> {
    symbol["options"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Waits until the message has this count, which it has at the end of rspamd's work.
fn counted(site: &Site, message: &[u8], times: u64) {
    wait_until("the count", || match count(site, message) {
        found if found == times => Ok(()),
        other => Err(other.to_string()),
    });
}

/// One campaign, whose copies come by turns to the milter and to rspamd, is counted as one. rspamd gets the count before its copy.
#[test]
fn milter_and_module_count_alike() {
    for version in Version::all() {
        let site = site("exempt = [\"authenticated\"]\n", "", "");
        let daemon = start(&site);
        let Some(rspamd) = at_socket(&version, &site, "") else { continue };
        for n in (1..=21).step_by(2) {
            let by_milter = session(&daemon).message(&Mail::raw(&letter(1)));
            assert_eq!(by_milter.count(), Some(n));
            let told = rspamd.check("\r\nRcpt: u@box.test", &letter(1));
            let symbols = &told["symbols"];
            let count = format!("body={n}");
            assert!(options(&symbols["BULKMARK"]).contains(&&*count), "{told}\n{}", rspamd.log());
            assert_eq!(symbols["BULKMARK_BULK"].is_null(), n < 20, "{told}");
            assert_eq!(symbols["BULKMARK_NEAR"].is_null(), n < 20, "{told}");
            counted(&site, &letter(1), u64::from(n) + 1);
        }
        let bulk = rspamd.check("\r\nRcpt: u@box.test", &letter(1));
        let because = "its body count is 22, the threshold 20, and its near count is 22, the threshold 20";
        assert_eq!(options(&bulk["symbols"]["BULKMARK_BULK"]), ["22", because], "{bulk}");
        let score = bulk["symbols"]["BULKMARK_BULK"]["score"].as_f64().unwrap();
        assert!(score > 2.0 && score < 4.0, "{bulk}");
        wait_until("the reason in rspamd's log", || {
            let log = rspamd.log();
            let line = format!("bulkmark: bulk body=22 near=22, since {because}");
            if log.contains(&line) { Ok(()) } else { Err(log) }
        });
    }
}

/// The interface gets the envelope; a repeated request of rspamd about the same message is not counted again.
#[test]
fn the_envelope_is_told_and_a_message_counts_once() {
    for version in Version::all() {
        let site = site("", "", "");
        let daemon = start(&site);
        let Some(rspamd) = at_socket(&version, &site, "") else { continue };
        let fields = "\r\nRcpt: u@box.test\r\nRcpt: v&w@box.test\r\nQueue-ID: 4QUEUE";
        for _ in 0..2 {
            let told = rspamd.check(fields, &letter(1));
            assert!(options(&told["symbols"]["BULKMARK"]).contains(&"body=0"), "{told}\n{}", rspamd.log());
            counted(&site, &letter(1), 2);
        }
        let line = daemon.log.wait_for(0, "interface=http");
        for part in ["client=h.example[192.0.2.7]", "from=<s@example.org>", "nrcpt=2", "4QUEUE"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        let told = rspamd.check("\r\nRcpt: u@box.test\r\nUser: anna\r\nQueue-ID: 4LOGIN", &letter(1));
        assert_eq!(options(&told["symbols"]["BULKMARK"])[0], "exempt", "{told}");
    }
}

/// A message refused temporarily, as by greylisting, is looked up and not counted; it counts when it comes again and is accepted.
#[test]
fn what_is_greylisted_counts_when_it_is_taken() {
    let greylisting = "rspamd_config:register_symbol({ name = 'GREY', type = 'postfilter', callback = function(task)\n\
                       if task:get_helo() == 'new.example' then task:set_pre_result('soft reject', 'try again later') end\nend })\n";
    for version in Version::all() {
        let site = site("", "", "");
        let daemon = start(&site);
        let local = format!("servers = \"{}\";\n", site.path("http.sock").display());
        let Some(rspamd) = with_files(&version, local, &[("rspamd.local.lua", greylisting.to_owned())])
        else {
            continue;
        };
        let all: String = (0..10).map(|n| format!("\r\nRcpt: user{n}@box.test")).collect();
        let ask = |helo: &str, id: &str, message: &[u8]| {
            let fields =
                format!("IP: 192.0.2.7\r\nHelo: {helo}\r\nFrom: s@example.org\r\nQueue-ID: {id}{all}");
            rspamd.ask(&fields, message)
        };
        let told = ask("new.example", "4A", &letter(1));
        assert_eq!(
            (&told["action"], &told["symbols"]["BULKMARK"].is_null()),
            (&"soft reject".into(), &false),
            "{told}"
        );
        // A later message was counted, so the first one would have been.
        ask("old.example", "4B", &letter(200));
        counted(&site, &letter(200), 10);
        assert_eq!(count(&site, &letter(1)), 0, "{version:?}");
        ask("old.example", "4C", &letter(1));
        counted(&site, &letter(1), 10);
        drop(daemon);
    }
}

/// The null sender, of bounces, is sent as such, so that entries for it match; if rspamd knows no sender, none is sent.
#[test]
fn the_null_sender_is_told() {
    for version in Version::all() {
        let site = site("[whitelist]\nfiles = [\"LIST\"]\n", "", "");
        let list = site.path("list").display().to_string();
        fs::write(&list, "sender <>\n").unwrap();
        let site = Site { extra: site.extra.replace("LIST", &list), ..site };
        let _daemon = start(&site);
        let Some(rspamd) = at_socket(&version, &site, "") else { continue };
        for (from, is_wanted) in [("From: <>\r\n", true), ("", false)] {
            let told = rspamd.ask(&format!("IP: 192.0.2.7\r\n{from}Rcpt: u@box.test"), &letter(1));
            let symbols = &told["symbols"];
            assert!(!symbols["BULKMARK"].is_null(), "{told}\n{}", rspamd.log());
            assert_eq!(!symbols["BULKMARK_WHITELIST"].is_null(), is_wanted, "{version:?}, {from}: {told}");
        }
    }
}

/// By TCP with a token, as in docs/interfaces.md; the white list has its symbol. With a wrong token the reason is shown.
#[test]
fn by_tcp_with_a_token() {
    for version in Version::all() {
        let mut site = Site::new("");
        let (token, list) = (site.path("token"), site.path("list"));
        fs::write(&token, "0123456789abcdef0123\n").unwrap();
        fs::write(&list, "sender example.org\n").unwrap();
        site.extra = format!(
            "[thresholds]\nbody = 1\n[whitelist]\nfiles = [{list:?}]\n[interfaces.http]\nlisten = \"127.0.0.1:0\"\ntoken-file = {token:?}\n"
        );
        let daemon = site.start();
        let line = daemon.log.wait_for(0, "the interface http is at");
        let local = shown("/etc/rspamd/local.d/bulkmark.conf")
            .replace("127.0.0.1:8725", line.rsplit(' ').next().unwrap())
            .replace("/etc/rspamd/bulkmark-token", &token.display().to_string());
        let Some(rspamd) = module(&version, local.clone()) else { continue };
        let told = rspamd.check("", &letter(1));
        let entry = format!("{}:1", list.display());
        assert_eq!(options(&told["symbols"]["BULKMARK_WHITELIST"]), [entry], "{told}\n{}", rspamd.log());
        assert!(told["symbols"]["BULKMARK_BULK"].is_null(), "{told}");
        let wrong = site.path("wrong");
        fs::write(&wrong, "0123456789abcdef0124\n").unwrap();
        let local = local.replace(&token.display().to_string(), &wrong.display().to_string());
        let told = module(&version, local).unwrap().check("", &letter(1));
        assert!(options(&told["symbols"]["BULKMARK_FAIL"])[0].starts_with("401: "), "{told}");
    }
}

/// Without an interface, and with one that does not answer, mail flows, with a symbol that shows why; when the interface is back, it is asked again.
#[test]
fn mail_flows_without_an_answer() {
    for version in Version::all() {
        let site = site("", "", "");
        let daemon = start(&site);
        let Some(rspamd) = at_socket(&version, &site, "timeout = 1s;\n") else { continue };
        let flows = |what: &str| {
            let told = rspamd.check("", &letter(1));
            let failed = &told["symbols"]["BULKMARK_FAIL"];
            assert_eq!(
                (&failed["score"], &told["symbols"]["BULKMARK"]),
                (&0.0.into(), &Value::Null),
                "{what}: {told}"
            );
            assert_ne!(told["action"], "reject", "{what}: {told}");
        };
        daemon.signal("STOP");
        flows("a daemon that hangs");
        daemon.kill();
        flows("no daemon");
        let _again = start(&site);
        wait_until("an answer", || {
            let told = rspamd.check("", &letter(1));
            if told["symbols"]["BULKMARK"].is_null() { Err(told.to_string()) } else { Ok(()) }
        });
    }
}

/// Mail reported as spam has its symbol, before there is enough of it to be bulk.
#[test]
fn reported_spam_has_its_symbol() {
    for version in Version::all() {
        let site = site("[user-reports]\ntrust = { new-reporter = 1.0 }\n[thresholds]\nspam = 1\n", "", "");
        let _daemon = start(&site);
        metrics(&site, "", &letter(1));
        metrics(&site, "spam", &letter(1));
        let Some(rspamd) = at_socket(&version, &site, "") else { continue };
        let symbols = rspamd.check("", &letter(1))["symbols"].clone();
        assert!(
            !symbols["BULKMARK_SPAM"].is_null() && symbols["BULKMARK_BULK"].is_null(),
            "{symbols}\n{}",
            rspamd.log()
        );
    }
}

/// A message that is only marked, since a recipient wrote to its sender, has no symbol for user reports.
#[test]
fn mail_of_correspondents_is_not_scored_as_spam() {
    for version in Version::all() {
        for (more, is_scored) in [("", true), (HELD, false)] {
            let interface = called_spam(more);
            let local = format!("servers = \"127.0.0.1:{}\";\n", interface.port);
            let Some(rspamd) = module(&version, local) else { continue };
            let symbols = rspamd.check("", &letter(1))["symbols"].clone();
            let found = (!symbols["BULKMARK"].is_null(), !symbols["BULKMARK_SPAM"].is_null());
            assert_eq!(found, (true, is_scored), "{symbols}\n{}", rspamd.log());
        }
    }
}
