// SPDX-License-Identifier: GPL-3.0-or-later
//! The rows of updates that a ledger keeps for others: of each origin the last ones, without a gap, up to its mark.

use bulkmark_counts::history::past::{Past, over_at};
use bulkmark_counts::history::vector::{Chain, Mark, Origin};
use bulkmark_counts::history::window::Calendar;
use bulkmark_counts::state::expired::Expired;
use bulkmark_counts::state::roles::State;
use redb::{ReadableTable, Table};

/// The table of updates, open for writing.
pub(crate) type Updates<'a> = Table<'a, (u64, u64), &'static [u8]>;

/// An update in its row: when it came, and its bytes. The checksum behind them is looked at when it is handed on.
fn parts(row: &[u8]) -> Option<(u64, &[u8])> {
    let (at, rest) = row.split_first_chunk()?;
    Some((u64::from_le_bytes(*at), rest.split_last_chunk::<4>()?.0))
}

/// A holder keeps none, unless it is one of a fleet whom others follow: then as long as a server does for milters.
pub(crate) fn drop_of_holder(
    mut table: Updates<'_>,
    state: &State,
    expired: &Expired,
) -> Result<(), redb::Error> {
    if !state.counts().settings.federation.serves {
        return Ok(table.retain(|_, _| false)?);
    }
    let Some(before) = expired.updates_before else { return Ok(()) };
    let vector = state.vector();
    table.retain(|(origin, version), row| {
        parts(row).is_some_and(|(at, _)| at >= before) || vector.get(Origin(origin)).version == version
    })?;
    Ok(())
}

/// Which updates may go.
pub(crate) struct Rule {
    /// Those that came before this time.
    pub(crate) before: u64,
    /// Of these, such as count nowhere at this time any more; all, where no other server is to be told.
    pub(crate) over: Option<u64>,
    pub(crate) calendar: Calendar,
}

impl Rule {
    /// Takes out the first updates of an origin, as far as they may go. Returns the end of what is gone.
    pub(crate) fn drop_of(
        &self,
        table: &mut Updates<'_>,
        origin: Origin,
        mark: Mark,
    ) -> Result<Option<Past>, redb::Error> {
        let (mut gone, mut kept) = (None::<Past>, false);
        table.retain_in((origin.0, 0)..(origin.0, mark.version), |(_, version), row| {
            let found =
                parts(row).and_then(|(at, update)| Some((at, update, over_at(self.calendar, update)?)));
            let Some((at, update, over_at)) = found else {
                kept = true;
                return true;
            };
            kept |= at >= self.before || self.over.is_some_and(|now| now < over_at);
            if !kept {
                let over_at = gone.map_or(0, |past: Past| past.over_at).max(over_at);
                gone = Some(Past { origin, mark: Mark { version, chain: Chain::of(update) }, over_at });
            }
            kept
        })?;
        Ok(gone)
    }
}

/// After a snapshot, or a step over what is over: what is kept of an origin does not reach its mark, and is of no more use.
pub(crate) fn forget_before_marks(table: &mut Updates<'_>, state: &State) -> Result<(), redb::Error> {
    for (origin, mark) in state.vector().iter() {
        let last = table.range((origin.0, 0)..=(origin.0, u64::MAX))?.next_back().transpose()?;
        let last = last.map_or(0, |(key, _)| key.value().1);
        if last < mark.version {
            table.retain_in((origin.0, 0)..=(origin.0, u64::MAX), |_, _| false)?;
        }
    }
    Ok(())
}

/// The mark before the first update of an origin that is kept; the origin's own `mark`, where none is.
pub(crate) fn before_first(table: &Updates<'_>, origin: Origin, mark: Mark) -> Result<Mark, redb::Error> {
    let first = table.range((origin.0, 0)..=(origin.0, u64::MAX))?.next().transpose()?;
    Ok(first.map_or(mark, |(key, row)| {
        let chain = parts(row.value()).and_then(|(_, update)| update.get(16..32)?.try_into().ok());
        Mark { version: key.value().1.saturating_sub(1), chain: Chain(chain.unwrap_or_default()) }
    }))
}
