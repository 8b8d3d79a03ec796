// SPDX-License-Identifier: GPL-3.0-or-later
//! Snapshot parts left by writers that died: the next writer removes them once nobody can be writing them any longer, and leaves current
//! ones alone.

use super::cluster::Fleet;
use crate::conformance::snapshots::{put, read};
use crate::conformance::{Engine, becomes, own, run};
use bulkmark_sync::Link;
use bulkmark_sync::log::nats::Nats;
use bulkmark_sync::log::{Log, LogError, Settings};
use bulkmark_testing::PATIENCE;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;

/// The number of snapshots that have a first part in the log.
async fn snapshots(fleet: &Fleet) -> usize {
    subjects(fleet, "bulkmark.snapshot.part.*.0").await
}

/// The number of subjects of the stream of snapshots that match a filter.
async fn subjects(fleet: &Fleet, filter: &str) -> usize {
    let question = json!({ "subjects_filter": filter });
    let info = fleet.api("STREAM.INFO.BULKMARK_SNAPSHOT", question).await;
    info["state"]["subjects"].as_object().map_or(0, serde_json::Map::len)
}

/// Begins to write a snapshot, and dies.
async fn leave(log: &impl Log) -> Result<(), LogError> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::select! {
        result = log.put_snapshot(receiver) => result.map(|_| panic!("it is not at its end")),
        () = async {
            // Four are in flight at a time, so the first ones have arrived.
            for _ in 0..8 {
                sender.send(Some(vec![3; 300_000])).await.unwrap();
            }
        } => Ok(()),
    }
}

/// A proxy in front of a node that moves the reported clock of the log by a year.
fn a_year_later(target: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", target)).unwrap();
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut &from, &mut &to));
            std::thread::spawn(move || tell_later(&server, &client));
        }
    });
    port
}

/// Forwards all bytes, with the next year in each `"ts":"2026-...`. A possible beginning of such a field waits for the rest.
fn tell_later(mut from: &TcpStream, mut to: &TcpStream) {
    const FIELD: &[u8] = b"\"ts\":\"";
    let mut bytes = Vec::new();
    let mut piece = vec![0; 1 << 16];
    while let Ok(n @ 1..) = from.read(&mut piece) {
        bytes.extend_from_slice(&piece[..n]);
        let fields: Vec<_> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(FIELD)).collect();
        for at in fields {
            let year = at + FIELD.len()..at + FIELD.len() + 4;
            if let Some(digits) = bytes.get_mut(year)
                && let Some(year) = std::str::from_utf8(digits).ok().and_then(|year| year.parse::<u32>().ok())
                && year < 2100
            {
                // This field no longer matches, so it is not changed twice.
                digits.copy_from_slice((year + 1).to_string().as_bytes());
            }
        }
        let whole = bytes.len() - beginning(&bytes, FIELD);
        if to.write_all(&bytes[..whole]).is_err() {
            return;
        }
        bytes.drain(..whole);
    }
}

/// The number of final bytes that may be the beginning of such a field with its year.
fn beginning(bytes: &[u8], field: &[u8]) -> usize {
    let longest = (field.len() + 3).min(bytes.len());
    let is_one = |&n: &usize| {
        let end = &bytes[bytes.len() - n..];
        if n <= field.len() { field.starts_with(end) } else { end.starts_with(field) }
    };
    (1..=longest).rev().find(is_one).unwrap_or(0)
}

#[test]
fn parts_that_dead_writers_left_are_removed_when_they_are_old() {
    run(async || {
        let deadline = Instant::now() + PATIENCE;
        // A write that times out leaves parts, too; then all is repeated with an empty log.
        while let Err(error) = leave_and_remove().await {
            assert!(matches!(error, LogError::Unavailable(_)) && Instant::now() < deadline, "{error}");
        }
    });
}

async fn leave_and_remove() -> Result<(), LogError> {
    let Some(fleet) = Fleet::fresh(&own(&["mx1"])).await else { return Ok(()) };
    let (client, log) = (fleet.client("mx1").await, fleet.aggregator().await);
    let good = vec![vec![1; 1000]; 3];
    put(&log, good.clone()).await?;
    for _ in 0..3 {
        leave(&log).await?;
    }
    assert_eq!(snapshots(&fleet).await, 4, "the newest, and three that were left");
    // An aggregator may write whatever it likes there.
    let raw = fleet.raw("agg").await;
    for stray in ["part.0123456789abcdef0123456789abcdef.7", "part.x", "a.b.c.d"] {
        let stored = raw.request(format!("bulkmark.snapshot.{stray}"), "stray".into()).await;
        stored.map_err(|e| LogError::Unavailable(e.to_string()))?;
    }
    // Another writer may still be writing them: they stay.
    put(&log, good.clone()).await?;
    assert_eq!(snapshots(&fleet).await, 5);

    let mut settings: Settings = fleet.settings("agg", None);
    settings.log = format!("nats://127.0.0.1:{}", a_year_later(fleet.cluster.nodes[0].port));
    let later = Nats::new(&settings, Arc::new(Link::new(&settings.log))).await.unwrap();
    let next = vec![vec![2; 1000]; 2];
    put(&later, next.clone()).await?;
    assert_eq!(snapshots(&fleet).await, 2, "the newest and the one before it are kept, however old");
    assert_eq!(subjects(&fleet, "bulkmark.snapshot.>").await, 3 + 2 + 1, "and nothing but the pointer");
    becomes(|| read(&client), |read| *read == next).await;
    Ok(())
}
