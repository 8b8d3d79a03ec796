// SPDX-License-Identifier: GPL-3.0-or-later
//! What the administrator asks of what was said, and has taken back.

use bulkmark_counts::{MailingReports, Overview, OverviewFilter, Unclear, Withdrawal};
use bulkmark_ledger::{Ledger, LedgerError, now};
use bulkmark_types::{ReporterId, ReporterKind};
use serde::{Deserialize, Serialize};

const DAY: u64 = 86_400;

/// Whose reports are meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whose {
    /// Those of whoever has this name, behind what kind of reporter it is, such as `user:`.
    Name(Vec<u8>),
    /// Those of the one whose hash begins so.
    Hash(String),
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReportsAsked {
    /// Only of this reporter.
    pub whose: Option<Whose>,
    /// Of so many days.
    pub days: u32,
}

/// By which number the ledger knows the reporter with this name.
pub type NameReporter = Box<dyn Fn(&[u8]) -> ReporterId + Send + Sync>;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// It cannot be told who or what is meant.
    #[error("{0}")]
    Unclear(#[from] Unclear),
    /// The ledger does not tell.
    #[error("{0}")]
    Ledger(#[from] LedgerError),
    /// Trust is earned by users alone.
    #[error("this reporter is a {0}; only users can be vouched for")]
    NoUser(ReporterKind),
    /// It did not take all of it back.
    #[error("{0}; what is not taken back yet can be, by the same command")]
    Forgetting(LedgerError),
}

async fn find(ledger: &Ledger, name: &NameReporter, whose: Whose) -> Result<ReporterId, Failure> {
    match whose {
        Whose::Name(of) => Ok(name(&of)),
        Whose::Hash(prefix) => Ok(ledger.reporter_of(prefix).await??),
    }
}

/// What was said.
pub(super) async fn overview(
    ledger: &Ledger,
    name: &NameReporter,
    asked: ReportsAsked,
) -> Result<Overview, Failure> {
    let reporter = match asked.whose {
        Some(whose) => Some(find(ledger, name, whose).await?),
        None => None,
    };
    let now = now();
    let since = now.saturating_sub(u64::from(asked.days) * DAY);
    Ok(ledger.overview(OverviewFilter { since, reporter, now }).await?)
}

/// Who spoke of the mailing whose name begins so.
pub(super) async fn spoken_of(ledger: &Ledger, prefix: String) -> Result<MailingReports, Failure> {
    Ok(ledger.spoken_of(prefix, now()).await??)
}

/// Trusts a user in full. False if there is no place for more reporters.
pub(super) async fn vouch(ledger: &Ledger, name: &NameReporter, whose: Whose) -> Result<bool, Failure> {
    let reporter = find(ledger, name, whose).await?;
    if reporter.kind() != ReporterKind::User {
        return Err(Failure::NoUser(reporter.kind()));
    }
    Ok(ledger.vouch(reporter, now()).await?)
}

/// Takes all back that somebody said.
pub(super) async fn forget(
    ledger: &Ledger,
    name: &NameReporter,
    whose: Whose,
) -> Result<Withdrawal, Failure> {
    let reporter = find(ledger, name, whose).await?;
    ledger.forget(reporter, now()).await.map_err(Failure::Forgetting)
}
