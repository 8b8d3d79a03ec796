// SPDX-License-Identifier: GPL-3.0-or-later
//! The assembly of a fleet's snapshot from its parts.

use crate::history::fleet_mark::FleetMark;
use crate::history::refusal::StepRefusal;
use crate::history::row::Row;
use crate::settings::Settings;
use crate::state::allowance::Allowance;
use crate::state::bulk_counts::BulkCounts;
use crate::state::fleet::fold::{Fleet, check_parameters};
use crate::state::fleet::keeps::Keeps;
use crate::state::fleet::marks::KnownMark;
use crate::state::fleet::parts::{Entry, Head, Unpacker, other_part};
use crate::state::merged::MergedCounts;
use crate::state::note_queue::LEAST_BOUND;

/// The received part of a snapshot. A milter with a partial copy needs only the first parts.
pub struct FleetAssembly {
    /// The required key and window, and the time, if they are known.
    like: Option<(u64, u64, u64)>,
    unpacker: Unpacker,
    keeps: Keeps,
    /// Whether nothing of it is kept.
    skims: bool,
    merged: MergedCounts,
    allowance: Allowance,
    held: BulkCounts,
    sections: u64,
    head: Option<Head>,
    fleet: Fleet,
    rows: u64,
    marks: u64,
    complete: bool,
}

/// The content of a fleet's snapshot.
pub struct Assembled {
    /// The state of its chain.
    pub head: Head,
    pub(crate) merged: MergedCounts,
    pub(crate) held: BulkCounts,
    pub(crate) fleet: Fleet,
}

fn junk(what: &(impl ToString + ?Sized)) -> StepRefusal {
    StepRefusal::Junk(format!("the snapshot cannot be used: {}", what.to_string()))
}

impl FleetAssembly {
    /// An empty assembly.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            like: None,
            unpacker: Unpacker::default(),
            keeps: Keeps::of(settings),
            skims: false,
            merged: MergedCounts::new(settings),
            allowance: Allowance::default(),
            held: BulkCounts::new(settings),
            sections: 0,
            head: None,
            fleet: Fleet::default(),
            rows: 0,
            marks: 0,
            complete: false,
        }
    }

    /// Requires this key and window (in seconds), which the first part has, and a state that is possible at the time `now`.
    #[must_use]
    pub const fn like(mut self, key_id: u64, window: u64, now: u64) -> Self {
        self.like = Some((key_id, window, now));
        self
    }

    /// Only checks the form, in constant memory: [`finish`](Self::finish) returns no snapshot then.
    #[must_use]
    pub const fn skimming(mut self) -> Self {
        (self.skims, self.keeps) = (true, Keeps { cells: true, list: false });
        self
    }

    /// Adds the next part.
    ///
    /// # Errors
    /// If it is not the next part, has impossible values, or another key or window; then the whole snapshot is useless.
    pub fn push(&mut self, part: &[u8]) -> Result<(), StepRefusal> {
        if let Some(other) = other_part(part) {
            return Err(junk(&other));
        }
        let entries = self.unpacker.push(part).ok_or_else(|| junk("a part is missing or damaged"))?;
        entries.into_iter().try_for_each(|entry| self.add(entry))
    }

    fn add(&mut self, entry: Entry) -> Result<(), StepRefusal> {
        if self.complete && !self.keeps.cells {
            // The rest of the last part that is needed.
            return Ok(());
        }
        if self.complete || self.head.is_none() != matches!(entry, Entry::Head(_)) {
            return Err(junk("its entries are not in their order"));
        }
        match entry {
            Entry::Head(head) => self.begin(head)?,
            Entry::Row(row) => self.row(&row)?,
            Entry::Mark { client, spool, known } => self.mark_spool(&client, spool, known)?,
            Entry::Bulk(section) => {
                self.sections += 1;
                if self.keeps.list {
                    // The next checkpoint drops it if it is over.
                    self.held.raise(&section, section.window.start, |_, _, _| ());
                }
            }
            Entry::Partial { marks, sections, bound } => {
                if (marks, sections) != (self.marks, self.sections) {
                    return Err(junk("it is not whole"));
                }
                if (1..LEAST_BOUND).contains(&bound) {
                    return Err(junk("it lists all signatures as bulk"));
                }
                self.fleet.bound = bound;
                self.complete = !self.keeps.cells;
            }
            Entry::End { rows, marks } => {
                if (rows, marks) != (self.rows, self.marks) || !self.unpacker.is_empty() {
                    return Err(junk("it is not whole"));
                }
                self.complete = true;
            }
        }
        Ok(())
    }

    fn begin(&mut self, head: Head) -> Result<(), StepRefusal> {
        if let Some((key_id, window, now)) = self.like {
            if !head.mark.is_possible(now) {
                return Err(junk("the state of its chain is impossible"));
            }
            // The rest would be read in vain.
            check_parameters((key_id, head.key_id), (window, head.window))?;
        }
        (self.fleet.mark, self.fleet.origin, self.fleet.time) = (head.mark, head.origin, head.time);
        if !self.skims {
            head.vector.iter().for_each(|(origin, mark)| self.merged.vector_mut().set(origin, mark));
        }
        self.head = Some(head);
        Ok(())
    }

    fn row(&mut self, row: &Row) -> Result<(), StepRefusal> {
        self.rows += 1;
        self.allowance.take(row).map_err(|e| junk(&e))?;
        if self.skims {
            return Ok(());
        }
        let fits = match row.client {
            // Windows are those of the log's clock, in steps that all members took: only their number has a bound here.
            Some(origin) => {
                let (at, allowance) = (row.window.start, &mut self.allowance);
                self.merged.layers_mut().add_row(origin, row, at, allowance)
            }
            None => self.merged.admit(row.window, row.capacity, row.slice).and_then(|()| {
                self.merged.merge_chunk(row.window, row.capacity, row.slice, row.chunk, &row.bytes)
            }),
        };
        if !fits.map_err(|e| junk(&e))? {
            return Err(junk("a row does not fit its place"));
        }
        Ok(())
    }

    fn mark_spool(&mut self, client: &str, spool: u64, known: KnownMark) -> Result<(), StepRefusal> {
        self.marks += 1;
        if self.skims {
            return Ok(());
        }
        self.fleet.marks.restore(client, spool, known);
        if self.fleet.marks.is_too_much() {
            return Err(junk("it has more marks of spools than any fleet"));
        }
        Ok(())
    }

    /// The state of the chain in it; `None` before the first part.
    #[must_use]
    pub fn mark(&self) -> Option<FleetMark> {
        self.head.as_ref().map(|head| head.mark)
    }

    /// Whether all needed parts have come.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    /// The snapshot, once all its parts have come.
    ///
    /// # Errors
    /// If parts are missing.
    pub fn finish(self) -> Result<Assembled, StepRefusal> {
        let Self { merged, held, head, fleet, complete, .. } = self;
        match head {
            Some(head) if complete && !self.skims => Ok(Assembled { head, merged, held, fleet }),
            _ => Err(junk("it is not whole")),
        }
    }
}
