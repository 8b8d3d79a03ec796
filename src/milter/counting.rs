// SPDX-License-Identifier: GPL-3.0-or-later
//! How a message is counted: what it adds to the ledger, and what the ledger's answer says of it.

use crate::ledger::{Ledger, LedgerError, Report, RetryKey};
use crate::policy::Counts;
use crate::signature::near::Seen;
use crate::signature::{FederationKey, Signatures};
use std::future::Future;

/// Reports a message, `times` times, and returns how often it was seen with these, and how many signatures it reported.
/// It takes two reports where the counts of the first say that more is to be known.
///
/// # Errors
/// When there is no count.
pub async fn report(
    signatures: &Signatures,
    times: u32,
    keys: &[RetryKey],
    now: u64,
    key: &FederationKey,
    ledger: &Ledger,
) -> Result<(Counts, usize), LedgerError> {
    report_to(|report| ledger.report(report), signatures, times, keys, now, key).await
}

async fn report_to<F: Future<Output = Result<Vec<u32>, LedgerError>>>(
    ledger: impl Fn(Report) -> F,
    signatures: &Signatures,
    times: u32,
    keys: &[RetryKey],
    now: u64,
    key: &FederationKey,
) -> Result<(Counts, usize), LedgerError> {
    let near = &signatures.near;
    let (reported, asked) = (signatures.reported(), near.asked());
    let all = [&reported[..], &asked].concat();
    let report = Report { signatures: reported, asked, times, keys: keys.to_vec(), now };
    let mut reports = report.signatures.len();
    let mut counts = ledger(report).await?;
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
        match ledger(more).await {
            Ok(counts) => seen.add(&doubts, &counts[of_doubts]),
            // The message is counted, and judged by its body; what is known of its near-replicas may be too much.
            Err(_) if body.is_some() => return Ok((Counts { body, near: None }, reports)),
            Err(e) => return Err(e),
        }
    }
    let near = (!near.is_empty()).then(|| near.count(key, &seen).saturating_add(times));
    Ok((Counts { body, near }, reports))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Role, Settings};
    use crate::mail::RawMessage;
    use crate::signature::{self, signatures};
    use std::cell::Cell;

    fn of(raw: &str) -> Signatures {
        let raw = RawMessage::from_bytes(raw.as_bytes()).unwrap();
        signatures(&raw, &FederationKey::public(), &signature::Settings::default())
    }

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let directory = tempfile::tempdir().unwrap();
        let ledger =
            Ledger::open(directory.path(), Role::Site, &Settings::default(), &FederationKey::public());
        (directory, ledger.unwrap())
    }

    /// Reports a message to a ledger whose disk fails after so many reports.
    async fn failing(ledger: &Ledger, after: u32, signatures: &Signatures) -> Result<Counts, LedgerError> {
        let left = Cell::new(after);
        let disk = |report| {
            let fails = left.get() == 0;
            left.set(left.get().saturating_sub(1));
            async move {
                if fails {
                    Err(LedgerError::Unavailable("full".to_owned()))
                } else {
                    ledger.report(report).await
                }
            }
        };
        let now = 1_800_000_000;
        report_to(disk, signatures, 1, &[], now, &FederationKey::public()).await.map(|(counts, _)| counts)
    }

    #[tokio::test]
    async fn a_disk_that_fails_between_two_reports_leaves_the_count_of_the_body() {
        let (_directory, ledger) = ledger();
        let letter = of("Subject: x\n\nalpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu\n");
        for n in 1..=9 {
            let counts = failing(&ledger, 2, &letter).await.unwrap();
            assert_eq!((counts.body, counts.near), (Some(n), Some(n)));
        }
        let counts = failing(&ledger, 1, &letter).await.unwrap();
        assert_eq!((counts.body, counts.near), (Some(10), None));
        assert!(failing(&ledger, 0, &letter).await.is_err());
        // It was counted, once.
        let counts = failing(&ledger, 2, &letter).await.unwrap();
        assert_eq!((counts.body, counts.near), (Some(11), Some(11)));
    }

    /// What has no body to be judged by is not taken for clean.
    #[tokio::test]
    async fn without_a_body_there_is_no_count() {
        let (_directory, ledger) = ledger();
        let links =
            of("Content-Type: text/html\n\n<a href='http://a.example/'>x</a><a href='http://b.example/'>\n");
        assert!(links.body.is_err() && !links.near.is_empty());
        for n in 1..=9 {
            assert_eq!(failing(&ledger, 2, &links).await.unwrap().near, Some(n));
        }
        assert!(failing(&ledger, 1, &links).await.is_err());
    }
}
