// SPDX-License-Identifier: GPL-3.0-or-later
//! The user reports of this mail server by mailing, and the reporters' trust, for the administrator.

use crate::state::roles::State;
use crate::state::user_report::ReportKey;
use bulkmark_types::{ReporterId, ReporterKind, Signature};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most mailings, and the most reporters, of an overview.
const MOST: usize = 1000;

/// The filter of an overview.
#[derive(Debug, Clone, Copy)]
pub struct OverviewFilter {
    /// Only mailings with reports since this time, in seconds since 1970.
    pub since: u64,
    /// Only reports of this reporter.
    pub reporter: Option<ReporterId>,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// The user reports of this mail server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Overview {
    /// The mailings, sorted by their last report.
    pub mailings: Vec<MailingSummary>,
    /// The number of further mailings.
    pub more_mailings: usize,
    /// The reporters, the most trusted first.
    pub reporters: Vec<ReporterSummary>,
    /// The number of further reporters.
    pub more_reporters: usize,
}

/// The user reports on one mailing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MailingSummary {
    /// Identifies the mailing: the nomination of the first message's body, if it has one.
    pub mailing: String,
    /// The first message's subject, if it may be stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The time of its first report, in seconds since 1970.
    pub first: u64,
    /// The time of its last report.
    pub last: u64,
    /// The number of reporters here who report it as spam.
    pub spam: usize,
    /// The number of those who report it as not spam.
    pub not_spam: usize,
    /// Nominations less revocations of its signature with the most, including others'; 1 is the weight of one fully trusted user.
    pub weight: f64,
}

/// The reports of one reporter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReporterSummary {
    /// A hash of the name.
    pub reporter: String,
    /// The kind of reporter.
    pub kind: ReporterKind,
    /// Its trust, 0 to 1.
    pub trust: f64,
    /// The weight of its reports, 0 to 1.
    pub weight: f64,
    /// Mailings that it reports as spam.
    pub spam: usize,
    /// Mailings that it reports as not spam.
    pub not_spam: usize,
}

/// The net units in effect on one mailing, by reporter: above zero for spam.
type UnitsByReporter = BTreeMap<ReporterId, i32>;

/// The numbers of mailings reported as spam and as not spam, or of their reporters.
type Sides = (usize, usize);

/// Copies of all reports and their signatures. Mail has to wait while they are copied, but not while they are sorted.
pub struct Gathered {
    /// The net units in effect of each row.
    rows: Vec<(ReportKey, i32)>,
    of: Vec<CaseCopy>,
}

/// A signature with user reports.
struct CaseCopy {
    nomination: Signature,
    mailing: Signature,
    first: u64,
    last: u64,
}

/// The sorted reports, without the data that only the ledger has.
pub struct Sorted {
    mailings: Vec<Mailing>,
    more_mailings: usize,
    by_reporter: HashMap<ReporterId, Sides>,
}

/// One mailing with its signatures.
struct Mailing {
    name: Signature,
    nominations: Vec<Signature>,
    first: u64,
    last: u64,
    sides: Sides,
}

impl Gathered {
    /// Sorts the reports by mailing, and selects the mailings of the overview.
    pub fn sort(self, asked: &OverviewFilter) -> Sorted {
        let mailing_of: HashMap<Signature, Signature> =
            self.of.iter().map(|case| (case.nomination, case.mailing)).collect();
        let mut units_of: HashMap<Signature, UnitsByReporter> = HashMap::new();
        for ((reporter, nomination), units) in self.rows {
            let Some(mailing) = mailing_of.get(&nomination) else { continue };
            let known = units_of.entry(*mailing).or_default().entry(reporter).or_default();
            if units.abs() > known.abs() {
                *known = units;
            }
        }
        let mut by_reporter: HashMap<ReporterId, Sides> = HashMap::new();
        for (reporter, units) in units_of.values().flatten() {
            let (spam, not_spam) = by_reporter.entry(*reporter).or_default();
            *spam += usize::from(*units > 0);
            *not_spam += usize::from(*units < 0);
        }
        units_of.retain(|_, units| {
            asked.reporter.is_none_or(|reporter| units.get(&reporter).is_some_and(|&u| u != 0))
        });
        let mut mailings: HashMap<Signature, Mailing> = HashMap::new();
        for case in self.of {
            let Some(units) = units_of.get(&case.mailing) else { continue };
            let mailing = mailings.entry(case.mailing).or_insert_with(|| Mailing {
                name: case.mailing,
                nominations: Vec::new(),
                first: case.first,
                last: case.last,
                sides: [1, -1]
                    .map(|side| units.values().filter(|units| units.signum() == side).count())
                    .into(),
            });
            mailing.nominations.push(case.nomination);
            (mailing.first, mailing.last) = (mailing.first.min(case.first), mailing.last.max(case.last));
        }
        let mut mailings: Vec<Mailing> =
            mailings.into_values().filter(|mailing| mailing.last >= asked.since).collect();
        mailings.sort_unstable_by_key(|mailing| (mailing.last, mailing.name));
        let more_mailings = mailings.len().saturating_sub(MOST);
        Sorted { mailings: mailings.split_off(more_mailings), more_mailings, by_reporter }
    }
}

impl State {
    /// Copies all user reports.
    pub fn gather(&self, now: u64) -> Gathered {
        let counts = self.counts();
        let rows =
            counts.user_reports.iter().map(|(&key, reports)| (key, counts.user_reports.net_of(reports, now)));
        let of = counts.cases.iter().map(|(&nomination, case)| CaseCopy {
            nomination,
            mailing: case.mailing,
            first: case.first,
            last: case.last,
        });
        Gathered { rows: rows.collect(), of: of.collect() }
    }

    /// Builds the overview.
    pub fn overview(&self, sorted: &Sorted, asked: &OverviewFilter) -> Overview {
        let mailings =
            sorted.mailings.iter().map(|mailing| self.mailing_summary(mailing, asked.now)).collect();
        let (reporters, more_reporters) = self.reporter_summaries(&sorted.by_reporter, asked);
        Overview { mailings, more_mailings: sorted.more_mailings, reporters, more_reporters }
    }

    fn mailing_summary(&self, mailing: &Mailing, now: u64) -> MailingSummary {
        let counts = self.counts();
        let net = |&nomination: &Signature| {
            let case = counts.cases.get(nomination)?;
            Some(self.known(case.of, nomination, counts.trust.weighing.thousandths, now).net)
        };
        let (spam, not_spam) = mailing.sides;
        MailingSummary {
            mailing: mailing.name.to_string(),
            subject: counts.cases.get(mailing.name).map(|case| case.subject.clone()).unwrap_or_default(),
            first: mailing.first,
            last: mailing.last,
            spam,
            not_spam,
            weight: mailing.nominations.iter().filter_map(net).max().map_or(0.0, whole).max(0.0),
        }
    }

    fn reporter_summaries(
        &self,
        by_reporter: &HashMap<ReporterId, Sides>,
        asked: &OverviewFilter,
    ) -> (Vec<ReporterSummary>, usize) {
        let trust = &self.counts().trust;
        let settings = &trust.weighing.settings;
        let of_traps = u8::try_from(trust.weighing.trap).unwrap_or(u8::MAX);
        let known = trust.standings.iter().map(|(reporter, _)| *reporter);
        let all: BTreeSet<ReporterId> =
            by_reporter.keys().copied().chain(known).chain(asked.reporter).collect();
        let of = |reporter: &ReporterId| {
            let standing = trust.standings.of(reporter);
            let (spam, not_spam) = by_reporter.get(reporter).copied().unwrap_or_default();
            let (trust, units) = if reporter.kind() == ReporterKind::Trap {
                (standing.trap_trust(asked.now), standing.trap_units(of_traps, asked.now))
            } else {
                (standing.trust(settings, asked.now), standing.units(settings, asked.now))
            };
            ReporterSummary {
                reporter: reporter.to_string(),
                kind: reporter.kind(),
                trust: f64::from(trust) / 65_536.0,
                weight: whole(units.into()),
                spam,
                not_spam,
            }
        };
        let asked_for = all.iter().filter(|reporter| asked.reporter.is_none_or(|only| only == **reporter));
        let mut list: Vec<ReporterSummary> = asked_for.map(of).collect();
        list.sort_by(|a, b| {
            b.trust.total_cmp(&a.trust).then_with(|| (b.spam + b.not_spam).cmp(&(a.spam + a.not_spam)))
        });
        let more = list.len().saturating_sub(MOST);
        list.truncate(MOST);
        (list, more)
    }
}

/// Converts units to reports of full weight.
fn whole(units: i64) -> f64 {
    units as f64 / f64::from(bulkmark_types::UNIT)
}
