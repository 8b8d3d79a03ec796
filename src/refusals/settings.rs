// SPDX-License-Identifier: GPL-3.0-or-later
//! The keys of `[refusals]`.

use serde::Deserialize;

/// The keys of `[refusals]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// The number of days for which refusals are kept; 0: none is kept.
    pub days: u32,
    /// Size limit of all files, in megabytes.
    #[serde(skip)]
    pub max_size_mb: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { days: 0, max_size_mb: 1000 }
    }
}

impl Settings {
    /// The upper bound of `days`.
    pub const MAX_DAYS: u32 = 366;

    /// Whether the keys are valid; the error names the key.
    ///
    /// # Errors
    /// If a number is outside its bounds.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.days > Self::MAX_DAYS {
            return Err(("days", format!("found {}, expected 0 to {}", self.days, Self::MAX_DAYS)));
        }
        Ok(())
    }
}
