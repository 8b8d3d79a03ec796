// SPDX-License-Identifier: GPL-3.0-or-later
//! The rows of the ledger's tables: keys, values, checksums. docs/ledger.md describes them.

use crate::disk::errors::{Fault, damaged};
use bulkmark_counts::history::fields::Fields;
use bulkmark_counts::history::sealed::checksum;
use bulkmark_counts::history::vector::Origin;
use bulkmark_counts::history::window::Window;
use bulkmark_counts::state::changes::JournalEntry;
use bulkmark_counts::state::inherited::LastSent;
use bulkmark_counts::state::receipts::{LastBatch, Receipt};
use bulkmark_counts::state::spool::{Batch, Spool, Stored, Waiting};
use bulkmark_types::Signature;

/// Start and length of the window, and number of the slice.
pub(crate) type SliceKey = (u64, u64, u32);

/// In the number of a slice of merged counts, the bits below that of the size: filters of one window may have several sizes. The first
/// size has the number 0.
const SIZE_BITS: u32 = 8;

/// Combines the number of the size and that of the slice into the number in the key.
pub(crate) const fn merged_slice(size: u32, slice: u32) -> u32 {
    size << SIZE_BITS | slice
}

/// Splits the number in the key into that of the size and that of the slice.
pub(crate) const fn size_and_slice(number: u32) -> (u32, u32) {
    (number >> SIZE_BITS, number & ((1 << SIZE_BITS) - 1))
}

/// The key of a slice, and the number of the chunk.
pub(crate) type ChunkKey = (u64, u64, u32, u32);

/// For a limited client's counts: origin, start and length of the window, and number of the part.
pub(crate) type LayerKey = (u64, u64, u64, u32);

/// The row of a slice, beside its cells.
pub(crate) struct Record {
    pub(crate) from: u64,
    pub(crate) distinct: u64,
    pub(crate) chunks: u64,
    pub(crate) capacity: u32,
}

impl Record {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(28);
        for field in [self.from, self.distinct, self.chunks] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(&self.capacity.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(bytes);
        let record = Self {
            from: fields.u64()?,
            distinct: fields.u64()?,
            chunks: fields.u64()?,
            capacity: fields.u32()?,
        };
        if record.capacity == 0 { Err(damaged("a slice of size 0")) } else { Ok(record) }
    }
}

/// Bytes of one report in a batch: start and length of its window, signature, number of times.
const ENTRY_BYTES: usize = 8 + 8 + 16 + 4;

/// Encodes reports of one limited client, whose origin comes first, or of all unlimited ones.
pub(crate) fn encode_batch(entries: &[JournalEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + entries.len() * ENTRY_BYTES);
    if let Some(Origin(origin)) = entries.first().and_then(|entry| entry.client) {
        bytes.extend_from_slice(&origin.to_le_bytes());
    }
    for entry in entries {
        bytes.extend_from_slice(&entry.window.to_bytes());
        bytes.extend_from_slice(&entry.signature.to_bytes());
        bytes.extend_from_slice(&entry.times.to_le_bytes());
    }
    bytes
}

pub(crate) fn decode_batch(bytes: &[u8]) -> Result<Vec<JournalEntry>, Fault> {
    let (client, bytes) = match bytes.split_first_chunk() {
        Some((origin, rest)) if rest.len() % ENTRY_BYTES == 0 => {
            (Some(Origin(u64::from_le_bytes(*origin))), rest)
        }
        _ => (None, bytes),
    };
    let (entries, []) = bytes.as_chunks::<ENTRY_BYTES>() else {
        return Err(damaged("a journal batch of odd length"));
    };
    let decode = |entry: &[u8; ENTRY_BYTES]| {
        let mut fields = Fields(entry);
        Ok(JournalEntry {
            window: Window::from((fields.u64()?, fields.u64()?)),
            signature: Signature::from_bytes(fields.take()?),
            times: fields.u32()?,
            client,
        })
    };
    entries.iter().map(decode).collect()
}

/// Encodes the number of a batch, where it was counted, and when it came.
pub(crate) fn encode_receipt(LastBatch { number, receipt, at }: LastBatch) -> Vec<u8> {
    [number, receipt.origin.0, receipt.version, at].map(u64::to_le_bytes).concat()
}

/// Rows of older programs have no time.
pub(crate) fn decode_receipt(bytes: &[u8]) -> Result<LastBatch, Fault> {
    let mut fields = Fields(bytes);
    let number = fields.u64()?;
    let receipt = Receipt { origin: Origin(fields.u64()?), version: fields.u64()? };
    let at = if fields.0.is_empty() { 0 } else { fields.u64()? };
    Ok(LastBatch { number, receipt, at })
}

/// Bytes of one report in the spool: signature, number of times, time.
const WAITING_BYTES: usize = 16 + 4 + 8;

pub(crate) fn encode_waiting(reports: &[Waiting]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(reports.len() * WAITING_BYTES);
    for report in reports {
        bytes.extend_from_slice(&report.signature.to_bytes());
        bytes.extend_from_slice(&report.times.to_le_bytes());
        bytes.extend_from_slice(&report.at.to_le_bytes());
    }
    bytes
}

pub(crate) fn decode_waiting(bytes: &[u8]) -> Result<Vec<Waiting>, Fault> {
    let (reports, []) = bytes.as_chunks::<WAITING_BYTES>() else {
        return Err(damaged("a row of the spool of odd length"));
    };
    let decode = |report: &[u8; WAITING_BYTES]| {
        let mut fields = Fields(report);
        Ok(Waiting {
            signature: Signature::from_bytes(fields.take()?),
            times: fields.u32()?,
            at: fields.u64()?,
        })
    };
    reports.iter().map(decode).collect()
}

/// Encodes a batch of the spool: its first report, the one after its last, whether and where it was counted, and its server.
pub(crate) fn encode_batch_record(batch: &Batch) -> Vec<u8> {
    let receipt = batch.receipt.unwrap_or(Receipt { origin: Origin(0), version: 0 });
    let numbers = [batch.reports.start, batch.reports.end, receipt.origin.0, receipt.version];
    [&numbers.map(u64::to_le_bytes).concat(), batch.upstream.as_bytes()].concat()
}

pub(crate) fn decode_batch_record(number: u64, bytes: &[u8]) -> Result<Batch, Fault> {
    let mut fields = Fields(bytes);
    let reports = fields.u64()?..fields.u64()?;
    let receipt = Receipt { origin: Origin(fields.u64()?), version: fields.u64()? };
    let upstream = String::from_utf8_lossy(fields.0).into_owned();
    // Versions begin at 1.
    let receipt = Some(receipt).filter(|receipt| receipt.version > 0);
    Ok(Batch { number, upstream, reports, receipt, included: false })
}

/// Encodes a spool's random number and the numbers of its first report and its next batch; then, if it had another random number
/// before, that one and the number of the first batch under the present one.
pub(crate) fn encode_spool(spool: &Spool) -> Vec<u8> {
    let (id, before) = spool.ids();
    let mut numbers = vec![id, spool.first(), spool.next_batch()];
    numbers.extend(before.into_iter().flat_map(|(id, until)| [id, until]));
    numbers.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Encodes the last batch begun for each server: first for those without an entry, then for each server its number, the length of its
/// URL, and the URL.
pub(crate) fn encode_last_sent(last: &LastSent) -> Vec<u8> {
    let mut bytes = last.others.to_le_bytes().to_vec();
    for (upstream, number) in &last.to {
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(upstream.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(upstream.as_bytes());
    }
    bytes
}

pub(crate) fn decode_last_sent(bytes: &[u8]) -> Result<LastSent, Fault> {
    let mut fields = Fields(bytes);
    let mut last = LastSent { others: fields.u64()?, ..LastSent::default() };
    while !fields.0.is_empty() {
        let (number, length) = (fields.u64()?, fields.u32()? as usize);
        let (url, rest) = fields.0.split_at_checked(length).ok_or_else(|| damaged("a row is too short"))?;
        last.to.insert(String::from_utf8_lossy(url).into_owned(), number);
        fields = Fields(rest);
    }
    Ok(last)
}

pub(crate) fn decode_spool(bytes: &[u8]) -> Result<Stored, Fault> {
    let mut fields = Fields(bytes);
    let (id, first, next_batch) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let before = if fields.0.is_empty() { None } else { Some((fields.u64()?, fields.u64()?)) };
    Ok(Stored { id, before, first, next_batch, ..Stored::default() })
}

/// Returns the keys of all chunks of a slice.
pub(crate) fn chunks_of(window: Window, slice: u32) -> std::ops::RangeInclusive<ChunkKey> {
    let (start, length) = window.key();
    (start, length, slice, 0)..=(start, length, slice, u32::MAX)
}

pub(crate) fn slice_key(window: Window, slice: u32) -> Vec<u8> {
    [&window.to_bytes()[..], &slice.to_le_bytes()].concat()
}

pub(crate) fn chunk_key(window: Window, slice: u32, chunk: u32) -> Vec<u8> {
    [slice_key(window, slice), chunk.to_le_bytes().to_vec()].concat()
}

/// Appends the checksum to the value.
pub(crate) fn seal(table: &str, key: &[u8], value: &[u8]) -> Vec<u8> {
    [value, &checksum(&[table.as_bytes(), key, value])].concat()
}

/// Verifies the checksum and returns the value without it.
pub(crate) fn unseal<'a>(table: &str, key: &[u8], sealed: &'a [u8]) -> Result<&'a [u8], Fault> {
    match sealed.split_last_chunk::<4>() {
        Some((value, sum)) if *sum == checksum(&[table.as_bytes(), key, value]) => Ok(value),
        _ => Err(damaged(format!("a row of the table {table} fails its checksum"))),
    }
}
