// SPDX-License-Identifier: GPL-3.0-or-later
//! Takes a snapshot of all counts of a fleet from the log, for members that lack steps.

use super::state::Stopped;
use crate::log::{Log, LogError, Reader as _};
use bulkmark_counts::{Applied, FleetMark, Settings, StepRefusal};
use bulkmark_ledger::Ledger;

/// Returns the chain's position in the newest snapshot; none if there is no snapshot.
pub(super) async fn mark<L: Log>(
    ledger: &Ledger,
    settings: &Settings,
    log: &L,
) -> Result<Option<FleetMark>, Stopped> {
    let mut parts = match log.snapshot().await {
        Err(LogError::Gone(_)) => return Ok(None),
        parts => parts?,
    };
    let mut assembly = ledger.fleet_assembly(settings);
    while let Some(part) = parts.next().await? {
        assembly.push(&part).map_err(|refusal| unfit(&refusal))?;
        if let Some(mark) = assembly.mark() {
            return Ok(Some(mark));
        }
    }
    Err(Stopped::Unfit("the log's snapshot has no position in the chain".to_owned()))
}

/// Takes over the newest snapshot if it is ahead of the ledger or, with `forked`, in any case. False if there was none.
pub(super) async fn take<L: Log>(
    ledger: &Ledger,
    settings: &Settings,
    log: &L,
    forked: bool,
) -> Result<bool, Stopped> {
    let mut parts = match log.snapshot().await {
        Err(LogError::Gone(_)) => return Ok(false),
        parts => parts?,
    };
    let mut assembly = ledger.fleet_assembly(settings);
    while let Some(part) = parts.next().await? {
        assembly.push(&part).map_err(|refusal| unfit(&refusal))?;
        let older = assembly.mark().is_some_and(|mark| mark.version <= ledger.fleet().version);
        if older && !forked {
            return Ok(false);
        }
        if assembly.is_complete() {
            // A ledger without cells needs no more of it.
            break;
        }
    }
    let applied = ledger.adopt_fleet(assembly, forked).await?.map_err(|refusal| unfit(&refusal))?;
    Ok(applied == Applied::New)
}

fn unfit(refusal: &StepRefusal) -> Stopped {
    let why = refusal.to_string();
    match refusal {
        StepRefusal::Unlike { .. } => Stopped::Unlike(why),
        _ => Stopped::Unfit(why),
    }
}

/// Reads the newest snapshot to its end without storing it. Returns the position of its chain, and its size in bytes.
pub(super) async fn skim<L: Log>(
    ledger: &Ledger,
    settings: &Settings,
    log: &L,
) -> Result<(FleetMark, usize), Stopped> {
    let (mut parts, mut bytes) = (log.snapshot().await?, 0);
    let mut assembly = ledger.fleet_assembly(settings).skimming();
    while let Some(part) = parts.next().await? {
        bytes += part.len();
        assembly.push(&part).map_err(|refusal| unfit(&refusal))?;
    }
    match assembly.mark() {
        Some(mark) if assembly.is_complete() => Ok((mark, bytes)),
        _ => Err(Stopped::Unfit("the log's snapshot is not whole".to_owned())),
    }
}
