// SPDX-License-Identifier: GPL-3.0-or-later
//! Sends a whole ledger for a backup: an answer of one line, then frames of a length (u32, little-endian) and as many bytes, and one of length 0
//! at the end.

use super::question::Answer;
use super::status::Daemon;
use bulkmark_ledger::Reader;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Size limit of a frame in bytes: a piece, and the largest row, which is an update.
pub(super) const MAX_FRAME: u32 = 64 << 20;

/// Pieces that wait for the client.
const WAITING: usize = 4;

/// Time limit of one piece. Meanwhile the ledger's file grows.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends the whole ledger. A transfer that breaks off has no last frame.
pub(super) async fn send(writer: &mut (impl AsyncWrite + Unpin), daemon: &Daemon) -> io::Result<()> {
    let reader: Reader = match daemon.ledger.reader() {
        Ok(reader) => reader,
        Err(e) => return writer.write_all(&Answer::Error(e.to_string()).line()?).await,
    };
    writer.write_all(&Answer::Backup.line()?).await?;
    let (sender, mut pieces) = mpsc::channel::<Vec<u8>>(WAITING);
    let reading = tokio::task::spawn_blocking(move || {
        reader.backup(|piece| sender.blocking_send(piece.to_vec()).is_ok())
    });
    while let Some(piece) = pieces.recv().await {
        let length = u32::try_from(piece.len()).map_err(io::Error::other)?;
        let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "nobody takes the backup");
        let frame = [&length.to_le_bytes()[..], &piece].concat();
        tokio::time::timeout(PATIENCE, writer.write_all(&frame)).await.map_err(slow)??;
    }
    if let Err(e) = reading.await.map_err(io::Error::other)? {
        log::error!("a backup was broken off: {e}");
        return Err(io::Error::other(e));
    }
    writer.write_all(&0u32.to_le_bytes()).await?;
    log::info!("a backup of the ledger was made");
    Ok(())
}
