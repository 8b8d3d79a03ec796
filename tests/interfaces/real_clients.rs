// SPDX-License-Identifier: GPL-3.0-or-later
//! The comparison of tests/interfaces/corpus.rs with the programs themselves: spamc and spamd with SpamAssassin's DCC plugin, and each rspamd
//! with its dcc module, show the milter's counts for each of many messages.

use crate::asking::{site, start};
use crate::corpus::{KEYS, Line, by_milter, client, wire, written};
use crate::exim::Spamd;
use crate::rspamd::{Rspamd, Version, dcc};
use crate::spamassassin::{self, rules, write};
use bulkmark_testing::letters::{letter, offer};
use bulkmark_testing::mta::free_port;
use bulkmark_testing::{skip, wait_until};
use serde_json::Value;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Letters and offers of which some are bulk, and contents in many encodings.
fn messages() -> Vec<Vec<u8>> {
    let letters = (0..50).map(|n| letter(n % 12));
    let offers = (0..20).map(|n| offer(["Anna", "Bert", "Carl", "Dora", "Emil"][n % 5]));
    letters.chain(offers).chain(written()).collect()
}

/// The line of DCC's header behind the host, with its words as they are, or in small letters.
fn line(answers: &str) -> Line {
    let answers = answers.to_lowercase();
    let count = |name| {
        answers.split_whitespace().find_map(|word| word.strip_prefix(name)).map(|n| n.parse().unwrap())
    };
    let verdict = if answers.starts_with("bulk ") { "bulk" } else { "clean" };
    Line { verdict: verdict.to_owned(), body: count("body="), near: count("fuz1=") }
}

/// Reports where a program's results differ from the milter's.
fn compare(program: &str, answers: &[Line], by_milter: &[Line]) {
    assert_eq!(answers.len(), by_milter.len());
    let differ = answers.iter().zip(by_milter).enumerate().filter(|(_, (answers, milter))| answers != milter);
    let differ: Vec<_> =
        differ.map(|(n, (answers, milter))| format!("{n}: {answers:?}, the milter {milter:?}")).collect();
    println!("{program}: {} messages, {} differ", answers.len(), differ.len());
    assert!(differ.is_empty(), "{program}:\n{}", differ.join("\n"));
    let bulk = answers.iter().filter(|line| line.verdict == "bulk").count();
    assert!(bulk > 20 && bulk < answers.len() - 20, "{bulk} are bulk");
}

/// spamc passes each message to spamd, and its answer has the DCC plugin's result, by the template tag for it.
#[test]
fn spamc_shows_what_the_milter_counts() {
    let site = site(KEYS, "", "");
    let _daemon = start(&site);
    let port = free_port();
    if Command::new("spamc").arg("-V").output().is_err() {
        return skip("spamc is not installed");
    }
    write(
        &site,
        &spamassassin::dcc(),
        &format!("{}report_safe 0\nadd_header all Dcc _DCCR_\n", rules(&site)),
    );
    let Some(_spamd) = Spamd::start(&site, port) else { return };
    let messages = messages();
    let answers = messages.iter().enumerate().map(|(n, message)| {
        let received = format!(
            "Received: from h.example (h.example [{}])\r\n\tby mx.test (Postfix) with ESMTP id 4Q{n}\r\n\t\
             for <u@box.test>; Mon, 23 Nov 2026 12:00:00 +0000 (UTC)\r\n",
            client(n)
        );
        let checked = spamc(port, &[received.as_bytes(), message].concat());
        let field = checked.split("\nX-Spam-Dcc: ").nth(1).unwrap_or_else(|| panic!("{n}: {checked}"));
        let field = field.replace("\r\n", "\n").replace("\n\t", " ").replace("\n ", " ");
        let (_, counts) =
            field.lines().next().unwrap().split_once("; ").unwrap_or_else(|| panic!("{n}: {checked}"));
        line(counts)
    });
    compare("spamc", &answers.collect::<Vec<_>>(), &by_milter(&messages));
}

fn spamc(port: u16, message: &[u8]) -> String {
    let mut spamc = Command::new("spamc");
    // It must not return its input if spamd does not answer.
    spamc.args(["-x", "-d", "127.0.0.1", "-p", &port.to_string()]);
    let mut child = spamc.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(message).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// rspamd shows the counts as options of its symbol, if its limits are 1; for messages without options, and versions with a bug, its log
/// has the module's answer.
#[test]
fn rspamd_shows_what_the_milter_counts() {
    let messages = messages();
    let by_milter = by_milter(&messages);
    for version in Version::all() {
        let site = site(KEYS, "", "");
        let _daemon = start(&site);
        let Some(rspamd) = dcc(&version, &site, 1) else { continue };
        let answers = messages.iter().enumerate().map(|(n, message)| {
            let queue_id = format!("4Q{n}");
            // All other rules would wait for a name server that does not answer.
            let alone = "{\"symbols_enabled\":[\"DCC_CHECK\",\"DCC_BULK\",\"DCC_REJECT\",\"DCC_FAIL\"]}";
            let fields =
                format!("\r\nRcpt: recipient@example.net\r\nQueue-ID: {queue_id}\r\nSettings: {alone}");
            let answer = rspamd.check_from(&client(n), &fields, &wire(message));
            let mut answers = line(&answers(&rspamd, &answer, &queue_id));
            // The options have no verdict; it follows from the symbol's limits, which would be those of the thresholds.
            let is_bulk = answers.body.is_some_and(|n| n >= 3) || answers.near.is_some_and(|n| n >= 4);
            answers.verdict = if is_bulk { "bulk" } else { "clean" }.to_owned();
            answers
        });
        compare(&format!("rspamd {}", version.number()), &answers.collect::<Vec<_>>(), &by_milter);
    }
}

/// The dcc module's answer for the message with this queue id.
fn answers(rspamd: &Rspamd, answer: &Value, queue_id: &str) -> String {
    if let Some(options) = answer["symbols"]["DCC_BULK"]["options"].as_array() {
        return options.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
    }
    let queue_id = format!("qid: <{queue_id}>");
    let mut found = None;
    wait_until("the answer to the module, in rspamd's log", || {
        let log = rspamd.log();
        found = log.lines().find(|line| line.contains(&queue_id)).and_then(|line| {
            // The tag that all lines of a message share.
            let tag = line.split_whitespace().nth(3)?;
            let mut of_message = log.lines().filter(|line| line.contains(tag));
            of_message.find_map(|line| Some(line.split_once("returned result A - info: ")?.1.to_owned()))
        });
        if found.is_some() { Ok(()) } else { Err(format!("{answer}\n{log}")) }
    });
    found.unwrap()
}
