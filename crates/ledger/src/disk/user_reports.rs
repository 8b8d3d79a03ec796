// SPDX-License-Identifier: GPL-3.0-or-later
//! Rows of user reports: the start of each report's window, its weight, where it is counted, and whether its reporter is a trap.

use crate::disk::errors::{Fault, damaged};
use crate::disk::rows::{seal, unseal};
use crate::disk::schema::USER_REPORTS;
use bulkmark_counts::history::fields::Fields;
use bulkmark_counts::state::changes::Changes;
use bulkmark_counts::state::counts::Counts;
use bulkmark_counts::state::user_report::{Counted, ReportKey, UserReport};
use bulkmark_counts::state::user_reports::UserReports;
use bulkmark_types::{ReporterId, Signature};
use redb::{ReadableTable, WriteTransaction};

/// The table's name in checksums.
pub(crate) const NAME: &str = "voices";

/// The size of a user report in bytes.
const REPORT_BYTES: usize = 8 + 1 + 1;

/// The bit of a report's last byte that marks a trap.
const TRAP: u8 = 0x80;

/// The meanings of the other bits.
const COUNTED_AT: [Counted; 4] = [Counted::Here, Counted::Everywhere, Counted::Unknown, Counted::Void];

fn byte_of(told: Counted) -> u8 {
    COUNTED_AT.iter().zip(0..).find(|(known, _)| **known == told).map_or(0, |(_, byte)| byte)
}

fn key_of((reporter, nomination): &ReportKey) -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(reporter.bytes());
    key[16..].copy_from_slice(&nomination.to_bytes());
    key
}

/// Writes the rows that changed.
pub(crate) fn write(txn: &WriteTransaction, counts: &Counts, changes: &Changes) -> Result<(), redb::Error> {
    if changes.user_reports.is_empty() {
        return Ok(());
    }
    let mut table = txn.open_table(USER_REPORTS)?;
    for voice in &changes.user_reports {
        let key = key_of(voice);
        let Some(words) = counts.user_reports.row(voice) else {
            drop(table.remove(&key)?);
            continue;
        };
        let mut row = Vec::with_capacity(words.len() * REPORT_BYTES);
        let trap = if counts.user_reports.is_trap(voice.0) { TRAP } else { 0 };
        for word in words {
            row.extend_from_slice(&word.window.to_le_bytes());
            row.extend_from_slice(&word.units.to_le_bytes());
            row.push(byte_of(word.counted) | trap);
        }
        drop(table.insert(&key, &*seal(NAME, &key, &row))?);
    }
    Ok(())
}

/// Reads all rows.
pub(crate) fn load(txn: &WriteTransaction, voices: &mut UserReports) -> Result<(), Fault> {
    for row in txn.open_table(USER_REPORTS)?.range::<&[u8; 32]>(..)? {
        let (key, row) = row?;
        let (reporter, nomination): ([u8; 16], [u8; 16]) = halves(key.value());
        let (words, []) = unseal(NAME, key.value(), row.value())?.as_chunks::<REPORT_BYTES>() else {
            return Err(damaged("a user report has an odd length"));
        };
        let mut is_trap = false;
        let word = |bytes: &[u8; REPORT_BYTES]| {
            let mut fields = Fields(bytes);
            let (window, units, [last]) = (fields.u64()?, i8::from_le_bytes(fields.take()?), fields.take()?);
            let counted = COUNTED_AT.get(usize::from(last & !TRAP));
            let counted = *counted.ok_or_else(|| damaged("a user report has an impossible place"))?;
            is_trap |= last & TRAP != 0;
            Ok(UserReport { window, units, counted })
        };
        let words = words.iter().map(word).collect::<Result<Vec<_>, Fault>>()?;
        voices.restore((ReporterId::from_bytes(reporter), Signature::from_bytes(nomination)), words, is_trap);
    }
    Ok(())
}

fn halves(key: &[u8; 32]) -> ([u8; 16], [u8; 16]) {
    (std::array::from_fn(|i| key[i]), std::array::from_fn(|i| key[16 + i]))
}
