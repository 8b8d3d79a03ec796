// SPDX-License-Identifier: GPL-3.0-or-later
//! The client of the control socket.

use super::backup::MAX_FRAME;
use super::ordered::{Given, Ordered};
use super::question::{Answer, Question};
use super::report::exchange;
use super::reports::{ReporterRef, ReportsAsked};
use super::status::DaemonStatus;
use bulkmark_counts::{MailingReports, Overview, Shares, Withdrawal};
use bulkmark_types::Signature;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Take};
use tokio::net::UnixStream;

/// Time limit of one answer: for some, the daemon asks its upstream servers.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Size limit of an answer in bytes.
const MAX_ANSWER: u64 = 64 << 20;

/// Asks the daemon behind the control socket `path` for the counts of `signatures`. With `may_ask` it may ask other servers for counts that it
/// does not hold.
///
/// # Errors
/// If nobody listens there ([`io::ErrorKind::NotFound`] or [`io::ErrorKind::ConnectionRefused`]), or the daemon cannot answer.
pub async fn counts(path: &Path, signatures: &[Signature], may_ask: bool) -> io::Result<Vec<Shares>> {
    let signatures_told = signatures.iter().map(ToString::to_string).collect();
    let question = if may_ask { Question::Counts(signatures_told) } else { Question::Held(signatures_told) };
    match ask(path, &question).await? {
        Answer::Counts(counts) if counts.len() == signatures.len() => Ok(counts),
        _ => Err(unexpected()),
    }
}

/// Asks the daemon behind the control socket `path` for its status.
///
/// # Errors
/// As [`counts`].
pub async fn status(path: &Path, threshold: u32) -> io::Result<DaemonStatus> {
    match ask(path, &Question::Status(threshold)).await? {
        Answer::Status(status) => Ok(*status),
        _ => Err(unexpected()),
    }
}

/// Asks the milter behind the control socket `path` which of these pairs of a user and a correspondent exist.
///
/// # Errors
/// As [`counts`].
pub async fn correspondents(path: &Path, pairs: &[u64]) -> io::Result<Vec<bool>> {
    match ask(path, &Question::Correspondents(pairs.to_vec())).await? {
        Answer::Correspondents(known) if known.len() == pairs.len() => Ok(known),
        _ => Err(unexpected()),
    }
}

/// Asks the milter behind the control socket `path` for the reports of its users and traps.
///
/// # Errors
/// As [`counts`]; [`io::ErrorKind::InvalidInput`] if the reporter is unknown or ambiguous.
pub async fn reports(path: &Path, asked: ReportsAsked) -> io::Result<Overview> {
    match ask(path, &Question::Reports(asked)).await? {
        Answer::Reports(overview) => Ok(*overview),
        _ => Err(unexpected()),
    }
}

/// Asks the milter behind the control socket `path` for the reporters of the mailing whose name has this prefix.
///
/// # Errors
/// As [`reports`].
pub async fn mailing_reports(path: &Path, mailing: String) -> io::Result<MailingReports> {
    match ask(path, &Question::Mailing(mailing)).await? {
        Answer::Mailing(mailing) => Ok(*mailing),
        _ => Err(unexpected()),
    }
}

/// Has the milter behind the control socket `path` withdraw all reports of one reporter.
///
/// # Errors
/// As [`reports`]; some of the reports may be withdrawn then.
pub async fn forget_reports(path: &Path, reporter: ReporterRef) -> io::Result<Withdrawal> {
    match ask(path, &Question::Forget(reporter)).await? {
        Answer::Forgotten(withdrawn) => Ok(withdrawn),
        _ => Err(unexpected()),
    }
}

/// Has the milter behind the control socket `path` trust a user fully. False if there is no place for more reporters.
///
/// # Errors
/// As [`reports`], and if the reporter is not a user.
pub async fn vouch(path: &Path, reporter: ReporterRef) -> io::Result<bool> {
    match ask(path, &Question::Vouch(reporter)).await? {
        Answer::Vouched(has_place) => Ok(has_place),
        _ => Err(unexpected()),
    }
}

/// Has the daemon behind the control socket `path` send its whole ledger, piece by piece.
///
/// # Errors
/// As [`counts`]; if the transfer breaks off; any error of `take`.
pub async fn backup<E: From<io::Error>>(
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (answer, mut reader) = begin(path, &Question::Backup).await?;
    let Answer::Backup = answer else { return Err(unexpected().into()) };
    let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "the daemon stopped sending");
    let read = async |reader: &mut Take<BufReader<UnixStream>>, bytes: &mut [u8]| {
        reader.set_limit(bytes.len() as u64);
        tokio::time::timeout(TIMEOUT, reader.read_exact(bytes)).await.map_err(slow)?.map(drop)
    };
    loop {
        let mut length = [0; 4];
        read(&mut reader, &mut length).await?;
        let length = u32::from_le_bytes(length);
        if length == 0 {
            return Ok(());
        }
        if length > MAX_FRAME {
            return Err(unexpected().into());
        }
        let mut piece = vec![0; length as usize];
        read(&mut reader, &mut piece).await?;
        take(&piece)?;
    }
}

/// Has the milter behind the control socket `path` carry out an order of the administrator, with the message if the order needs one.
///
/// # Errors
/// As [`counts`]; [`io::ErrorKind::InvalidInput`] if the order is invalid.
pub async fn order(path: &Path, given: &Given, message: &[u8]) -> io::Result<Ordered> {
    match exchange(path, &Question::Order(given.clone()), message).await? {
        Answer::Ordered(ordered) => Ok(*ordered),
        Answer::Unclear(e) => Err(io::Error::new(io::ErrorKind::InvalidInput, e)),
        Answer::Error(e) => Err(io::Error::other(e)),
        _ => Err(unexpected()),
    }
}

fn unexpected() -> io::Error {
    io::Error::other("the answer is for another request")
}

async fn ask(path: &Path, question: &Question) -> io::Result<Answer> {
    Ok(begin(path, question).await?.0)
}

/// Sends a question; returns the answer and a reader of the bytes behind it.
async fn begin(path: &Path, question: &Question) -> io::Result<(Answer, Take<BufReader<UnixStream>>)> {
    let mut stream = UnixStream::connect(path).await?;
    let mut question = serde_json::to_vec(question)?;
    question.push(b'\n');
    stream.write_all(&question).await?;
    let mut line = Vec::new();
    let mut reader = BufReader::new(stream).take(MAX_ANSWER);
    tokio::time::timeout(TIMEOUT, reader.read_until(b'\n', &mut line)).await??;
    match serde_json::from_slice(&line)? {
        Answer::Error(e) => Err(io::Error::other(e)),
        Answer::Unclear(e) => Err(io::Error::new(io::ErrorKind::InvalidInput, e)),
        answer => Ok((answer, reader)),
    }
}
