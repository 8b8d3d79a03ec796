// SPDX-License-Identifier: GPL-3.0-or-later
//! A site's settings of trust.

use bulkmark_types::UNIT;

/// The number of reporters with a trust of a half or more from which on a site limits newcomers: a site without them has only newcomers.
pub(super) const FOUNDERS: u32 = 10;

/// The default weight of a newcomer.
pub(super) const USUAL: u32 = UNIT / 4;

/// The most that newcomers can weigh together on a young site, in thresholds.
const YOUNG: u32 = 10;

/// The weight of newcomers, and the weight from which on a message is spam. All in units ([`UNIT`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    new_reporter: u32,
    max_newcomers: u32,
    threshold: u32,
}

/// A setting is out of its bounds.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// The weight of a newcomer.
    #[error("new-reporter is {0}, expected 0.125 to 1: the weight of reporter reports for the first time")]
    NewReporter(f64),
    /// The weight of all newcomers together.
    #[error(
        "max-newcomers is {0}, expected 0.125 to 1000: the weight of all newcomers together for one signature"
    )]
    MaxNewcomers(f64),
}

impl Default for Settings {
    /// A newcomer weighs a quarter, all newcomers together as much as one fully trusted user, and 3 make spam.
    fn default() -> Self {
        Self { new_reporter: USUAL, max_newcomers: UNIT, threshold: 3 * UNIT }
    }
}

impl Settings {
    /// Converts configured weights, where 1 is a report from a fully trusted user. The threshold is in units.
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

    /// The weight of a newcomer's report, in units.
    #[must_use]
    pub const fn new_reporter_units(&self) -> u32 {
        self.new_reporter
    }

    /// The weight from which on a message is spam, in units.
    #[must_use]
    pub const fn threshold(&self) -> u32 {
        self.threshold
    }

    /// The most that newcomers can add together to other reports, in units.
    #[must_use]
    pub const fn max_newcomers(&self) -> u32 {
        self.max_newcomers
    }

    /// The most that newcomers can add together, on each side, to one signature, on a site with `established` other reporters. It is
    /// `max-newcomers`, but more on a young site, where nobody else can make spam, or earn trust.
    #[must_use]
    pub const fn newcomers(&self, established: u32) -> u32 {
        if established >= FOUNDERS {
            return self.max_newcomers;
        }
        let young = self.threshold.saturating_mul(YOUNG);
        if self.max_newcomers > young { self.max_newcomers } else { young }
    }
}
