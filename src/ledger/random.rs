// SPDX-License-Identifier: GPL-3.0-or-later
//! Names for what is new: origins and spools.

use std::io;

/// A random number.
pub(crate) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(u64::from_le_bytes(bytes))
}
