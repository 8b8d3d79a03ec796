// SPDX-License-Identifier: GPL-3.0-or-later
//! Any white list, with one that it may include: entries, or an error with an existing line. Any name can be looked up, and an
//! entry that matches it has an existing line.

#![no_main]

use bulkmark_policy::{Facts, WhiteList, WhiteListError};
use bulkmark_types::Signature;
use libfuzzer_sys::fuzz_target;
use std::io;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    // The list, the one that it may include, an external name, and a table.
    let mut parts = text.splitn(4, '\0');
    let mut part = || parts.next().unwrap_or("");
    let (list, included, name, table) = (part(), part(), part(), part());
    let files = [("list", list), ("included", included), ("/t.cdb", table), ("/t.lmdb", table)];
    let text_of = |path: &Path| files.into_iter().find(|(name, _)| path == *name).map(|(_, text)| text);
    let is_line = |path: &Path, line: usize| (1..=text_of(path).unwrap().lines().count()).contains(&line);

    let read = |path: &Path| {
        text_of(path).map(|text| text.as_bytes().to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let list = match WhiteList::load(&["list".into()], &read) {
        Ok(list) => list,
        Err(WhiteListError::Entry { path, line, what }) => {
            assert!(is_line(&path, line) && !what.is_empty(), "{}:{line}: {what}", path.display());
            return;
        }
        Err(WhiteListError::Read { path, .. }) => {
            assert!(text_of(&path).is_none());
            return;
        }
    };
    let facts = Facts {
        client_ip: name.parse().ok(),
        client_host: Some(name),
        sender: Some(name),
        recipients: &[],
        from: &[name.to_owned()],
        list_id: Some(name),
        signature: Some(Signature::from_bytes([0; 16])),
        ..Facts::default()
    };
    let (questions, _) = list.questions(&facts);
    assert!(questions.iter().all(|question| !question.keys.is_empty()));
    for entry in [list.message(&facts), list.recipients(&facts)(name)].into_iter().flatten() {
        let place = entry.to_string();
        let (file, line) = place.split_once(':').unwrap();
        assert!(is_line(Path::new(file), line.parse().unwrap()), "{place}");
    }
});
