// SPDX-License-Identifier: GPL-3.0-or-later
//! What milters that hold bulk alone know, held against what all others count: docs/decisions/partial-copy.md promises how far both agree.

use super::members::{BOUND, Member};
use bulkmark_testing::wait_until;
use std::fmt;

/// The count from which on mail is bulk, where nothing else is configured.
const THRESHOLD: u32 = 20;

/// Up to so many times the bound each rise is told; above that, what is held may be low by less than such a part of the count.
const TOLD: u32 = 16;

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// How many milters hold the same.
    milters: usize,
    /// Letters that all were compared for.
    letters: usize,
    /// Of these, the ones that reached the bound, and those that are bulk.
    reached: usize,
    bulk: usize,
    /// Those that are held with the full count, and those that are held with a lower one, as far above the bound as that may be.
    exact: usize,
    low: usize,
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { milters, letters, reached, bulk, exact, low } = self;
        let above = TOLD * BOUND;
        write!(
            f,
            "{milters} milters with a partial copy, all alike: asked, the same counts of all {letters} letters; held, of the {reached} letters that reached \
             {BOUND}, {exact} with the full count and {low} above {above} with less than 1/{TOLD} below it, of the others never more than the \
             count; the same {bulk} letters reach {THRESHOLD}"
        )
    }
}

/// Compares what these know with what the others count of each letter, `full`. None where there is no partial one.
pub(crate) fn check<'a>(
    partial: impl Iterator<Item = &'a Member>,
    full: &[u32],
) -> Result<Option<Known>, String> {
    let mut all: Option<(Vec<u32>, Known)> = None;
    for member in partial {
        asks_exactly(member, full)?;
        let held = member.counts(0..full.len())?;
        let found = compare(&held, full).map_err(|why| format!("{}: {why}", member.name))?;
        let (first, known) = all.get_or_insert_with(|| (held.clone(), found));
        if *first != held {
            return Err(format!(
                "{} holds other counts than another milter with a partial copy",
                member.name
            ));
        }
        known.milters += 1;
    }
    Ok(all.map(|(_, known)| known))
}

/// An aggregator that it asks tells it each count. One who did not answer lately is left alone for a while.
fn asks_exactly(member: &Member, full: &[u32]) -> Result<(), String> {
    let mut asked = Vec::new();
    wait_until("an answer", || {
        asked = member.asked(0..full.len())?;
        Ok(())
    });
    match (0..full.len()).find(|&n| asked[n] != full[n]) {
        None => Ok(()),
        Some(n) => Err(format!(
            "letter {n}: {} was told {} when it asked, instead of {}",
            member.name, asked[n], full[n]
        )),
    }
}

/// Compares what is held of each letter with the count that holders of all have.
fn compare(held: &[u32], full: &[u32]) -> Result<Known, String> {
    let mut known = Known { letters: full.len(), ..Known::default() };
    for (n, (&held, &full)) in held.iter().zip(full).enumerate() {
        let low = if full > TOLD * BOUND { full / TOLD } else { 0 };
        let is_right = held <= full && (full < BOUND || held + low >= full);
        if !is_right || (held >= THRESHOLD) != (full >= THRESHOLD) {
            return Err(format!("letter {n}: {held} held of {full}"));
        }
        known.bulk += usize::from(full >= THRESHOLD);
        if full >= BOUND {
            known.reached += 1;
            *(if held == full { &mut known.exact } else { &mut known.low }) += 1;
        }
    }
    Ok(known)
}
