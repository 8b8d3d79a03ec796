// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages for one milter, one after the other.

use crate::client::From;
use bulkmark_mail::mbox;
use std::io::Cursor;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The source of a message's bytes.
#[derive(Debug, Clone)]
enum Place {
    File(PathBuf),
    Mbox(Arc<Vec<u8>>, Range<usize>),
    Made(Arc<[u8]>),
}

/// A message, its network, and its number of recipients.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    place: Place,
    pub(crate) recipients: usize,
    pub(crate) from: From,
}

impl Message {
    /// To one recipient.
    pub(crate) const fn file(path: PathBuf) -> Self {
        Self { place: Place::File(path), recipients: 1, from: From::Message }
    }

    /// A generated message to one recipient.
    pub(crate) fn made(raw: Vec<u8>) -> Self {
        Self { place: Place::Made(raw.into()), recipients: 1, from: From::Message }
    }

    pub(crate) fn to(self, recipients: usize) -> Self {
        Self { recipients, ..self }
    }

    pub(crate) fn from(self, from: From) -> Self {
        Self { from, ..self }
    }

    /// The message in wire form.
    pub(crate) fn raw(&self) -> Vec<u8> {
        match &self.place {
            Place::File(path) => with_crlf(&std::fs::read(path).unwrap()),
            Place::Made(raw) => with_crlf(raw),
            Place::Mbox(all, range) => with_crlf(&mbox::delivered(&all[range.clone()])),
        }
    }
}

/// The files of a directory in the order of their names, without tables.
pub(crate) fn directory(path: &Path) -> Vec<Message> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_none_or(|e| e != "tsv")).collect();
    files.sort();
    files.into_iter().map(Message::file).collect()
}

/// The messages of an mbox, which may be compressed by xz.
pub(crate) fn mbox(path: &Path) -> Result<Vec<Message>, String> {
    let bytes = if path.extension().is_some_and(|e| e == "xz") {
        let output = Command::new("xz").args(["--decompress", "--stdout"]).arg(path).output();
        let output = output.map_err(|e| format!("xz: {e}"))?;
        if !output.status.success() {
            return Err(format!("xz cannot unpack {}", path.display()));
        }
        output.stdout
    } else {
        std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?
    };
    let (all, mut ranges) = (Arc::new(bytes), Vec::new());
    let shape = mbox::scan(&mut Cursor::new(all.as_slice()), all.len() as u64, &mut |found| {
        ranges.push(found.at as usize..(found.at + found.length) as usize);
    });
    match shape {
        Ok(mbox::Shape::Mbox) => {
            let message = |range| Message {
                place: Place::Mbox(Arc::clone(&all), range),
                recipients: 1,
                from: From::Message,
            };
            Ok(ranges.into_iter().map(message).collect())
        }
        _ => Err(format!("{} is no mbox", path.display())),
    }
}

/// The "From " line of an mbox is no part of a message.
fn with_crlf(raw: &[u8]) -> Vec<u8> {
    let raw = if raw.starts_with(mbox::SEPARATOR) {
        raw.splitn(2, |&b| b == b'\n').nth(1).unwrap_or(b"")
    } else {
        raw
    };
    let mut out = Vec::with_capacity(raw.len() + raw.len() / 30);
    for (i, &b) in raw.iter().enumerate() {
        if b == b'\n' && (i == 0 || raw[i - 1] != b'\r') {
            out.push(b'\r');
        }
        out.push(b);
    }
    out
}
