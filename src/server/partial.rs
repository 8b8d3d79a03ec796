// SPDX-License-Identifier: GPL-3.0-or-later
//! For milters with a partial copy: the stream of bulk, and the counts of single signatures. docs/protocol.md describes both.

use super::access::Access;
use super::api::{Failure, Service, token};
use super::blocks::{Block, Key};
use super::clients::Client;
use super::gate::Refused;
use super::streaming::{Ended, Stream, while_allowed};
use crate::net::Caller;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use bulkmark_counts::BulkMark;
use bulkmark_ledger::{Behind, BulkRows, Ledger, now};
use bulkmark_sync::Code;
use bulkmark_sync::bulk_frame::{self, ListHead};
use bulkmark_sync::clock::ClockGuard;
use bulkmark_sync::wire::{self, frame};
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of notes that are read from disk at a time.
const NOTES_AT_ONCE: usize = 256 << 10;

/// Rows of a list that are read from disk at a time.
const ROWS_AT_ONCE: usize = 16;

/// Timeout of the body of a question.
const QUESTION_TIME: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
pub(super) struct BulkQuery {
    bound: u32,
    #[serde(default)]
    since: String,
    #[serde(default)]
    wait: u64,
}

/// Parses `list:number:hash`; a reader without a list sends the empty text.
fn mark_of(text: &str) -> Option<BulkMark> {
    if text.is_empty() {
        return Some(BulkMark::default());
    }
    let mut parts = text.split(':');
    let list = u64::from_str_radix(parts.next()?, 16).ok()?;
    let number = parts.next()?.parse().ok()?;
    let hash = u64::from_str_radix(parts.next()?, 16).ok()?;
    parts.next().is_none().then_some(BulkMark { list, number, hash, bound: 0 })
}

/// Refuses anonymous requests: their answers take memory here.
pub(super) fn known(client: Option<Client>) -> Result<Client, Failure> {
    client.ok_or_else(|| Refused::NoToken.into())
}

pub(super) async fn bulk(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Query(BulkQuery { bound, since, wait }): Query<BulkQuery>,
) -> Result<Response, Failure> {
    let client = known(service.gate.reader(token(&headers), &caller)?)?;
    service.agree(Some(&client), &headers)?;
    if service.daemon().fleet.is_some() {
        let why = "this is an aggregator of a fleet, whose bulk comes by its log: the milter needs [fleet] in the place of upstream, or \
                   copy = \"full\"";
        return Err(Failure(Code::Fleet, why.to_owned()));
    }
    let bad = || Failure(Code::Request, "since: expected list:number:hash".to_owned());
    let since = mark_of(&since).ok_or_else(bad)?;
    // A partner receives bulk if an own client has asked for it, but cannot request the separation, which takes memory for all counts.
    if client.limits().is_none() {
        service.ledger.list_bulk(bound).await?;
    } else if !service.ledger.bulk().is_begun() {
        let text = "this server separates bulk once a client without limits has asked for it".to_owned();
        return Err(Failure(Code::Role, text));
    }
    let place = service.stream(Some(&client), &caller)?;
    let (sink, body) = place.body();
    let until = Instant::now() + Duration::from_secs(wait.min(super::api::MAX_WAIT));
    let stream = Stream { place, sink, connection: caller.connection };
    let access = service.access(Some(&client), &headers);
    tokio::spawn(send_bulk(stream, access, service.ledger.clone(), since, until));
    Ok(service.with_parameters(body))
}

async fn send_bulk(stream: Stream, access: Access, ledger: Ledger, since: BulkMark, until: Instant) {
    let _ended = while_allowed(access, bulk_until(&stream, &ledger, since, until)).await;
}

async fn bulk_until(stream: &Stream, ledger: &Ledger, since: BulkMark, until: Instant) -> Result<(), Ended> {
    let (mut theirs, mut moves, clock) = (since, ledger.bulk_changes(), ClockGuard::begin());
    let alive = || frame(&bulk_frame::alive(ledger.bulk()));
    stream.send(&[&wire::BULK[..], &alive()].concat()).await?;
    while clock.is_steady() {
        moves.mark_unchanged();
        let (ours, of, from) = (ledger.bulk(), ledger.clone(), theirs);
        if (ours.list, ours.number, ours.hash) == (from.list, from.number, from.hash) {
            stream.wait(moves.changed(), until, &alive).await?;
            continue;
        }
        let (key, read) = (Key::Notes(from.list, from.number, from.hash), move || notes(&of, ours, from));
        // Streams at the same position share one reading.
        theirs = match stream.place.block(key.clone(), read.clone()).await? {
            None => send_list(stream, ledger).await?,
            Some(block) => {
                let (mark, end) = (block.mark, block.bytes.len());
                drop(block);
                stream.send_block(&key, (0, end), read).await?;
                mark
            }
        };
    }
    Ok(())
}

/// Reads the notes from `from` to `ours`, or the first of them, as a block; none if the whole list is needed.
fn notes(ledger: &Ledger, ours: BulkMark, from: BulkMark) -> Result<Option<Block>, Behind> {
    let notes = ledger.reader()?.notes(ours, from, NOTES_AT_ONCE)?;
    let Some(notes) = notes.filter(|notes| !notes.is_empty()) else { return Ok(None) };
    let mut block = Block { mark: from, ..Block::default() };
    for (number, bytes) in notes {
        block.begins.push(block.bytes.len());
        block.bytes.extend_from_slice(&frame(&bulk_frame::note(&bytes)));
        block.mark = block.mark.after(number, &bytes);
    }
    Ok(Some(block))
}

/// Sends the whole list, and returns its position.
async fn send_list(stream: &Stream, ledger: &Ledger) -> Result<BulkMark, Ended> {
    let of = ledger.clone();
    let open = move || -> Result<_, Behind> {
        let Some(rows) = of.reader()?.bulk()? else { return Ok(None) };
        Ok(Some((rows.count()?, Arc::new(rows))))
    };
    let Some((number, rows)) = stream.place.read(open).await? else { return Err(Ended) };
    let BulkRows { mark, versions, .. } = &*rows;
    let mark = *mark;
    let list_head = ListHead { mark, rows: number, versions: versions.clone() };
    stream.send(&frame(&bulk_frame::head(&list_head))).await?;
    let mut last = None;
    loop {
        let (of, after) = (Arc::clone(&rows), last);
        let (some, next) = stream.place.read(move || Ok(of.rows(after, ROWS_AT_ONCE)?)).await?;
        for section in &some {
            stream.send(&frame(&bulk_frame::row(section))).await?;
        }
        if some.len() < ROWS_AT_ONCE {
            return Ok(mark);
        }
        last = next;
    }
}

/// Returns the counts of the requested signatures.
pub(super) async fn counts(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let client = known(service.gate.reader(token(&headers), &caller)?)?;
    service.agree(Some(&client), &headers)?;
    let late = |_| Failure(Code::BodyTooSlow, "the body took too long".to_owned());
    let long = |_| Failure(Code::BodyTooLong, format!("expected at most {} bytes", wire::MAX_QUESTION_BYTES));
    let body = axum::body::to_bytes(body, wire::MAX_QUESTION_BYTES);
    let body = tokio::time::timeout(QUESTION_TIME, body).await.map_err(late)?.map_err(long)?;
    let signatures = wire::decode_question(&body).map_err(|e| {
        let code = if e.is_other_version() { Code::BodyVersion } else { Code::Body };
        Failure(code, e.to_string())
    })?;
    // Questions share the rate of reports.
    service.gate.admit(&client, signatures.len())?;
    let counts = service.ledger.counts(signatures, now()).await?;
    Ok(service.with_parameters(wire::encode_counts(&counts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_positions_are_refused() {
        assert_eq!(mark_of(""), Some(BulkMark::default()));
        let known = BulkMark { list: 10, number: 7, hash: 255, bound: 0 };
        assert_eq!(mark_of("000000000000000a:7:00000000000000ff"), Some(known));
        for bad in ["a", "a:7", "a:7:ff:1", "x:7:ff", "a:-1:ff", "a:7:"] {
            assert_eq!(mark_of(bad), None, "{bad}");
        }
    }
}
