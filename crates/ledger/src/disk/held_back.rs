// SPDX-License-Identifier: GPL-3.0-or-later
//! Reports that a server holds back, on disk: those in no update, until it is known whether the server's file is an old copy.

use crate::disk::errors::{Fault, damaged};
use crate::disk::rows::{decode_batch, encode_batch};
use crate::disk::schema::{get_meta, put_meta};
use bulkmark_counts::history::fields::Fields;
use bulkmark_counts::history::vector::Origin;
use bulkmark_counts::state::limited::Limited;
use bulkmark_counts::state::peer_check::HeldBack;
use bulkmark_counts::state::server::Server;
use redb::WriteTransaction;
use std::collections::BTreeMap;

/// The row of `meta`.
const HELD: &str = "held";

/// Writes the reports held back, if they changed. Those in the journal are held back until a checkpoint.
pub(crate) fn write(txn: &WriteTransaction, server: &Server) -> Result<(), redb::Error> {
    if !server.peer_check.changed && server.peer_check.held().is_empty() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    for (origin, held) in server.peer_check.held() {
        // All of one limited client, or all of unlimited ones.
        let entries = encode_batch(&held.entries);
        for field in [origin.0, held.version, entries.len() as u64] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(&entries);
    }
    put_meta(txn, HELD, &bytes)
}

/// Loads the reports that were held back when the file was written.
pub(crate) fn load(txn: &WriteTransaction, limited: &Limited) -> Result<BTreeMap<Origin, HeldBack>, Fault> {
    let row = get_meta(txn, HELD)?.unwrap_or_default();
    let (mut fields, mut all) = (Fields(&row), BTreeMap::<Origin, HeldBack>::new());
    while !fields.0.is_empty() {
        let (origin, version, length) = (Origin(fields.u64()?), fields.u64()?, fields.u64()?);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (entries, rest) =
            fields.0.split_at_checked(length).ok_or_else(|| damaged("the reports held back are cut off"))?;
        let capacity = limited.of_any_origin(origin).map(|member| member.capacity);
        let held = all.entry(origin).or_default();
        held.version = version;
        decode_batch(entries)?.into_iter().for_each(|entry| held.push(entry, capacity));
        fields = Fields(rest);
    }
    Ok(all)
}
