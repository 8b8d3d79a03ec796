// SPDX-License-Identifier: GPL-3.0-or-later
//! docs/interfaces.md and docs/openapi.json, as a reader uses them.

use crate::asking::{judge, site, start};
use bulkmark_testing::letters::letter;
use bulkmark_testing::{Site, skip, text_of};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// A document of docs.
pub(crate) fn guide(name: &str) -> String {
    text_of(&format!("docs/{name}"))
}

/// The code block of docs/interfaces.md below the first line that names a file.
pub(crate) fn shown(file: &str) -> String {
    shown_below("interfaces.md", "# ", file)
}

/// The same below a heading of another guide.
pub(crate) fn shown_below(name: &str, heading: &str, file: &str) -> String {
    let guide = guide(name);
    let (_, below) = guide.split_once(heading).unwrap_or_else(|| panic!("{name} has no {heading}"));
    let (_, below) = below.split_once(&format!("`{file}`")).unwrap_or_else(|| panic!("{file} is not named"));
    let (_, block) = below.split_once("```text\n").unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

/// A file of the packages, as it is installed.
pub(crate) fn packaged(path: &str) -> String {
    text_of(&format!("packaging/{path}"))
}

/// Runs a command of the guide in a directory.
fn run(site: &Site, command: &str) -> Value {
    let output =
        Command::new("sh").args(["-c", command]).current_dir(site.directory.path()).output().unwrap();
    let text = [&*output.stdout, &*output.stderr].concat();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{command}: {e}: {}", String::from_utf8_lossy(&text)))
}

/// Runs each command with curl word for word, but for the paths of sockets and token.
#[test]
fn the_guide_works_as_it_stands() {
    let guide = guide("interfaces.md");
    let commands: Vec<_> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("    ").filter(|line| line.starts_with("curl ")))
        .collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    if Command::new("curl").arg("--version").output().is_err() {
        skip("curl is not installed");
        return;
    }
    let of_socket = site("", "", "");
    let _daemon = start(&of_socket);
    fs::write(of_socket.path("message.eml"), letter(1)).unwrap();
    let here = |command: &str| {
        command.replace("/run/bulkmark/http.sock", &of_socket.path("http.sock").display().to_string())
    };
    let counted = run(&of_socket, &here(commands[0]));
    assert_eq!((&counted["counted"], &counted["body"]["count"]), (&Value::from(true), &Value::from(1)));
    let asked = run(&of_socket, &here(commands[1]));
    assert_eq!((&asked["counted"], &asked["body"]["count"]), (&Value::from(false), &Value::from(1)));
    let mut by_tcp = Site::new("");
    let token = by_tcp.path("http-token");
    fs::write(&token, "0123456789abcdef0123\n").unwrap();
    fs::write(by_tcp.path("message.eml"), letter(1)).unwrap();
    by_tcp.extra = format!("[interfaces.http]\nlisten = \"127.0.0.1:0\"\ntoken-file = {token:?}\n");
    let daemon = by_tcp.start();
    let line = daemon.log.wait_for(0, "the interface http is at");
    let address = line.rsplit(' ').next().unwrap();
    let command = commands[2].replace("/etc/bulkmark/http-token", &token.display().to_string());
    assert_eq!(run(&by_tcp, &command.replace("127.0.0.1:8725", address))["counted"], true);
}

/// Every answer of the interface agrees with the description, and has all required fields. tests/interfaces/explained.rs checks explanations
/// against it.
#[test]
fn answers_are_as_described() {
    let keys = "[thresholds]\nbody = 3\nmin-sources = 2\n[actions]\nbulk = \"reject\"\n";
    let site = site(keys, "", "");
    let _daemon = start(&site);
    let mut seen = BTreeSet::new();
    for (query, message) in std::iter::repeat_n(("?ip=192.0.2.7", letter(1)), 4)
        .chain([("?count=no", b"Subject: x\n\nok\n".to_vec())])
    {
        let answer = judge(&site, query, &message);
        is_as_described(&answer);
        seen.extend(answer.as_object().unwrap().keys().cloned());
    }
    for wanted in ["body", "near", "sources", "reply", "reason", "header", "because"] {
        assert!(seen.contains(wanted), "{wanted} was not seen: {seen:?}");
    }
}

/// Checks an answer against the description.
pub(crate) fn is_as_described(answer: &Value) {
    let api: Value = serde_json::from_str(&guide("openapi.json")).unwrap();
    check(&api, "the answer", answer, &api["components"]["schemas"]["Answer"]);
}

/// Checks a value against a schema: types, names and required ones, as far as the description uses them.
fn check(api: &Value, place: &str, value: &Value, schema: &Value) {
    if let Some(reference) = schema["$ref"].as_str() {
        let named = reference.strip_prefix('#').and_then(|pointer| api.pointer(pointer));
        return check(api, place, value, named.unwrap_or_else(|| panic!("{place}: there is no {reference}")));
    }
    // If there are several types, the last may be null.
    let types = schema["type"].as_array();
    if value.is_null() && types.is_some_and(|types| types.contains(&Value::from("null"))) {
        return;
    }
    match types.map_or(&schema["type"], |types| &types[0]).as_str() {
        Some("object") => {
            let fields = value.as_object().unwrap_or_else(|| panic!("{place}: {value}"));
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(fields.contains_key(required.as_str().unwrap()), "{place} lacks {required}: {value}");
            }
            for (name, inner) in fields {
                let schema = &schema["properties"][name];
                assert!(!schema.is_null(), "{place} has {name}, which is not described");
                check(api, name, inner, schema);
            }
        }
        Some("array") => {
            value.as_array().unwrap().iter().for_each(|inner| check(api, place, inner, &schema["items"]))
        }
        Some("integer") => assert!(value.is_u64(), "{place}: {value}"),
        Some("boolean") => assert!(value.is_boolean(), "{place}: {value}"),
        Some("string") => {
            let text = value.as_str().unwrap_or_else(|| panic!("{place}: {value}"));
            let of = schema["enum"].as_array();
            assert!(of.is_none_or(|of| of.iter().any(|one| one == text)), "{place}: {text}");
        }
        other => panic!("{place}: {other:?}"),
    }
}
