// SPDX-License-Identifier: GPL-3.0-or-later
//! What the configuration says of them.

use serde::Deserialize;

/// `[refusals]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// For so many days they are kept; 0: not at all.
    pub days: u16,
    /// Megabytes that they take at most.
    #[serde(skip)]
    pub max_size_mb: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { days: 0, max_size_mb: 1000 }
    }
}

impl Settings {
    /// The most days.
    pub const MAX_DAYS: u16 = 366;

    /// Whether they can be used; which key cannot, and why.
    ///
    /// # Errors
    /// When a number is outside its bounds.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.days > Self::MAX_DAYS {
            return Err(("days", format!("found {}, expected 0 to {}", self.days, Self::MAX_DAYS)));
        }
        Ok(())
    }
}
