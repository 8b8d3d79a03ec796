// SPDX-License-Identifier: GPL-3.0-or-later
//! A day as one JSON object.

use super::day::{Day, Mailing, Share, Span, ranked_shares};
use super::names::Names;
use super::print::Limit;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns the data of the text; of each list the first `limit` entries, beside their number.
pub(super) fn object(day: &Day, host: &str, title: &str, limit: Limit) -> Value {
    let mailings = day.ranked();
    let shares = |kind: &str, shares: &BTreeMap<String, Share>| {
        let object = |(name, share): (&String, &Share)| json!({ kind: name, "messages": share.messages, "unwanted": share.unwanted, "done": share.done });
        ranked_shares(shares).into_iter().take(limit.0).map(object).collect::<Vec<_>>()
    };
    let unknown = day.unknown.iter().map(|(reason, span)| json!({ "reason": reason, "seen": seen(span) }));
    let mut notices: Vec<_> = day.notices.values().collect();
    notices.sort_by(|(_, a), (_, b)| a.first.cmp(&b.first));
    let notices = notices.into_iter().map(|(text, span)| json!({ "text": text, "seen": seen(span) }));
    json!({
        "host": host,
        "title": title,
        "recipient": day.recipient,
        "lines": seen(&day.all),
        "messages": day.messages,
        "verdicts": day.verdicts,
        "done": day.done,
        "policies": shares("policy", &day.policies),
        "machines": shares("machine", &day.machines),
        "mailings": mailings.iter().take(limit.0).map(|mailing| mailing_object(mailing)).collect::<Vec<_>>(),
        "mailings-total": mailings.len(),
        "messages-of-other-mailings": day.others,
        "refused": day.refusals,
        "refused-domains": names(&day.refused, limit),
        "rehearsed": day.rehearsals,
        "rehearsed-domains": names(&day.rehearsed, limit),
        "white-list-lines": names(&day.suggestions, limit),
        "not-judged": unknown.collect::<Vec<_>>(),
        "notices": notices.take(limit.0).collect::<Vec<_>>(),
        "notices-total": day.notices.len() as u64 + day.more_notices,
    })
}

fn mailing_object(mailing: &Mailing) -> Value {
    json!({
        "signature": Some(&mailing.signature).filter(|signature| !signature.is_empty()),
        "seen": seen(&mailing.span),
        "count": mailing.seen,
        "recipients": mailing.recipients,
        "done": mailing.done,
        "senders": names(&mailing.senders, Limit(usize::MAX)),
        "clients": names(&mailing.clients, Limit(usize::MAX)),
        "last-id": mailing.id,
    })
}

/// Returns number and times; without times if the log has none.
fn seen(span: &Span) -> Value {
    let [first, last] =
        [&span.first, &span.last].map(|at| (!at.date.is_empty()).then(|| format!("{}T{}", at.date, at.time)));
    json!({ "times": span.count, "first": first, "last": last })
}

fn names(all: &Names, limit: Limit) -> Vec<Value> {
    all.ranked().iter().take(limit.0).map(|(name, count)| json!({ "name": name, "times": count })).collect()
}
