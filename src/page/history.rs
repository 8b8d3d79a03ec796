// SPDX-License-Identifier: GPL-3.0-or-later
//! The counts behind the charts, kept over a restart: of the last day by minutes and of the last month by hours, in one small file.
//!
//! It contains nothing of messages. Its loss only empties the charts, so it is written rarely, and a damaged file is ignored.

use crate::activity::{Activity, SpanCount};
use bulkmark_counts::{seal, unseal};
use bulkmark_ledger::directory::StateDirectory;
use bulkmark_ledger::now;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The file in the state directory.
const FILE: &str = "history";

/// Readable by the daemon and its group.
const MODE: u32 = 0o640;

/// The time between two writes, and the most that a crash loses.
const INTERVAL: Duration = Duration::from_secs(600);

/// The first bytes of the file, with the version of its format.
const MAGIC: &[u8; 8] = b"BMHIST\0\x01";

/// Bytes of an entry: ring, kind, number of the span, count.
const ENTRY: usize = 10;

/// Size limit in bytes: all spans of all kinds take a fifth of it.
const MOST: u64 = 1 << 20;

/// The file has not the form that this program writes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is damaged, or of another version")]
struct Damaged;

/// The history of a daemon.
#[derive(Clone)]
pub struct History {
    activity: Arc<Activity>,
    directory: PathBuf,
}

impl History {
    /// Opens the history in this state directory, and restores its counts.
    #[must_use]
    pub fn open(activity: Arc<Activity>, directory: PathBuf) -> Self {
        let history = Self { activity, directory };
        if let Err(e) = history.restore()
            && e.kind() != io::ErrorKind::NotFound
        {
            log::warn!(
                "{}: {e}; the status page's charts begin anew",
                history.directory.join(FILE).display()
            );
        }
        history
    }

    fn restore(&self) -> io::Result<()> {
        let file = StateDirectory::open(&self.directory)?.file(FILE, false)?;
        if file.metadata()?.len() > MOST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, Damaged));
        }
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, MOST), &mut bytes)?;
        let rings = decode(&bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        let now = now();
        for (ring, kept) in [&self.activity.minutes, &self.activity.hours].into_iter().zip(&rings) {
            ring.restore(kept, now);
        }
        Ok(())
    }

    /// Writes the file periodically. Never returns.
    pub async fn keep(self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let history = self.clone();
            // A disk that hangs must not block the runtime.
            let _ = tokio::task::spawn_blocking(move || history.save()).await;
        }
    }

    /// Writes the file.
    pub fn save(&self) {
        let rings = [self.activity.minutes.kept(), self.activity.hours.kept()];
        let written = StateDirectory::open(&self.directory)
            .and_then(|directory| directory.replace(FILE, &encode(&rings), MODE));
        if let Err(e) = written {
            log::warn!("{}: cannot write it: {e}", self.directory.join(FILE).display());
        }
    }
}

/// Encodes the counts, little-endian, with a checksum (CRC-32) at the end.
fn encode(rings: &[Vec<SpanCount>; 2]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for (ring, kept) in (0u8..).zip(rings) {
        for &SpanCount { kind, number, count } in kept {
            bytes.extend([ring, u8::try_from(kind).unwrap_or(u8::MAX)]);
            bytes.extend(number.to_le_bytes());
            bytes.extend(count.to_le_bytes());
        }
    }
    seal(bytes)
}

fn decode(bytes: &[u8]) -> Result<[Vec<SpanCount>; 2], Damaged> {
    let entries = unseal(MAGIC, bytes).ok_or(Damaged)?.chunks(ENTRY);
    let mut rings = [Vec::new(), Vec::new()];
    for entry in entries {
        let (&[ring, kind], rest) = entry.split_first_chunk::<2>().ok_or(Damaged)?;
        let (number, count) = rest.split_first_chunk::<4>().ok_or(Damaged)?;
        let count = <[u8; 4]>::try_from(count).map_err(|_| Damaged)?;
        let ring = rings.get_mut(usize::from(ring)).ok_or(Damaged)?;
        ring.push(SpanCount {
            kind: kind.into(),
            number: u32::from_le_bytes(*number),
            count: u32::from_le_bytes(count),
        });
    }
    Ok(rings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_counts_are_read_and_damage_is_noticed() {
        let span = |kind, number, count| SpanCount { kind, number, count };
        let rings = [vec![span(0, 30_000_000, 7), span(4, 30_000_001, u32::MAX)], vec![span(1, 500_000, 3)]];
        let bytes = encode(&rings);
        assert_eq!(decode(&bytes), Ok(rings));
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), Err(Damaged), "{end}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            assert_eq!(decode(&damaged), Err(Damaged), "{at}");
        }
    }
}
