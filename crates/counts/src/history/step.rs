// SPDX-License-Identifier: GPL-3.0-or-later
//! A step of a fleet's chain, which one aggregator makes from batches. docs/protocol.md describes its bytes.

use super::bulk::{Section, decode_sections, encode_sections};
use super::fields::{CutOff, Fields};
use super::fleet_mark::is_name;
use super::sealed::{OtherForm, seal, unseal};
use super::spool_mark::SpoolMark;
use super::update::{FREE_CELLS, Scope, Update};
use super::vector::{Chain, Mark, Origin};
use std::collections::{BTreeMap, BTreeSet};

/// The most bytes of a step: all engines of a log accept an entry of this size.
pub const MAX_STEP: usize = 960 << 10;

/// The kind, and the version of its form.
const MAGIC: &[u8; 5] = b"BMFS\x01";

/// Likewise, for a step with the list of bulk.
const MAGIC_WITH_BULK: &[u8; 5] = b"BMFS\x02";

/// The most cells that all updates of a step change: those of 131,072 signatures. Aggregators stay below it, so a reader allocates no more,
/// whatever the bytes claim.
pub const MAX_STEP_CELLS: usize = FREE_CELLS;

/// The counted batches, by client and spool.
pub type SpoolMarks = BTreeMap<String, BTreeMap<u64, SpoolMark>>;

/// All of a step except its marks and updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepHead {
    /// The origin of the unlimited clients' counts, which identifies the fleet.
    pub origin: Origin,
    /// The version of this step, that is, its position in the chain.
    pub version: u64,
    /// The hash of the previous step.
    pub before: Chain,
    /// The key id of all signatures.
    pub key_id: u64,
    /// The length of a window, in seconds.
    pub window: u64,
    /// The number of the epoch.
    pub epoch: u64,
    /// The place for batches that this epoch counts on.
    pub made: u64,
    /// Batches up to this place are counted or were skipped.
    pub covers: u64,
    /// The arrival time of its newest batch by the log's clock, in seconds since 1970.
    pub time: u64,
    /// The count from which on bulk is listed; 0 without a list.
    pub bound: u32,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its position in the chain, and the settings that it was made for.
    pub head: StepHead,
    /// The complete marks of the spools that changed.
    pub marks: SpoolMarks,
    /// The counts of bulk that rose by it, for milters with a partial copy.
    pub bulk: Vec<Section>,
    /// The growth of each origin, of the fleet and of limited clients, with the bytes of the update.
    pub updates: Vec<(Update, Vec<u8>)>,
}

/// The bytes are not a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a step: {0}")]
pub struct StepError(String);

impl From<CutOff> for StepError {
    fn from(_: CutOff) -> Self {
        Self("cut off".to_owned())
    }
}

impl Step {
    /// The version of this step.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.head.version
    }

    /// Its bytes: kind, head, marks by client and spool, the list of bulk if there is one, updates, checksum.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let StepHead { origin, version, before, key_id, window, epoch, made, covers, time, bound } =
            self.head;
        let mut bytes = if bound > 0 { MAGIC_WITH_BULK } else { MAGIC }.to_vec();
        bytes.extend_from_slice(&origin.0.to_le_bytes());
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(&before.0);
        for field in [key_id, window, epoch, made, covers, time] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        encode_marks(&mut bytes, &self.marks);
        if bound > 0 {
            bytes.extend_from_slice(&bound.to_le_bytes());
            encode_sections(&self.bulk, &mut bytes);
        }
        for (_, update) in &self.updates {
            bytes.extend_from_slice(&length(update.len()));
            bytes.extend_from_slice(update);
        }
        seal(bytes)
    }

    /// Reads the bytes of [`encode`](Self::encode).
    ///
    /// # Errors
    /// [`StepError`] for all other bytes. Time and memory are bounded by those of 2^20 cells, whatever the bytes claim.
    pub fn decode(bytes: &[u8]) -> Result<Self, StepError> {
        let fault = |what: &str| StepError(what.to_owned());
        if bytes.len() > MAX_STEP {
            return Err(fault("it has more than 983,040 bytes"));
        }
        let (content, has_bulk) =
            content(bytes).ok_or_else(|| fault("its kind or its checksum is not right"))?;
        let mut fields = Fields(content);
        let mut head = StepHead::take(&mut fields)?;
        if head.version == 0 {
            return Err(fault("its version is 0"));
        }
        let (marks, mut bulk) = (decode_marks(&mut fields)?, Vec::new());
        if has_bulk {
            head.bound = fields.u32()?;
            bulk = decode_sections(&mut fields.0)
                .filter(|_| head.bound > 0)
                .ok_or_else(|| fault("an impossible list of bulk"))?;
        }
        let updates = decode_updates(&mut fields, head.origin)?;
        Ok(Self { head, marks, bulk, updates })
    }
}

/// Reads a step's head, without `bound`, and the step's mark. `None` if kind or checksum is not right; the rest is not checked.
#[must_use]
pub fn step_head(bytes: &[u8]) -> Option<(StepHead, Mark)> {
    let head = StepHead::take(&mut Fields(content(bytes)?.0)).ok()?;
    (head.version > 0).then(|| (head, Mark { version: head.version, chain: Chain::of(bytes) }))
}

/// Returns the bytes between kind and checksum, and whether there is a list of bulk.
fn content(bytes: &[u8]) -> Option<(&[u8], bool)> {
    let plain = unseal(MAGIC, bytes).map(|content| (content, false));
    plain.or_else(|| unseal(MAGIC_WITH_BULK, bytes).map(|content| (content, true)))
}

impl StepHead {
    /// Takes all but the bound, which follows the marks.
    fn take(fields: &mut Fields<'_>) -> Result<Self, CutOff> {
        Ok(Self {
            origin: Origin(fields.u64()?),
            version: fields.u64()?,
            before: Chain(fields.take()?),
            key_id: fields.u64()?,
            window: fields.u64()?,
            epoch: fields.u64()?,
            made: fields.u64()?,
            covers: fields.u64()?,
            time: fields.u64()?,
            bound: 0,
        })
    }
}

/// Recognizes a step of another program version.
#[must_use]
pub fn other_step(bytes: &[u8]) -> Option<OtherForm> {
    OtherForm::of(&[MAGIC, MAGIC_WITH_BULK], "a step", bytes)
}

fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

/// Appends the number of clients; for each its name and the number of its spools; for each spool its random number and its mark.
fn encode_marks(bytes: &mut Vec<u8>, marks: &SpoolMarks) {
    bytes.extend_from_slice(&length(marks.len()));
    for (name, spools) in marks {
        bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&length(spools.len()));
        for (spool, mark) in spools {
            bytes.extend_from_slice(&spool.to_le_bytes());
            mark.encode(bytes);
        }
    }
}

fn decode_marks(fields: &mut Fields<'_>) -> Result<SpoolMarks, StepError> {
    let fault = |what: &str| StepError(what.to_owned());
    let mut marks = SpoolMarks::new();
    for _ in 0..fields.u32()? {
        let name = take_name(fields)?.ok_or_else(|| fault("a client without a valid name"))?;
        if marks.last_key_value().is_some_and(|(last, _)| *last >= name) {
            return Err(fault("clients that are not in their order"));
        }
        let mut spools = BTreeMap::new();
        for _ in 0..fields.u32()? {
            let spool = fields.u64()?;
            if spools.last_key_value().is_some_and(|(&last, _)| last >= spool) {
                return Err(fault("spools that are not in their order"));
            }
            let mark = SpoolMark::decode(fields)?.ok_or_else(|| fault("impossible numbers of batches"))?;
            spools.insert(spool, mark);
        }
        if spools.is_empty() {
            return Err(fault("a client without spools"));
        }
        marks.insert(name, spools);
    }
    Ok(marks)
}

/// Takes a name after its length. The inner value is `None` if the name is not valid.
pub fn take_name(fields: &mut Fields<'_>) -> Result<Option<String>, CutOff> {
    let [length] = fields.take()?;
    let (name, rest) = fields.0.split_at_checked(length.into()).ok_or(CutOff)?;
    fields.0 = rest;
    Ok(std::str::from_utf8(name).ok().filter(|name| is_name(name)).map(str::to_owned))
}

fn decode_updates(fields: &mut Fields<'_>, community: Origin) -> Result<Vec<(Update, Vec<u8>)>, StepError> {
    let fault = |what: &str| StepError(what.to_owned());
    let (mut updates, mut origins, mut cells) = (Vec::new(), BTreeSet::new(), MAX_STEP_CELLS);
    while !fields.0.is_empty() {
        let length = fields.u32()? as usize;
        let (bytes, rest) = fields.0.split_at_checked(length).ok_or(CutOff)?;
        fields.0 = rest;
        let update = Update::decode_within(bytes, cells).map_err(|e| StepError(e.to_string()))?;
        cells -= update.cells().min(cells);
        let of_community = update.scope == Scope::Community;
        if of_community != (update.origin == community) || !origins.insert(update.origin) {
            return Err(fault("an update of an origin that has no place there"));
        }
        updates.push((update, bytes.to_vec()));
    }
    Ok(updates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::bulk::Print;
    use crate::history::spool_mark::BatchStatus;
    use crate::history::update::Part;
    use crate::history::window::Window;
    use bulkmark_filter::{Delta, Refined, Scaling};

    fn step() -> Step {
        let mut mark = SpoolMark::default();
        [1, 2, 5, 9].into_iter().for_each(|number| assert_eq!(mark.take(number, 1), BatchStatus::New));
        let (_, blocks) = Scaling::<Refined>::shape(100, 0);
        let update = |origin, scope| {
            let delta = Delta::from_changes(blocks, [(3, 1), (200, 7)]).unwrap();
            let part = Part { window: Window { start: 0, length: 60 }, capacity: 100, slice: 0, delta };
            let parts = if scope == Scope::Withdrawn { Vec::new() } else { vec![part] };
            let update = Update { origin: Origin(origin), version: 3, before: Chain([7; 16]), scope, parts };
            let bytes = update.encode();
            (update, bytes)
        };
        Step {
            head: StepHead {
                origin: Origin(8),
                version: 2,
                before: Chain([1; 16]),
                key_id: 4,
                window: 60,
                epoch: 1,
                made: 77,
                covers: 12,
                time: 1_800_000_000,
                bound: 10,
            },
            bulk: vec![Section {
                window: Window { start: 0, length: 60 },
                entries: [3, 900].map(|n| (Print::from_bits(n).unwrap(), 12)).into(),
            }],
            marks: [("mx1", 5), ("mx2", 1)]
                .map(|(name, spool)| (name.to_owned(), [(spool, mark.clone())].into()))
                .into(),
            updates: vec![update(8, Scope::Community), update(1, Scope::Client), update(2, Scope::Withdrawn)],
        }
    }

    /// Decodes the step's bytes after a change, with the checksum corrected.
    fn changed(change: impl Fn(&mut Vec<u8>)) -> Result<Step, StepError> {
        let mut bytes = step().encode();
        bytes.truncate(bytes.len() - 4);
        change(&mut bytes);
        Step::decode(&seal(bytes))
    }

    #[test]
    fn a_step_is_read_back() {
        let step = step();
        assert_eq!(Step::decode(&step.encode()), Ok(step.clone()));
        assert_eq!(changed(|_| ()), Ok(step.clone()));
        let plain = Step { head: StepHead { bound: 0, ..step.head }, bulk: Vec::new(), ..step };
        assert_eq!(Step::decode(&plain.encode()), Ok(plain.clone()));
        assert_eq!(
            step_head(&plain.encode()),
            Some((plain.head, Mark { version: 2, chain: Chain::of(&plain.encode()) }))
        );
    }

    #[test]
    fn junk_is_refused_wherever_it_is() {
        let length = step().encode().len() - 4;
        for at in 0..length {
            assert!(Step::decode(&step().encode()[..at]).is_err());
            if let Ok(read) = changed(|bytes| bytes[at] ^= 0xFF) {
                let again = Step::decode(&read.encode());
                assert_eq!(again.as_ref(), Ok(&read), "byte {at}");
            }
            // Truncated bytes are valid only at the end of an update.
            if let Ok(read) = changed(|bytes| bytes.truncate(at)) {
                assert!(read.updates.len() < 3, "byte {at}");
            }
        }
        let twice = Step { updates: [step().updates, step().updates].concat(), ..step() };
        assert!(Step::decode(&twice.encode()).unwrap_err().to_string().contains("no place there"));
    }
}
