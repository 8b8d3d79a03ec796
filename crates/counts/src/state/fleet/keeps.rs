// SPDX-License-Identifier: GPL-3.0-or-later
//! What a member of a fleet keeps of what the steps tell: cells, of which any count can be asked; or the list of bulk, which is small. An
//! aggregator keeps both: of the cells it makes the next step, and by the list it knows what of bulk was told.

use crate::settings::{Federation, LocalCopy, Settings};
use crate::state::held::Held;
use crate::state::merged::MergedCounts;

/// Which of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeps {
    /// Whether it keeps cells.
    pub cells: bool,
    /// Whether it keeps the list of bulk.
    pub list: bool,
}

impl Keeps {
    /// What a ledger with these settings keeps. Only a milter has a client under which it reports.
    pub const fn of(settings: &Settings) -> Self {
        let federation = &settings.federation;
        let (is_milter, is_partial) =
            (federation.fleet_client.is_some(), matches!(federation.copy, LocalCopy::Partial));
        Self { cells: !(is_milter && is_partial), list: !is_milter || is_partial }
    }

    /// Has settings keep this, for whoever reads a milter's ledger and was not told how it is configured.
    pub fn put_into(self, federation: &mut Federation) {
        // What it is called matters to what is sent, and nothing is.
        federation.fleet_client = (!self.cells || !self.list).then(String::new);
        federation.copy = if self.cells { LocalCopy::Full } else { LocalCopy::Partial };
    }

    /// As a number, on disk.
    pub fn number(self) -> u8 {
        u8::from(self.cells) + 2 * u8::from(self.list)
    }

    /// None of any other number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1..=3 => Some(Self { cells: number & 1 > 0, list: number & 2 > 0 }),
            _ => None,
        }
    }
}

/// The counts that steps are added to.
pub struct Folded<'a> {
    pub(crate) merged: &'a mut MergedCounts,
    pub(crate) held: &'a mut Held,
    pub(crate) keeps: Keeps,
}
