// SPDX-License-Identifier: GPL-3.0-or-later
//! The explanation by HTTP equals that of `bulkmark explain --json`.

use crate::asking::{judge, metrics, site, start};
use crate::guide::is_as_described;
use bulkmark_samples::prose::Prose;
use bulkmark_testing::letters::letter;
use bulkmark_testing::{Site, program};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// The command's answer for a message with this envelope.
fn explain(site: &Site, arguments: &[&str], message: &[u8]) -> Value {
    let file = site.path("explain.eml");
    fs::write(&file, message).unwrap();
    let mut command = Command::new(program());
    let command = command.args(["explain", "--json", "--config"]).arg(site.config()).args(arguments);
    let output = command.arg(file).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

const KEYS: &str = "exempt-networks = [\"198.51.100.0/24\"]\n[authentication]\nauthserv-ids = [\"mx.test\"]\n\
                    [thresholds]\nbody = 3\nnear = 3\nspam = 1\nmin-sources = 2\n[user-reports]\ntrust = { new-reporter = 1.0 }\n\
                    [whitelist]\nfiles = [LIST]\n[[policy]]\nname = \"mild\"\nmatch = { recipient = \"mild.test\" }\n\
                    thresholds = { body = 100 }\n";

/// The same message, by the command and by the interface, whether it is bulk, spam, new, wanted, exempt, or too short: the same fields
/// and values, as docs/openapi.json describes them.
#[test]
fn by_http_as_by_the_command() {
    let mut site = site("", "", "");
    let list = site.path("list");
    fs::write(&list, "sender news.test\ndkim wanted.test & list-id none.test\n").unwrap();
    site.extra = format!("{}{}", KEYS.replace("LIST", &format!("{list:?}")), site.extra);
    let _daemon = start(&site);
    for n in 0..5 {
        judge(&site, &format!("?ip=192.0.2.{n}"), &letter(1));
        judge(&site, &format!("?ip=203.0.{n}.7"), &letter(2));
    }
    metrics(&site, "spam", &letter(3));
    let verified = "Authentication-Results: mx.test; dkim=pass header.d=wanted.test; spf=fail smtp.mailfrom=x.test\r\n\
                    Authentication-Results: elsewhere.test; dkim=pass header.d=other.test\r\n";
    let verified = [verified.as_bytes(), &letter(1)].concat();
    let mut seen = BTreeSet::new();
    for (query, arguments, message) in [
        ("ip=192.0.2.7", &["--ip", "192.0.2.7"][..], letter(1)),
        ("ip=192.0.2.7&rcpt=a@mild.test", &["--ip", "192.0.2.7", "--recipient", "a@mild.test"], letter(2)),
        ("ip=192.0.2.7&from=a@news.test", &["--ip", "192.0.2.7", "--sender", "a@news.test"], letter(2)),
        ("", &[], letter(3)),
        ("", &[], letter(4)),
        ("ip=192.0.2.7", &["--ip", "192.0.2.7"], verified),
        ("ip=198.51.100.9", &["--ip", "198.51.100.9"], letter(1)),
        ("user=anna", &["--login", "anna"], letter(1)),
        ("", &[], b"Subject: hi\r\n\r\nok\r\n".to_vec()),
    ] {
        let by_command = explain(&site, arguments, &message);
        let answer = judge(&site, &format!("?{query}&count=no&explain=yes"), &message);
        assert_eq!(answer["explained"], by_command, "{query}");
        is_as_described(&answer);
        assert_eq!(answer["verdict"], by_command["verdict"], "{query}");
        seen.extend(by_command.as_object().unwrap().keys().cloned());
    }
    for wanted in ["authentication", "user_reports", "sources", "whitelist", "policy", "body", "counts"] {
        assert!(seen.contains(wanted), "{wanted} was not seen: {seen:?}");
    }
}

/// Without the option there is no explanation; a counted message gets the explanation from before its count, and counts once.
#[test]
fn an_explanation_counts_nothing() {
    let site = site("", "", "");
    let _daemon = start(&site);
    assert_eq!(judge(&site, "", &letter(1))["explained"], Value::Null);
    assert_eq!(judge(&site, "?explain=no", &letter(1))["explained"], Value::Null);
    let before = explain(&site, &[], &letter(1));
    let answer = judge(&site, "?explain=yes", &letter(1));
    assert_eq!((&answer["explained"], &answer["body"]["count"]), (&before, &Value::from(3)));
    assert_eq!(answer["explained"]["body"]["count"], 2);
    assert!(before["near"][0]["made_of"].as_str().unwrap().starts_with("part "), "{before}");
}

/// The reason in the explanation of a message that follows others, each of these from its own network or all from one. The ledger is new.
fn because(others: &[String], same_network: bool, text: &str) -> String {
    let site = site("", "", "");
    let _daemon = start(&site);
    let message = |text: &str| format!("Subject: x\r\n\r\n{text}\r\n").into_bytes();
    for (n, other) in others.iter().enumerate() {
        let network = if same_network { 0 } else { n + 1 };
        judge(&site, &format!("?ip=203.{network}.113.7"), &message(other));
    }
    let answer = judge(&site, "?ip=203.0.113.7&count=no&explain=yes", &message(text));
    assert_eq!(answer["verdict"], "clean", "{answer}");
    answer["explained"]["because"].as_str().unwrap().to_owned()
}

/// Why text that was seen often does not make a message bulk.
#[test]
fn the_reason_is_told() {
    let text = |number, words| Prose::new(number).text(words);
    let block = text(1, 120);
    let copies = vec![block.clone(); 30];
    let below = |words| (0..30).map(|n| text(100 + n, words) + "\r\n" + &block).collect::<Vec<_>>();
    let (letter, short_letter) = (text(2, 90) + "\r\n" + &block, text(2, 12) + "\r\n" + &block);
    let mailing_and_letters = [&copies[..10], &below(90)[..20]].concat();
    let words: Vec<&str> = block.split_whitespace().collect();
    let in_pieces = [words[..60].join(" "), text(3, 45), words[60..].join(" ")].join(" ");
    for (others, same_network, message, reason) in [
        (&copies, false, &letter, "new text stands above or below what was seen before, as in a letter"),
        (&copies, false, &short_letter, "the others that have this have no new text with it"),
        (
            &mailing_and_letters,
            false,
            &short_letter,
            "what it shares with others keeps coming below new text",
        ),
        (&below(12), true, &short_letter, "comes from this sender with ever other text"),
        (&copies, false, &in_pieces, "what it shares with others is too small a part of it"),
    ] {
        let because = because(others, same_network, message);
        assert!(because.contains(reason), "{because}; expected: {reason}");
    }
}
