// SPDX-License-Identifier: GPL-3.0-or-later
//! Reading the ledger's file: cells as of the last checkpoint, and what came since.
//!
//! Every value that counts are made of carries a CRC-32 over its table, key and content, so that a damaged, truncated
//! or misplaced one is found when the file is opened. The format is described in docs/ledger.md.

use crate::disk::bulk;
use crate::disk::errors::{Fault, damaged, no_memory};
use crate::disk::rows::{
    Record, SliceKey, chunk_key, chunks_of, decode_batch, decode_batch_record, decode_last_sent,
    decode_receipt, decode_spool, decode_waiting, encode_last_sent, encode_spool, size_and_slice, slice_key,
    unseal,
};
use crate::disk::schema::{
    BATCHES, CHECKPOINT, CUT, Cells, JOURNAL, LAST_SENT, LOCAL, MERGED, ORIGIN, RECEIPTS, RETRIES, SPOOL,
    SPOOL_STATE, UPDATES, VECTOR, get_meta, put_meta,
};
use crate::disk::{cases, fleet, held, layers, voices};
use bulkmark_counts::history::chunks::blocks_of;
use bulkmark_counts::history::fields::Fields;
use bulkmark_counts::history::update::Update;
use bulkmark_counts::history::vector::{Chain, Mark, Origin, Vector};
use bulkmark_counts::history::window::Window;
use bulkmark_counts::settings::{Hold, Role, Settings};
use bulkmark_counts::state::cache::Cache;
use bulkmark_counts::state::changes::Entry;
use bulkmark_counts::state::counts::Counts;
use bulkmark_counts::state::generations::{Generation, Generations};
use bulkmark_counts::state::layer::Layer;
use bulkmark_counts::state::limited::Limited;
use bulkmark_counts::state::local::Local;
use bulkmark_counts::state::merged::MergedCounts;
use bulkmark_counts::state::receipts::{Receipt, Receipts, Reporter};
use bulkmark_counts::state::report::RetryKey;
use bulkmark_counts::state::retries::Retries;
use bulkmark_counts::state::roles::State;
use bulkmark_counts::state::server::Server;
use bulkmark_counts::state::site::Site;
use bulkmark_counts::state::spool::Spool;
use bulkmark_counts::state::teller::Teller;
use bulkmark_counts::state::unheard::{Held, Unheard};
use bulkmark_filter::{Counting, ParameterError};
use redb::{Database, ReadableTable, WriteTransaction};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// All that the file holds.
pub(crate) struct Loaded {
    pub(crate) db: Arc<Database>,
    pub(crate) state: State,
    /// The number of the first report in the journal.
    pub(crate) checkpoint: u64,
}

/// Reads all of the file. `random` are numbers for what needs a new name: a new server, a new spool.
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

/// What a milter counted.
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
    let merged = load_merged(txn, settings, &[origin], layers::load(txn)?)?;
    let mut counts = Counts::new(local, merged, next, settings);
    bulk::load(txn, &mut counts)?;
    voices::load(txn, &mut counts.voices)?;
    cases::load(txn, &mut counts)?;
    // Before single updates: those of a fleet are in its steps.
    fleet::load(txn, &mut counts)?;
    replay_updates(txn, &mut counts.merged, &[origin])?;
    bulk::load_notes(txn, &mut counts, false)?;
    let of_servers = counts.bulk.is_begun() && counts.fleet.mark.version == 0;
    if of_servers && settings.federation.hold == Hold::All {
        // All else that was counted is fetched again; until then bulk counts.
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
    for member in limited.iter_mut() {
        member.layer = all.remove(&member.origin).unwrap_or_default();
    }
    let cut = replay(txn, checkpoint, checkpoint..cut_at, |id, e| match e.client {
        None => own.add(e.window, id, e.signature, e.times),
        Some(client) => replay_limited(&mut limited, client, &e, false),
    })?;
    let mut uncut = Vec::new();
    let next = replay(txn, checkpoint, cut..u64::MAX, |id, e| {
        uncut.push((id, e));
        Ok(())
    })?;
    let mut held = load_held(txn, &limited)?;
    let untold = mark.version == 0 && limited.iter().next().is_none();
    let peers = &settings.federation.peers;
    // Whether others may know more than there is here.
    let waits = !peers.is_empty() && (!untold || !uncut.is_empty() || !held.is_empty());
    if !waits && untold && uncut.is_empty() && !peers.is_empty() {
        // Nobody knows anything of this origin; if the file is an old copy, others know of one of this number.
        put_meta(txn, ORIGIN, &new.0.to_le_bytes())?;
        origin = new;
    }
    let mut local = Local::recording(own, origin, mark);
    let since: Vec<_> = uncut.iter().map(|(_, e)| (e.signature, e.window.start)).collect();
    for (id, e) in uncut {
        match e.client {
            _ if waits => hold(&mut held, (origin, mark), &limited, e),
            // What was counted after the last update makes the next one.
            None => local.generations.add(e.window, id, e.signature, e.times).map_err(no_memory)?,
            Some(client) => replay_limited(&mut limited, client, &e, true).map_err(no_memory)?,
        }
    }
    let origins: Vec<_> =
        [origin].into_iter().chain(limited.iter().map(|(_, member)| member.origin)).collect();
    let mut counts = Counts::new(local, load_merged(txn, settings, &origins, all)?, next, settings);
    replay_updates(txn, &mut counts.merged, &origins)?;
    bulk::load(txn, &mut counts)?;
    bulk::load_notes(txn, &mut counts, true)?;
    let receipts = Receipts::restore(load_receipts(txn)?, origin);
    let mut teller = Teller::default();
    teller.has_moved = true;
    let unheard = Unheard::new(peers, waits, held);
    let mut server = Server { counts, cut_at, receipts, limited, teller, unheard, renewed: false };
    server.release().map_err(no_memory)?;
    since.into_iter().for_each(|(signature, at)| server.look_for_bulk(signature, at));
    Ok(server)
}

/// What was held back when the file was written.
fn load_held(txn: &WriteTransaction, limited: &Limited) -> Result<BTreeMap<Origin, Held>, Fault> {
    let mut all = BTreeMap::<Origin, Held>::new();
    for (origin, version, entries) in held::load(txn)? {
        let capacity = limited.of_any_origin(origin).map(|member| member.capacity);
        let held = all.entry(origin).or_default();
        held.version = version;
        entries.into_iter().for_each(|entry| held.push(entry, capacity));
    }
    Ok(all)
}

/// Holds a report of the journal back that is in no update; of a client whose counts were taken back it is no more.
fn hold(held: &mut BTreeMap<Origin, Held>, own: (Origin, Mark), limited: &Limited, entry: Entry) {
    let of_client = entry.client.map(|client| limited.of_any_origin(client).map(|member| (client, member)));
    let (origin, mark, capacity) = match of_client {
        None => (own.0, own.1, None),
        Some(None) => return,
        Some(Some((client, member))) => (client, member.mark, Some(member.capacity)),
    };
    let held = held.entry(origin).or_default();
    held.version = mark.version;
    held.push(entry, capacity);
}

/// Adds a report of the journal to what its client brought; of a client whose counts were taken back it is no more.
fn replay_limited(
    limited: &mut Limited,
    client: Origin,
    entry: &Entry,
    records: bool,
) -> Result<(), ParameterError> {
    let Some(member) = limited.of_origin_mut(client) else { return Ok(()) };
    member.add(entry.window, entry.signature, entry.times, records)
}

/// A number that was drawn once and stays.
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

/// What a row of cells is: window, number of the slice, its record, and its chunks.
fn each_slice(
    txn: &WriteTransaction,
    tables: &Cells,
    mut join: impl FnMut(Window, u32, &Record) -> Result<(), Fault>,
    mut chunk: impl FnMut(Window, u32, u32, &[u8]) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let slices = txn.open_table(tables.slices)?;
    let cells = txn.open_table(tables.cells)?;
    let [slices_name, cells_name] = tables.names;
    for row in slices.range::<SliceKey>(..)? {
        let (key, record) = row?;
        let (start, length, number) = key.value();
        let window = Window::from((start, length));
        let record = Record::decode(unseal(slices_name, &slice_key(window, number), record.value())?)?;
        join(window, number, &record)?;
        let mut chunks = 0;
        for row in cells.range(chunks_of(window, number))? {
            let (key, bytes) = row?;
            let at = key.value().3;
            let bytes = unseal(cells_name, &chunk_key(window, number, at), bytes.value())?;
            if !chunk(window, number, at, bytes)? {
                return Err(damaged(format!("chunk {at} of the window {window} does not fit its filter")));
            }
            chunks += 1;
        }
        if chunks != record.chunks {
            return Err(damaged(format!("the window {window} has {chunks} chunks of {}", record.chunks)));
        }
    }
    Ok(())
}

fn load_local(txn: &WriteTransaction, settings: &Settings) -> Result<Generations, Fault> {
    let loaded = std::cell::RefCell::new(Vec::<Generation>::new());
    let join = |window, number: u32, record: &Record| {
        let mut loaded = loaded.borrow_mut();
        if loaded.last().is_none_or(|generation| generation.window != window) {
            loaded.push(Generation::new(window, record.capacity));
        }
        let Some(generation) = loaded.last_mut().filter(|g| g.row.slices().len() == number as usize) else {
            return Err(damaged(format!("the window {window} has no slice before {number}")));
        };
        generation.join(record.from, record.capacity).map_err(no_memory)?;
        if let Some(slice) = generation.row.slice_mut(number as usize) {
            slice.distinct = record.distinct;
        }
        Ok(())
    };
    let chunk = |_, number: u32, chunk: u32, bytes: &[u8]| {
        let mut loaded = loaded.borrow_mut();
        let slice = loaded.last_mut().and_then(|generation| generation.row.slice_mut(number as usize));
        let Some(slice) = slice else { return Ok(false) };
        Ok(slice.filter.restore(blocks_of(chunk as usize, slice.filter.blocks()), bytes))
    };
    each_slice(txn, &LOCAL, join, chunk)?;
    let mut generations = Generations::new(settings);
    loaded.into_inner().into_iter().for_each(|generation| generations.restore(generation));
    Ok(generations)
}

/// What others counted; `own` are the origins of this ledger, `layers` what limited clients of others brought.
fn load_merged(
    txn: &WriteTransaction,
    settings: &Settings,
    own: &[Origin],
    layers: BTreeMap<Origin, Layer>,
) -> Result<MergedCounts, Fault> {
    let loaded = std::cell::RefCell::new(MergedCounts::new(settings));
    let capacity = std::cell::Cell::new(1);
    let join = |window, number, record: &Record| {
        // The row has the capacity of the first slice of this size, whatever slice it is of.
        capacity.set(record.capacity);
        let (size, _) = size_and_slice(number);
        let fits = loaded.borrow_mut().restore(window, record.capacity, size);
        if fits { Ok(()) } else { Err(damaged(format!("the window {window} has two filters in one place"))) }
    };
    each_slice(txn, &MERGED, join, |window, number, chunk, bytes| {
        let (_, slice) = size_and_slice(number);
        loaded.borrow_mut().merge_chunk(window, capacity.get(), slice, chunk, bytes).map_err(no_memory)
    })?;
    let mut merged = loaded.into_inner();
    merged
        .windows_mut()
        .iter_mut()
        .for_each(|window| window.dirty.iter_mut().for_each(|slice| slice.fill(false)));
    if let Some(row) = get_meta(txn, VECTOR)? {
        let text = String::from_utf8_lossy(&row);
        let vector: Vector = text.parse().map_err(|e| damaged(format!("its version vector: {e}")))?;
        for (origin, mark) in vector.iter().filter(|(origin, _)| !own.contains(origin)) {
            merged.vector_mut().set(origin, mark);
        }
    }
    for (origin, layer) in layers {
        merged.layers_mut().insert(origin, layer);
    }
    Ok(merged)
}

/// Applies the updates that came after the last checkpoint.
fn replay_updates(txn: &WriteTransaction, merged: &mut MergedCounts, own: &[Origin]) -> Result<(), Fault> {
    for row in txn.open_table(UPDATES)?.range::<(u64, u64)>(..)? {
        let (key, value) = row?;
        let (origin, version) = key.value();
        if own.contains(&Origin(origin)) || version <= merged.vector().get(Origin(origin)).version {
            continue;
        }
        let key = [origin.to_le_bytes(), version.to_le_bytes()].concat();
        let mut fields = Fields(unseal("updates", &key, value.value())?);
        let at = fields.u64()?;
        let update = Update::decode(fields.0).map_err(|e| damaged(format!("{e}")))?;
        merged.apply(&update, fields.0, at).map_err(|e| damaged(format!("{e}")))?;
    }
    Ok(())
}

/// Adds the reports of the journal whose numbers are in `range`; returns the number behind the last of them. The journal
/// must begin at the checkpoint and have no gap.
fn replay(
    txn: &WriteTransaction,
    checkpoint: u64,
    range: Range<u64>,
    mut add: impl FnMut(u64, Entry) -> Result<(), ParameterError>,
) -> Result<u64, Fault> {
    let (mut next, mut end) = (checkpoint, range.start);
    for row in txn.open_table(JOURNAL)?.range::<u64>(..)? {
        let (key, batch) = row?;
        let first = key.value();
        if first != next {
            return Err(damaged(format!("the journal continues at report {first} instead of {next}")));
        }
        for entry in decode_batch(unseal("journal", &first.to_le_bytes(), batch.value())?)? {
            if range.contains(&next) {
                add(next, entry).map_err(no_memory)?;
                end = next + 1;
            }
            next += 1;
        }
    }
    Ok(end)
}

fn load_receipts(txn: &WriteTransaction) -> Result<Vec<(Reporter, u64, Receipt)>, Fault> {
    let mut receipts = Vec::new();
    for row in txn.open_table(RECEIPTS)?.range::<(&str, u64)>(..)? {
        let (key, value) = row?;
        let (client, spool) = key.value();
        let row_key = [client.as_bytes(), &spool.to_le_bytes()].concat();
        let (number, receipt) = decode_receipt(unseal("receipts", &row_key, value.value())?)?;
        receipts.push((Reporter { client: client.to_owned(), spool }, number, receipt));
    }
    Ok(receipts)
}

/// What is in the spool; none when there never was one.
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
