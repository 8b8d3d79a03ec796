// SPDX-License-Identifier: GPL-3.0-or-later
//! Looks up the counts of a message under the old federation key, during a change of keys.

use super::ask::{Asking, ask, look_up_reports};
use super::source::{Case, Source};
use bulkmark_policy::Counts;
use bulkmark_verdict::{Content, OldKeyCounts};

/// The counts of a message under the old key; all empty outside a change of keys. Costs as many questions as a message that is only looked up.
///
/// # Errors
/// The counts are unavailable.
pub(super) async fn old_key_counts<S: Source>(
    source: &S,
    case: Case<'_>,
    content: &Content,
    may_ask: bool,
) -> Result<OldKeyCounts, S::Error> {
    let Case { rules, envelope, .. } = case;
    let Some(of @ (signatures, _)) = content.under_old_key(rules) else { return Ok(OldKeyCounts::default()) };
    let mut inquiry = content.about_old_key(of, envelope, rules);
    // A partial copy holds the counts of all bulk. So the server is asked for the others only if some are held.
    ask(source, case, &mut inquiry, if may_ask { Asking::IfHeld } else { Asking::Never }).await?;
    let user_reports = look_up_reports(source, case, of, &inquiry).await?;
    let counts = Counts { spam: user_reports.map(|reports| reports.weight), ..inquiry.counts() };
    let (orders, now) = (source.orders(), bulkmark_ledger::now());
    Ok(OldKeyCounts {
        counts: orders.without_forgotten(signatures, &inquiry, counts, now),
        backings: inquiry.backings(),
        unknown_below: inquiry.unknown_below(),
        allowed: orders.allows(signatures, inquiry.seen(), now),
    })
}
