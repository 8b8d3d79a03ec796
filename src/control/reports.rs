// SPDX-License-Identifier: GPL-3.0-or-later
//! What the administrator asks of what was said, and has taken back.

use crate::ledger::{Asked, Ledger, LedgerError, Overview, now};
use crate::signature::ReporterId;
use serde::{Deserialize, Serialize};

const DAY: u64 = 86_400;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReportsAsked {
    /// Only of this reporter: a name behind what it is, such as `user:`.
    pub name: Option<Vec<u8>>,
    /// Of so many days.
    pub days: u32,
}

/// By which number the ledger knows the reporter with this name.
pub type NameReporter = Box<dyn Fn(&[u8]) -> ReporterId + Send + Sync>;

pub(super) async fn overview(
    ledger: &Ledger,
    name: &NameReporter,
    asked: &ReportsAsked,
) -> Result<Overview, LedgerError> {
    let now = now();
    let reporter = asked.name.as_deref().map(name);
    ledger.overview(Asked { since: now.saturating_sub(u64::from(asked.days) * DAY), reporter, now }).await
}
