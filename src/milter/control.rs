// SPDX-License-Identifier: GPL-3.0-or-later
//! The control socket: other commands ask the running milter. One JSON object a line each way.

use super::listen::{Mode, bind_unix};
use super::serve::Service;
use crate::ledger::now;
use crate::signature::Signature;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// Bytes of one question; it is about 50.
const MAX_LINE: u64 = 4096;

/// Askers at a time.
const MAX_CONNECTIONS: usize = 64;

/// How long an asker may take for one question, and a milter for one answer.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Question {
    Count(String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Count(u32),
    Error(String),
}

/// A bound control socket; the file goes when it is dropped.
#[derive(Debug)]
pub struct Control {
    socket: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Binds the socket.
    ///
    /// # Errors
    /// When the path cannot be used or somebody listens there.
    pub async fn bind(path: &Path) -> io::Result<Self> {
        Ok(Self { socket: bind_unix(path, Mode::default()).await?, path: path.to_owned() })
    }

    /// Answers questions for ever.
    pub async fn serve(self, service: Arc<Service>) {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            match self.socket.accept().await {
                Ok((stream, _)) => {
                    let service = Arc::clone(&service);
                    tokio::spawn(async move {
                        // An asker that goes away is nobody's fault.
                        let _ = answer_all(stream, &service).await;
                        drop(permit);
                    });
                }
                Err(e) => {
                    log::warn!("the control socket cannot take a connection: {e}");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // If it is gone already, so much the better.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn answer_all(stream: UnixStream, service: &Service) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut reader).take(MAX_LINE);
        let read = tokio::time::timeout(TIMEOUT, limited.read_until(b'\n', &mut line)).await;
        if read?? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_slice(&line) {
            Ok(question) => answer(question, service).await,
            Err(e) => Answer::Error(format!("the question is not valid: {e}")),
        };
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        writer.write_all(&line).await?;
    }
}

async fn answer(Question::Count(signature): Question, service: &Service) -> Answer {
    let signature: Signature = match signature.parse() {
        Ok(signature) => signature,
        Err(e) => return Answer::Error(format!("{e}")),
    };
    match service.ledger.count(signature, now()).await {
        Ok(count) => Answer::Count(count),
        Err(e) => Answer::Error(e.to_string()),
    }
}

/// Asks the milter behind the control socket `path` for the count of `signature`.
///
/// # Errors
/// When nobody listens there ([`io::ErrorKind::NotFound`] or [`io::ErrorKind::ConnectionRefused`]), or the milter has
/// no count to tell.
pub async fn count(path: &Path, signature: Signature) -> io::Result<u32> {
    let mut stream = UnixStream::connect(path).await?;
    let mut question = serde_json::to_vec(&Question::Count(signature.to_string()))?;
    question.push(b'\n');
    stream.write_all(&question).await?;
    let mut line = Vec::new();
    let mut reader = BufReader::new(stream).take(MAX_LINE);
    tokio::time::timeout(TIMEOUT, reader.read_until(b'\n', &mut line)).await??;
    match serde_json::from_slice(&line)? {
        Answer::Count(count) => Ok(count),
        Answer::Error(e) => Err(io::Error::other(e)),
    }
}
