// SPDX-License-Identifier: GPL-3.0-or-later
//! All that a fleet counted, at once: taken from the log by whoever lacks steps.

use super::state::Stopped;
use crate::log::{Log, LogError, Reader as _};
use bulkmark_counts::{Applied, FleetMark, Settings, StepRefusal};
use bulkmark_ledger::Ledger;

/// Where the chain stands in the newest snapshot; none where there is none.
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
    Err(Stopped::Unfit("the log's snapshot does not say where it stands".to_owned()))
}

/// Takes the newest snapshot over if it is ahead of what is counted here, or, with `forked`, as it is. False when there is none like
/// that.
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
            // Who keeps no cells leaves the rest of it.
            break;
        }
    }
    let applied = ledger.adopt_fleet(assembly, forked).await?.map_err(|refusal| unfit(&refusal))?;
    Ok(applied == Applied::New)
}

fn unfit(refusal: &StepRefusal) -> Stopped {
    let told = refusal.to_string();
    match refusal {
        StepRefusal::Unlike { .. } => Stopped::Unlike(told),
        _ => Stopped::Unfit(told),
    }
}

/// Reads the newest snapshot to its end without keeping any of it: where its chain stands, and its bytes.
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
