// SPDX-License-Identifier: GPL-3.0-or-later
//! Files of white lists, whose size is bounded.

use std::io::{self, Read};
use std::path::Path;

/// Bytes of a white list or table, which is kept in memory: some million entries.
const LARGEST_LIST: u64 = 256 << 20;

/// The content of a file of a white list, if that is no larger than any sensible one.
///
/// # Errors
/// When it cannot be read, or is larger.
pub fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    file.take(LARGEST_LIST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_LIST {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {LARGEST_LIST} bytes"),
        ));
    }
    Ok(bytes)
}
