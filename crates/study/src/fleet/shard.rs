// SPDX-License-Identifier: GPL-3.0-or-later
//! The limits of one chain, and so when signatures must be sharded by prefix.

use super::plan::{Load, Needs, Plan};

/// The largest snapshot that fits into NATS in addition to the two that are kept (`crates/sync/src/log/nats/streams.rs`).
pub const SNAPSHOT: f64 = (1 << 30) as f64;

/// Batches a second that a log took on two shared cores: three nodes of NATS with `sync_interval: always`, in a prototype, and
/// PostgreSQL (docs/fleet-postgres.md).
pub const NATS_BATCHES: f64 = 2660.0;
/// See [`NATS_BATCHES`].
pub const POSTGRES_BATCHES: f64 = 6500.0;

/// The resources of a site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Bytes of memory of an aggregator, and of a milter.
    pub aggregator: f64,
    /// See `aggregator`.
    pub milter: f64,
    /// Bytes a second to a milter.
    pub down: f64,
    /// Bytes a second from an aggregator, for snapshots.
    pub snapshots: f64,
    /// The load of the busiest hour, as a multiple of the average.
    pub busy: f64,
}

/// A resource with a limit for one chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Its name.
    pub what: &'static str,
    /// The used part, where 1 is all.
    pub used: f64,
    /// Whether more shards leave less of it to each.
    pub sharding_helps: bool,
}

/// The used part of each limit.
#[must_use]
pub fn limits(plan: &Plan, load: &Load, needs: &Needs, budget: &Budget) -> Vec<Limit> {
    let limit = |what, used, sharding_helps| Limit { what, used, sharding_helps };
    let batches = if plan.engine == super::plan::Engine::Postgres { POSTGRES_BATCHES } else { NATS_BATCHES };
    let mut all = vec![
        limit("memory of an aggregator", needs.aggregator / budget.aggregator, true),
        limit("time for steps, one after the other", budget.busy * needs.serial, true),
        limit("a snapshot in the log", needs.snapshot / SNAPSHOT, true),
        limit("putting snapshots", needs.snapshots / budget.snapshots, true),
        limit("batches that the log takes", budget.busy * load.batches / batches, false),
        limit("memory of a milter that holds all", needs.milter / budget.milter, false),
        limit("memory of a milter that holds bulk", needs.partial / budget.milter, false),
        limit("bytes to a milter", budget.busy * needs.down / budget.down, false),
    ];
    if plan.engine != super::plan::Engine::Nats {
        all.retain(|limit| limit.what != "a snapshot in the log");
    }
    all
}

/// The fewest shards, a power of two, that keep a chain below each limit.
#[must_use]
pub fn shards(limits: &[Limit]) -> u32 {
    let most = limits.iter().filter(|limit| limit.sharding_helps).map(|limit| limit.used).fold(0.0, f64::max);
    (0..20).map(|bits| 1 << bits).find(|&shards| f64::from(shards) >= most).unwrap_or(1 << 20)
}

#[cfg(test)]
mod tests {
    use bulkmark_filter::Probe;

    /// Blocks of a shard's filter.
    const BLOCKS: usize = 1000;

    /// Sixteen shards by the first four bits: the signatures of one have all first blocks in a sixteenth of its filter, unless those
    /// bits are shifted out. So a shard looks up and counts the bits behind its prefix.
    #[test]
    fn a_shard_is_probed_behind_its_prefix() {
        let signature =
            |n: usize| u128::from_be_bytes(super::super::traffic::signature(n, 0).to_bytes()) >> 4 | 5 << 124;
        let reached = |shift: u32| {
            let half = |n: usize| {
                let [high, low] =
                    [64, 0].map(|at| u64::try_from(signature(n) >> at & u128::from(u64::MAX)).unwrap());
                u128::from(high << shift) << 64 | u128::from(low)
            };
            let mut blocks: Vec<_> = (0..50_000).map(|n| Probe::new(half(n), BLOCKS).blocks[0]).collect();
            blocks.sort_unstable();
            blocks.dedup();
            blocks.len()
        };
        assert_eq!((reached(0), reached(4)), (BLOCKS / 16 + 1, BLOCKS));
    }
}
