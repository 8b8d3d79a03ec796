// SPDX-License-Identifier: GPL-3.0-or-later
//! Asks for the counts of a message under the federation key before, while the key changes.

use super::ask::{Asking, ask, hear};
use super::source::{Case, Source};
use bulkmark_policy::Counts;
use bulkmark_verdict::{Content, Earlier};

/// The counts of a message under the key before; none if the key does not change. Costs as many questions as a message that is only asked
/// for.
///
/// # Errors
/// When counts cannot be had.
pub(super) async fn earlier<S: Source>(
    source: &S,
    case: Case<'_>,
    content: &Content,
    may_ask: bool,
) -> Result<Earlier, S::Error> {
    let Case { rules, envelope, .. } = case;
    let Some(of @ (signatures, _)) = content.under_key_before(rules) else { return Ok(Earlier::default()) };
    let mut inquiry = content.about_earlier(of, envelope, rules);
    // A partial copy has all of its bulk: the rest is asked for only where there is some.
    ask(source, case, &mut inquiry, if may_ask { Asking::IfHeld } else { Asking::Never }).await?;
    let people = hear(source, case, of, &inquiry).await?;
    let counts = Counts { spam: people.map(|people| people.weight), ..inquiry.counts() };
    let (orders, now) = (source.orders(), bulkmark_ledger::now());
    Ok(Earlier {
        counts: orders.without_forgotten(signatures, inquiry.seen(), counts, now),
        backings: inquiry.backings(),
        unknown_below: inquiry.unknown_below(),
        is_allowed: orders.allow_message(signatures, inquiry.seen(), now),
    })
}
