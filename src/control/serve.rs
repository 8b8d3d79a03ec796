// SPDX-License-Identifier: GPL-3.0-or-later
//! The control socket. One JSON object a line each way.

use super::backup;
use super::question::{Answer, Question};
use super::status::Daemon;
use crate::net::{Accepted, Socket, Stream, serve_each};
use crate::signature::Signature;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::Semaphore;

/// Bytes of one question; that for all signatures of a message is about 1,000.
const MAX_LINE: u64 = 16 << 10;

/// Askers at a time.
const MAX_CONNECTIONS: usize = 64;

/// Backups at a time: each has the file grow by what is written meanwhile.
const BACKUPS: usize = 1;

/// How long an asker may take for one question.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Owner and group may ask.
const MODE: u32 = 0o660;

/// A bound control socket; the file goes when it is dropped.
#[derive(Debug)]
pub struct Control {
    socket: Arc<Socket>,
    backups: Arc<Semaphore>,
}

impl Control {
    /// Binds the socket. Its directory is made when it is missing and that above it is not.
    ///
    /// # Errors
    /// When the path cannot be used or somebody listens there.
    pub async fn bind(path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.exists()) {
            std::fs::create_dir(directory)?;
        }
        let backups = Arc::new(Semaphore::new(BACKUPS));
        Ok(Self { socket: Arc::new(Socket::unix(path, MODE).await?), backups })
    }

    /// Answers questions for ever.
    pub async fn serve(&self, daemon: Arc<Daemon>) {
        let serve = |accepted: Accepted| {
            let (daemon, backups) = (Arc::clone(&daemon), Arc::clone(&self.backups));
            async move {
                // An asker that goes away is nobody's fault.
                let _ = answer_all(accepted.stream, &daemon, &backups).await;
            }
        };
        serve_each(Arc::clone(&self.socket), MAX_CONNECTIONS, std::future::pending(), serve).await;
    }
}

async fn answer_all(stream: Stream, daemon: &Daemon, backups: &Semaphore) -> io::Result<()> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut reader).take(MAX_LINE);
        let read = tokio::time::timeout(TIMEOUT, limited.read_until(b'\n', &mut line)).await;
        if read?? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_slice(&line) {
            Ok(Question::Backup) => match backups.try_acquire() {
                Ok(_turn) => return backup::send(&mut writer, daemon).await,
                Err(_) => Answer::Error("another backup is being made".to_owned()),
            },
            Ok(question) => answer(question, daemon).await,
            Err(e) => Answer::Error(format!("the request is invalid: {e}")),
        };
        writer.write_all(&answer.line()?).await?;
    }
}

async fn answer(question: Question, daemon: &Daemon) -> Answer {
    let error = |e: String| Answer::Error(e);
    match question {
        Question::Counts(ref signatures) | Question::Held(ref signatures) => {
            let ask = matches!(question, Question::Counts(_));
            let signatures =
                signatures.iter().map(|text| text.parse()).collect::<Result<Vec<Signature>, _>>();
            match signatures {
                Ok(signatures) => match daemon.shares(signatures, ask).await {
                    Ok(shares) => Answer::Counts(shares),
                    Err(e) => error(e.to_string()),
                },
                Err(e) => error(e.to_string()),
            }
        }
        Question::Status(threshold) => match daemon.status(Some(threshold)).await {
            Ok(status) => Answer::Status(Box::new(status)),
            Err(e) => error(e.to_string()),
        },
        // It is no answer of one line.
        Question::Backup => error("a backup is asked for by itself".to_owned()),
    }
}
