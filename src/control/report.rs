// SPDX-License-Identifier: GPL-3.0-or-later
//! What somebody says of a message: a question of one line, then the message, then an answer of one line.

use super::question::{Answer, Question};
use super::reported::{MAX_REPORTED, MAX_REPORTER, Report, Reported, TakeReport};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// Bytes of an answer at most.
const MAX_ANSWER: u64 = 16 << 10;

/// How long a message may take to come, and to be counted.
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
    let mut bytes = Vec::new();
    let mut limited = reader.take(report.length);
    let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "the message does not come");
    tokio::time::timeout(PATIENCE, limited.read_to_end(&mut bytes)).await.map_err(slow)??;
    if (bytes.len() as u64) < report.length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let Some(take) = take else {
        return Ok(Answer::Error("a signature server has no users, ask a milter".to_owned()));
    };
    Ok(Answer::Reported(take(report, bytes).await))
}

/// Tells the daemon behind the control socket `path` what somebody says of a message.
///
/// # Errors
/// When nobody listens there ([`io::ErrorKind::NotFound`] or [`io::ErrorKind::ConnectionRefused`]), or there is no answer. Then it may
/// have been counted, and can be said again.
pub async fn report(path: &Path, report: &Report, message: &[u8]) -> io::Result<Reported> {
    let mut stream = UnixStream::connect(path).await?;
    let mut question = serde_json::to_vec(&Question::Report(report.clone()))?;
    question.push(b'\n');
    stream.write_all(&question).await?;
    let mut line = Vec::new();
    let exchange = async {
        // Who refuses it by its first line reads no further; what it says is there all the same.
        let written = stream.write_all(message).await;
        let mut reader = BufReader::new(&mut stream).take(MAX_ANSWER);
        let read = reader.read_until(b'\n', &mut line).await;
        if line.is_empty() { written.and(read) } else { read }
    };
    let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "the daemon does not answer");
    tokio::time::timeout(2 * PATIENCE, exchange).await.map_err(slow)??;
    match serde_json::from_slice(&line)? {
        Answer::Reported(reported) => Ok(reported),
        Answer::Error(e) => Err(io::Error::other(e)),
        _ => Err(io::Error::other("the answer is for another request")),
    }
}
