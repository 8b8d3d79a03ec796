// SPDX-License-Identifier: GPL-3.0-or-later
//! The rows of updates that a ledger keeps for others: the last ones of each origin, without a gap, up to its mark.

use bulkmark_counts::history::past::{Past, over_at};
use bulkmark_counts::history::vector::{Chain, Mark, Origin};
use bulkmark_counts::history::window::Calendar;
use bulkmark_counts::state::expired::Expired;
use bulkmark_counts::state::roles::State;
use redb::{ReadableTable, Table};

/// The table of updates, open for writing.
pub(crate) type Updates<'a> = Table<'a, (u64, u64), &'static [u8]>;

/// Splits a row into the time when the update came and its bytes. The checksum after them is checked when the update is sent.
fn parts(row: &[u8]) -> Option<(u64, &[u8])> {
    let (at, rest) = row.split_first_chunk()?;
    Some((u64::from_le_bytes(*at), rest.split_last_chunk::<4>()?.0))
}

/// Drops updates of a holder: it keeps none, unless it is a member of a fleet that others follow; then as long as a server does for milters.
pub(crate) fn drop_of_holder(
    mut table: Updates<'_>,
    state: &State,
    expired: &Expired,
) -> Result<(), redb::Error> {
    if !state.counts().settings.federation.serves {
        return Ok(table.retain(|_, _| false)?);
    }
    let Some(before) = expired.updates_before else { return Ok(()) };
    let (vector, mut next) = (state.vector(), 0);
    // For each origin with updates, known or not.
    loop {
        let first = table.range((next, 0)..)?.next().transpose()?;
        let Some(origin) = first.map(|(key, _)| key.value().0) else { break };
        let newest = vector.get(Origin(origin)).version;
        drop_first(&mut table, origin, u64::MAX, |version, row| {
            version == newest || parts(row).is_some_and(|(at, _)| at >= before)
        })?;
        let Some(behind) = origin.checked_add(1) else { break };
        next = behind;
    }
    Ok(())
}

/// Deletes the first updates of an origin that are below `end`, up to the first that `stays`. It reads no row after that one.
fn drop_first(
    table: &mut Updates<'_>,
    origin: u64,
    end: u64,
    mut stays: impl FnMut(u64, &[u8]) -> bool,
) -> Result<(), redb::Error> {
    let mut gone = None;
    for row in table.range((origin, 0)..(origin, end))? {
        let (key, row) = row?;
        let (_, version) = key.value();
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + 1);
        if stays(version, row.value()) {
            break;
        }
        gone = Some(version);
    }
    if let Some(last) = gone {
        table.retain_in((origin, 0)..=(origin, last), |_, _| false)?;
    }
    Ok(())
}

#[cfg(test)]
thread_local! {
    static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The rule for updates that may be deleted.
pub(crate) struct Rule {
    /// Updates that came before this time.
    pub(crate) before: u64,
    /// Of these, only updates whose counts have expired at this time; all, if no other server needs them.
    pub(crate) over: Option<u64>,
    pub(crate) calendar: Calendar,
}

impl Rule {
    /// Deletes the first updates of an origin, as far as the rule allows. Returns the last of them as a mark.
    pub(crate) fn drop_of(
        &self,
        table: &mut Updates<'_>,
        origin: Origin,
        mark: Mark,
    ) -> Result<Option<Past>, redb::Error> {
        let mut gone = None::<Past>;
        drop_first(table, origin.0, mark.version, |version, row| {
            let found =
                parts(row).and_then(|(at, update)| Some((at, update, over_at(self.calendar, update)?)));
            let Some((at, update, over_at)) = found else { return true };
            let stays = at >= self.before || self.over.is_some_and(|now| now < over_at);
            if !stays {
                let over_at = gone.map_or(0, |past: Past| past.over_at).max(over_at);
                gone = Some(Past { origin, mark: Mark { version, chain: Chain::of(update) }, over_at });
            }
            stays
        })?;
        Ok(gone)
    }
}

/// After a snapshot or a skipped beginning: deletes kept updates of an origin that do not reach its mark, which are useless.
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

/// Returns the mark before the first kept update of an origin; the origin's own `mark` if there is none.
pub(crate) fn before_first(table: &Updates<'_>, origin: Origin, mark: Mark) -> Result<Mark, redb::Error> {
    let first = table.range((origin.0, 0)..=(origin.0, u64::MAX))?.next().transpose()?;
    Ok(first.map_or(mark, |(key, row)| {
        let chain = parts(row.value()).and_then(|(_, update)| update.get(16..32)?.try_into().ok());
        Mark { version: key.value().1.saturating_sub(1), chain: Chain(chain.unwrap_or_default()) }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::schema::UPDATES;
    use bulkmark_counts::settings::Settings;
    use redb::backends::InMemoryBackend;

    /// However many updates are kept, a checkpoint reads only those to delete, and one more.
    #[test]
    fn updates_that_stay_are_not_read() {
        let db = redb::Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let txn = db.begin_write().unwrap();
        let mut table = txn.open_table(UPDATES).unwrap();
        let update = [&[0; 32][..], &[7; 4]].concat();
        for version in 1..=3000u64 {
            // The update counts nothing, so it expires by the time when it came.
            let row = [&version.to_le_bytes()[..], &update[..32], &[0; 4]].concat();
            table.insert((5, version), &*row).unwrap();
        }
        let calendar = Calendar::new(&Settings::default());
        let looks = |table: &mut Updates<'_>, before| {
            let seen = LOOKS.get();
            let rule = Rule { before, over: None, calendar };
            let mark = Mark { version: 3000, ..Mark::default() };
            let gone = rule.drop_of(table, Origin(5), mark).unwrap();
            (gone.map(|past| past.mark.version), LOOKS.get() - seen)
        };
        assert_eq!(looks(&mut table, 0), (None, 1));
        assert_eq!(looks(&mut table, 11), (Some(10), 11));
        assert_eq!(looks(&mut table, 11), (None, 1));
        // The newest always stays.
        assert_eq!(looks(&mut table, 5000), (Some(2999), 2989));
    }
}
