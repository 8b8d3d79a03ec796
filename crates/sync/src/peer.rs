// SPDX-License-Identifier: GPL-3.0-or-later
//! Keeps a server in step with a peer.
//!
//! It differs from a milter that follows: no snapshot has the counts that this server made itself, so it lives by updates. Updates that no
//! longer count are skipped. And before it counts anything, it learns whether peers know more of its own counts than its file has.

use super::clock::ClockGuard;
use super::code::Code;
use super::fetch::{Stopped, catch_up, decode, fetch_rows, head_of};
use super::remote::{Remote, RemoteError, Stream};
use super::state::Flow;
use super::wire::{decode_alive, decode_past};
use bulkmark_counts::{Update, Vector};
use bulkmark_ledger::{Ledger, now};
use std::sync::Arc;
use std::time::Duration;

/// Follows a peer until its stream ends; calls `answered` when it begins.
pub(super) async fn follow_once(
    ledger: &Ledger,
    settings: &bulkmark_counts::Settings,
    remote: &Remote,
    wait: Duration,
    answered: impl Fn(),
) -> Result<(), Stopped> {
    let vector = ledger.vector();
    let stream = match remote.updates_to_server(&vector, wait, false).await {
        Err(e) if e.code() == Some(Code::UpdatesGone) => {
            if let Err(e) = take_snapshot(ledger, settings, remote).await {
                log::warn!(
                    "{}: some of the updates that are missing here are kept there no more, and its snapshot does not help: {e}. \
                     All else is taken; what is missing is over at the latest when the retention is",
                    remote.url()
                );
            }
            let vector = ledger.vector();
            remote.updates_to_server(&vector, wait, true).await
        }
        other => other,
    }?;
    answered();
    remote.link.set_working(Flow::Updates);
    apply_all(ledger, remote, stream).await
}

/// Applies the frames of a stream.
async fn apply_all(ledger: &Ledger, remote: &Remote, mut stream: Stream) -> Result<(), Stopped> {
    let (clock, mut known) = (ClockGuard::begin(), Vector::new());
    while let Some(first) = stream.next().await? {
        if !clock.is_steady() {
            let set = "the clock of this machine was set; asking again".to_owned();
            return Err(RemoteError::Clock(set).into());
        }
        // Updates that came together are written together.
        let (mut updates, mut next) = (Vec::new(), Some(first));
        while let Some(bytes) = next {
            if let Some(moved) = decode_alive(&bytes) {
                apply(ledger, remote, &mut updates).await?;
                known.follow(&moved);
                if ledger.awaits_peers() {
                    ledger.receive_vector(remote.url().to_owned(), known.clone(), now()).await?;
                }
                if ledger.vector().covers(&known) {
                    remote.link.set_fresh();
                }
            } else if let Some(past) = decode_past(&bytes) {
                apply(ledger, remote, &mut updates).await?;
                ledger.skip_past(past, now()).await?;
            } else if !bytes.is_empty() {
                let bytes: Arc<[u8]> = bytes.into();
                updates.push((decode(Arc::clone(&bytes)).await?, bytes));
            }
            next = stream.at_hand()?;
        }
        apply(ledger, remote, &mut updates).await?;
        // A peer without news sends its position, and may know updates that cannot be sent.
        stream.progressed();
    }
    Ok(())
}

async fn apply(
    ledger: &Ledger,
    remote: &Remote,
    updates: &mut Vec<(Update, Arc<[u8]>)>,
) -> Result<(), Stopped> {
    if updates.is_empty() {
        return Ok(());
    }
    if ledger.apply_all(std::mem::take(updates), now()).await?? {
        remote.link.set_fresh();
    }
    Ok(())
}

/// Fetches a snapshot if it has no counts of this server, and takes it over if it is not older.
async fn take_snapshot(
    ledger: &Ledger,
    settings: &bulkmark_counts::Settings,
    remote: &Remote,
) -> Result<(), Stopped> {
    let head = head_of(&mut remote.snapshot(None, 0).await?).await?;
    ledger.may_adopt(head.vector).await??;
    let (mut assembly, rows) = fetch_rows(settings, remote).await?;
    if rows == 0 && assembly.vector().iter().all(|(_, mark)| mark.version == 0) {
        return Ok(());
    }
    if !assembly.vector().covers(&ledger.vector()) {
        // A snapshot is as old as the server's last checkpoint; later updates may be known here.
        catch_up(&mut assembly, remote).await?;
    }
    ledger.adopt(assembly).await??;
    log::info!("{}: a snapshot of {rows} rows was taken over", remote.url());
    Ok(())
}
