// SPDX-License-Identifier: GPL-3.0-or-later
//! The bodies of requests and answers, as bytes; docs/protocol.md describes them. All numbers are little-endian.

use bulkmark_counts::{MAX_BATCH, MAX_VECTOR_BYTES, Origin, Past, Receipt, Vector, checksum, seal};
use bulkmark_filter::varint;
use bulkmark_types::Signature;
use std::borrow::Cow;

/// The first bytes of a batch of reports: its kind and the version of its form.
const REPORTS: &[u8; 5] = b"BMRP\x01";

/// The first bytes of the receipt for one.
const RECEIPT: &[u8; 5] = b"BMRC\x01";

/// The first bytes of a stream of updates.
pub const UPDATES: &[u8; 5] = b"BMUP\x01";

/// The first bytes of a snapshot.
pub const SNAPSHOT: &[u8; 5] = b"BMSN\x01";

/// The first bytes of a stream of bulk.
pub const BULK: &[u8; 5] = b"BMBK\x01";

/// The first bytes of a question for counts, and of its answer.
const QUESTION: &[u8; 5] = b"BMCQ\x01";
const COUNTS: &[u8; 5] = b"BMCA\x01";

/// Maximum of signatures in a question: four times what one step of the largest message needs.
pub const MAX_ASKED: usize = 1024;

/// Maximum size of such a question.
pub const MAX_QUESTION_BYTES: usize = 5 + MAX_ASKED * 16 + 4;

/// Maximum size of an answer.
pub const MAX_COUNTS_BYTES: usize = 5 + MAX_ASKED * 5 + 4;

/// Maximum of reports in a batch.
pub const MAX_REPORTS: usize = MAX_BATCH;

/// Maximum size of a batch: its head, and for each report a signature and a number of up to five bytes.
pub const MAX_REPORTS_BYTES: usize = HEAD + MAX_REPORTS * 21 + 4;

const HEAD: usize = 5 + 8 + 8;

/// Maximum size of a frame's content: one update, or one row of a snapshot.
pub const MAX_FRAME: usize = 16 << 20;

/// Bytes cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not {expected}, at byte {offset}: {what}")]
pub struct WireError {
    expected: &'static str,
    offset: usize,
    what: Cow<'static, str>,
    /// Whether the format has an unknown version.
    newer: bool,
}

impl WireError {
    /// Whether the bytes are of the expected kind, in a format of another version.
    #[must_use]
    pub const fn is_other_version(&self) -> bool {
        self.newer
    }
}

/// A batch of reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reports {
    /// The random number of the spool that it comes from.
    pub spool: u64,
    /// Its number in that spool.
    pub number: u64,
    /// Signatures, and how often each was seen.
    pub reports: Vec<(Signature, u32)>,
}

impl Reports {
    /// Encodes magic, spool, number, reports (16 bytes of signature, number of times with seven bits a byte), CRC-32 of all that.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.reports.len() * 17 + 4);
        bytes.extend_from_slice(REPORTS);
        bytes.extend_from_slice(&self.spool.to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        for (signature, times) in &self.reports {
            bytes.extend_from_slice(&signature.to_bytes());
            varint::put(&mut bytes, u64::from(*times));
        }
        seal(bytes)
    }

    /// Decodes the bytes of [`encode`](Self::encode).
    ///
    /// # Errors
    /// [`WireError`] for anything else; more than 8,192 reports are refused before there is room for them.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let expected = "a batch of reports";
        let fault =
            |offset, what: &'static str| WireError { expected, offset, what: what.into(), newer: false };
        let content = unseal(bytes, REPORTS, expected)?;
        let Some((spool, rest)) = content.split_first_chunk() else { return Err(fault(5, "cut off")) };
        let Some((number, mut rest)) = rest.split_first_chunk() else { return Err(fault(13, "cut off")) };
        let mut reports = Vec::with_capacity((rest.len() / 17).min(MAX_REPORTS));
        while !rest.is_empty() {
            let offset = bytes.len() - 4 - rest.len();
            if reports.len() == MAX_REPORTS {
                return Err(fault(offset, "more than 8,192 reports"));
            }
            let Some((signature, after)) = rest.split_first_chunk() else {
                return Err(fault(offset, "ends within a signature"));
            };
            let Some((times, after)) = take_times(after) else {
                return Err(fault(offset, "no count from 1 to 4294967295"));
            };
            reports.push((Signature::from_bytes(*signature), times));
            rest = after;
        }
        Ok(Self { spool: u64::from_le_bytes(*spool), number: u64::from_le_bytes(*number), reports })
    }
}

/// Reads the number of times that a signature was seen: up to 32 bits in five bytes at most, not zero.
fn take_times(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut rest = &bytes[..bytes.len().min(5)];
    let times = u32::try_from(varint::take(&mut rest)?).ok().filter(|&times| times > 0)?;
    Some((times, &bytes[bytes.len().min(5) - rest.len()..]))
}

/// Encodes magic, origin, version, CRC-32.
#[must_use]
pub fn encode_receipt(receipt: Receipt) -> Vec<u8> {
    let mut bytes = RECEIPT.to_vec();
    bytes.extend_from_slice(&receipt.origin.0.to_le_bytes());
    bytes.extend_from_slice(&receipt.version.to_le_bytes());
    seal(bytes)
}

/// Decodes the bytes of [`encode_receipt`].
///
/// # Errors
/// [`WireError`] for anything else.
pub fn decode_receipt(bytes: &[u8]) -> Result<Receipt, WireError> {
    let expected = "a receipt";
    let content = unseal(bytes, RECEIPT, expected)?;
    let ([origin, version], []) = content.as_chunks::<8>() else {
        return Err(WireError { expected, offset: 5, what: "has the wrong length".into(), newer: false });
    };
    Ok(Receipt { origin: Origin(u64::from_le_bytes(*origin)), version: u64::from_le_bytes(*version) })
}

/// Encodes magic, signatures, CRC-32.
#[must_use]
pub fn encode_question(signatures: &[Signature]) -> Vec<u8> {
    let mut bytes = QUESTION.to_vec();
    signatures.iter().for_each(|signature| bytes.extend_from_slice(&signature.to_bytes()));
    seal(bytes)
}

/// Decodes the bytes of [`encode_question`].
///
/// # Errors
/// [`WireError`] for anything else, and for more than 1,024 signatures.
pub fn decode_question(bytes: &[u8]) -> Result<Vec<Signature>, WireError> {
    let expected = "a question for counts";
    let content = unseal(bytes, QUESTION, expected)?;
    let (signatures, rest) = content.as_chunks::<16>();
    if !rest.is_empty() || signatures.len() > MAX_ASKED {
        return Err(WireError { expected, offset: 5, what: "has the wrong length".into(), newer: false });
    }
    Ok(signatures.iter().map(|signature| Signature::from_bytes(*signature)).collect())
}

/// Encodes magic, counts with seven bits a byte, CRC-32.
#[must_use]
pub fn encode_counts(counts: &[u32]) -> Vec<u8> {
    let mut bytes = COUNTS.to_vec();
    counts.iter().for_each(|&count| varint::put(&mut bytes, count.into()));
    seal(bytes)
}

/// Decodes the bytes of [`encode_counts`] for so many counts.
///
/// # Errors
/// [`WireError`] for anything else.
pub fn decode_counts(bytes: &[u8], number: usize) -> Result<Vec<u32>, WireError> {
    let expected = "counts";
    let mut rest = unseal(bytes, COUNTS, expected)?;
    let counts = (0..number).map(|_| varint::take(&mut rest).and_then(|count| u32::try_from(count).ok()));
    let counts: Option<Vec<u32>> = counts.collect();
    let counts = counts.filter(|_| rest.is_empty());
    let other =
        || WireError { expected, offset: 5, what: "are others than were asked for".into(), newer: false };
    counts.ok_or_else(other)
}

/// The first frame of a snapshot: its id, the number of its rows, and its vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotHead {
    /// Its id at the server.
    pub id: u64,
    /// The number of its rows.
    pub rows: u64,
    /// The version of each origin in it.
    pub vector: Vector,
}

impl SnapshotHead {
    /// Encodes the content of its frame.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let vector = self.vector.to_string();
        [&self.id.to_le_bytes()[..], &self.rows.to_le_bytes(), vector.as_bytes()].concat()
    }

    /// Decodes the bytes of [`encode`](Self::encode). None for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (rows, rest) = rest.split_first_chunk()?;
        let vector = std::str::from_utf8(rest).ok()?.parse().ok()?;
        Some(Self { id: u64::from_le_bytes(*id), rows: u64::from_le_bytes(*rows), vector })
    }
}

/// Encodes a frame of a stream: length, content, CRC-32 of the content. An empty one is only a sign of life.
#[must_use]
pub fn frame(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 8);
    bytes.extend_from_slice(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(content);
    bytes.extend_from_slice(&checksum(&[content]));
    bytes
}

/// Encodes a frame's content that is a sign of life with the server's position: 16 zeros, where an update has its origin and its version,
/// which is never zero; and the vector. On request, each one from the second on has only the part that changed since the last one.
#[must_use]
pub fn encode_alive(vector: &Vector) -> Vec<u8> {
    [&[0; 16][..], vector.to_string().as_bytes()].concat()
}

/// Decodes the position from [`encode_alive`]. None for anything else.
#[must_use]
pub fn decode_alive(content: &[u8]) -> Option<Vector> {
    let (zeros, vector) = content.split_first_chunk::<16>()?;
    if *zeros != [0; 16] || vector.len() > MAX_VECTOR_BYTES {
        return None;
    }
    std::str::from_utf8(vector).ok()?.parse().ok()
}

/// Encodes a frame's content for servers, with updates that no longer count: 8 zeros, where an update has its origin, and the number 1;
/// then the beginnings of histories.
#[must_use]
pub fn encode_past(past: &[Past]) -> Vec<u8> {
    [&PAST_HEAD[..], &Past::encode_all(past)].concat()
}

const PAST_HEAD: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];

/// Decodes the bytes of [`encode_past`]. None for anything else.
#[must_use]
pub fn decode_past(content: &[u8]) -> Option<Vec<Past>> {
    Past::decode_all(content.strip_prefix(&PAST_HEAD[..])?)
}

/// Assembles the frames of a stream from the pieces in which it arrives.
pub struct Frames {
    magic: &'static [u8; 5],
    begun: bool,
    buffer: Vec<u8>,
    /// Bytes of the stream before the buffer.
    before: usize,
}

impl Frames {
    /// Creates one for a stream that begins with `magic`.
    #[must_use]
    pub const fn new(magic: &'static [u8; 5]) -> Self {
        Self { magic, begun: false, buffer: Vec::new(), before: 0 }
    }

    /// Adds the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// Returns the number of bytes that were not taken yet.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the content of the next frame once it is complete.
    ///
    /// # Errors
    /// When it is not such a stream, or a frame is longer than [`MAX_FRAME`] or fails its checksum.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        let expected = "a stream of frames";
        let fault =
            |offset, what: &'static str| WireError { expected, offset, what: what.into(), newer: false };
        if !self.begun {
            if self.buffer.len() < self.magic.len() {
                return Ok(None);
            }
            begins_with(self.magic, &self.buffer, expected)?;
            self.consume(self.magic.len());
            self.begun = true;
        }
        let Some(length) = self.buffer.first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(fault(self.before, "a frame that is too long"));
        }
        let Some(frame) = self.buffer.get(4..length + 8) else { return Ok(None) };
        let (content, sum) = frame.split_at(length);
        if sum != checksum(&[content]) {
            return Err(fault(self.before, "a frame that fails its checksum"));
        }
        let content = content.to_vec();
        self.consume(length + 8);
        Ok(Some(content))
    }

    fn consume(&mut self, bytes: usize) {
        self.buffer.drain(..bytes);
        self.before += bytes;
    }
}

/// Checks the kind and the version of the format.
fn begins_with(magic: &[u8; 5], bytes: &[u8], expected: &'static str) -> Result<(), WireError> {
    let fault = |offset, what, newer| Err(WireError { expected, offset, what, newer });
    match (bytes.first_chunk::<5>(), magic) {
        (Some(found), _) if found == magic => Ok(()),
        (Some([kind @ .., found]), [ours @ .., known]) if kind == ours => {
            fault(4, format!("its format has version {found}, expected {known}").into(), true)
        }
        _ => fault(0, "wrong first bytes".into(), false),
    }
}

/// Returns the bytes between the magic and the checksum, after checking both.
fn unseal<'a>(bytes: &'a [u8], magic: &[u8; 5], expected: &'static str) -> Result<&'a [u8], WireError> {
    let fault = |offset, what: &'static str| WireError { expected, offset, what: what.into(), newer: false };
    let Some((content, sum)) = bytes.split_last_chunk::<4>() else {
        return Err(fault(bytes.len(), "cut off"));
    };
    begins_with(magic, content, expected)?;
    if *sum != checksum(&[content]) {
        return Err(fault(content.len(), "its checksum fails"));
    }
    Ok(&content[magic.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reports() -> impl Strategy<Value = Reports> {
        let report = (any::<[u8; 16]>().prop_map(Signature::from_bytes), 1u32..);
        (any::<u64>(), any::<u64>(), prop::collection::vec(report, 0..100))
            .prop_map(|(spool, number, reports)| Reports { spool, number, reports })
    }

    proptest! {
        #[test]
        fn reports_come_back(reports in reports()) {
            prop_assert_eq!(Reports::decode(&reports.encode()), Ok(reports));
        }

        /// A changed bit or a missing end is refused.
        #[test]
        fn damaged_reports_are_refused(reports in reports(), at: prop::sample::Index, bit in 0u32..8, cut: bool) {
            let mut bytes = reports.encode();
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
            prop_assert!(Reports::decode(&bytes).is_err());
            prop_assert!(decode_receipt(&bytes).is_err());
        }

        /// However the network cuts a stream, its frames come out whole and in order.
        #[test]
        fn frames_come_back(contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20), piece in 1usize..60) {
            let mut stream = UPDATES.to_vec();
            contents.iter().for_each(|content| stream.extend(frame(content)));
            let (mut frames, mut found) = (Frames::new(UPDATES), Vec::new());
            for piece in stream.chunks(piece) {
                frames.push(piece);
                while let Some(content) = frames.take().unwrap() {
                    found.push(content);
                }
            }
            prop_assert_eq!(found, contents);
        }
    }

    #[test]
    fn limits_hold() {
        let report = (Signature::from_bytes([1; 16]), 1);
        let many = Reports { spool: 1, number: 1, reports: vec![report; MAX_REPORTS + 1] };
        let error = Reports::decode(&many.encode()).unwrap_err().to_string();
        assert!(error.contains("more than 8,192 reports"), "{error}");
        let mut frames = Frames::new(SNAPSHOT);
        frames.push(SNAPSHOT);
        frames.push(&u32::MAX.to_le_bytes());
        assert!(frames.take().is_err());
        let receipt = Receipt { origin: Origin(7), version: 9 };
        assert_eq!(decode_receipt(&encode_receipt(receipt)), Ok(receipt));
    }
}
