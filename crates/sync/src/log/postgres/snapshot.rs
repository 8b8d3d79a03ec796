// SPDX-License-Identifier: GPL-3.0-or-later
//! Snapshots, and the deletion of entries that nobody needs any longer.
//!
//! The parts of a snapshot are stored under a random number. Only when all are there does a row point to them; a reader of one that is
//! deleted meanwhile misses a part, and notices.

use super::append::fits;
use super::database::{Database, INT8, signed, unsigned};
use super::engine::ends;
use crate::log::Reader;
use crate::log::types::{LogError, Part, Place};
use bulkmark_ledger::random_bytes;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_postgres::types::Type;

/// Rows that are deleted in one transaction: some tens of milliseconds of work, so that nobody waits long.
const MOST_DELETED: i32 = 200;

/// Maximum of such transactions in a row. The rest waits for the next snapshot.
const ROUNDS: usize = 10_000;

/// Returns the number of the newest one.
pub(super) async fn newest(database: &Database) -> Result<Option<u64>, LogError> {
    let rows = database.ask("select max(number) from bulkmark.snapshots", &[]).await?;
    Ok(rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).map(unsigned))
}

/// Stores a snapshot.
///
/// # Errors
/// When the log does not acknowledge it.
pub(super) async fn put(
    database: &Arc<Database>,
    mut parts: mpsc::Receiver<Option<Part>>,
) -> Result<Option<u64>, LogError> {
    let [id] = random_bytes::<8>()
        .map(|bytes| [i64::from_le_bytes(bytes)])
        .map_err(|e| LogError::Setup(e.to_string()))?;
    // The ends are read first: entries that come meanwhile are not in the snapshot, and must stay.
    let begun = ends(database).await?;
    let sent = send(database, id, &mut parts).await;
    let published = match sent {
        Ok(Some(number)) => database
            .ask(
                "select bulkmark.publish($1, $2, $3, $4)",
                &[
                    (&id, INT8),
                    (&number, Type::INT4),
                    (&signed(begun.batches.0), INT8),
                    (&signed(begun.steps.0), INT8),
                ],
            )
            .await
            .map(|rows| rows.first().map(|row| unsigned(row.get(0)))),
        Ok(None) => Err(LogError::Unavailable("the snapshot was given up".to_owned())),
        Err(why) => Err(why),
    };
    if published.is_err() {
        // If this fails, they are deleted after an hour.
        let _ = database.ask("select bulkmark.drop_parts($1)", &[(&id, INT8)]).await;
    } else {
        tokio::spawn(prune(Arc::clone(database)));
    }
    published
}

/// Sends the parts, and returns their number; none if the end is missing.
async fn send(
    database: &Database,
    id: i64,
    parts: &mut mpsc::Receiver<Option<Part>>,
) -> Result<Option<i32>, LogError> {
    let mut number = 0;
    while let Some(part) = parts.recv().await {
        let Some(part) = part else { return Ok(Some(number)) };
        fits(&part, "a part of a snapshot")?;
        database.link.sent(part.len());
        let parameters = [(&id as _, INT8), (&number as _, Type::INT4), (&part as _, Type::BYTEA)];
        database.ask("select bulkmark.put_part($1, $2, $3)", &parameters).await?;
        number += 1;
    }
    Ok(None)
}

/// Deletes entries that nobody needs, in small transactions.
async fn prune(database: Arc<Database>) {
    for _ in 0..ROUNDS {
        match database.ask("select bulkmark.prune($1)", &[(&MOST_DELETED, Type::INT4)]).await {
            Ok(rows) if rows.first().is_some_and(|row| row.get::<_, i64>(0) > 0) => (),
            // It is done, or tried again after the next snapshot.
            _ => break,
        }
    }
}

/// Reads a snapshot.
pub struct Snapshot {
    database: Arc<Database>,
    id: i64,
    /// The number of parts, and of those that were read.
    parts: i32,
    read: i32,
}

impl Snapshot {
    /// Starts to read the newest one.
    ///
    /// # Errors
    /// [`LogError::Gone`] where there is none.
    pub(super) async fn newest(database: &Arc<Database>) -> Result<Self, LogError> {
        let sql = "select id, parts from bulkmark.snapshots order by number desc limit 1";
        let rows = database.ask(sql, &[]).await?;
        let row = rows.first().ok_or(LogError::Gone(Place(0)))?;
        Ok(Self { database: Arc::clone(database), id: row.get(0), parts: row.get(1), read: 0 })
    }
}

impl Reader for Snapshot {
    type Item = Option<Part>;

    async fn next(&mut self) -> Result<Option<Part>, LogError> {
        if self.read >= self.parts {
            return Ok(None);
        }
        let sql = "select bytes from bulkmark.parts where id = $1 and number = $2";
        let rows = self.database.ask(sql, &[(&self.id, INT8), (&self.read, Type::INT4)]).await?;
        let replaced = || LogError::Unavailable("the snapshot was replaced while it was read".to_owned());
        let part: Part = rows.first().ok_or_else(replaced)?.get(0);
        self.database.link.received(part.len());
        self.read += 1;
        Ok(Some(part))
    }
}
