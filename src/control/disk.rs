// SPDX-License-Identifier: GPL-3.0-or-later
//! The disk that the ledger is on.

use bulkmark_ledger::FILE_NAME;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a disk has, and what the ledger takes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Disk {
    /// Bytes of the file system.
    pub size: u64,
    /// Bytes of it that the daemon may still write.
    pub available: u64,
    /// Bytes of the ledger's file.
    pub ledger: u64,
}

impl Disk {
    /// Of the ledger in this directory; none where the system does not tell.
    pub(super) fn of(directory: &Path) -> Option<Self> {
        let system = rustix::fs::statvfs(directory).ok()?;
        let ledger = directory.join(FILE_NAME).metadata().ok()?.len();
        Some(Self {
            size: system.f_blocks.saturating_mul(system.f_frsize),
            available: system.f_bavail.saturating_mul(system.f_frsize),
            ledger,
        })
    }
}
