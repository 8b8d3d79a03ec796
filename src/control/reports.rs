// SPDX-License-Identifier: GPL-3.0-or-later
//! The administrator's questions about user reports, and their withdrawal.

use bulkmark_counts::{MailingReports, Overview, OverviewFilter, Unclear, Withdrawal};
use bulkmark_ledger::{Ledger, LedgerError, now};
use bulkmark_types::{ReporterId, ReporterKind};
use serde::{Deserialize, Serialize};

const DAY: u64 = 86_400;

/// The reporter of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReporterRef {
    /// The reporter's name, after the kind of reporter, such as `user:`.
    Name(Vec<u8>),
    /// The beginning of the reporter's hash.
    Hash(String),
}

/// A question for user reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReportsAsked {
    /// Only those of this reporter.
    #[serde(rename = "whose")]
    pub reporter: Option<ReporterRef>,
    /// Only those of so many days.
    pub days: u32,
}

/// Returns the ledger's number of the reporter with this name.
pub type NameReporter = Box<dyn Fn(&[u8]) -> ReporterId + Send + Sync>;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The reporter or mailing is unknown or ambiguous.
    #[error("{0}")]
    Unclear(#[from] Unclear),
    /// The ledger does not answer.
    #[error("{0}")]
    Ledger(#[from] LedgerError),
    /// Nobody with this name has reported here.
    #[error("no reporter with this name is known here")]
    Nobody,
    /// Only users can be trusted.
    #[error("this reporter is a {0}; only users can be vouched for")]
    NoUser(ReporterKind),
    /// Some reports are not withdrawn.
    #[error("{0}; repeat the command to withdraw the remaining reports")]
    Forgetting(LedgerError),
}

async fn find(ledger: &Ledger, name: &NameReporter, reporter: ReporterRef) -> Result<ReporterId, Failure> {
    match reporter {
        ReporterRef::Name(text) => Ok(name(&text)),
        ReporterRef::Hash(prefix) => Ok(ledger.reporter_of(prefix).await??),
    }
}

/// The same, for a reporter who must have reported here.
async fn find_known(
    ledger: &Ledger,
    name: &NameReporter,
    reporter: ReporterRef,
) -> Result<ReporterId, Failure> {
    let reporter = find(ledger, name, reporter).await?;
    if ledger.knows_reporter(reporter).await? { Ok(reporter) } else { Err(Failure::Nobody) }
}

/// Returns the user reports.
pub(super) async fn overview(
    ledger: &Ledger,
    name: &NameReporter,
    asked: ReportsAsked,
) -> Result<Overview, Failure> {
    let reporter = match asked.reporter {
        Some(reporter) => Some(find_known(ledger, name, reporter).await?),
        None => None,
    };
    let now = now();
    let since = now.saturating_sub(u64::from(asked.days) * DAY);
    Ok(ledger.overview(OverviewFilter { since, reporter, now }).await?)
}

/// Returns the reporters of the mailing whose name has this prefix.
pub(super) async fn mailing_reports(ledger: &Ledger, prefix: String) -> Result<MailingReports, Failure> {
    Ok(ledger.mailing_reports(prefix, now()).await??)
}

/// Trusts a user fully. False if there is no place for more reporters.
pub(super) async fn vouch(
    ledger: &Ledger,
    name: &NameReporter,
    reporter: ReporterRef,
) -> Result<bool, Failure> {
    let reporter = find(ledger, name, reporter).await?;
    if reporter.kind() != ReporterKind::User {
        return Err(Failure::NoUser(reporter.kind()));
    }
    Ok(ledger.vouch(reporter, now()).await?)
}

/// Withdraws all reports of a reporter.
pub(super) async fn forget(
    ledger: &Ledger,
    name: &NameReporter,
    reporter: ReporterRef,
) -> Result<Withdrawal, Failure> {
    let reporter = find_known(ledger, name, reporter).await?;
    ledger.forget(reporter, now()).await.map_err(Failure::Forgetting)
}
