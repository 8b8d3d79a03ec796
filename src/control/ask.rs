// SPDX-License-Identifier: GPL-3.0-or-later
//! Asking a daemon over its control socket.

use super::backup::MAX_FRAME;
use super::ordered::{Given, Ordered};
use super::question::{Answer, Question};
use super::report::exchange;
use super::reports::{ReportsAsked, Whose};
use super::status::DaemonStatus;
use bulkmark_counts::{MailingReports, Overview, Shares, Withdrawal};
use bulkmark_types::Signature;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Take};
use tokio::net::UnixStream;

/// How long a daemon may take for one answer: it asks its upstream servers for some.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of an answer at most.
const MAX_ANSWER: u64 = 64 << 20;

/// Asks the daemon behind the control socket `path` for the counts of `signatures`. With `may_ask` it may ask others for what it does not
/// hold.
///
/// # Errors
/// When nobody listens there ([`io::ErrorKind::NotFound`] or [`io::ErrorKind::ConnectionRefused`]), or the daemon has
/// no counts to tell.
pub async fn counts(path: &Path, signatures: &[Signature], may_ask: bool) -> io::Result<Vec<Shares>> {
    let signatures_told = signatures.iter().map(ToString::to_string).collect();
    let question = if may_ask { Question::Counts(signatures_told) } else { Question::Held(signatures_told) };
    match ask(path, &question).await? {
        Answer::Counts(counts) if counts.len() == signatures.len() => Ok(counts),
        _ => Err(unexpected()),
    }
}

/// Asks the daemon behind the control socket `path` for what it can say of itself.
///
/// # Errors
/// As [`counts`].
pub async fn status(path: &Path, threshold: u32) -> io::Result<DaemonStatus> {
    match ask(path, &Question::Status(threshold)).await? {
        Answer::Status(status) => Ok(*status),
        _ => Err(unexpected()),
    }
}

/// Asks the milter behind the control socket `path` which of these pairs of a user and somebody the user wrote to there are.
///
/// # Errors
/// As [`counts`].
pub async fn correspondents(path: &Path, pairs: &[u64]) -> io::Result<Vec<bool>> {
    match ask(path, &Question::Correspondents(pairs.to_vec())).await? {
        Answer::Correspondents(known) if known.len() == pairs.len() => Ok(known),
        _ => Err(unexpected()),
    }
}

/// Asks the milter behind the control socket `path` what its users and traps said.
///
/// # Errors
/// As [`counts`]; [`io::ErrorKind::InvalidInput`] when nobody is meant, or several are.
pub async fn reports(path: &Path, asked: ReportsAsked) -> io::Result<Overview> {
    match ask(path, &Question::Reports(asked)).await? {
        Answer::Reports(overview) => Ok(*overview),
        _ => Err(unexpected()),
    }
}

/// Asks the milter behind the control socket `path` who spoke of the mailing whose name begins so.
///
/// # Errors
/// As [`reports`].
pub async fn spoken_of(path: &Path, mailing: String) -> io::Result<MailingReports> {
    match ask(path, &Question::Mailing(mailing)).await? {
        Answer::Spoken(spoken) => Ok(*spoken),
        _ => Err(unexpected()),
    }
}

/// Has the milter behind the control socket `path` take all back that somebody said.
///
/// # Errors
/// As [`reports`]. Some of it may be taken back then.
pub async fn forget_reports(path: &Path, whose: Whose) -> io::Result<Withdrawal> {
    match ask(path, &Question::Forget(whose)).await? {
        Answer::Forgotten(taken_back) => Ok(taken_back),
        _ => Err(unexpected()),
    }
}

/// Has the milter behind the control socket `path` trust a user in full. False if there is no place for more reporters.
///
/// # Errors
/// As [`reports`]; when the reporter is no user.
pub async fn vouch(path: &Path, whose: Whose) -> io::Result<bool> {
    match ask(path, &Question::Vouch(whose)).await? {
        Answer::Vouched(has_place) => Ok(has_place),
        _ => Err(unexpected()),
    }
}

/// Has the daemon behind the control socket `path` give all of its ledger, piece by piece.
///
/// # Errors
/// As [`counts`]; when it breaks off; or what `take` says.
pub async fn backup<E: From<io::Error>>(
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (answer, mut reader) = begin(path, &Question::Backup).await?;
    let Answer::Backup = answer else { return Err(unexpected().into()) };
    let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "the daemon says nothing more");
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

/// Has the milter behind the control socket `path` carry out an order of the administrator, about this message if it is about one.
///
/// # Errors
/// As [`counts`]; [`io::ErrorKind::InvalidInput`] when it cannot be carried out as it is.
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

/// The answer, and what comes behind it.
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
