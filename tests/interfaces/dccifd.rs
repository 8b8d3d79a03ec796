// SPDX-License-Identifier: GPL-3.0-or-later
//! The protocol of DCC's interface daemon.

use crate::asking::{counts, dccifd, metrics, site, start};
use bulkmark_testing::letters::{count, letter};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::{Site, wait_until};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

const ENVELOPE: &str = "192.0.2.7\rh.example\nh.example\ns@example.org\nu@box.test\nv@box.test\n\n";

/// A client that uses each of the protocol's forms gets the protocol's answer, byte for byte.
#[test]
fn each_form_of_answer() {
    let site = site("", "", "");
    let _daemon = start(&site);
    let message =
        [&b"X-DCC-bulkmark-Metrics: forged 1; Body=many\r\n\tFuz1=many\r\n"[..], &letter(1)].concat();
    assert_eq!(dccifd(&site, &format!("\n{ENVELOPE}"), &message), "A\nAA\n");
    let answer = dccifd(&site, &format!("header\n{ENVELOPE}"), &message);
    let (letters, header) = answer.split_at(5);
    assert_eq!(letters, "A\nAA\n");
    let line = header.strip_suffix("\n\n").unwrap();
    assert!(
        line.starts_with("X-DCC-bulkmark-Metrics: mx.test ") && line.ends_with("; Body=4 Fuz1=2 Fuz2=2"),
        "{line}"
    );
    let answer = dccifd(&site, &format!("body grey-off query\n{ENVELOPE}"), &message);
    assert_eq!(answer, format!("A\nAA\n{line}\n{}", String::from_utf8_lossy(&letter(1))));
    let answer = dccifd(&site, &format!("cksums query\n{ENVELOPE}"), &message);
    let lines: Vec<_> = answer.lines().collect();
    assert_eq!((lines[2], lines.len()), (line, 8), "{answer}");
    let reported = "               reported: 0 checksum                             server";
    assert_eq!(
        lines[3].split_whitespace().collect::<Vec<_>>(),
        reported.split_whitespace().collect::<Vec<_>>()
    );
    let body: Vec<_> = lines[4].split_whitespace().collect();
    assert_eq!((body[0], body[5], body.len()), ("Body:", "4", 6), "{answer}");
    assert!(lines[5].trim_start().starts_with("Fuz1: ") && lines[6].trim_start().starts_with("Fuz2: "));
    assert_eq!(lines[7], "");
}

/// `query` counts nothing, nor does a message without recipients; recipients count as they do for the milter.
#[test]
fn what_counts() {
    let site = site("", "", "");
    let _daemon = start(&site);
    assert_eq!(counts(&metrics(&site, "query", &letter(1))), "Body=0 Fuz1=0 Fuz2=0");
    let nobody = dccifd(&site, "header\n192.0.2.7\nh\ns@example.org\n\n", &letter(1));
    assert!(nobody.starts_with("A\n\nX-DCC-") && nobody.contains("; Body=0 "), "{nobody}");
    assert_eq!(counts(&metrics(&site, "", &letter(1))), "Body=1 Fuz1=1 Fuz2=1");
    let of_haraka = "header\n192.0.2.7\rh\nh\n<s@example.org>\n<a@box.test>\r<b@box.test>\r<c@box.test>\n\n";
    let answer = dccifd(&site, of_haraka, &letter(1));
    assert!(answer.starts_with("A\nAAA\n") && answer.contains("; Body=4 Fuz1=2 "), "{answer}");
    assert_eq!(count(&site, &letter(1)), 4);
}

/// If the milter counts, the interface can be set to answer without counting, whatever its clients request.
#[test]
fn an_interface_that_only_asks() {
    let site = site("", "", "count = false\n");
    let daemon = start(&site);
    for _ in 0..2 {
        assert_eq!(counts(&metrics(&site, "", &letter(1))), "Body=0 Fuz1=0 Fuz2=0");
    }
    session(&daemon).message(&Mail::raw(&letter(1)));
    assert_eq!(counts(&metrics(&site, "", &letter(1))), "Body=1 Fuz1=1 Fuz2=1");
}

/// Every message has the same counts and the same letter, by the milter of one site and by this interface of another.
#[test]
fn the_same_as_by_the_milter_line_by_line() {
    const REFUSING: &str = "[actions]\nbulk = \"reject\"\n[thresholds]\nmin-sources = 1\n";
    let sites = [site(REFUSING, "", ""), site(REFUSING, "", "")];
    let [of_milter, _of_interface] = sites.each_ref().map(start);
    let (mut session, mut refused) = (session(&of_milter), 0);
    for n in 0..120 {
        let message = letter(n % 4);
        let by_milter = session.message(&Mail::raw(&message));
        let envelope = "header\n192.0.2.7\rh\nh\nsender@example.org\nrecipient@example.net\n\n";
        let by_interface = dccifd(&sites[1], envelope, &message);
        let told = counts(by_interface.lines().nth(2).unwrap());
        if by_milter.reply.starts_with("550 ") {
            refused += 1;
            assert!(by_interface.starts_with("R\nR\n") && told.starts_with("bulk Body="), "{by_interface}");
            // The log may be behind the answer.
            let mut line = None;
            wait_until("the line of the message is in the log", || {
                let mut lines =
                    of_milter.log.lines().into_iter().filter(|line| line.contains("verdict=bulk"));
                line = lines.nth(refused - 1);
                line.is_some().then_some(()).ok_or_else(|| format!("{refused} were refused"))
            });
            let line = line.unwrap();
            let field = |name: &str| line.split_once(name).unwrap().1.split(' ').next().unwrap().to_owned();
            let (body, near) = (field(" body="), field(" near="));
            assert_eq!(told, format!("bulk Body={body} Fuz1={near} Fuz2={near}"));
            continue;
        }
        assert!(by_interface.starts_with("A\nA\n"), "{by_interface}");
        let of = |name: &str| {
            by_milter.header().split("; ").find_map(|field| field.strip_prefix(name)).unwrap().to_owned()
        };
        let (body, near) = (of("body="), of("near="));
        assert_eq!(told, format!("Body={body} Fuz1={near} Fuz2={near}"));
    }
    assert!((20..120).contains(&refused), "{refused}");
}

/// The letter is that of the policy's action.
#[test]
fn letters_follow_policies() {
    let mut site = site("", "", "");
    let list = site.path("list");
    fs::write(&list, "sender wanted.test\n").unwrap();
    let keys = "[thresholds]\nbody = 1\nnear = 1\nmin-sources = 1\n[actions]\nbulk = \"reject\"\nnear = \"reject\"\n[whitelist]\nfiles = [LIST]\n\
                [[policy]]\nname = \"later\"\nmatch = { recipient = \"later.test\" }\nactions = { bulk = \"tempfail\", near = \"tempfail\" }\n\
                [[policy]]\nname = \"gone\"\nmatch = { recipient = \"gone.test\" }\nactions = { bulk = \"discard\", near = \"discard\" }\n";
    site.extra = format!("{}{}", keys.replace("LIST", &format!("{list:?}")), site.extra);
    let _daemon = start(&site);
    let to = |options: &str, sender: &str, recipient: &str| {
        let lines = format!("header {options}\n192.0.2.7\rh\nh\n{sender}\n{recipient}\n\n");
        let answer = dccifd(&site, &lines, &letter(1));
        let lines: Vec<_> = answer.lines().map(str::to_owned).collect();
        (lines[0].clone() + &lines[1], lines[2].clone())
    };
    assert_eq!(to("", "s@example.org", "u@box.test").0, "RR");
    assert_eq!(to("no-reject", "s@example.org", "u@box.test").0, "AA");
    assert_eq!(to("", "s@example.org", "u@later.test").0, "TT");
    assert_eq!(to("", "s@example.org", "u@gone.test").0, "RR", "there is no word for it");
    let (letters, header) = to("", "news@wanted.test", "u@box.test");
    assert_eq!((&*letters, &*header), ("AA", "X-DCC--Metrics: mx.test; whitelist"));
}

/// After a temporary refusal rspamd asks three times: that is one message.
#[test]
fn what_is_refused_temporarily_counts_once() {
    let keys = "[thresholds]\nbody = 1\nnear = 1\nmin-sources = 1\n[actions]\nbulk = \"tempfail\"\nnear = \"tempfail\"\n";
    let site = site(keys, "", "");
    let _daemon = start(&site);
    let lines = "header\n192.0.2.7\rh\nh\ns@example.org\nu@box.test\n\n";
    for _ in 0..3 {
        assert!(dccifd(&site, lines, &letter(1)).starts_with("T\nT\n"));
    }
    assert_eq!(count(&site, &letter(1)), 1);
}

/// If the client is not given, it is the one of the first Received field, or of one below it.
#[test]
fn the_client_of_a_received_field() {
    let site = site("exempt-networks = [\"198.51.100.0/24\"]\n", "", "");
    let daemon = start(&site);
    let fields = "Received: from a (a.example [203.0.113.5]) by mx.test\r\nReceived: from b (b.example [198.51.100.7]) by a.example\r\n";
    let message = [fields.as_bytes(), &letter(1)].concat();
    let of = |options: &str, client: &str| {
        dccifd(&site, &format!("header {options}\n{client}\n\ns@example.org\nu@box.test\n\n"), &message)
    };
    assert!(of("", "0.0.0.0\r0.0.0.0").contains("; Body=1 "));
    assert!(of("", "").contains("; Body=2 "));
    assert!(of("rcvd-next", "").contains("; exempt network"), "{}", of("rcvd-next", ""));
    assert!(of("rcvd-nxt", "192.0.2.7").contains("; Body=3 "));
    // And so is its HELO name.
    daemon.log.wait_for(0, "client=unknown[203.0.113.5] helo=<a> ");
    daemon.log.wait_for(0, "client=unknown[198.51.100.7] helo=<b> ");
    assert!(
        !daemon.log.wait_for(0, "client=unknown[192.0.2.7] ").contains("helo="),
        "the client was told without"
    );
}

/// A client can send any name; so all names of one user of the machine are one reporter, and so are all that come by TCP.
#[test]
fn names_that_a_client_makes_up_are_nobody() {
    for by_tcp in [false, true] {
        let site = if by_tcp {
            Site::new("[interfaces.dccifd]\nlisten = \"127.0.0.1:0\"\n")
        } else {
            site("", "", "")
        };
        let daemon = start(&site);
        for n in 0..12 {
            let lines = format!("header spam\n192.0.2.7\nh\ns@example.org\nu@box.test\rname{n}\n\n");
            if by_tcp {
                let at = daemon.log.wait_for(0, "the interface dccifd is at ");
                let port = at.rsplit("127.0.0.1:").next().unwrap();
                let port: String = port.chars().take_while(char::is_ascii_digit).collect();
                let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
                stream.write_all(&[lines.as_bytes(), &letter(1)].concat()).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
            } else {
                dccifd(&site, &lines, &letter(1));
            }
        }
        let mut command = std::process::Command::new(bulkmark_testing::program());
        command.args(["report", "list", "--json", "--control"]).arg(site.path("control.sock"));
        let reports: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        assert_eq!(reports["reporters"].as_array().unwrap().len(), 1, "{reports}");
    }
}

/// `spam` nominates, and `many` means reported as spam; if configured, bulk, too.
#[test]
fn spam_nominates() {
    let keys = "[user-reports]\ntrust = { new-reporter = 1.0 }\n[thresholds]\nspam = 1\n";
    let site_of = |many: &str| site(keys, "", many);
    let first = site_of("");
    let _daemon = start(&first);
    assert_eq!(counts(&metrics(&first, "", &letter(1))), "Body=1 Fuz1=1 Fuz2=1");
    let line = metrics(&first, "spam", &letter(1));
    let (_, check) = first.check(&letter(1));
    let check: Value = serde_json::from_str(&check).unwrap_or_else(|e| panic!("{e}: {check}"));
    assert_eq!(
        (check["verdict"].as_str(), check["body"]["count"].as_u64()),
        (Some("spam"), Some(1)),
        "{check}"
    );
    assert_eq!(counts(&line), "bulk Body=many Fuz1=many Fuz2=many");
    // The reporter is listed as an interface's, and the hash withdraws its reports.
    let reports = |arguments: &[&str]| -> Value {
        let mut command = std::process::Command::new(bulkmark_testing::program());
        command.arg("report").args(arguments).args(["--json", "--control"]).arg(first.path("control.sock"));
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
    };
    let by = reports(&["list"])["reporters"][0].clone();
    assert_eq!(by["kind"], "interface", "{by}");
    let hash = by["reporter"].as_str().unwrap();
    assert!(reports(&["forget", "--all", "--reporter", &hash[..12]])["taken-back"].as_u64() > Some(0));
    assert_eq!(counts(&metrics(&first, "query", &letter(1))), "Body=1 Fuz1=1 Fuz2=1");
    assert_eq!(counts(&metrics(&first, "query", &letter(2))), "Body=0 Fuz1=0 Fuz2=0");
    let second = site_of("many = \"bulk\"\n");
    let second =
        Site { extra: second.extra.replace("spam = 1", "body = 3\nnear = 9\nmin-sources = 1"), ..second };
    let _daemon = start(&second);
    for told in ["Body=1 Fuz1=1 Fuz2=1", "Body=2 Fuz1=2 Fuz2=2", "bulk Body=many Fuz1=3 Fuz2=3"] {
        assert_eq!(counts(&metrics(&second, "", &letter(1))), told);
    }
}

/// However long names are, the line fits into Exim's buffer.
#[test]
fn the_line_is_short() {
    let site = site("", "", "");
    let config = site.config();
    let text =
        fs::read_to_string(&config).unwrap().replace("mx.test", &format!("mx.{}.test", "x".repeat(60)));
    fs::write(&config, text).unwrap();
    let mut command = std::process::Command::new(bulkmark_testing::program());
    let daemon = site.spawn_by(command.args(["milter", "--config"]).arg(&config)).listening();
    daemon.log.wait_for(0, "the interface dccifd is at");
    let line = metrics(&site, "", &letter(1));
    assert!(line.len() <= 120 && line.ends_with("; Body=1 Fuz1=1 Fuz2=1"), "{line}");
}
