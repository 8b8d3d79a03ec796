// SPDX-License-Identifier: GPL-3.0-or-later
//! Random numbers of the operating system, which name new origins and spools.

use std::io;

/// Returns random bytes.
///
/// # Errors
/// If the system has none.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(bytes)
}

/// Returns a random number.
pub(crate) fn random() -> io::Result<u64> {
    random_bytes().map(u64::from_le_bytes)
}
