// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark signature` prints the released signatures.

use bulkmark_testing::{program, repository};
use std::process::Command;

fn signature(args: &[impl AsRef<std::ffi::OsStr>]) -> String {
    let mut command = Command::new(program());
    let output = command
        .current_dir(repository().join("tests/data/mail"))
        .arg("signature")
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn golden() -> String {
    std::fs::read_to_string(repository().join("tests/data/signatures.tsv")).unwrap()
}

/// The signatures of a message under its file's name. crates/signature/tests/forms/body.rs explains why they never change.
#[test]
fn the_released_form_stays() {
    let mail = std::fs::read_dir(repository().join("tests/data/mail")).unwrap();
    let mut names: Vec<_> = mail.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let is_plain = |line: &&str| !line.starts_with('#') && !line.contains(" from ");
    assert_eq!(
        signature(&names).lines().collect::<Vec<_>>(),
        golden().lines().filter(is_plain).collect::<Vec<_>>()
    );
    assert!(names.len() >= 15);
}

/// The signatures of networks and of letters are as frozen as those of messages.
#[test]
fn the_released_networks_stay() {
    let golden = golden();
    let golden: Vec<&str> = golden.lines().filter(|line| line.contains(" from ")).collect();
    assert_eq!(golden.len(), 10);
    for line in golden.chunks(5) {
        let (name, ip) = line[0].split('\t').next().unwrap().split_once(" from ").unwrap();
        let told = signature(&["--ip", ip, name]);
        assert_eq!(told.lines().filter(|line| line.contains(" from ")).collect::<Vec<_>>(), line);
    }
}

/// With `thresholds.near = 0` near signatures are not made, unless a policy has a threshold for them.
#[test]
fn near_signatures_are_made_for_a_threshold() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("milter.toml");
    let near = |text: &str| {
        std::fs::write(&config, text).unwrap();
        let told = signature(&["--config", config.to_str().unwrap(), "plain.eml"]);
        assert!(told.contains("\tbody\t"), "{told}");
        told.matches("\tnear\t").count()
    };
    assert_eq!(near(""), 8);
    let off = "thresholds.near = 0\n";
    assert_eq!(near(off), 0);
    assert_eq!(near(&format!("{off}[[policy]]\nname = \"some\"\nthresholds = {{ near = 30 }}\n")), 8);
    assert_eq!(near("[[policy]]\nname = \"all\"\nthresholds = { near = 0 }\n"), 8);
}
