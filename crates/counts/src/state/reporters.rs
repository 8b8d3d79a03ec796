// SPDX-License-Identifier: GPL-3.0-or-later
//! Finding a reporter or mailing by the beginning of its hash, and the reporters of one mailing, for the administrator.

use crate::state::roles::State;
use bulkmark_types::{ReporterId, ReporterKind, Signature, UNIT};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most reporters of one mailing.
const MOST: usize = 1000;

/// The user reports on one mailing, by reporter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MailingReports {
    /// Identifies the mailing.
    pub mailing: String,
    /// The first message's subject, if it may be stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The time of its first report, in seconds since 1970.
    pub first: u64,
    /// The time of its last report.
    pub last: u64,
    /// The reporters, those with the greatest weight first.
    pub reporters: Vec<MailingReport>,
    /// The number of further reporters.
    pub more_reporters: usize,
}

/// One reporter's report on a mailing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MailingReport {
    /// A hash of the name.
    pub reporter: String,
    /// The kind of reporter.
    pub kind: ReporterKind,
    /// Whether it reports spam.
    pub spam: bool,
    /// The weight of its report, for the signature of the mailing where it is greatest.
    pub weight: f64,
    /// The beginning of the window of its last report, in seconds since 1970.
    pub window: u64,
}

/// The reason why no reporter or mailing was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// It is not the beginning of a hash.
    #[error("found {0:?}, expected the first of 32 hexadecimal digits, as `bulkmark report list` shows them")]
    NoHash(String),
    /// There is none.
    #[error("no {of} that is known here begins with {prefix}")]
    Unknown {
        /// The kind of thing.
        of: &'static str,
        /// The beginning.
        prefix: String,
    },
    /// There are several.
    #[error("{count} {of}s begin with {prefix}, among them {first} and {second}: give more digits")]
    Ambiguous {
        /// The kind of thing.
        of: &'static str,
        /// The beginning.
        prefix: String,
        /// Their number.
        count: usize,
        /// One of them.
        first: String,
        /// Another.
        second: String,
    },
}

/// Returns the only element whose hash begins with `prefix`; elements may be repeated.
pub fn only<T: Ord + ToString>(all: Vec<T>, of: &'static str, prefix: &str) -> Result<T, Unclear> {
    let (all, prefix) = (BTreeSet::from_iter(all), prefix.to_lowercase());
    if !(1..=32).contains(&prefix.len()) || !prefix.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Unclear::NoHash(prefix));
    }
    let mut all = all.into_iter().filter(|one| one.to_string().starts_with(&prefix));
    match (all.next(), all.next()) {
        (Some(one), None) => Ok(one),
        (Some(first), Some(second)) => {
            let (count, first, second) = (2 + all.count(), first.to_string(), second.to_string());
            Err(Unclear::Ambiguous { of, prefix, count, first, second })
        }
        (None, _) => Err(Unclear::Unknown { of, prefix }),
    }
}

impl State {
    /// All reporters with user reports or standings; they may be repeated.
    pub fn reporters(&self) -> Vec<ReporterId> {
        let counts = self.counts();
        let reporters = counts.user_reports.iter().map(|((reporter, _), _)| *reporter);
        reporters.chain(counts.trust.standings.iter().map(|(reporter, _)| *reporter)).collect()
    }

    /// The mailing of each signature with user reports.
    pub fn mailings(&self) -> Vec<Signature> {
        self.counts().cases.iter().map(|(_, case)| case.mailing).collect()
    }

    /// The reports on a mailing, by reporter.
    pub fn mailing_reports(&self, mailing: Signature, now: u64) -> MailingReports {
        let counts = self.counts();
        let cases = || counts.cases.iter().filter(|(_, case)| case.mailing == mailing);
        let of: BTreeSet<Signature> = cases().map(|(nomination, _)| *nomination).collect();
        let mut found: BTreeMap<ReporterId, (i32, u64)> = BTreeMap::new();
        for ((reporter, nomination), reports) in counts.user_reports.iter() {
            let units = counts.user_reports.net_of(reports, now);
            if units != 0 && of.contains(nomination) {
                let (most, last) = found.entry(*reporter).or_default();
                *most = if units.abs() > most.abs() { units } else { *most };
                *last = reports.iter().map(|report| report.window).max().unwrap_or_default().max(*last);
            }
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(reporter, (units, _))| (-units.abs(), *reporter));
        let more_reporters = found.len().saturating_sub(MOST);
        let by = |(reporter, (units, window)): &(ReporterId, (i32, u64))| MailingReport {
            reporter: reporter.to_string(),
            kind: reporter.kind(),
            spam: *units > 0,
            weight: f64::from(units.abs()) / f64::from(UNIT),
            window: *window,
        };
        MailingReports {
            mailing: mailing.to_string(),
            subject: counts.cases.get(mailing).map(|case| case.subject.clone()).unwrap_or_default(),
            first: cases().map(|(_, case)| case.first).min().unwrap_or_default(),
            last: cases().map(|(_, case)| case.last).max().unwrap_or_default(),
            reporters: found.iter().take(MOST).map(by).collect(),
            more_reporters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ambiguous beginning finds nothing, and an unknown one is reported as such.
    #[test]
    fn a_beginning_finds_one_or_none() {
        let of = |first: u8| ReporterId::from_bytes([first, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let find = |prefix: &str| only(vec![of(0xab), of(0xac), of(0x10), of(0xac)], "reporter", prefix);
        assert_eq!([find("AB"), find("1")], [Ok(of(0xab)), Ok(of(0x10))]);
        assert_eq!(find(&of(0xac).to_string()), Ok(of(0xac)));
        let error = |prefix: &str| find(prefix).unwrap_err().to_string();
        assert_eq!(
            error("a"),
            format!("2 reporters begin with a, among them {} and {}: give more digits", of(0xab), of(0xac))
        );
        assert_eq!(error("ff"), "no reporter that is known here begins with ff");
        for bad in ["", "anna", "ab ", &"a".repeat(33)] {
            assert!(error(bad).ends_with("as `bulkmark report list` shows them"), "{bad}");
        }
    }
}
