// SPDX-License-Identifier: GPL-3.0-or-later
//! Reading the ledger's file: cells as of the last checkpoint, and the changes since.
//!
//! Every value that counts are made of carries a CRC-32 over its table, key and content, so that opening the file finds a damaged,
//! truncated or misplaced value. docs/ledger.md describes the format.

use crate::disk::bulk;
use crate::disk::cells::{load_local, load_merged};
use crate::disk::errors::{Fault, damaged, no_memory};
use crate::disk::replay::{hold, replay, replay_limited, replay_updates};
use crate::disk::rows::{
    decode_batch_record, decode_last_sent, decode_receipt, decode_spool, decode_waiting, encode_last_sent,
    encode_spool, unseal,
};
use crate::disk::schema::{
    BATCHES, CHECKPOINT, CUT, LAST_SENT, ORIGIN, RECEIPTS, RETRIES, SPOOL, SPOOL_STATE, get_meta, put_meta,
};
use crate::disk::{cases, chain, held_back, layers, user_reports};
use bulkmark_counts::history::fields::Fields;
use bulkmark_counts::history::vector::{Chain, Mark, Origin, Vector};
use bulkmark_counts::settings::{LocalCopy, Role, Settings};
use bulkmark_counts::state::cache::Cache;
use bulkmark_counts::state::counts::Counts;
use bulkmark_counts::state::local::Local;
use bulkmark_counts::state::note_queue::NoteQueue;
use bulkmark_counts::state::peer_check::PeerCheck;
use bulkmark_counts::state::receipts::{LastBatch, Receipts, Reporter};
use bulkmark_counts::state::report::RetryKey;
use bulkmark_counts::state::retries::Retries;
use bulkmark_counts::state::roles::{Site, State};
use bulkmark_counts::state::server::Server;
use bulkmark_counts::state::spool::Spool;
use redb::{Database, ReadableTable, WriteTransaction};
use std::sync::Arc;

/// The content of the file.
pub(crate) struct Loaded {
    pub(crate) db: Arc<Database>,
    pub(crate) state: State,
    /// The number of the first report in the journal.
    pub(crate) checkpoint: u64,
}

/// Reads all of the file. `random` are the numbers for a new server and a new spool.
pub(crate) fn load(
    db: Database,
    role: Role,
    settings: &Settings,
    [new_origin, new_spool]: [u64; 2],
) -> Result<Loaded, Fault> {
    let txn = db.begin_write()?;
    let checkpoint = match get_meta(&txn, CHECKPOINT)? {
        Some(row) => Fields(&row).u64()?,
        None => 0,
    };
    let origin = Origin(meta_number(&txn, ORIGIN, new_origin)?);
    let state = match role {
        Role::Server => State::Server(load_server(&txn, settings, [origin, Origin(new_origin)], checkpoint)?),
        Role::Site => State::Site(Site {
            counts: load_counts(&txn, settings, origin, checkpoint)?,
            retries: load_retries(&txn)?,
            left: load_spool(&txn, settings)?.unwrap_or_else(|| Spool::new(new_spool)),
        }),
        Role::Cache => {
            let counts = load_counts(&txn, settings, origin, checkpoint)?;
            let spool = match load_spool(&txn, settings)? {
                Some(spool) => spool,
                None => {
                    let spool = Spool::new(new_spool);
                    put_meta(&txn, SPOOL_STATE, &encode_spool(&spool))?;
                    put_meta(&txn, LAST_SENT, &encode_last_sent(spool.last_sent()))?;
                    spool
                }
            };
            let mut cache = Cache { counts, retries: load_retries(&txn)?, spool };
            cache.spool.settle(cache.counts.merged.vector());
            State::Cache(cache)
        }
    };
    txn.commit()?;
    Ok(Loaded { db: Arc::new(db), state, checkpoint })
}

/// Loads the counts of a milter.
fn load_counts(
    txn: &WriteTransaction,
    settings: &Settings,
    origin: Origin,
    checkpoint: u64,
) -> Result<Counts, Fault> {
    let mut own = load_local(txn, settings)?;
    let next =
        replay(txn, checkpoint, checkpoint..u64::MAX, |id, e| own.add(e.window, id, e.signature, e.times))?;
    let local = Local::new(own, origin, Mark::default());
    let layers = layers::load(txn)?;
    let stored = layers::windows_of(layers.iter().map(|(&origin, layer)| (origin, layer)));
    let merged = load_merged(txn, settings, &[origin], layers)?;
    let mut counts = Counts::new(local, merged, next, settings);
    counts.layers_on_disk = Some(stored);
    bulk::load(txn, &mut counts)?;
    user_reports::load(txn, &mut counts.user_reports)?;
    cases::load(txn, &mut counts)?;
    // Before single updates: those of a fleet are in its steps.
    chain::load(txn, &mut counts)?;
    replay_updates(txn, &mut counts.merged, &[origin])?;
    bulk::load_notes(txn, &mut counts, false)?;
    let of_servers = counts.bulk.is_begun() && counts.fleet.mark.version == 0;
    if of_servers && settings.federation.copy == LocalCopy::Full {
        // All other counts are fetched again; until then the list of bulk counts.
        *counts.merged.vector_mut() = Vector::new();
    }
    Ok(counts)
}

fn load_server(
    txn: &WriteTransaction,
    settings: &Settings,
    [mut origin, new]: [Origin; 2],
    checkpoint: u64,
) -> Result<Server, Fault> {
    let (mark, cut_at) = load_cut(txn)?;
    let mut own = load_local(txn, settings)?;
    let mut limited = layers::load_clients(txn, settings)?;
    let mut all = layers::load(txn)?;
    let stored = layers::windows_of(all.iter().map(|(&origin, layer)| (origin, layer)));
    limited.restore_layers(&mut all).map_err(no_memory)?;
    let cut = replay(txn, checkpoint, checkpoint..cut_at, |id, e| match e.client {
        None => own.add(e.window, id, e.signature, e.times),
        Some(client) => replay_limited(&mut limited, client, &e, false),
    })?;
    let mut uncut = Vec::new();
    let next = replay(txn, checkpoint, cut..u64::MAX, |id, e| {
        uncut.push((id, e));
        Ok(())
    })?;
    let mut held = held_back::load(txn, &limited)?;
    let unpublished = mark.version == 0 && limited.iter().next().is_none();
    let peers = &settings.federation.peers;
    // Whether peers may know later versions than this file.
    let waits = !peers.is_empty() && (!unpublished || !uncut.is_empty() || !held.is_empty());
    if !waits && unpublished && uncut.is_empty() && !peers.is_empty() {
        // No peer knows this origin; but if the file is an old copy, peers may know a later origin with this number.
        put_meta(txn, ORIGIN, &new.0.to_le_bytes())?;
        origin = new;
    }
    let mut local = Local::recording(own, origin, mark);
    let since: Vec<_> = uncut.iter().map(|(_, e)| (e.signature, e.window.start)).collect();
    for (id, e) in uncut {
        match e.client {
            _ if waits => hold(&mut held, (origin, mark), &limited, e),
            // Reports after the last update are for the next one.
            None => local.generations.add(e.window, id, e.signature, e.times).map_err(no_memory)?,
            Some(client) => replay_limited(&mut limited, client, &e, true).map_err(no_memory)?,
        }
    }
    let origins: Vec<_> =
        [origin].into_iter().chain(limited.iter().map(|(_, member)| member.origin)).collect();
    let mut counts = Counts::new(local, load_merged(txn, settings, &origins, all)?, next, settings);
    counts.layers_on_disk = Some(stored);
    replay_updates(txn, &mut counts.merged, &origins)?;
    bulk::load(txn, &mut counts)?;
    bulk::load_notes(txn, &mut counts, true)?;
    let receipts = Receipts::restore(load_receipts(txn)?, origin);
    let mut note_queue = NoteQueue::default();
    note_queue.has_moved = true;
    let peer_check = PeerCheck::new(peers, waits, held);
    let mut server = Server { counts, cut_at, receipts, limited, note_queue, peer_check, renewed: false };
    server.release().map_err(no_memory)?;
    since.into_iter().for_each(|(signature, at)| server.queue_if_bulk(signature, at));
    Ok(server)
}

/// Returns a stored random number; draws and stores it the first time.
fn meta_number(txn: &WriteTransaction, name: &str, new: u64) -> Result<u64, Fault> {
    if let Some(row) = get_meta(txn, name)? {
        return Ok(Fields(&row).u64()?);
    }
    put_meta(txn, name, &new.to_le_bytes())?;
    Ok(new)
}

fn load_cut(txn: &WriteTransaction) -> Result<(Mark, u64), Fault> {
    let Some(row) = get_meta(txn, CUT)? else { return Ok((Mark::default(), 0)) };
    let mut fields = Fields(&row);
    let (version, at) = (fields.u64()?, fields.u64()?);
    Ok((Mark { version, chain: Chain(fields.take()?) }, at))
}

fn load_receipts(txn: &WriteTransaction) -> Result<Vec<(Reporter, LastBatch)>, Fault> {
    let mut receipts = Vec::new();
    for row in txn.open_table(RECEIPTS)?.range::<(&str, u64)>(..)? {
        let (key, value) = row?;
        let (client, spool) = key.value();
        let row_key = [client.as_bytes(), &spool.to_le_bytes()].concat();
        let last = decode_receipt(unseal("receipts", &row_key, value.value())?)?;
        receipts.push((Reporter { client: client.to_owned(), spool }, last));
    }
    Ok(receipts)
}

/// Loads the spool; `None` if there never was one.
pub(crate) fn load_spool(txn: &WriteTransaction, settings: &Settings) -> Result<Option<Spool>, Fault> {
    let Some(row) = get_meta(txn, SPOOL_STATE)? else { return Ok(None) };
    let mut stored = decode_spool(&row)?;
    stored.last_sent = get_meta(txn, LAST_SENT)?.map(|row| decode_last_sent(&row)).transpose()?;
    for row in txn.open_table(SPOOL)?.range::<u64>(..)? {
        let (key, value) = row?;
        let start = key.value();
        for (number, report) in
            (start..).zip(decode_waiting(unseal("spool", &start.to_le_bytes(), value.value())?)?)
        {
            if number < stored.first {
                continue;
            }
            if number != stored.first + stored.reports.len() as u64 {
                return Err(damaged(format!("the spool continues at report {number}")));
            }
            stored.reports.push_back(report);
        }
    }
    for row in txn.open_table(BATCHES)?.range::<u64>(..)? {
        let (key, value) = row?;
        let number = key.value();
        let record = unseal("batches", &number.to_le_bytes(), value.value())?;
        stored.batches.push(decode_batch_record(number, record)?);
    }
    Ok(Some(Spool::restore(stored, &settings.federation.upstreams)))
}

fn load_retries(txn: &WriteTransaction) -> Result<Retries, Fault> {
    let mut rows = Vec::new();
    for row in txn.open_table(RETRIES)?.range::<&[u8; 16]>(..)? {
        let (key, at) = row?;
        rows.push((at.value(), RetryKey::from_bytes(*key.value())));
    }
    rows.sort_by_key(|&(at, _)| at);
    let mut retries = Retries::default();
    for (at, key) in rows {
        retries.remember(key, at);
    }
    Ok(retries)
}
