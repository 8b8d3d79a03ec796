// SPDX-License-Identifier: GPL-3.0-or-later
//! How a message is counted: what it adds to the ledger, and what the ledger's answer says of it.

use crate::ledger::{Ledger, LedgerError, Report, RetryKey};
use crate::policy::Counts;
use crate::signature::near::Seen;
use crate::signature::{FederationKey, Signatures};

/// Reports a message, `times` times, and returns how often it was seen with these, and how many signatures it reported.
///
/// # Errors
/// When there is no count; then nothing was added.
pub async fn report(
    signatures: &Signatures,
    times: u32,
    keys: &[RetryKey],
    now: u64,
    key: &FederationKey,
    ledger: &Ledger,
) -> Result<(Counts, usize), LedgerError> {
    let near = &signatures.near;
    let (reported, asked) = (signatures.reported(), near.asked());
    let all = [&reported[..], &asked].concat();
    let report = Report { signatures: reported, asked, times, keys: keys.to_vec(), now };
    let mut reports = report.signatures.len();
    let mut counts = ledger.report(report).await?;
    let body = signatures.body.is_ok().then(|| counts[0]);
    for count in &mut counts[..reports] {
        *count = count.saturating_sub(times);
    }
    let mut seen = Seen::new(&all, &counts);
    let (strays, doubts) = (near.strays(key, &seen), near.doubts(key, &seen));
    if !strays.is_empty() || !doubts.is_empty() {
        let more = Report { signatures: strays, asked: doubts, times, keys: keys.to_vec(), now };
        let of_doubts = more.signatures.len()..;
        reports += more.signatures.len();
        let doubts = more.asked.clone();
        match ledger.report(more).await {
            Ok(counts) => seen.add(&doubts, &counts[of_doubts]),
            // The message is counted; what is known of its near-replicas may be too much.
            Err(_) => return Ok((Counts { body, near: None }, reports)),
        }
    }
    let near = (!near.is_empty()).then(|| near.count(key, &seen).saturating_add(times));
    Ok((Counts { body, near }, reports))
}
