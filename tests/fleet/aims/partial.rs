// SPDX-License-Identifier: GPL-3.0-or-later
//! Compares partial copies with full ones; docs/decisions/partial-copy.md promises how far they agree.

use super::members::{BOUND, Member};
use bulkmark_testing::wait_until;
use std::fmt;

/// The default count from which mail is bulk.
const THRESHOLD: u32 = 20;

/// Up to this many times the bound, every rise is sent; above that, a held count may be low by less than 1/`TOLD` of it.
const TOLD: u32 = 16;

/// The result of the comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The number of milters that hold the same counts.
    milters: usize,
    /// The number of letters that were compared.
    letters: usize,
    /// The letters that reached the bound, and those that are bulk.
    reached: usize,
    bulk: usize,
    /// The letters held with the full count, and those held with a lower one, which must be far enough above the bound.
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

/// Compares the counts of these members with the full ones, `full`. Returns `None` without a partial copy.
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

/// Checks that an aggregator answers it with each exact count. It pauses for a while after an aggregator failed to answer.
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

/// Compares the held counts of the letters with those of full copies.
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
