// SPDX-License-Identifier: GPL-3.0-or-later
//! What a site decides of trust.

use bulkmark_types::UNIT;

/// Reporters with a trust of a half or more that a site must have before newcomers are held to their bound: someone must
/// be the first.
pub(super) const FOUNDERS: u32 = 10;

/// What a newcomer weighs unless the site says otherwise.
pub(super) const USUAL: u32 = UNIT / 4;

/// What newcomers may weigh together on a young site, in thresholds.
const YOUNG: u32 = 10;

/// How much newcomers weigh, and from what weight on a message is spam. All in units ([`UNIT`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    new_reporter: u32,
    max_newcomers: u32,
    threshold: u32,
}

/// A setting is out of its bounds.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// What a newcomer weighs.
    #[error("new-reporter is {0}, expected 0.125 to 1: the weight of who reports for the first time")]
    NewReporter(f64),
    /// What newcomers weigh together.
    #[error("max-newcomers is {0}, expected 0.125 to 1000: what newcomers together weigh for one signature")]
    MaxNewcomers(f64),
}

impl Default for Settings {
    /// A newcomer weighs a quarter, newcomers together as much as one whom everybody trusts, and 3 make spam.
    fn default() -> Self {
        Self { new_reporter: USUAL, max_newcomers: UNIT, threshold: 3 * UNIT }
    }
}

impl Settings {
    /// From weights as they are configured, where 1 is the word of who is fully trusted, and the threshold in units.
    ///
    /// # Errors
    /// When one is out of its bounds.
    pub fn new(new_reporter: f64, max_newcomers: f64, threshold: u32) -> Result<Self, SettingsError> {
        let unit = f64::from(UNIT);
        if !(1.0 / unit..=1.0).contains(&new_reporter) {
            return Err(SettingsError::NewReporter(new_reporter));
        }
        if !(1.0 / unit..=1000.0).contains(&max_newcomers) {
            return Err(SettingsError::MaxNewcomers(max_newcomers));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "both are within their bounds"
        )]
        Ok(Self {
            new_reporter: (new_reporter * unit).round() as u32,
            max_newcomers: (max_newcomers * unit).round() as u32,
            threshold,
        })
    }

    /// What a newcomer's word weighs, in units.
    #[must_use]
    pub const fn new_reporter_units(&self) -> u32 {
        self.new_reporter
    }

    /// The units from which on a message is spam.
    #[must_use]
    pub const fn threshold(&self) -> u32 {
        self.threshold
    }

    /// What newcomers may add together to what others said, in units.
    #[must_use]
    pub const fn max_newcomers(&self) -> u32 {
        self.max_newcomers
    }

    /// What those who are not established may add together, on each side, to one signature, where there are so many who
    /// are: `max-newcomers`. On a young site there is nobody else to make spam, and nobody who could be believed.
    #[must_use]
    pub const fn newcomers(&self, established: u32) -> u32 {
        if established >= FOUNDERS {
            return self.max_newcomers;
        }
        let young = self.threshold.saturating_mul(YOUNG);
        if self.max_newcomers > young { self.max_newcomers } else { young }
    }
}
