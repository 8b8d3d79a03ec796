// SPDX-License-Identifier: GPL-3.0-or-later
//! Cells as of the last checkpoint, from the file into memory.

use crate::disk::errors::{Fault, damaged, no_memory};
use crate::disk::rows::{Record, SliceKey, chunk_key, chunks_of, size_and_slice, slice_key, unseal};
use crate::disk::schema::{Cells, LOCAL, MERGED, VECTOR, get_meta};
use bulkmark_counts::history::chunks::blocks_of;
use bulkmark_counts::history::vector::{Origin, Vector};
use bulkmark_counts::history::window::Window;
use bulkmark_counts::settings::Settings;
use bulkmark_counts::state::generations::{Generation, Generations};
use bulkmark_counts::state::layer::Layer;
use bulkmark_counts::state::merged::MergedCounts;
use bulkmark_filter::Counting;
use redb::{ReadableTable, WriteTransaction};
use std::collections::BTreeMap;

/// Calls `join` for each slice with its window, its number and its record, and then `chunk` for each of its chunks.
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

/// Loads the own counts.
pub(crate) fn load_local(txn: &WriteTransaction, settings: &Settings) -> Result<Generations, Fault> {
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

/// Loads the counts of others; `own` are this ledger's origins, `layers` the counts of other servers' limited clients.
pub(crate) fn load_merged(
    txn: &WriteTransaction,
    settings: &Settings,
    own: &[Origin],
    layers: BTreeMap<Origin, Layer>,
) -> Result<MergedCounts, Fault> {
    let loaded = std::cell::RefCell::new(MergedCounts::new(settings));
    let capacity = std::cell::Cell::new(1);
    let join = |window, number, record: &Record| {
        // The record has the capacity of the first slice of this size, for all of them.
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
        let vector = Vector::from_own(&String::from_utf8_lossy(&row))
            .map_err(|e| damaged(format!("its version vector: {e}")))?;
        for (origin, mark) in vector.iter().filter(|(origin, _)| !own.contains(origin)) {
            merged.vector_mut().set(origin, mark);
        }
    }
    for (origin, layer) in layers {
        merged.layers_mut().insert(origin, layer).map_err(no_memory)?;
    }
    Ok(merged)
}
