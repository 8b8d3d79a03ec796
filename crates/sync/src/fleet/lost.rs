// SPDX-License-Identifier: GPL-3.0-or-later
//! What a log lacks of the steps that an aggregator knows, after it was put back to an older state.

use super::cursor::Cursor;
use bulkmark_counts::{Mark, step_head};
use bulkmark_ledger::{Ledger, LedgerError, OldStep};

/// Bytes of steps that are appended again at a time, to a log that lost them.
const HEALED: usize = 8 << 20;

/// Which of the last steps are asked for their time.
const LOOKS_BACK: [u64; 5] = [1, 8, 64, 512, 4096];

/// What the log lost.
pub(super) enum Lost {
    /// Steps behind this one, the first of which are these.
    Steps { behind: u64, kept: Vec<OldStep> },
    /// More than is kept here; a snapshot can take its place.
    TooMuch,
    /// Nothing: its chain went on and is another than the one known here.
    Nothing,
}

impl Lost {
    /// What a log lost that ends at this cursor, where the ledger is at `here`.
    pub(super) fn of(ledger: &Ledger, cursor: Cursor, here: Mark) -> Result<Self, LedgerError> {
        let tip = cursor.tip.unwrap_or_default();
        let kept = ledger.steps_since(tip.version, HEALED)?;
        let next = kept.first().and_then(|(_, bytes)| step_head(bytes)).map(|(head, _)| head);
        Ok(match next.filter(|next| next.version == tip.version + 1) {
            Some(next) if next.before == tip.chain => Self::Steps { behind: tip.version, kept },
            Some(_) if tip.version > 0 => Self::Nothing,
            _ if is_other(tip, cursor.time, here, time_of(ledger, here)?) => Self::Nothing,
            _ => Self::TooMuch,
        })
    }
}

/// The newest time of some of the last steps that are counted here, if any are kept. The last one alone may be of old batches, which
/// were looked at again in a new epoch.
fn time_of(ledger: &Ledger, here: Mark) -> Result<Option<u64>, LedgerError> {
    let mut newest = None;
    for back in LOOKS_BACK {
        let Some(before) = here.version.checked_sub(back) else { continue };
        let kept = ledger.steps_since(before, 1)?;
        newest = newest.max(kept.first().and_then(|(_, bytes)| step_head(bytes)).map(|(head, _)| head.time));
    }
    Ok(newest)
}

/// Whether a chain that ends in `tip`, of this time, is another one than that up to `here`, where none of the steps is kept by which
/// they could be compared. What was before `here` is older than that; a log that was put back and went on has newer ones.
fn is_other(tip: Mark, tip_time: u64, here: Mark, time: Option<u64>) -> bool {
    tip.version > 0
        && tip.chain != here.chain
        && (tip.version >= here.version || time.is_some_and(|time| tip_time > time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_counts::Chain;

    /// A log that lost its end gets a snapshot of what is known here; one that went on from an older state keeps what it has.
    #[test]
    fn a_chain_that_went_on_is_another() {
        let mark = |version, chain| Mark { version, chain: Chain([chain; 16]) };
        let (older, here) = (mark(10, 1), mark(5000, 2));
        assert!(!is_other(Mark::default(), 0, here, Some(900)), "the log is empty");
        assert!(!is_other(older, 100, here, Some(900)), "it lost its end");
        assert!(!is_other(older, 900, here, None), "of which nothing is known");
        assert!(is_other(older, 901, here, Some(900)), "it went on from there");
        assert!(is_other(mark(5000, 3), 0, here, Some(900)), "it is as long");
    }
}
