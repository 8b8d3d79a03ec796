// SPDX-License-Identifier: GPL-3.0-or-later
//! Asking a daemon over its control socket.

use super::serve::{Answer, Question};
use super::status::DaemonStatus;
use crate::ledger::Shares;
use crate::signature::Signature;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// How long a daemon may take for one answer: it asks its upstream servers for some.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of an answer at most.
const MAX_ANSWER: u64 = 64 << 20;

/// Asks the daemon behind the control socket `path` for the counts of `signatures`.
///
/// # Errors
/// When nobody listens there ([`io::ErrorKind::NotFound`] or [`io::ErrorKind::ConnectionRefused`]), or the daemon has
/// no counts to tell.
pub async fn counts(path: &Path, signatures: &[Signature]) -> io::Result<Vec<Shares>> {
    let question = Question::Counts(signatures.iter().map(ToString::to_string).collect());
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

fn unexpected() -> io::Error {
    io::Error::other("the answer is for another request")
}

async fn ask(path: &Path, question: &Question) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(path).await?;
    let mut question = serde_json::to_vec(question)?;
    question.push(b'\n');
    stream.write_all(&question).await?;
    let mut line = Vec::new();
    let mut reader = BufReader::new(stream).take(MAX_ANSWER);
    tokio::time::timeout(TIMEOUT, reader.read_until(b'\n', &mut line)).await??;
    match serde_json::from_slice(&line)? {
        Answer::Error(e) => Err(io::Error::other(e)),
        answer => Ok(answer),
    }
}
