// SPDX-License-Identifier: GPL-3.0-or-later
//! Limited clients on disk: their names, and the counts of each, in coded parts.

use crate::disk::errors::{Fault, damaged, no_memory};
use crate::disk::rows::{LayerKey, seal, unseal};
use crate::disk::schema::{CLIENTS, LAYERS};
use bulkmark_counts::history::chunks::layer_parts;
use bulkmark_counts::history::fields::Fields;
use bulkmark_counts::history::update::MAX_CELLS;
use bulkmark_counts::history::vector::{Chain, Mark, Origin};
use bulkmark_counts::history::window::Window;
use bulkmark_counts::settings::Settings;
use bulkmark_counts::state::changes::Changes;
use bulkmark_counts::state::layer::{Layer, LayerWindow};
use bulkmark_counts::state::limited::Limited;
use bulkmark_counts::state::member::Member;
use bulkmark_counts::state::roles::State;
use redb::{ReadableTable, WriteTransaction};
use std::collections::{BTreeMap, BTreeSet};

/// A part; its key has the rest.
pub(crate) struct LayerRow<'a> {
    pub(crate) capacity: u32,
    distinct: u64,
    /// A coded delta from an empty filter.
    pub(crate) bytes: &'a [u8],
}

pub(crate) fn key_bytes((origin, start, length, part): LayerKey) -> Vec<u8> {
    [&[origin, start, length].map(u64::to_le_bytes).concat()[..], &part.to_le_bytes()].concat()
}

impl<'a> LayerRow<'a> {
    pub(crate) fn decode(key: LayerKey, row: &'a [u8]) -> Result<Self, Fault> {
        let mut fields = Fields(unseal("layers", &key_bytes(key), row)?);
        let (capacity, distinct) = (fields.u32()?, fields.u64()?);
        if capacity == 0 {
            return Err(damaged("a filter of a limited client of size 0"));
        }
        Ok(Self { capacity, distinct, bytes: fields.0 })
    }
}

fn encode_client(member: &Member) -> Vec<u8> {
    let mut bytes = [member.origin.0, member.mark.version].map(u64::to_le_bytes).concat();
    bytes.extend_from_slice(&member.mark.chain.0);
    bytes.extend_from_slice(&member.capacity.to_le_bytes());
    bytes.extend(member.former.iter().flat_map(|origin| origin.0.to_le_bytes()));
    bytes
}

fn decode_client(bytes: &[u8]) -> Result<Member, Fault> {
    let mut fields = Fields(bytes);
    let (origin, version) = (Origin(fields.u64()?), fields.u64()?);
    let mark = Mark { version, chain: Chain(fields.take()?) };
    let capacity = fields.u32()?;
    let mut former = Vec::new();
    while !fields.0.is_empty() {
        former.push(Origin(fields.u64()?));
    }
    Ok(Member::new(origin, mark, former, capacity))
}

/// Writes the clients that changed, and deletes those that no longer exist.
pub(crate) fn write_clients(
    txn: &WriteTransaction,
    state: &State,
    changes: &Changes,
) -> Result<(), redb::Error> {
    let State::Server(server) = state else { return Ok(()) };
    if changes.clients.is_empty() && !server.renewed {
        return Ok(());
    }
    let mut table = txn.open_table(CLIENTS)?;
    let all: Vec<&str> = match server.renewed {
        true => server.limited.iter().map(|(name, _)| name).collect(),
        false => changes.clients.iter().map(|name| &**name).collect(),
    };
    for name in all {
        match server.limited.get(name) {
            Some(member) => {
                table.insert(name, &*seal("clients", name.as_bytes(), &encode_client(member)))?;
            }
            None => drop(table.remove(name)?),
        }
    }
    Ok(())
}

/// Returns all layers of a state, with their origins.
fn all(state: &State) -> BTreeMap<Origin, &Layer> {
    let mut all: BTreeMap<_, _> = state.counts().merged.layers().iter().collect();
    if let State::Server(server) = state {
        all.extend(server.limited.iter().map(|(_, member)| (member.origin, &member.layer)));
    }
    all
}

/// Writes the parts that changed, and deletes those that are empty now.
pub(crate) fn write(txn: &WriteTransaction, state: &State) -> Result<(), redb::Error> {
    let all = all(state);
    let mut table = txn.open_table(LAYERS)?;
    let is_held = |origin, window| all.get(&origin).is_some_and(|layer| layer.windows.contains_key(&window));
    match &state.counts().layers_on_disk {
        // Layers that stay are not read.
        Some(stored) => {
            for &(Origin(origin), window) in stored.iter().filter(|(of, window)| !is_held(*of, *window)) {
                let (start, length) = window.key();
                let rows = (origin, start, length, 0)..=(origin, start, length, u32::MAX);
                table.retain_in(rows, |_, _| false)?;
            }
        }
        None => table
            .retain(|(origin, start, length, _), _| is_held(Origin(origin), Window::from((start, length))))?,
    }
    for (origin, layer) in all {
        for (window, held) in &layer.windows {
            let (start, length) = window.key();
            for part in layer_parts(held.filter.blocks()) {
                if !held.dirty.get(part as usize).copied().unwrap_or(true) {
                    continue;
                }
                let key = (origin.0, start, length, part);
                let Some(coded) = held.part(part) else { continue };
                let row = [&held.capacity.to_le_bytes()[..], &held.distinct.to_le_bytes(), &coded].concat();
                table.insert(key, &*seal("layers", &key_bytes(key), &row))?;
            }
        }
    }
    Ok(())
}

/// Returns the windows of these layers.
pub(crate) fn windows_of<'a>(
    layers: impl Iterator<Item = (Origin, &'a Layer)>,
) -> BTreeSet<(Origin, Window)> {
    layers.flat_map(|(origin, layer)| layer.windows.keys().map(move |&window| (origin, window))).collect()
}

/// Marks all layers as written.
pub(crate) fn mark_clean(state: &mut State) {
    let stored = windows_of(all(state).into_iter());
    state.counts_mut().layers_on_disk = Some(stored);
    if let State::Server(server) = state {
        server.limited.iter_mut().for_each(|member| member.layer.mark_clean());
    }
    state.counts_mut().merged.layers_mut().iter_mut().for_each(Layer::mark_clean);
}

/// Loads the limited clients of this server, without their counts.
pub(crate) fn load_clients(txn: &WriteTransaction, settings: &Settings) -> Result<Limited, Fault> {
    let mut limited = Limited::new(settings);
    for row in txn.open_table(CLIENTS)?.range::<&str>(..)? {
        let (name, row) = row?;
        let member = decode_client(unseal("clients", name.value().as_bytes(), row.value())?)?;
        limited.restore(name.value().to_owned(), member);
    }
    Ok(limited)
}

/// Loads the counts of all limited clients, here and elsewhere, by the origin under which they are published.
pub(crate) fn load(txn: &WriteTransaction) -> Result<BTreeMap<Origin, Layer>, Fault> {
    let mut layers = BTreeMap::<Origin, Layer>::new();
    for row in txn.open_table(LAYERS)?.range::<LayerKey>(..)? {
        let (key, row) = row?;
        let key = key.value();
        let (origin, start, length, part) = key;
        let row = LayerRow::decode(key, row.value())?;
        let delta = LayerWindow::decode_part(row.capacity, row.bytes, MAX_CELLS)
            .ok_or_else(|| damaged(format!("part {part} of a limited client does not fit its filter")))?;
        let layer = layers.entry(Origin(origin)).or_default();
        let held = layer.window_mut(Window::from((start, length)), row.capacity).map_err(no_memory)?;
        held.apply(&delta).map_err(no_memory)?;
        held.distinct = row.distinct;
    }
    layers.values_mut().for_each(Layer::mark_clean);
    Ok(layers)
}
