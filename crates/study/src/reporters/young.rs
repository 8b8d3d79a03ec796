// SPDX-License-Identifier: GPL-3.0-or-later
//! A site without trusted users, and accounts of one owner that vouch for each other.

use super::people::Lie;
use super::world::{Accounts, Day, Weights, World};
use bulkmark_trust::Settings;

/// The hours after which weights are recorded.
pub const HOURS: [u64; 9] = [12, 24, 48, 60, 72, 120, 240, 480, 719];

/// The accounts of one owner, so many that their reports make spam while nobody is trusted.
const ACCOUNTS: u32 = 12;

/// Mailings a day that they send to themselves.
const OWN: u32 = 20;

/// The day on which they begin to report all others' ham as spam, and all others' spam as ham.
const TURN: u32 = 20;

/// The starting points of trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeds {
    /// People for whom the administrator vouches.
    pub vouched: u32,
    /// The number in a hundred spam mailings that reach a trap.
    pub trapped: u32,
}

/// Runs thirty days of such a site with so many people; on the twenty-first the accounts begin to lie.
#[must_use]
pub fn young(people: u32, Seeds { vouched, trapped }: Seeds, seed: u64) -> (Vec<Day>, Vec<Weights>) {
    let accounts = Some(Accounts { number: ACCOUNTS, day: 0, lie: Lie::Sleeper(TURN), own: OWN });
    let (lie, settings) = (Lie::Silent, Settings::default());
    let world = World {
        people,
        liars: 0,
        lie,
        eager: false,
        vouched,
        trapped,
        accounts,
        days: 30,
        trust: true,
        settings,
        seed,
    };
    world.watch(&HOURS)
}
