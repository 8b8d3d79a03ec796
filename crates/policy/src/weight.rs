// SPDX-License-Identifier: GPL-3.0-or-later
//! The weight of spam reports of a message.

use super::settings::Threshold;
use bulkmark_types::UNIT;
use std::fmt;

/// Nominations less revocations, each with the weight of its reporter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u32);

impl Weight {
    /// A weight of some [units](UNIT).
    #[must_use]
    pub const fn of_units(units: u32) -> Self {
        Self(units)
    }

    /// The weight in units.
    #[must_use]
    pub const fn units(self) -> u32 {
        self.0
    }

    /// Whether it is at least the weight of this many fully trusted users.
    #[must_use]
    pub fn reaches(self, user_reports: Threshold) -> bool {
        u64::from(self.0) >= u64::from(user_reports.get()) * u64::from(UNIT)
    }

    /// The number of fully trusted users, rounded down.
    #[must_use]
    pub const fn users(self) -> u32 {
        self.0 / UNIT
    }
}

/// As a number of users, with as many decimals as it has: `3`, `2.5`, `0.125`.
impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousandths = self.0 % UNIT * 1000 / UNIT;
        let decimals = format!("{thousandths:03}");
        match decimals.trim_end_matches('0') {
            "" => write!(f, "{}", self.users()),
            decimals => write!(f, "{}.{decimals}", self.users()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shown_in_users() {
        let shown = [0, 1, 4, 8, 23, 24].map(|units| Weight::of_units(units).to_string());
        assert_eq!(shown, ["0", "0.125", "0.5", "1", "2.875", "3"]);
        let three: Threshold = 3i64.try_into().unwrap();
        assert!(!Weight::of_units(23).reaches(three) && Weight::of_units(24).reaches(three));
    }
}
