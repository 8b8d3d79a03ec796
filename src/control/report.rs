// SPDX-License-Identifier: GPL-3.0-or-later
//! A user's report on a message: a question of one line, then the message, then an answer of one line.

use super::question::{Answer, Question};
use super::reported::{MAX_REPORTED, MAX_REPORTER, Report, Reported, TakeReport};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// Size limit of an answer in bytes.
const MAX_ANSWER: u64 = 8 << 20;

/// Time limit for receiving a message, and for counting it.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Reads the message of a report, and has it counted.
pub(super) async fn answer(
    reader: &mut (impl AsyncRead + Unpin),
    report: Report,
    take: Option<&TakeReport>,
) -> io::Result<Answer> {
    if report.length > MAX_REPORTED || report.user.len() > MAX_REPORTER {
        let why =
            format!("expected a message of {MAX_REPORTED} bytes at most, from a name of {MAX_REPORTER}");
        return Ok(Answer::Error(why));
    }
    let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "the message did not arrive in time");
    let bytes = tokio::time::timeout(PATIENCE, read_message(reader, report.length)).await.map_err(slow)??;
    let Some(take) = take else {
        return Ok(Answer::Error("a signature server has no users, ask a milter".to_owned()));
    };
    Ok(Answer::Reported(take(report, bytes).await))
}

/// Reads a message of `length` bytes; the caller has checked the bound.
pub(super) async fn read_message(reader: &mut (impl AsyncRead + Unpin), length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes).await?;
    if (bytes.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// Sends a user's report on a message to the daemon behind the control socket `path`.
///
/// # Errors
/// If nobody listens there ([`io::ErrorKind::NotFound`] or [`io::ErrorKind::ConnectionRefused`]), or there is no answer. In the latter case the
/// report may have been counted, and can be sent again.
pub async fn report(path: &Path, report: &Report, message: &[u8]) -> io::Result<Reported> {
    match exchange(path, &Question::Report(report.clone()), message).await? {
        Answer::Reported(reported) => Ok(reported),
        Answer::Error(e) => Err(io::Error::other(e)),
        _ => Err(io::Error::other("the answer is for another request")),
    }
}

/// Sends a question with a message behind it; returns the answer.
pub(super) async fn exchange(path: &Path, question: &Question, message: &[u8]) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(path).await?;
    let mut question = serde_json::to_vec(question)?;
    question.push(b'\n');
    stream.write_all(&question).await?;
    let mut line = Vec::new();
    let exchange = async {
        // A daemon that refuses the first line stops reading, but its answer can still be read.
        let written = stream.write_all(message).await;
        let mut reader = BufReader::new(&mut stream).take(MAX_ANSWER);
        let read = reader.read_until(b'\n', &mut line).await;
        if line.is_empty() { written.and(read) } else { read }
    };
    let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "the daemon does not answer");
    tokio::time::timeout(2 * PATIENCE, exchange).await.map_err(slow)??;
    Ok(serde_json::from_slice(&line)?)
}
