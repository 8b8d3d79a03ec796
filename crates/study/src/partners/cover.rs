// SPDX-License-Identifier: GPL-3.0-or-later
//! Ways to spend a quota of signatures on cells.

use super::aim::signature;
use crate::random::below;
use bulkmark_filter::CELLS_PER_BLOCK;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::fmt;

/// Halves of signatures, of four cells each, that take all cells of a block.
const HALVES: usize = CELLS_PER_BLOCK / 4;

/// The attackers' choice of signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// All cells of as many blocks as the quota reaches: no other choice has as many signatures with all cells in it.
    Whole,
    /// All cells of some blocks, and of the others as many blocks and cells as honest signatures take.
    Unnoticed,
    /// Random signatures.
    Random,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Whole, Self::Unnoticed, Self::Random];

    /// The blocks whose cells are all taken by `signatures` signatures, of so many.
    #[must_use]
    pub fn whole_blocks(self, signatures: usize, blocks: usize) -> usize {
        match self {
            Self::Whole => 2 * signatures / HALVES,
            // The rest, when all blocks of honest signatures have one half.
            Self::Unnoticed => (2 * signatures).saturating_sub(touched(signatures, blocks)) / (HALVES - 1),
            Self::Random => 0,
        }
    }

    /// The signatures that cover the set of this number, of all that the attackers cover, and the reports of each, at most
    /// `influence`.
    pub(super) fn signatures(self, set: usize, spending: Spending, influence: u32) -> Vec<(u128, u32)> {
        let Spending { signatures, blocks, sets } = spending;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(set as u64);
        if self == Self::Random {
            let mut number = |_: usize| u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
            return (0..signatures).map(|n| (number(n), influence)).collect();
        }
        let whole = self.whole_blocks(signatures, blocks);
        // Sets have no block in common while there are enough of them, and then are regrouped.
        let together = (blocks / whole.max(1)).max(1);
        let mut grouping = Xoshiro256PlusPlus::seed_from_u64(1 << 32 | (set / together) as u64);
        let places = shuffled((0..blocks).collect(), &mut grouping);
        let first = set % together * whole;
        let all = places[first..first + whole].iter();
        let halves = all.flat_map(|&block| (0..HALVES).map(move |j| (block, four(j)))).collect::<Vec<_>>();
        let mut found = paired(&halves, blocks, influence);
        if self == Self::Unnoticed {
            // Blocks beyond the sets.
            let beyond = (sets.min(together) * whole).min(blocks);
            let others = shuffled(places[beyond..].to_vec(), &mut random).into_iter();
            let of_sets =
                places[..beyond].iter().filter(|block| !places[first..first + whole].contains(block));
            let single = (2 * signatures).saturating_sub(halves.len());
            // Honest signatures sometimes fall on others' cells; each of these takes two cells less.
            let shared = (8 * signatures).saturating_sub(taken(signatures, blocks)) / 2;
            let half = |(i, block)| {
                let cells = [(); 4].map(|()| cell(drawn(&mut random, CELLS_PER_BLOCK)));
                let twice = [cells[0], cells[0], cells[1], cells[1]];
                // More and more of them.
                (block, if i + shared >= single { twice } else { cells })
            };
            let singles =
                others.chain(of_sets.copied()).take(single).enumerate().map(half).collect::<Vec<_>>();
            found = in_turn(found, paired(&singles, blocks, 1), blocks);
        }
        found
    }
}

/// The attackers' budget.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spending {
    /// Signatures of one partner in one window.
    pub(super) signatures: usize,
    /// Blocks of the filter.
    pub(super) blocks: usize,
    /// Sets that are covered.
    pub(super) sets: usize,
}

/// Signatures of two halves each, one of the first and one of the second half of them: seldom of the same block.
fn paired(halves: &[(usize, [u8; 4])], blocks: usize, times: u32) -> Vec<(u128, u32)> {
    let (firsts, seconds) = halves.split_at(halves.len() / 2);
    firsts.iter().zip(seconds).map(|(&a, &b)| (signature(blocks, [a, b]), times)).collect()
}

/// In the order in which honest signatures touch one block after another, since the server checks all the time.
fn in_turn(whole: Vec<(u128, u32)>, singles: Vec<(u128, u32)>, blocks: usize) -> Vec<(u128, u32)> {
    let (mut whole, mut singles) = (whole.into_iter(), singles.into_iter());
    let (mut all, mut reached) = (Vec::new(), 0);
    loop {
        // Those of whole blocks seldom touch another block.
        let single = if reached < touched(all.len() + 1, blocks) { singles.next() } else { None };
        reached += 2 * usize::from(single.is_some());
        match single.or_else(|| whole.next()).or_else(|| singles.next()) {
            Some(next) => all.push(next),
            None => return all,
        }
    }
}

fn shuffled(mut all: Vec<usize>, random: &mut dyn Rng) -> Vec<usize> {
    for i in (1..all.len()).rev() {
        all.swap(i, drawn(random, i + 1));
    }
    all
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Whole => "whole blocks",
            Self::Unnoticed => "unnoticed",
            Self::Random => "random",
        })
    }
}

/// Four cells of a block, unique for this number.
fn four(number: usize) -> [u8; 4] {
    std::array::from_fn(|i| cell(4 * number + i))
}

#[expect(clippy::cast_possible_truncation, reason = "a block has 128")]
fn cell(number: usize) -> u8 {
    number as u8
}

#[expect(clippy::cast_possible_truncation, reason = "a filter has at most 2^32 blocks")]
fn drawn(random: &mut dyn Rng, bound: usize) -> usize {
    below(random, bound as u32) as usize
}

/// Blocks that so many honest signatures touch.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and no more than there are"
)]
fn touched(signatures: usize, blocks: usize) -> usize {
    let load = 2.0 * signatures as f64 / blocks as f64;
    (blocks as f64 * (1.0 - (-load).exp())) as usize
}

/// Cells that so many honest signatures take.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and no more than there are"
)]
fn taken(signatures: usize, blocks: usize) -> usize {
    let (load, cells) = (2.0 * signatures as f64 / blocks as f64, CELLS_PER_BLOCK as f64);
    let of_half = 1.0 - ((cells - 1.0) / cells).powi(4);
    (blocks as f64 * cells * (1.0 - (-load * of_half).exp())) as usize
}
