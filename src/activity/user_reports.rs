// SPDX-License-Identifier: GPL-3.0-or-later
//! Results of user reports, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// The result of one user report on one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// It was counted.
    Counted,
    /// It withdrew an earlier report of the same reporter.
    TakenBack,
    /// The reporter had already reported the same.
    Known,
    /// The reporter changed its reports too often.
    TooOften,
    /// Its weight is zero.
    Weightless,
    /// There is no room to store its reporter.
    NoRoom,
    /// The reporter has sent too many reports today.
    OverLimit,
    /// It was refused, with a reason.
    Refused,
}

impl Became {
    const ALL: [Self; 8] = [
        Self::Counted,
        Self::TakenBack,
        Self::Known,
        Self::TooOften,
        Self::Weightless,
        Self::NoRoom,
        Self::OverLimit,
        Self::Refused,
    ];

    /// Returns its name in metrics.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::TakenBack => "taken-back",
            Self::Known => "known",
            Self::TooOften => "too-often",
            Self::Weightless => "weightless",
            Self::NoRoom => "no-room",
            Self::OverLimit => "over-limit",
            Self::Refused => "refused",
        }
    }
}

/// Reports since the start, as spam and as not spam.
#[derive(Debug, Default)]
pub struct UserReports {
    spam: [AtomicU64; Became::ALL.len()],
    not_spam: [AtomicU64; Became::ALL.len()],
}

impl UserReports {
    /// Counts a report as spam or as not spam.
    pub fn add(&self, is_spam: bool, became: Became) {
        let counts_of = if is_spam { &self.spam } else { &self.not_spam };
        if let Some(count) = counts_of.get(became as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the counts by side and result.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, &'static str, u64)> {
        let sides = [("spam", &self.spam), ("not-spam", &self.not_spam)];
        let counts_of = |(side, counts): (&'static str, &[AtomicU64; Became::ALL.len()])| {
            let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
            Became::ALL
                .into_iter()
                .zip(counts)
                .map(|(became, count)| (side, became.as_str(), count))
                .collect::<Vec<_>>()
        };
        sides.into_iter().flat_map(counts_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_report_is_counted_by_its_result() {
        let reports = UserReports::default();
        reports.add(true, Became::NoRoom);
        reports.add(false, Became::Counted);
        let found: Vec<_> = reports.all().into_iter().filter(|(.., count)| *count > 0).collect();
        assert_eq!(found, [("spam", "no-room", 1), ("not-spam", "counted", 1)]);
        assert_eq!(reports.all().len(), 16);
    }
}
