// SPDX-License-Identifier: GPL-3.0-or-later
//! The data that one server sends to another: updates, and marks in place of updates that are gone and whose counts have expired.

use crate::disk::errors::{damaged, unavailable};
use crate::disk::past::PAST;
use crate::disk::read::{Behind, Reader, before, unsealed};
use crate::disk::rows::unseal;
use crate::disk::schema::{META, UPDATES};
use crate::errors::LedgerError;
use bulkmark_counts::history::past::Past;
use bulkmark_counts::history::refusal::Refusal;
use bulkmark_counts::history::vector::{Mark, Origin, Vector};
use redb::{ReadOnlyTable, ReadTransaction, ReadableDatabase};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The data that another server lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    /// Beginnings of histories that it can skip, before the updates.
    pub past: Vec<Past>,
    /// Updates, oldest first for each origin.
    pub updates: Vec<Arc<[u8]>>,
}

type Updates = ReadOnlyTable<(u64, u64), &'static [u8]>;

impl Reader {
    /// Returns the part of `ours` that a server at `theirs` lacks, about `limit` bytes of it, at the time `now`. Skips an origin of which
    /// the other has another history: each keeps its own until both have expired. With `skip_gaps`, skips also an origin whose updates are
    /// gone although they still count.
    ///
    /// # Errors
    /// If such updates are gone, without `skip_gaps`: a snapshot may have them.
    pub fn missing_at_server(
        &self,
        ours: &Vector,
        theirs: &Vector,
        limit: usize,
        now: u64,
        skip_gaps: bool,
    ) -> Result<Missing, Behind> {
        let txn = self.db.begin_read().map_err(unavailable)?;
        let table = txn.open_table(UPDATES).map_err(unavailable)?;
        let gone = load_past(&txn)?;
        let (mut missing, mut bytes) = (Missing::default(), 0);
        for (origin, mark) in ours.iter() {
            let mut known = theirs.get(origin);
            if known.version >= mark.version || bytes >= limit {
                continue;
            }
            if let Some(past) = gone.get(&origin).filter(|past| known.version < past.mark.version) {
                if now < past.over_at {
                    if skip_gaps {
                        continue;
                    }
                    let version = past.mark.version + 1;
                    return Err(Refusal::Gap { origin, have: known.version, version }.into());
                }
                missing.past.push(*past);
                known = past.mark;
            }
            match following(&table, origin, known, mark, limit - bytes) {
                Ok(updates) => {
                    bytes += updates.iter().map(|update| update.len()).sum::<usize>();
                    missing.updates.extend(updates);
                }
                Err(Behind::Refused(Refusal::Fork { .. })) => (),
                Err(Behind::Refused(Refusal::Gap { .. })) if skip_gaps => (),
                Err(e) => return Err(e),
            }
        }
        Ok(missing)
    }
}

/// Returns the updates of an origin after `known`, up to `mark`.
fn following(
    table: &Updates,
    origin: Origin,
    known: Mark,
    mark: Mark,
    limit: usize,
) -> Result<Vec<Arc<[u8]>>, Behind> {
    let (mut updates, mut bytes, mut next) = (Vec::new(), 0, known.version + 1);
    for row in table.range((origin.0, next)..=(origin.0, mark.version)).map_err(unavailable)? {
        let (key, value) = row.map_err(unavailable)?;
        let (_, version) = key.value();
        let update = unsealed(origin, version, value.value())?;
        if version != next {
            break;
        }
        if updates.is_empty() && before(update) != Some(known.chain) {
            return Err(Refusal::Fork { origin, version }.into());
        }
        bytes += update.len();
        updates.push(update.into());
        next += 1;
        if bytes >= limit {
            break;
        }
    }
    if updates.is_empty() && known.version < mark.version {
        return Err(Refusal::Gap { origin, have: known.version, version: mark.version }.into());
    }
    Ok(updates)
}

/// Loads the record of updates that are no longer kept.
fn load_past(txn: &ReadTransaction) -> Result<BTreeMap<Origin, Past>, LedgerError> {
    let meta = txn.open_table(META).map_err(unavailable)?;
    let Some(row) = meta.get(PAST).map_err(unavailable)? else { return Ok(BTreeMap::new()) };
    let row = unseal("meta", PAST.as_bytes(), row.value())?;
    let all = Past::decode_all(row).ok_or_else(|| damaged("the record of deleted updates is invalid"))?;
    Ok(all.into_iter().map(|past| (past.origin, past)).collect())
}
