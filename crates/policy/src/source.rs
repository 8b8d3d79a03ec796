// SPDX-License-Identifier: GPL-3.0-or-later
//! The place of an entry of a white list.

use std::fmt;
use std::io;
use std::sync::Arc;

/// The text of a file.
///
/// # Errors
/// The bytes are no UTF-8.
pub(super) fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8"))
}

/// The place of an entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    file: Arc<str>,
    line: usize,
}

impl Source {
    pub(super) const fn new(file: Arc<str>, line: usize) -> Self {
        Self { file, line }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// An entry that matched: shown as `file:line`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match(Source);

impl Match {
    pub(super) fn of(source: &Source) -> Self {
        Self(source.clone())
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
