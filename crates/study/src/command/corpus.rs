// SPDX-License-Identifier: GPL-3.0-or-later
//! How often each body comes in a directory of mail.

use anyhow::Context;
use bulkmark_mail::{RawMessage, mbox};
use bulkmark_signature::Settings;
use bulkmark_types::{FederationKey, Signature};
use std::collections::HashMap;
use std::path::Path;

/// Names the directory of mail.
pub(super) const VARIABLE: &str = "BULKMARK_CORPUS";

/// Counts how often each body is in the messages below `directory`, in an order that does not depend on the machine.
///
/// Files are messages or mboxes; others are ignored. Bodies with too little text for a signature are left out.
///
/// # Errors
/// When a file or directory cannot be read.
pub(super) fn counts(directory: &Path) -> anyhow::Result<Vec<u32>> {
    let mut counts: HashMap<Signature, u32> = HashMap::new();
    let (key, settings) = (FederationKey::public(), Settings::default());
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        let cannot = || format!("cannot read {}", directory.display());
        for entry in std::fs::read_dir(&directory).with_context(cannot)? {
            let entry = entry.with_context(cannot)?;
            let (path, kind) = (entry.path(), entry.file_type().with_context(cannot)?);
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file() {
                let bytes =
                    std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let mut rest = &bytes[..];
                mbox::scan(&mut &*bytes, bytes.len() as u64, &mut |found| {
                    // Each begins where the one before it ends.
                    let (raw, after) = rest.split_at(usize::try_from(found.length).unwrap_or(rest.len()));
                    rest = after;
                    let message = RawMessage::from_bytes(&mbox::delivered(raw));
                    if let Ok(signature) = bulkmark_signature::body(&message, &key, &settings) {
                        *counts.entry(signature).or_default() += 1;
                    }
                })?;
            }
        }
    }
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable();
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_mboxes_and_what_is_no_mail() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("cur");
        std::fs::create_dir(&inner).unwrap();
        let write = |name: &str, text: &str| std::fs::write(inner.join(name), text).unwrap();
        let body =
            |n: u32| format!("Subject: {n}\n\none two three four five six seven eight nine {}\n", n % 2);
        write("1", &body(1));
        write("2", &body(3));
        let from = |name: &str| format!("From {name} Sat Nov 21 10:00:00 2026\n");
        // One body again with a line that begins like the next message, and that line in its mbox quoting.
        write("3", &format!("{}\nFrom here\n", body(7)));
        let quoted = format!("{}\n>From here\n\n", body(9));
        write(
            "box",
            &[from("a"), body(2), "\n".to_owned(), from("b"), body(5), "\n".to_owned(), from("c"), quoted]
                .concat(),
        );
        write("little", "Subject: a\n\nthanks\n");
        write("list.tsv", "one\ttwo three four five six seven eight nine ten\n");
        assert_eq!(counts(directory.path()).unwrap(), [1, 2, 3]);
        let error = counts(&inner.join("absent")).unwrap_err();
        assert!(error.to_string().starts_with("cannot read "), "{error}");
    }
}
