// SPDX-License-Identifier: GPL-3.0-or-later
//! Any milter.toml gives usable settings, or an error that names the file and, where it has one, a place in it.

#![no_main]

use bulkmark::config::{self, MilterFile};
use bulkmark_policy::ReplyFields;
use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Configurations are read from files only; libFuzzer's processes may run side by side.
static PATH: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("bulkmark-fuzz-{}.toml", std::process::id())));

const FIELDS: ReplyFields<'_> = ReplyFields {
    count: u32::MAX,
    threshold: 1 << 24,
    id: "4ABC",
    host: "mx.example.org",
    signature: "00ff",
    reason: "bulk mail",
};

/// Line and column at the beginning of an error, behind the file name.
fn place(told: &str) -> Option<(usize, usize)> {
    let (line, rest) = told.strip_prefix(':')?.split_once(':')?;
    let (column, _) = rest.split_once(':')?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    let parsed = toml::from_str::<MilterFile>(text);
    // Paths must not lead to this machine's files.
    let names_files = |p: &MilterFile| {
        let mut policies = p.policy.iter();
        !p.whitelist.files.is_empty()
            || p.ledger.federation_key_file.key.is_some()
            || policies.any(|p| !p.whitelist.files.is_empty() || !p.matches.recipient_files.is_empty())
    };
    if parsed.as_ref().is_ok_and(names_files) {
        return;
    }
    std::fs::write(&*PATH, text).unwrap();
    let loaded = config::load(&PATH);
    std::fs::remove_file(&*PATH).unwrap();
    match loaded {
        Ok(checked) => {
            assert_eq!(checked.file, parsed.unwrap());
            let actions = checked.file.actions;
            for answer in [actions.reject_reply.text.fill(&FIELDS), actions.tempfail_reply.text.fill(&FIELDS)]
            {
                assert!(answer.chars().all(|c| matches!(c, ' '..='~') && c != '%'), "{answer:?}");
            }
        }
        Err(error) => {
            let told = error.to_string();
            let told = told.strip_prefix(&PATH.display().to_string()).expect("the file's name comes first");
            match place(told) {
                Some((line, column)) => {
                    // One past the end, if something is missing there.
                    assert!((1..=text.lines().count() + 1).contains(&line) && column > 0, "{told}");
                    let width = text.lines().nth(line - 1).map_or(0, |line| line.chars().count());
                    assert!(column <= width + 2, "{told}");
                }
                None => assert!(parsed.is_ok(), "{told}"),
            }
        }
    }
});
