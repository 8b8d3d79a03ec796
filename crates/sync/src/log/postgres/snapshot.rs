// SPDX-License-Identifier: GPL-3.0-or-later
//! Snapshots, and the end of what nobody needs any more.
//!
//! The parts of a snapshot are put under a random number. Only when all are there does a row point at them; whoever reads one
//! that is deleted meanwhile misses a part, and knows it.

use super::append::fits;
use super::database::{Database, INT8, signed, unsigned};
use super::engine::ends;
use crate::log::Reader;
use crate::log::types::{LogError, Part, Place};
use bulkmark_ledger::random_bytes;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_postgres::types::Type;

/// Rows that are deleted in one transaction: some tens of milliseconds of work, so that nobody waits for it.
const MOST_DELETED: i32 = 200;

/// How many such transactions follow each other at most. What is left waits for the next snapshot.
const ROUNDS: usize = 10_000;

/// The number of the newest.
pub(super) async fn newest(database: &Database) -> Result<Option<u64>, LogError> {
    let rows = database.ask("select max(number) from bulkmark.snapshots", &[]).await?;
    Ok(rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).map(unsigned))
}

/// Keeps a snapshot.
///
/// # Errors
/// When the log does not say that it keeps it.
pub(super) async fn put(
    database: &Arc<Database>,
    mut parts: mpsc::Receiver<Option<Part>>,
) -> Result<Option<u64>, LogError> {
    let [id] = random_bytes::<8>()
        .map(|bytes| [i64::from_le_bytes(bytes)])
        .map_err(|e| LogError::Setup(e.to_string()))?;
    // All that the snapshot has in it is in the log before it is begun; what comes meanwhile must stay.
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
        // Where that does not work, they are deleted after an hour.
        let _ = database.ask("select bulkmark.drop_parts($1)", &[(&id, INT8)]).await;
    } else {
        tokio::spawn(prune(Arc::clone(database)));
    }
    published
}

/// Sends the parts, and says how many; none when their end was not told.
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

/// Deletes what nobody needs, in small pieces.
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
    /// Parts that are there, and those that were read.
    parts: i32,
    read: i32,
}

impl Snapshot {
    /// The newest.
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
