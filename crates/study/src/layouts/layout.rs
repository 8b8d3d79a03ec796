// SPDX-License-Identifier: GPL-3.0-or-later
//! The cells of an element, their width, and the place for larger counts.

use bulkmark_filter::ParameterError;
use bulkmark_filter::internals::Packed;
use std::fmt;
use std::str::FromStr;

/// Cells of an element at most, the largest k of the paper's table 1.
pub const MOST_CELLS: usize = 16;

/// The number of an element's cells with further bits unless the layout sets it: as many as in the shipped filter.
const SPLIT_CELLS: usize = 3;

/// The place for counts that do not fit the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Nowhere: cells stay at their largest value.
    Saturating,
    /// The largest value means that there may be more. The further counts of the first so many cells of an element, whole
    /// numbers, are beside the cells as in the shipped filter; the others stay at their largest value.
    Split(usize),
    /// The paper's split storage (section 4): one bit of each cell means that there is more; the further bits of all cells are in
    /// hash tables, one for each chunk of the filter, keyed by the offset in it.
    Tables,
}

/// A layout of a refined counting filter.
///
/// Its text is `BLOCKSxCELLS/BITS`, then `+N` for the number of cells that have further counts, or `+paper` for the
/// paper's split storage. Without either it is three cells, or all when there are fewer; `+0` is a filter whose cells
/// saturate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    blocks: usize,
    cells: usize,
    bits: usize,
    storage: Storage,
}

/// The reason why a layout is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LayoutError {
    /// The text has another form.
    #[error("expected BLOCKSxCELLS/BITS such as 2x4/4, and +N or +paper behind it")]
    Form,
    /// The width is not among those that the study offers.
    #[error("bits of a cell is {0}, expected 4, 5 or 8")]
    Bits(usize),
    /// A parameter is out of its bounds.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
}

impl Layout {
    /// A layout with `cells` cells of `bits` bits in each of `blocks` blocks of an element.
    ///
    /// # Errors
    /// When a parameter is out of its bounds.
    pub fn new(blocks: usize, cells: usize, bits: usize, storage: Storage) -> Result<Self, LayoutError> {
        if ![4, 5, 8].contains(&bits) {
            return Err(LayoutError::Bits(bits));
        }
        let layout = Self { blocks, cells, bits, storage };
        let check = |name, found: usize, least: usize, most: usize| {
            ParameterError::check(name, found as u64, least as u64, most as u64)
        };
        check("blocks of an element", blocks, 1, MOST_CELLS)?;
        check("cells of an element in a block", cells, 1, layout.cells_per_block())?;
        check("cells of an element", blocks * cells, 1, MOST_CELLS)?;
        if let Storage::Split(further) = storage {
            check("cells with further counts", further, 0, blocks * cells)?;
        }
        let storage = if storage == Storage::Split(0) { Storage::Saturating } else { storage };
        Ok(Self { storage, ..layout })
    }

    /// Blocks of an element, each a cache line.
    #[must_use]
    pub const fn blocks(&self) -> usize {
        self.blocks
    }

    /// Cells of an element in each of its blocks.
    #[must_use]
    pub const fn cells(&self) -> usize {
        self.cells
    }

    /// Cells of an element (the paper's k).
    #[must_use]
    pub const fn k(&self) -> usize {
        self.blocks * self.cells
    }

    /// Bits of a cell.
    #[must_use]
    pub const fn bits(&self) -> usize {
        self.bits
    }

    /// The place for counts that do not fit the cells.
    #[must_use]
    pub const fn storage(&self) -> Storage {
        self.storage
    }

    /// Cells of a block.
    #[must_use]
    pub const fn cells_per_block(&self) -> usize {
        match self.bits {
            4 => Packed::<4>::PER_BLOCK,
            5 => Packed::<5>::PER_BLOCK,
            _ => Packed::<8>::PER_BLOCK,
        }
    }

    /// The largest count for which no split storage is needed; without split storage the largest count.
    #[must_use]
    pub const fn fits(&self) -> u32 {
        match self.storage {
            Storage::Tables => (1 << (self.bits - 1)) - 1,
            _ => (1 << self.bits) - 1,
        }
    }

    /// Whether a filter of this layout can show that a count is `threshold` or more.
    #[must_use]
    pub fn tells(&self, threshold: u32) -> bool {
        self.storage != Storage::Saturating || threshold <= self.fits()
    }

    /// The layouts that the study compares by default: the shipped one first.
    #[must_use]
    pub fn standard() -> Vec<Self> {
        STANDARD.iter().filter_map(|text| text.parse().ok()).collect()
    }
}

/// The shipped layout; variants in one respect; then the paper's cells of five bits, and others.
const STANDARD: [&str; 19] = [
    "2x4/4",
    "2x4/4+1",
    "2x4/4+2",
    "2x4/4+4",
    "2x4/4+8",
    "2x3/4",
    "2x5/4",
    "2x6/4",
    "1x8/4",
    "4x2/4",
    "8x1/4",
    "2x3/5",
    "2x4/5",
    "8x1/5",
    "2x4/5+0",
    "2x4/5+paper",
    "8x1/5+paper",
    "2x4/8",
    "2x4/8+paper",
];

impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let number = |text: &str| text.parse::<usize>().map_err(|_| LayoutError::Form);
        let (shape, storage) = text.split_once('+').map_or((text, None), |(a, b)| (a, Some(b)));
        let (blocks, rest) = shape.split_once('x').ok_or(LayoutError::Form)?;
        let (cells, bits) = rest.split_once('/').ok_or(LayoutError::Form)?;
        let (blocks, cells, bits) = (number(blocks)?, number(cells)?, number(bits)?);
        let storage = match storage {
            None => Storage::Split(SPLIT_CELLS.min(blocks.saturating_mul(cells))),
            Some("paper") => Storage::Tables,
            Some(further) => Storage::Split(number(further)?),
        };
        Self::new(blocks, cells, bits, storage)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks, cells, bits, storage } = self;
        let storage = match storage {
            Storage::Saturating => "+0".to_owned(),
            Storage::Split(further) if *further == SPLIT_CELLS.min(self.k()) => String::new(),
            Storage::Split(further) => format!("+{further}"),
            Storage::Tables => "+paper".to_owned(),
        };
        f.pad(&format!("{blocks}x{cells}/{bits}{storage}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_layout_agree() {
        for text in STANDARD {
            assert_eq!(text.parse::<Layout>().unwrap().to_string(), text);
        }
        assert_eq!("2x4/4+3".parse::<Layout>().unwrap().to_string(), "2x4/4");
        assert_eq!("1x2/5".parse::<Layout>().unwrap().storage(), Storage::Split(2));
        assert_eq!(Layout::standard().len(), STANDARD.len());
    }

    #[test]
    fn each_error_names_its_parameter() {
        let error = |text: &str| text.parse::<Layout>().unwrap_err().to_string();
        for text in ["", "2x4", "2/4", "x/", "2x4/4+", "2x4/4+papers", "-1x4/4", "2x4/4/4"] {
            assert_eq!(error(text), "expected BLOCKSxCELLS/BITS such as 2x4/4, and +N or +paper behind it");
        }
        for (text, expected) in [
            ("0x4/4", "blocks of an element is 0, expected 1 to 16"),
            ("17x1/4", "blocks of an element is 17, expected 1 to 16"),
            ("2x0/4", "cells of an element in a block is 0, expected 1 to 128"),
            ("1x103/5", "cells of an element in a block is 103, expected 1 to 102"),
            ("1x65/8", "cells of an element in a block is 65, expected 1 to 64"),
            ("3x6/4", "cells of an element is 18, expected 1 to 16"),
            ("2x4/6", "bits of a cell is 6, expected 4, 5 or 8"),
            ("2x4/4+9", "cells with further counts is 9, expected 0 to 8"),
        ] {
            assert_eq!(error(text), expected);
        }
    }
}
