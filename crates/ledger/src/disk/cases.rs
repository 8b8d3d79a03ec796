// SPDX-License-Identifier: GPL-3.0-or-later
//! Rows of the signatures with user reports, and of their reporters.

use crate::disk::errors::{Fault, damaged};
use crate::disk::rows::{seal, unseal};
use crate::disk::schema::{CASES, STANDINGS};
use bulkmark_counts::history::fields::{CutOff, Fields};
use bulkmark_counts::state::cases::{Case, Cases};
use bulkmark_counts::state::changes::Changes;
use bulkmark_counts::state::counts::Counts;
use bulkmark_trust::{Standing, Standings, Vote};
use bulkmark_types::{ReporterId, Signature};
use redb::{ReadableTable, WriteTransaction};

/// Names of the tables, in checksums.
pub(crate) const CASES_NAME: &str = "cases";
pub(crate) const STANDINGS_NAME: &str = "standings";

/// Writes the rows that changed.
pub(crate) fn write(txn: &WriteTransaction, counts: &Counts, changes: &Changes) -> Result<(), redb::Error> {
    if !changes.cases.is_empty() {
        let mut table = txn.open_table(CASES)?;
        for nomination in &changes.cases {
            let key = nomination.to_bytes();
            match counts.cases.get(*nomination) {
                Some(case) => drop(table.insert(&key, &*seal(CASES_NAME, &key, &encode(case)))?),
                None => drop(table.remove(&key)?),
            }
        }
    }
    if !changes.standings.is_empty() {
        let mut table = txn.open_table(STANDINGS)?;
        for reporter in &changes.standings {
            let (key, standing) = (reporter.bytes(), counts.trust.standings.of(reporter));
            if standing == Standing::default() {
                drop(table.remove(key)?);
            } else {
                drop(table.insert(key, &*seal(STANDINGS_NAME, key, &standing.encode()))?);
            }
        }
    }
    Ok(())
}

fn encode(case: &Case) -> Vec<u8> {
    let Case { of, mailing, first, last, parts, judged, subject, votes } = case;
    let mut bytes = [of.to_bytes(), mailing.to_bytes()].concat();
    bytes.extend_from_slice(&[*first, *last].map(u64::to_le_bytes).concat());
    let length = u16::try_from(subject.len()).unwrap_or(0);
    bytes.extend_from_slice(&[*parts, (*judged).into()]);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&subject.as_bytes()[..length.into()]);
    for vote in votes {
        bytes.extend_from_slice(vote.reporter.bytes());
        bytes.extend_from_slice(&vote.encode());
    }
    bytes
}

/// Decodes a case; `None` for impossible values.
fn decode(bytes: &[u8]) -> Result<Option<Case>, CutOff> {
    let mut fields = Fields(bytes);
    let (of, mailing) = (Signature::from_bytes(fields.take()?), Signature::from_bytes(fields.take()?));
    let (first, last) = (fields.u64()?, fields.u64()?);
    let ([parts], [judged]) = (fields.take()?, fields.take()?);
    let length = usize::from(u16::from_le_bytes(fields.take()?));
    let Some((subject, votes)) = fields.0.split_at_checked(length) else { return Ok(None) };
    let Ok(subject) = String::from_utf8(subject.to_vec()) else { return Ok(None) };
    let (votes, []) = votes.as_chunks::<{ 16 + Vote::BYTES }>() else { return Ok(None) };
    let vote = |bytes: &[u8; 16 + Vote::BYTES]| {
        let (reporter, vote) = bytes.split_first_chunk()?;
        Vote::decode(ReporterId::from_bytes(*reporter), vote)
    };
    let votes: Option<Vec<Vote>> = votes.iter().map(vote).collect();
    let judged = judged != 0;
    Ok(votes.map(|votes| Case { of, mailing, first, last, parts, judged, subject, votes }))
}

/// Reads all rows.
pub(crate) fn load(txn: &WriteTransaction, counts: &mut Counts) -> Result<(), Fault> {
    load_cases(txn, &mut counts.cases)?;
    let mut standings = Vec::new();
    for row in txn.open_table(STANDINGS)?.range::<&[u8; 16]>(..)? {
        let (key, row) = row?;
        let bytes = unseal(STANDINGS_NAME, key.value(), row.value())?;
        let standing = Standing::decode(bytes).ok_or_else(|| damaged("a reporter's standing cannot be"))?;
        standings.push((ReporterId::from_bytes(*key.value()), standing));
    }
    counts.trust.standings = Standings::new(standings, &counts.trust.weighing.settings, newest(counts));
    Ok(())
}

/// Returns the time of the newest user report: cases do not age while they are read.
fn newest(counts: &Counts) -> u64 {
    counts.cases.iter().map(|(_, case)| case.last).max().unwrap_or(0)
}

fn load_cases(txn: &WriteTransaction, cases: &mut Cases) -> Result<(), Fault> {
    for row in txn.open_table(CASES)?.range::<&[u8; 16]>(..)? {
        let (key, row) = row?;
        let case = decode(unseal(CASES_NAME, key.value(), row.value())?)?;
        let case = case.ok_or_else(|| damaged("the case of a nomination is invalid"))?;
        cases.restore(Signature::from_bytes(*key.value()), case);
    }
    Ok(())
}
