// SPDX-License-Identifier: GPL-3.0-or-later
//! How often each body comes in a directory of mail.

use crate::mail::RawMessage;
use crate::signature::{self, FederationKey, Settings, Signature};
use anyhow::Context;
use std::collections::HashMap;
use std::path::Path;

/// Names the directory of mail.
pub(super) const VARIABLE: &str = "BULKMARK_CORPUS";

/// How often each body is in the messages below `directory`, in no particular order that depends on the machine.
///
/// A file that begins with a header field is a message, as in a maildir; one that begins with `From ` is an mbox. Others
/// are no mail. Bodies that say too little for a signature are left out.
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
                for message in messages(&bytes) {
                    let message = RawMessage::from_bytes(message);
                    let signature = message.ok().and_then(|m| signature::body(&m, &key, &settings).ok());
                    if let Some(signature) = signature {
                        *counts.entry(signature).or_default() += 1;
                    }
                }
            }
        }
    }
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable();
    Ok(counts)
}

/// The messages of a file: one, those of an mbox, or none.
fn messages(bytes: &[u8]) -> Vec<&[u8]> {
    const SEPARATOR: &[u8] = b"From ";
    if !bytes.starts_with(SEPARATOR) {
        return if begins_with_field(bytes) { vec![bytes] } else { Vec::new() };
    }
    let separators = memchr::memmem::find_iter(bytes, b"\nFrom ").map(|i| i + 1);
    let starts: Vec<usize> = std::iter::once(0).chain(separators).collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    let without_separator = |message: &'_ [u8]| memchr::memchr(b'\n', message).map_or(0, |i| i + 1);
    starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| &bytes[start..end])
        .map(|message| &message[without_separator(message)..])
        .collect()
}

/// Whether the first line is `name: value`, with a name of letters, digits and dashes.
fn begins_with_field(bytes: &[u8]) -> bool {
    let name = bytes.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'-').count();
    name > 0 && bytes.get(name) == Some(&b':')
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
        write("box", &format!("From a\n{}From b\n{}", body(2), body(5)));
        write("little", "Subject: a\n\nthanks\n");
        write("list.tsv", "one\ttwo three four five six seven eight nine ten\n");
        assert_eq!(counts(directory.path()).unwrap(), [1, 3]);
        let error = counts(&inner.join("absent")).unwrap_err();
        assert!(error.to_string().starts_with("cannot read "), "{error}");
    }
}
