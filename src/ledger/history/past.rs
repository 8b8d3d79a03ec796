// SPDX-License-Identifier: GPL-3.0-or-later
//! What is not kept of a history any more: the updates up to a mark, and when all that they counted is over.

use super::fields::Fields;
use super::vector::{Chain, Mark, Origin};

/// The beginning of an origin's history, of which no updates are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    /// Whose history it is.
    pub origin: Origin,
    /// Its last update.
    pub mark: Mark,
    /// From this time on (seconds since 1970) nothing of it counts any more: whoever lacks it misses nothing.
    pub over_at: u64,
}

/// Bytes of one: origin, version, hash, time.
const BYTES: usize = 8 + 8 + 16 + 8;

/// Histories that are read at a time, at most: a server knows no more origins than that.
const MAX: usize = 65_536;

impl Past {
    /// Those of several origins.
    #[must_use]
    pub fn encode_all(all: &[Self]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(all.len() * BYTES);
        for Self { origin, mark, over_at } in all {
            bytes.extend_from_slice(&origin.0.to_le_bytes());
            bytes.extend_from_slice(&mark.version.to_le_bytes());
            bytes.extend_from_slice(&mark.chain.0);
            bytes.extend_from_slice(&over_at.to_le_bytes());
        }
        bytes
    }

    /// Reads what [`encode_all`](Self::encode_all) made. None for other bytes.
    #[must_use]
    pub fn decode_all(bytes: &[u8]) -> Option<Vec<Self>> {
        let (all, []) = bytes.as_chunks::<BYTES>() else { return None };
        let decode = |bytes: &[u8; BYTES]| {
            let mut fields = Fields(bytes);
            let origin = Origin(fields.u64().ok()?);
            let mark = Mark { version: fields.u64().ok()?, chain: Chain(fields.take().ok()?) };
            Some(Self { origin, mark, over_at: fields.u64().ok()? })
        };
        if all.len() > MAX { None } else { all.iter().map(decode).collect() }
    }
}

/// The beginning of the latest window in which an update counts, from its bytes; 0 when it counts in none. None for bytes that are
/// no update.
pub(crate) fn latest_window(update: &[u8]) -> Option<u64> {
    let (_, mut parts) = update.split_at_checked(32)?;
    let mut latest = 0;
    while !parts.is_empty() {
        let mut fields = Fields(parts);
        let start = fields.u64().ok()?;
        let _ = (fields.u64().ok()?, fields.u32().ok()?, fields.u32().ok()?);
        let length = fields.u32().ok()? as usize;
        latest = latest.max(start);
        parts = fields.0.get(length..)?;
    }
    Some(latest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_nothing_else() {
        let mark = Mark { version: 7, chain: Chain([3; 16]) };
        let all =
            vec![Past { origin: Origin(1), mark, over_at: 9 }, Past { origin: Origin(2), mark, over_at: 8 }];
        let bytes = Past::encode_all(&all);
        assert_eq!(Past::decode_all(&bytes), Some(all));
        assert_eq!(Past::decode_all(&bytes[1..]), None);
        assert_eq!(Past::decode_all(&[]), Some(Vec::new()));
    }
}
