// SPDX-License-Identifier: GPL-3.0-or-later
//! Several conspiring partners of one server.

use super::aim::blocks;
use super::cover::{Spending, Way};
use bulkmark_counts::{Durability, Limits, MAX_BATCH, NotCounted, Reporter, Role};
use bulkmark_filter::{CELLS_AT_CAPACITY, CELLS_PER_ELEMENT};
use bulkmark_ledger::{Ledger, LedgerError, OpenError};
use bulkmark_types::{FederationKey, Signature};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::num::NonZeroU32;

const DAY: u64 = 86_400;

/// A noon, after which the attack begins.
const NOON: u64 = 20_000 * DAY + DAY / 2;

/// Windows that count: the retention.
const WINDOWS: u32 = 7;

/// The conspirators and their target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conspiracy {
    /// Partners.
    pub partners: u32,
    /// The most that each may add to a cell.
    pub influence: NonZeroU32,
    /// The different signatures of each in a window, in millionths of the capacity.
    pub quota: u32,
    /// The count from which on a message is bulk.
    pub threshold: u32,
    /// Signatures for which a window is made.
    pub capacity: NonZeroU32,
}

/// The result on a ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// The share of strange signatures that rose by the wanted amount.
    pub share: f64,
    /// Partners whom the server reports for made-up signatures.
    pub noticed: usize,
}

/// A trial failed.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// There is no directory for a ledger.
    #[error("cannot make a directory: {0}")]
    Io(#[from] std::io::Error),
    /// The ledger cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A batch was not counted.
    #[error(transparent)]
    NotCounted(#[from] NotCounted),
}

impl Conspiracy {
    /// The rise that a signature with the count `seen` needs to be bulk.
    #[must_use]
    pub const fn rise(&self, seen: u32) -> u32 {
        self.threshold.saturating_sub(seen)
    }

    /// The number of partners that raise a signature by so much.
    #[must_use]
    pub const fn needed(&self, rise: u32) -> u32 {
        rise.div_ceil(self.influence.get())
    }

    /// Different signatures of one partner in a window.
    fn signatures(&self) -> usize {
        (self.capacity.get() as usize) * (self.quota as usize) / 1_000_000
    }

    /// The sets of blocks that can be covered by as many partners as it takes: each partner covers one set a window.
    fn sets(&self, rise: u32) -> u32 {
        match self.needed(rise) {
            0 => 0,
            needed if needed > self.partners => 0,
            needed => self.partners * WINDOWS / needed,
        }
    }

    /// The share of signatures, of any mail, that they can raise by so much: those with both blocks in one of the sets.
    #[must_use]
    pub fn computed(&self, rise: u32) -> f64 {
        let covered = CELLS_PER_ELEMENT as f64 * f64::from(self.quota) / 1e6 / CELLS_AT_CAPACITY;
        (f64::from(self.sets(rise)) * covered * covered).min(1.0)
    }

    /// The same without being noticed by the server.
    #[must_use]
    pub fn computed_unnoticed(&self, rise: u32) -> f64 {
        let all = blocks(self.capacity.get());
        let covered = Way::Unnoticed.whole_blocks(self.signatures(), all) as f64 / all as f64;
        (f64::from(self.sets(rise)) * covered * covered).min(1.0)
    }

    /// Makes a ledger count their reports, which raise signatures by `rise` on seven days, and looks up `samples` others.
    ///
    /// # Errors
    /// When the ledger fails.
    pub async fn tried(&self, way: Way, rise: u32, samples: u32) -> Result<Tried, TrustError> {
        let directory = tempfile::tempdir()?;
        let settings = bulkmark_counts::Settings {
            capacity: self.capacity,
            durability: Durability::Relaxed,
            ..bulkmark_counts::Settings::default()
        };
        let ledger = Ledger::open(directory.path(), Role::Server, &settings, &FederationKey::public())?;
        let needed = self.needed(rise).min(self.partners);
        let sets = self.partners * WINDOWS / needed.max(1);
        let spending = Spending {
            signatures: self.signatures(),
            blocks: blocks(self.capacity.get()),
            sets: sets as usize,
        };
        for turn in 0..sets * needed {
            // Partners take turns, so that a set has different ones, and each has a window for each of its sets.
            let (partner, window) = (turn % self.partners, u64::from(turn / self.partners));
            let signatures = way.signatures((turn / needed) as usize, spending, self.influence.get());
            self.report(&ledger, partner, &signatures, NOON + window * DAY).await?;
        }
        let now = NOON + u64::from(WINDOWS - 1) * DAY;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::MAX);
        let mut raised = 0;
        for _ in 0..samples {
            let bits = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
            let count = ledger.count(Signature::from_bytes(bits.to_be_bytes()), now).await?;
            raised += u32::from(count >= rise);
        }
        let status = ledger.status(None).await?;
        let noticed = status.limited.iter().filter(|client| client.odd.is_some()).count();
        ledger.close().await?;
        Ok(Tried { share: f64::from(raised) / f64::from(samples), noticed })
    }

    async fn report(
        &self,
        ledger: &Ledger,
        partner: u32,
        signatures: &[(u128, u32)],
        now: u64,
    ) -> Result<(), TrustError> {
        let limits = Limits { influence: self.influence.get(), quota: self.quota };
        let client = format!("partner{partner}");
        for (number, batch) in (1..).zip(signatures.chunks(MAX_BATCH)) {
            let reporter = Reporter { client: client.clone(), spool: now };
            let reports = batch
                .iter()
                .map(|&(bits, times)| (Signature::from_bytes(bits.to_be_bytes()), times))
                .collect();
            ledger.take_batch(reporter, number, reports, Some(limits), now).await??;
        }
        Ok(())
    }
}
