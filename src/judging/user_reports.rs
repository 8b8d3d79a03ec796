// SPDX-License-Identifier: GPL-3.0-or-later
//! The user reports of a message that is judged.

use bulkmark_ledger::Ledger;
use bulkmark_policy::UserReportSettings;
use bulkmark_verdict::ReportInquiry;
use tokio::time::{Instant, timeout_at};

/// Puts the questions about user reports to the ledger. `None` if there is no answer before the deadline: then the message has no known
/// reports.
pub(super) async fn look_up<'a>(
    mut reports: ReportInquiry<'a>,
    ledger: &Ledger,
    user_reports: &UserReportSettings,
    (now, deadline): (u64, Instant),
) -> Option<ReportInquiry<'a>> {
    let thousandths = user_reports.trust.federation_weight.thousandths();
    let ask =
        async |signatures| match timeout_at(deadline, ledger.weighed(signatures, thousandths, now)).await {
            Ok(Ok(weights)) => Some(weights),
            Ok(Err(_)) | Err(_) => None,
        };
    let nominated = ask(reports.nominations()).await?;
    let revocations = reports.revocations(&nominated);
    if !revocations.is_empty() {
        reports.revoked(&ask(revocations).await?);
    }
    Some(reports)
}
