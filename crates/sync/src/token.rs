// SPDX-License-Identifier: GPL-3.0-or-later
//! The token of this machine at a server.

use super::code::Code;
use parking_lot::Mutex;
use reqwest::header::HeaderValue;
use std::io;
use std::path::{Path, PathBuf};

/// The token in a file. It is read again when the server refuses it, so a new one needs no restart.
pub(super) struct Token {
    path: PathBuf,
    header: Mutex<HeaderValue>,
}

fn read(path: &Path) -> io::Result<HeaderValue> {
    let text = std::fs::read(path)?;
    let header = format!("Bearer {}", String::from_utf8_lossy(&text).trim());
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "expected one token");
    let mut header = HeaderValue::from_str(&header).map_err(invalid)?;
    header.set_sensitive(true);
    Ok(header)
}

impl Token {
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), header: Mutex::new(read(path)?) })
    }

    /// Returns the header field that has the token.
    pub(super) fn header(&self) -> HeaderValue {
        self.header.lock().clone()
    }

    /// Reads the file again if the server refused a request because of the token. Until it can be read, the old token stays.
    pub(super) fn refused(&self, code: Option<Code>) {
        let is_refused = matches!(
            code,
            Some(Code::TokenMissing | Code::TokenInvalid | Code::TokenBlocked | Code::Role | Code::MadeUp)
        );
        if is_refused && let Ok(header) = read(&self.path) {
            *self.header.lock() = header;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_token_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        assert!(Token::new(&path).is_err());
        std::fs::write(&path, "a\nb\n").unwrap();
        assert!(Token::new(&path).is_err(), "two lines");
        std::fs::write(&path, "one\n").unwrap();
        let token = Token::new(&path).unwrap();
        std::fs::write(&path, "two\n").unwrap();
        token.refused(Some(Code::Rate));
        assert_eq!(token.header(), "Bearer one", "it was not the token");
        token.refused(Some(Code::TokenInvalid));
        assert_eq!(token.header(), "Bearer two");
        std::fs::remove_file(&path).unwrap();
        token.refused(Some(Code::TokenInvalid));
        assert_eq!(token.header(), "Bearer two");
    }
}
