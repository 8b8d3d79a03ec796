// SPDX-License-Identifier: GPL-3.0-or-later
//! Names for what is new: origins, spools and whatever else must not be guessed or met twice.

use std::io;

/// A random number.
pub(crate) fn random() -> io::Result<u64> {
    random_bytes().map(u64::from_le_bytes)
}

/// Random bytes of the system: the only source of them in this program.
///
/// # Errors
/// When the system has none.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(bytes)
}
