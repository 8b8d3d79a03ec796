// SPDX-License-Identifier: GPL-3.0-or-later
//! The growth of a filter between two of its versions, and its coded form. Specified in crates/study/docs/delta.md.

use crate::cells::Cell;
use crate::layout::CELLS_PER_BLOCK;
use crate::params::ParameterError;
use crate::range_coder::{Decoder, Encoder, Model};
use crate::refined::Refined;
use crate::varint;
use std::sync::LazyLock;

/// Increments of cells, none of them zero, in the order of the cells.
///
/// A delta does not know the versions of its filter: the sender numbers deltas, and the receiver applies each number once.
///
/// ```
/// use bulkmark_filter::{Counting, Delta, Merged, Refined};
///
/// let element = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
/// let (old, mut new) = (Refined::new(100)?, Refined::new(100)?);
/// new.add(element, 3);
/// let bytes = Delta::between(&old, &new)?.encode();
///
/// let delta = Delta::decode(&bytes, 100, 1000).expect("they were just made");
/// let mut elsewhere = Merged::new(100)?;
/// elsewhere.apply(&delta)?;
/// assert_eq!(elsewhere.count(element), 3);
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    blocks: usize,
    /// Cell (block * 128 + cell) and increment.
    changes: Vec<(usize, u32)>,
}

/// The reason why bytes are not a coded delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a coded delta, at byte {offset}: {what}")]
pub struct DecodeError {
    /// Where the error was found; the coder reads a few bytes ahead.
    pub offset: usize,
    /// The error.
    pub what: &'static str,
}

impl Delta {
    /// Returns an empty delta for a filter of `blocks` blocks.
    #[must_use]
    pub const fn empty(blocks: usize) -> Self {
        Self { blocks, changes: Vec::new() }
    }

    /// Returns the growth from `old` to `new`, a later version of the same filter.
    ///
    /// # Errors
    /// If they have different numbers of blocks.
    pub fn between(old: &Refined, new: &Refined) -> Result<Self, ParameterError> {
        let blocks = new.cells.blocks();
        ParameterError::same("blocks", old.cells.blocks() as u64, blocks as u64)?;
        let grown = new.cells.used().map(|(at, value)| (at, value.saturating_sub(old.cells.get(at))));
        let changes = grown.filter(|&(_, by)| by > 0).map(|(at, by)| (index(at), by)).collect();
        Ok(Self { blocks, changes })
    }

    /// Returns the delta of these increments, none of them zero, in the order of the cells.
    pub(crate) fn of(blocks: usize, changes: Vec<(Cell, u32)>) -> Self {
        Self { blocks, changes: changes.into_iter().map(|(at, by)| (index(at), by)).collect() }
    }

    /// Returns the delta of these increments of cells; a cell is block times 128 plus index in the block.
    ///
    /// # Errors
    /// If they are not in the order of the cells, one of them is zero, or a cell is beyond the filter's blocks.
    pub fn from_changes(
        blocks: usize,
        changes: impl IntoIterator<Item = (usize, u32)>,
    ) -> Result<Self, ParameterError> {
        let (mut all, mut next) = (Vec::new(), 0);
        for (cell, by) in changes {
            let end = blocks.saturating_mul(CELLS_PER_BLOCK);
            ParameterError::check("cell", cell as u64, next as u64, end.saturating_sub(1) as u64)?;
            ParameterError::check("increment", by.into(), 1, u32::MAX.into())?;
            all.push((cell, by));
            next = cell + 1;
        }
        Ok(Self { blocks, changes: all })
    }

    /// Returns the number of blocks of its filter.
    #[must_use]
    pub const fn blocks(&self) -> usize {
        self.blocks
    }

    /// Returns the number of cells that changed.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether nothing changed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the cells that changed, as block times 128 plus index in the block, with their increments, in order.
    pub fn changes(&self) -> impl Iterator<Item = (usize, u32)> {
        self.changes.iter().copied()
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = (Cell, u32)> {
        self.changes.iter().map(|&(index, by)| (cell(index), by))
    }

    /// Returns this delta and a later one as one.
    ///
    /// # Errors
    /// If the other belongs to a filter with another number of blocks.
    pub fn merge(&self, other: &Self) -> Result<Self, ParameterError> {
        ParameterError::same("blocks", self.blocks as u64, other.blocks as u64)?;
        let mut all = [&*self.changes, &*other.changes].concat();
        all.sort_unstable_by_key(|&(index, _)| index);
        all.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(later.1);
            }
            same
        });
        Ok(Self { blocks: self.blocks, changes: all })
    }

    /// Returns the coded form: two numbers of variable length and a byte, then the blocks that changed, range-coded.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let blocks = self.changes.chunk_by(|a, b| a.0 / CELLS_PER_BLOCK == b.0 / CELLS_PER_BLOCK);
        let changed = blocks.clone().count();
        varint::put(&mut bytes, self.changes.len() as u64);
        varint::put(&mut bytes, changed as u64);
        let rice = rice_parameter(self.blocks, changed);
        bytes.push(rice);
        let (mut models, mut encoder) = (Models::new(rice), Encoder::new());
        let mut next = 0;
        for block in blocks {
            let at = block[0].0 / CELLS_PER_BLOCK;
            models.put_gap(&mut encoder, at - next);
            models.put_block(&mut encoder, block);
            next = at + 1;
        }
        bytes.extend(encoder.finish());
        bytes
    }

    /// Decodes a delta of a filter of `blocks` blocks that changes at most `limit` cells.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that [`encode`](Self::encode) does not produce; time and memory are bounded by the number of bytes
    /// and by `limit`.
    pub fn decode(bytes: &[u8], blocks: usize, limit: usize) -> Result<Self, DecodeError> {
        let mut rest = bytes;
        let failed = |rest: &[u8], what| DecodeError { offset: bytes.len() - rest.len(), what };
        let mut number = || usize::try_from(varint::take(&mut rest)?).ok();
        let (Some(cells), Some(changed)) = (number(), number()) else {
            return Err(failed(rest, "cut off in its lengths"));
        };
        let Some((&rice, coded)) = rest.split_first() else {
            return Err(failed(rest, "cut off in its lengths"));
        };
        if cells > limit
            || changed > cells
            || cells > changed.saturating_mul(CELLS_PER_BLOCK)
            || changed > blocks
        {
            return Err(failed(rest, "its lengths do not fit one another or the filter"));
        }
        if rice != rice_parameter(blocks, changed) {
            return Err(failed(rest, "its parameter does not fit the filter"));
        }
        let start = bytes.len() - coded.len();
        let (mut models, mut decoder) = (Models::new(rice), Decoder::new(coded));
        let mut changes = Vec::new();
        let mut next = 0;
        for left in (0..changed).rev() {
            let fault =
                |what, decoder: &Decoder<'_>| DecodeError { offset: start + decoder.position(), what };
            let gap = models.take_gap(&mut decoder, blocks - next);
            let Some(gap) = gap else { return Err(fault("a block beyond the filter", &decoder)) };
            models.take_block(&mut decoder, next + gap, &mut changes);
            next += gap + 1;
            if changes.len() + left > cells || next + left > blocks {
                return Err(fault("more cells or blocks than its lengths say", &decoder));
            }
            if decoder.position() > coded.len() + LOOK_AHEAD {
                return Err(fault("cut off", &decoder));
            }
        }
        let delta = Self { blocks, changes };
        // Other bytes than those of `encode` may still decode; they are refused.
        if delta.changes.len() != cells || delta.encode() != bytes {
            return Err(DecodeError { offset: bytes.len(), what: "it does not end as it should" });
        }
        Ok(delta)
    }
}

/// The number of bytes that the decoder may read beyond the end, where the coder omitted zeros.
const LOOK_AHEAD: usize = 8;

const fn index(at: Cell) -> usize {
    at.block * CELLS_PER_BLOCK + at.cell as usize
}

fn cell(index: usize) -> Cell {
    Cell { block: index / CELLS_PER_BLOCK, cell: u8::try_from(index % CELLS_PER_BLOCK).unwrap_or(0) }
}

/// The number of bits of a gap that are written verbatim: about the logarithm of the mean gap times ln 2 (Golomb's rule).
fn rice_parameter(blocks: usize, changed: usize) -> u8 {
    let mean = (blocks / changed.max(1)).max(1);
    u8::try_from((mean * 7 / 10).max(1).ilog2()).unwrap_or(0)
}

/// Binomial coefficients: the number of sets of each size among 128 cells.
static BINOMIALS: LazyLock<Vec<[u128; CELLS_PER_BLOCK + 1]>> = LazyLock::new(|| {
    let mut rows = vec![[0; CELLS_PER_BLOCK + 1]; CELLS_PER_BLOCK + 1];
    for n in 0..=CELLS_PER_BLOCK {
        rows[n][0] = 1;
        for k in 1..=n {
            rows[n][k] = rows[n - 1][k - 1] + rows[n - 1][k];
        }
    }
    rows
});

/// The number of bits that number the sets of `size` cells.
fn rank_bits(size: usize) -> u32 {
    let sets = BINOMIALS[CELLS_PER_BLOCK][size];
    u128::BITS - (sets - 1).leading_zeros()
}

/// The coder's adaptive probabilities.
struct Models {
    rice: u8,
    gap: [Model; 16],
    /// A tree of seven decisions: the number of changed cells in a block.
    size: Vec<Model>,
    /// Whether a cell grew as much as the previous one in its block.
    same: Model,
    /// A tree of five decisions: the number of bits of the increment.
    width: Vec<Model>,
}

impl Models {
    fn new(rice: u8) -> Self {
        let models = |n| vec![Model::default(); n];
        Self { rice, gap: Default::default(), size: models(128), same: Model::default(), width: models(32) }
    }

    fn put_gap(&mut self, encoder: &mut Encoder, gap: usize) {
        let quotient = gap >> self.rice;
        for i in 0..quotient {
            encoder.bit(&mut self.gap[i.min(15)], true);
        }
        encoder.bit(&mut self.gap[quotient.min(15)], false);
        encoder.bits(gap as u128, self.rice.into());
    }

    /// Returns `None` if the gap is not below `bound`.
    fn take_gap(&mut self, decoder: &mut Decoder<'_>, bound: usize) -> Option<usize> {
        let mut quotient = 0usize;
        while decoder.bit(&mut self.gap[quotient.min(15)]) {
            quotient += 1;
            if quotient > bound >> self.rice {
                return None;
            }
        }
        let low = usize::try_from(decoder.bits(self.rice.into())).ok()?;
        Some(quotient << self.rice | low).filter(|&gap| gap < bound)
    }

    fn put_block(&mut self, encoder: &mut Encoder, block: &[(usize, u32)]) {
        put_tree(encoder, &mut self.size, 7, block.len() - 1);
        let rank: u128 =
            block.iter().enumerate().map(|(i, (index, _))| BINOMIALS[index % CELLS_PER_BLOCK][i + 1]).sum();
        encoder.bits(rank, rank_bits(block.len()));
        let mut before = None;
        for &(_, by) in block {
            if let Some(before) = before {
                encoder.bit(&mut self.same, by == before);
            }
            if before != Some(by) {
                let width = by.ilog2();
                put_tree(encoder, &mut self.width, 5, width as usize);
                encoder.bits(by.into(), width);
            }
            before = Some(by);
        }
    }

    /// Appends the changes of a block. Bytes that are no coded block give changes that are not those of one either.
    fn take_block(&mut self, decoder: &mut Decoder<'_>, block: usize, changes: &mut Vec<(usize, u32)>) {
        let size = (take_tree(decoder, &mut self.size, 7) + 1).min(CELLS_PER_BLOCK);
        let mut rank = decoder.bits(rank_bits(size));
        let first = changes.len();
        let mut below = CELLS_PER_BLOCK;
        for i in (1..=size).rev() {
            // The largest cell whose sets of i come before the rank; i - 1 cells are left below it.
            let cell = (i - 1..below).rev().find(|&cell| BINOMIALS[cell][i] <= rank).unwrap_or(i - 1);
            rank = rank.saturating_sub(BINOMIALS[cell][i]);
            changes.push((block * CELLS_PER_BLOCK + cell, 0));
            below = cell;
        }
        changes[first..].reverse();
        let mut before = None;
        for (_, by) in &mut changes[first..] {
            *by = match before {
                Some(before) if decoder.bit(&mut self.same) => before,
                _ => {
                    let width = u32::try_from(take_tree(decoder, &mut self.width, 5)).unwrap_or(0);
                    1 << width | u32::try_from(decoder.bits(width)).unwrap_or(0)
                }
            };
            before = Some(*by);
        }
    }
}

fn put_tree(encoder: &mut Encoder, models: &mut [Model], depth: u32, value: usize) {
    let mut node = 1;
    for i in (0..depth).rev() {
        let bit = value >> i & 1 == 1;
        encoder.bit(&mut models[node], bit);
        node = node << 1 | usize::from(bit);
    }
}

fn take_tree(decoder: &mut Decoder<'_>, models: &mut [Model], depth: u32) -> usize {
    let mut node = 1;
    for _ in 0..depth {
        node = node << 1 | usize::from(decoder.bit(&mut models[node]));
    }
    node - (1 << depth)
}
