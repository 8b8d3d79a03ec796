// SPDX-License-Identifier: GPL-3.0-or-later
//! The data that a fleet's member keeps from the steps: cells, which have all counts; or the list of bulk, which is small. An aggregator
//! keeps both: the cells for the next step, and the list to know which counts were announced.

use crate::settings::{Federation, LocalCopy, Settings};
use crate::state::bulk_counts::BulkCounts;
use crate::state::merged::MergedCounts;

/// The kept data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeps {
    /// Whether it keeps cells.
    pub cells: bool,
    /// Whether it keeps the list of bulk.
    pub list: bool,
}

impl Keeps {
    /// The data that a ledger with these settings keeps. Only a milter has a client name for its reports.
    pub const fn of(settings: &Settings) -> Self {
        let federation = &settings.federation;
        let (is_milter, is_partial) =
            (federation.fleet_client.is_some(), matches!(federation.copy, LocalCopy::Partial));
        Self { cells: !(is_milter && is_partial), list: !is_milter || is_partial }
    }

    /// Changes settings to keep this, for reading a milter's ledger without its configuration.
    pub fn put_into(self, federation: &mut Federation) {
        // The name only matters for sending, and nothing is sent.
        federation.fleet_client = (!self.cells || !self.list).then(String::new);
        federation.copy = if self.cells { LocalCopy::Full } else { LocalCopy::Partial };
    }

    /// Its number on disk.
    pub fn number(self) -> u8 {
        u8::from(self.cells) + 2 * u8::from(self.list)
    }

    /// `None` for any other number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1..=3 => Some(Self { cells: number & 1 > 0, list: number & 2 > 0 }),
            _ => None,
        }
    }
}

/// The counts that steps are added to.
pub struct FoldTarget<'a> {
    pub(crate) merged: &'a mut MergedCounts,
    pub(crate) held: &'a mut BulkCounts,
    /// The reason why memory and file cannot be made to agree any more.
    pub(crate) broken: &'a mut Option<String>,
    pub(crate) keeps: Keeps,
}
