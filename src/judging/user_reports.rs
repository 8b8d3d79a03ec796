// SPDX-License-Identifier: GPL-3.0-or-later
//! User reports of a message that is judged.

use bulkmark_ledger::Ledger;
use bulkmark_policy::UserReportSettings;
use bulkmark_verdict::Hearing;
use tokio::time::{Instant, timeout_at};

/// Puts the questions of a hearing to the ledger. None when there is no answer before the deadline: then nobody is known to have
/// called the message spam.
pub(super) async fn hear<'a>(
    mut hearing: Hearing<'a>,
    ledger: &Ledger,
    user_reports: &UserReportSettings,
    (now, deadline): (u64, Instant),
) -> Option<Hearing<'a>> {
    let thousandths = user_reports.trust.federation_weight.thousandths();
    let ask =
        async |signatures| match timeout_at(deadline, ledger.weighed(signatures, thousandths, now)).await {
            Ok(Ok(weights)) => Some(weights),
            Ok(Err(_)) | Err(_) => None,
        };
    let nominated = ask(hearing.nominations()).await?;
    let revocations = hearing.revocations(&nominated);
    if !revocations.is_empty() {
        hearing.revoked(&ask(revocations).await?);
    }
    Some(hearing)
}
