// SPDX-License-Identifier: GPL-3.0-or-later
//! The words of one reporter on one signature, and what they come to.

use bulkmark_types::{ReporterId, Signature, revocation};

/// Whose words, and of which nomination.
pub type VoiceKey = (ReporterId, Signature);

/// What the reporters of this mail server said by one tagged signature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Own {
    /// By how much its count is higher for it.
    pub units: u32,
    /// How many of them there are.
    pub reporters: u32,
}

/// What one reporter said of one signature at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// The beginning of the window in which it is counted.
    pub window: u64,
    /// Above zero for spam, below for none.
    pub units: i8,
    /// Where it is counted.
    pub told: Told,
}

/// Where a word is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Here alone.
    Here,
    /// Everywhere: others are told.
    All,
    /// It was sent, and nobody will ever say whether it was counted. It cannot be said again, which might count twice; and taking it back
    /// subtracts nothing, which might be of what others said.
    Unknown,
    /// The same, and it was taken back.
    Void,
}

impl Told {
    /// Whether it is known to count.
    pub(super) const fn is_known(self) -> bool {
        matches!(self, Self::Here | Self::All)
    }
}

/// What a word adds to what stands.
pub(super) fn units(word: &Word) -> i32 {
    word.units.into()
}

/// What one reporter's words add to what is known to count of them, for the nomination and against it.
pub(super) fn own_of(nomination: Signature, words: &[Word]) -> impl Iterator<Item = (Signature, Own)> {
    let sides = [(nomination, 1), (revocation(nomination), -1)];
    sides.into_iter().filter_map(|(signature, side)| {
        let of_side = words.iter().filter(|word| word.told.is_known() && word.units.signum() == side);
        let units = of_side.map(|word| u32::from(word.units.unsigned_abs())).sum();
        (units > 0).then_some((signature, Own { units, reporters: 1 }))
    })
}

/// What would stand of these words, and of one in `window`, if only the windows from each of theirs on were left.
pub(super) fn ends<'a, I: Iterator<Item = &'a Word>>(
    words: impl Fn() -> I,
    window: u64,
) -> impl Iterator<Item = i32> {
    let left = move |from: u64, words: I| {
        words.filter(|word| word.window >= from).map(|word| i32::from(word.units)).sum()
    };
    let windows = words().map(|word| word.window).filter(move |&from| from <= window);
    windows.chain([window]).map(move |from| left(from, words()))
}
