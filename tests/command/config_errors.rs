// SPDX-License-Identifier: GPL-3.0-or-later
//! Every kind of mistake in the configuration, with the exact message to the administrator.

use bulkmark_testing::text_of;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Files that the configurations name, in the directory of the configuration.
const FILES: [(&str, &str); 9] = [
    ("form", "# comment\n\nsendr example.org\n"),
    ("network", "ip 192.0.2.0/40\n"),
    ("address", "sender example.org\nfrom a b@example.org\n"),
    ("signature", "signature 0123\n"),
    ("includes", "include form\n"),
    ("includes-none", "ip 192.0.2.1\ninclude none\n"),
    ("itself", "include itself\n"),
    ("short", "secret\n"),
    ("key", "0123456789abcdef\n"),
];

fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in FILES {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

/// Exit code and standard error of a command on the configuration `text`.
fn output_of(directory: &Path, command: &[&str], text: &str) -> (Option<i32>, String) {
    let (file, place) = (directory.join("milter.toml"), directory.display().to_string());
    fs::write(&file, text.replace("DIR", &place)).unwrap();
    let output = Command::new(bulkmark_testing::program()).args(command).arg(&file).output().unwrap();
    assert!(output.stdout.is_empty() || output.status.success());
    let error = String::from_utf8(output.stderr).unwrap();
    let error = error.strip_prefix("bulkmark: ").unwrap_or(&error);
    let error = error.replace(&file.display().to_string(), "FILE").replace(&place, "DIR");
    (output.status.code(), error.trim_end().to_owned())
}

/// Shortens rows of `^` to one, since their length is that of the directory's name.
fn one_caret(text: &str) -> String {
    let mut last = ' ';
    text.chars().filter(|&c| (c != '^' || last != '^', last = c).0).collect()
}

#[test]
fn each_mistake_is_told_with_its_place() {
    let directory = directory();
    let table = text_of("tests/data/config_errors.txt");
    let mut wrong = Vec::new();
    let cases: Vec<_> = table.split("\n=== ").skip(1).collect();
    for case in &cases {
        let (name, rest) = case.split_once('\n').unwrap();
        let (text, expected) = rest.split_once("\n---\n").unwrap();
        let (code, mut found) = output_of(directory.path(), &["config", "check"], text);
        if text.contains("DIR") {
            found = one_caret(&found);
        }
        if code != Some(78) || found != expected.trim_end() {
            wrong.push(format!(
                "=== {name} (exit code {code:?})\n{text}\n--- found\n{found}\n--- expected\n{expected}"
            ));
        }
    }
    assert!(cases.len() > 70);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A start and a command report the same error for an invalid configuration.
#[test]
fn all_commands_tell_it() {
    let directory = directory();
    let (text, expected) = (
        "listn = 5\n",
        "FILE:1:1: listn: unknown key, did you mean listen?\n   |\n 1 | listn = 5\n   | ^^^^^",
    );
    assert_eq!(output_of(directory.path(), &["milter", "--config"], text), (Some(78), expected.to_owned()));
    let (code, found) = output_of(directory.path(), &["check", "--config"], text);
    assert_eq!((code, found), (Some(78), expected.to_owned()));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let directory = directory();
    let check = |path: &Path| {
        let output =
            Command::new(bulkmark_testing::program()).args(["config", "check"]).arg(path).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
    };
    let path = directory.path().join("nothing.toml");
    let expected =
        format!("bulkmark: {}: cannot read: No such file or directory (os error 2)", path.display());
    assert_eq!(check(&path), (Some(78), expected));
    let expected =
        format!("bulkmark: {}: cannot read: Is a directory (os error 21)", directory.path().display());
    assert_eq!(check(directory.path()), (Some(78), expected));
    fs::write(&path, b"hostname = \"\xff\"\n").unwrap();
    let (code, error) = check(&path);
    assert_eq!(code, Some(78));
    assert!(error.starts_with(&format!("bulkmark: {}:1:13: not valid UTF-8\n", path.display())), "{error}");
    // A disk may have filled a file with zeros.
    fs::write(&path, vec![0; 300_000]).unwrap();
    let (code, error) = check(&path);
    assert_eq!(code, Some(78));
    assert!(error.contains(": not valid TOML") && error.len() < 3000, "{} bytes", error.len());
}

#[test]
fn limits_of_texts_are_told() {
    let directory = directory();
    let text = |n: usize| format!("[actions]\nreject-reply = \"550 5.7.1 {}\"\n", "x".repeat(n));
    let (code, error) = output_of(directory.path(), &["config", "check"], &text(301));
    assert_eq!(code, Some(78));
    assert!(
        error.starts_with("FILE:2:16: actions.reject-reply: found a text of 301 bytes, expected 1 to 300\n"),
        "{error}"
    );
    assert_eq!(output_of(directory.path(), &["config", "check"], &text(300)).0, Some(0));
}

/// The column of the error is counted in characters and not in bytes.
#[test]
fn columns_are_characters() {
    let directory = directory();
    let (_, error) = output_of(directory.path(), &["config", "check"], "log = { \"lävel\" = \"x\" }\n");
    assert!(error.starts_with("FILE:1:9: log.lävel: unknown key, did you mean level?\n"), "{error}");
    let (_, error) = output_of(directory.path(), &["config", "check"], "\n# ä\n\thostname = \"ä\" # ö\n");
    assert!(error.starts_with("FILE:3:13: hostname: found 'ä'"), "{error}");
}
