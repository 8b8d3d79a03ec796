// SPDX-License-Identifier: GPL-3.0-or-later
//! Limits of partners: defaults, and the notation of shares.

use bulkmark_types::PRESENT;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// The most that a partner may add to any signature's count: a quarter of the usual threshold, so that four must conspire.
pub const PARTNER_INFLUENCE: NonZeroU32 = const { NonZeroU32::new(5).unwrap() };

/// A single partner must not be able to pretend that a text came from a network that never sent it.
const _: () = assert!(PARTNER_INFLUENCE.get() < PRESENT);

/// Reports a second of a partner: those of 100 messages with near signatures.
pub const PARTNER_RATE: NonZeroU32 = const { NonZeroU32::new(1000).unwrap() };

/// The different signatures that a limited client may report in a window, as a share of the capacity: more than nothing, and at most all of
/// it. In millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Quota(u32);

/// The whole capacity.
const WHOLE: u32 = 1_000_000;

impl Quota {
    /// Creates a quota of so many millionths of the capacity; at least one, and at most all of it.
    #[must_use]
    pub const fn of_millionths(millionths: u32) -> Self {
        Self(if millionths == 0 {
            1
        } else if millionths > WHOLE {
            WHOLE
        } else {
            millionths
        })
    }

    /// Returns the millionths of the capacity.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }
}

/// A sixteenth.
impl Default for Quota {
    fn default() -> Self {
        Self(WHOLE / 16)
    }
}

/// A text is no share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {0:?}, expected a share of the capacity up to all of it, such as 1/16, 6.25% or 0.0625")]
pub struct NoShare(String);

impl FromStr for Quota {
    type Err = NoShare;

    fn from_str(text: &str) -> Result<Self, NoShare> {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let share = match (text.strip_suffix('%'), text.split_once('/')) {
            (Some(percent), _) => number(percent).map(|percent| percent / 100.0),
            (None, Some((part, whole))) => number(part).zip(number(whole)).map(|(part, whole)| part / whole),
            (None, None) => number(text),
        };
        let millionths = share.map(|share| (share * f64::from(WHOLE)).round());
        let valid = millionths.filter(|found| (1.0..=f64::from(WHOLE)).contains(found));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is a whole number from one to a million"
        )]
        valid.map(|millionths| Self(millionths as u32)).ok_or_else(|| NoShare(text.to_owned()))
    }
}

impl TryFrom<String> for Quota {
    type Error = NoShare;

    fn try_from(text: String) -> Result<Self, NoShare> {
        text.parse()
    }
}

impl From<Quota> for String {
    fn from(quota: Quota) -> Self {
        quota.to_string()
    }
}

/// In percent.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", f64::from(self.0) / f64::from(WHOLE / 100)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_written_in_three_ways() {
        for text in ["1/16", "6.25%", "0.0625", " 1 / 16".trim()] {
            assert_eq!(text.parse(), Ok(Quota::default()), "{text}");
        }
        assert_eq!(Quota::default().to_string(), "6.25%");
        assert_eq!("1".parse::<Quota>().unwrap().to_string(), "100%");
        for text in ["0", "-1", "1.1", "101%", "1/0", "x", "", "NaN", "0.0000001", "inf%"] {
            let error = text.parse::<Quota>().unwrap_err().to_string();
            assert!(error.contains("expected a share"), "{error}");
        }
    }
}
