// SPDX-License-Identifier: GPL-3.0-or-later
//! A weight in fully trusted people.

use serde::Deserialize;

/// The word of so many people, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Persons(u32);

impl Persons {
    /// So many thousandths of a person.
    pub(crate) const fn thousandths(thousandths: u32) -> Self {
        Self(thousandths)
    }

    /// As a number of people.
    #[must_use]
    pub fn in_persons(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl TryFrom<f64> for Persons {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if !(0.125..=1000.0).contains(&value) {
            return Err(format!("found {value}, expected 0.125 to 1000.0"));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is 125 to a million")]
        let thousandths = (value * 1000.0).round() as u32;
        Ok(Self(thousandths))
    }
}
