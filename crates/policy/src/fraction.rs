// SPDX-License-Identifier: GPL-3.0-or-later
//! A fraction from 0 to 1.

use bulkmark_types::UNIT;
use serde::Deserialize;

/// A number from 0 to 1, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Fraction(u32);

impl Fraction {
    /// One.
    pub const ONE: Self = Self(1000);

    /// One half.
    pub const HALF: Self = Self(500);

    /// The fraction in thousandths.
    #[must_use]
    pub const fn thousandths(self) -> u32 {
        self.0
    }

    /// The weight of a report by a user with this trust, in units; at least one.
    #[must_use]
    pub fn units(self) -> u32 {
        (self.0 * UNIT).div_ceil(1000).clamp(1, UNIT)
    }
}

impl TryFrom<f64> for Fraction {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if !(0.0..=1.0).contains(&value) {
            return Err(format!("found {value}, expected 0.0 to 1.0"));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is 0 to 1000")]
        let thousandths = (value * 1000.0).round() as u32;
        Ok(Self(thousandths))
    }
}
