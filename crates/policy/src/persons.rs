// SPDX-License-Identifier: GPL-3.0-or-later
//! A weight as a number of fully trusted users.

use serde::Deserialize;

/// The weight of the reports of some fully trusted users, in thousandths of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Persons(u32);

impl Persons {
    /// A weight in thousandths of one user.
    pub(crate) const fn thousandths(thousandths: u32) -> Self {
        Self(thousandths)
    }

    /// The weight as a number of users.
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
