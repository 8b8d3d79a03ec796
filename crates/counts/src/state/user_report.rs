// SPDX-License-Identifier: GPL-3.0-or-later
//! The reports of one reporter on one signature, and their sums.

use bulkmark_types::{ReporterId, Signature, revocation};

/// A reporter and a nomination.
pub type ReportKey = (ReporterId, Signature);

/// The sum of this mail server's reports of one tagged signature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportSum {
    /// Their part of its count.
    pub units: u32,
    /// The number of reporters.
    pub reporters: u32,
}

/// One report of one reporter on one signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserReport {
    /// The beginning of the window in which it is counted.
    pub window: u64,
    /// Above zero for spam, below for not spam.
    pub units: i8,
    /// The place where it is counted.
    pub counted: Counted,
}

/// The place where a report is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Only here.
    Here,
    /// Everywhere: it was shared with other servers.
    Everywhere,
    /// It was sent, but it will never be known whether it was counted. It cannot be repeated, as it might count twice; and a withdrawal
    /// subtracts nothing, as that might come off others' reports.
    Unknown,
    /// Likewise, and it was withdrawn.
    Void,
}

impl Counted {
    /// Whether it is known to count.
    pub(super) const fn is_known(self) -> bool {
        matches!(self, Self::Here | Self::Everywhere)
    }
}

/// The signed units of a report.
pub(super) fn units(report: &UserReport) -> i32 {
    report.units.into()
}

/// Sums the reports that are known to count, for and against the nomination.
pub(super) fn own_of(
    nomination: Signature,
    reports: &[UserReport],
) -> impl Iterator<Item = (Signature, ReportSum)> {
    let sides = [(nomination, 1), (revocation(nomination), -1)];
    sides.into_iter().filter_map(|(signature, side)| {
        let of_side =
            reports.iter().filter(|report| report.counted.is_known() && report.units.signum() == side);
        let units = of_side.map(|report| u32::from(report.units.unsigned_abs())).sum();
        (units > 0).then_some((signature, ReportSum { units, reporters: 1 }))
    })
}

/// The net units of the reports from each window on, for the windows of the reports up to `window`, and for `window`.
pub(super) fn end_sums<'a, I: Iterator<Item = &'a UserReport>>(
    reports: impl Fn() -> I,
    window: u64,
) -> impl Iterator<Item = i32> {
    let left = move |from: u64, reports: I| {
        reports.filter(|report| report.window >= from).map(|report| i32::from(report.units)).sum()
    };
    let windows = reports().map(|report| report.window).filter(move |&from| from <= window);
    windows.chain([window]).map(move |from| left(from, reports()))
}
