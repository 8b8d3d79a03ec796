// SPDX-License-Identifier: GPL-3.0-or-later
//! A batch of reports as an entry of a fleet's log. docs/protocol.md describes its bytes.

use super::fields::{CutOff, Fields};
use super::sealed::{OtherForm, seal, unseal};
use bulkmark_filter::varint;
use bulkmark_types::Signature;

/// The kind, and the version of its form.
const MAGIC: &[u8; 5] = b"BMFB\x01";

/// Likewise, for a batch of a milter that asks for the list of bulk.
const MAGIC_WITH_BULK: &[u8; 5] = b"BMFB\x02";

/// The most reports of a batch.
const MAX_REPORTS: usize = 8192;

/// A batch, as a spool sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolBatch {
    /// The key id of its signatures.
    pub key_id: u64,
    /// The random number of the spool.
    pub spool: u64,
    /// The number of the batch in the spool.
    pub number: u64,
    /// The lowest open number of that spool: lower ones are counted, or will not be sent any more.
    pub lowest: u64,
    /// The count from which on the sender needs the list of bulk; 0 if it does not ask for the list.
    pub bulk_from: u32,
    /// Signatures, each with the number of times that it was seen.
    pub reports: Vec<(Signature, u32)>,
}

impl SpoolBatch {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(45 + self.reports.len() * 17);
        bytes.extend_from_slice(if self.bulk_from > 0 { MAGIC_WITH_BULK } else { MAGIC });
        for field in [self.key_id, self.spool, self.number, self.lowest] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        if self.bulk_from > 0 {
            bytes.extend_from_slice(&self.bulk_from.to_le_bytes());
        }
        for (signature, times) in &self.reports {
            bytes.extend_from_slice(&signature.to_bytes());
            varint::put(&mut bytes, u64::from(*times));
        }
        seal(bytes)
    }

    /// Reads the bytes of [`encode`](Self::encode). `None` for other bytes, and for more than 8,192 reports.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let read = || -> Result<Option<Self>, CutOff> {
            let wish = unseal(MAGIC_WITH_BULK, bytes);
            let mut fields = Fields(wish.or_else(|| unseal(MAGIC, bytes)).ok_or(CutOff)?);
            let (key_id, spool) = (fields.u64()?, fields.u64()?);
            let (number, lowest) = (fields.u64()?, fields.u64()?);
            let bulk_from = if wish.is_some() { fields.u32()? } else { 0 };
            let mut reports = Vec::with_capacity((fields.0.len() / 17).min(MAX_REPORTS));
            while !fields.0.is_empty() {
                let signature = Signature::from_bytes(fields.take()?);
                let Some(times) = take_times(&mut fields).filter(|_| reports.len() < MAX_REPORTS) else {
                    return Ok(None);
                };
                reports.push((signature, times));
            }
            // Only open batches are sent, and the last number is never reached.
            let valid =
                (1..=number).contains(&lowest) && number < u64::MAX && (bulk_from > 0) == wish.is_some();
            Ok(valid.then_some(Self { key_id, spool, number, lowest, bulk_from, reports }))
        };
        read().ok().flatten()
    }
}

/// Returns the reason why bytes in the place of a batch cannot be read.
pub fn unreadable_reason(bytes: &[u8]) -> String {
    match OtherForm::of(&[MAGIC, MAGIC_WITH_BULK], "a batch", bytes) {
        Some(other) => other.to_string(),
        None => "it cannot be read".to_owned(),
    }
}

/// Takes the number of times that a signature was seen: not zero, and in the shortest form.
fn take_times(fields: &mut Fields<'_>) -> Option<u32> {
    let before = fields.0;
    let times = u32::try_from(varint::take(&mut fields.0)?).ok().filter(|&times| times > 0)?;
    let mut shortest = Vec::new();
    varint::put(&mut shortest, times.into());
    (before.len() - fields.0.len() == shortest.len()).then_some(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn batch() -> impl Strategy<Value = SpoolBatch> {
        let report =
            (any::<[u8; 16]>(), 1u32..).prop_map(|(bytes, times)| (Signature::from_bytes(bytes), times));
        (any::<u64>(), any::<u64>(), 1u64..1000, 0u32..3, prop::collection::vec(report, 0..30)).prop_map(
            |(key_id, spool, number, bulk_from, reports)| SpoolBatch {
                key_id,
                spool,
                number,
                lowest: number.div_ceil(2),
                bulk_from,
                reports,
            },
        )
    }

    proptest! {
        #[test]
        fn a_batch_is_read_back(batch in batch(), cut in 0usize..40, flip in any::<u8>()) {
            let mut bytes = batch.encode();
            prop_assert_eq!(SpoolBatch::decode(&bytes), Some(batch));
            let at = cut % bytes.len();
            prop_assert_eq!(SpoolBatch::decode(&bytes[..at]), None);
            bytes[at] ^= flip.max(1);
            prop_assert_eq!(SpoolBatch::decode(&bytes), None);
        }
    }

    #[test]
    fn a_number_below_the_lowest_open_one_is_none() {
        let batch = |number, lowest| SpoolBatch {
            key_id: 1,
            spool: 1,
            number,
            lowest,
            bulk_from: 0,
            reports: Vec::new(),
        };
        assert!(SpoolBatch::decode(&batch(3, 3).encode()).is_some());
        for (number, lowest) in [(3, 4), (3, 0), (u64::MAX, 1)] {
            assert_eq!(SpoolBatch::decode(&batch(number, lowest).encode()), None);
        }
    }
}
