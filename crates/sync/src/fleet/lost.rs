// SPDX-License-Identifier: GPL-3.0-or-later
//! The steps that a log lacks and an aggregator knows, after the log was restored to an older state.

use super::cursor::Cursor;
use bulkmark_counts::{Mark, step_head};
use bulkmark_ledger::{Ledger, LedgerError, OldStep};

/// Bytes of lost steps that are appended again at a time.
const HEALED: usize = 8 << 20;

/// The recent steps whose time is read, by their distance from the last one.
const LOOKS_BACK: [u64; 5] = [1, 8, 64, 512, 4096];

/// The loss of a log.
pub(super) enum Lost {
    /// Steps behind this one; `kept` are the first of them.
    Steps { behind: u64, kept: Vec<OldStep> },
    /// More than is kept here; a snapshot can replace it.
    TooMuch,
    /// Nothing: its chain continued and differs from the local one.
    Nothing,
}

impl Lost {
    /// Determines the loss of a log that ends at this cursor, for a ledger that is at `here`.
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

/// Returns the newest time of some recent local steps, if any are kept. The last one alone may count old batches that were considered again
/// in a new epoch.
fn time_of(ledger: &Ledger, here: Mark) -> Result<Option<u64>, LedgerError> {
    let mut newest = None;
    for back in LOOKS_BACK {
        let Some(before) = here.version.checked_sub(back) else { continue };
        let kept = ledger.steps_since(before, 1)?;
        newest = newest.max(kept.first().and_then(|(_, bytes)| step_head(bytes)).map(|(head, _)| head.time));
    }
    Ok(newest)
}

/// Whether a chain that ends in `tip`, of this time, differs from the one up to `here`, if no steps are kept to compare them. Steps before
/// `here` are older than it; a log that was restored and continued has newer ones.
fn is_other(tip: Mark, tip_time: u64, here: Mark, time: Option<u64>) -> bool {
    tip.version > 0
        && tip.chain != here.chain
        && (tip.version >= here.version || time.is_some_and(|time| tip_time > time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_counts::Chain;

    /// A log that lost its end receives a local snapshot; one that continued from an older state keeps its chain.
    #[test]
    fn a_chain_that_continued_is_another() {
        let mark = |version, chain| Mark { version, chain: Chain([chain; 16]) };
        let (older, here) = (mark(10, 1), mark(5000, 2));
        assert!(!is_other(Mark::default(), 0, here, Some(900)), "the log is empty");
        assert!(!is_other(older, 100, here, Some(900)), "it lost its end");
        assert!(!is_other(older, 900, here, None), "of which nothing is known");
        assert!(is_other(older, 901, here, Some(900)), "it went on from there");
        assert!(is_other(mark(5000, 3), 0, here, Some(900)), "it is as long");
    }
}
