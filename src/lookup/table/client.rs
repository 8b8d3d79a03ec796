// SPDX-License-Identifier: GPL-3.0-or-later
//! Connections to the servers of tables, which are kept for later questions.

use super::protocol::{self, Reply};
use bulkmark_policy::{Answers, Question, RemoteTable, is_wanted};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout_at};

/// The most idle connections to one table: as many as are usually needed at a time.
const KEPT: usize = 8;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// All connections.
#[derive(Default)]
pub struct Tables {
    idle: Mutex<HashMap<RemoteTable, Vec<Box<dyn Stream>>>>,
}

impl Tables {
    /// Looks up all names, until `within` is over. If a table does not answer, the answers have its error, and the others are still asked.
    pub async fn ask(&self, questions: Vec<Question>, within: Duration) -> Answers {
        let deadline = Instant::now() + within;
        let mut answers = Answers::default();
        let mut silent: HashSet<RemoteTable> = HashSet::new();
        for question in questions {
            if silent.contains(&question.table) {
                continue;
            }
            let found = match timeout_at(deadline, self.find(&question)).await {
                Ok(found) => found,
                Err(_) => Err(format!("no answer within {} s", within.as_secs_f64())),
            };
            match found {
                Ok(true) => answers.add(question),
                Ok(false) => (),
                Err(why) => {
                    answers.failed.get_or_insert_with(|| format!("{}: {why}", question.table));
                    silent.insert(question.table);
                }
            }
        }
        answers
    }

    /// Whether the first key that exists wants mail.
    async fn find(&self, question: &Question) -> Result<bool, String> {
        for key in &question.keys {
            if let Some(value) = self.look_up(&question.table, key).await? {
                return Ok(is_wanted(value.as_bytes()));
            }
        }
        Ok(false)
    }

    async fn look_up(&self, table: &RemoteTable, key: &str) -> Reply {
        let kept = self.idle.lock().get_mut(table).and_then(Vec::pop);
        if let Some(stream) = kept
            && let Ok(reply) = self.exchange(stream, table, key).await
        {
            return reply;
        }
        // There was none, or the server has closed it meanwhile.
        let describe = |e: io::Error| e.to_string();
        let stream = connect(&table.address).await.map_err(describe)?;
        self.exchange(stream, table, key).await.map_err(describe)?
    }

    /// One request and its reply.
    async fn exchange(
        &self,
        mut stream: Box<dyn Stream>,
        table: &RemoteTable,
        key: &str,
    ) -> io::Result<Reply> {
        stream.write_all(&protocol::request(table, key)).await?;
        stream.flush().await?;
        let (mut reply, mut chunk) = (Vec::new(), [0; 512]);
        loop {
            let read = stream.read(&mut chunk).await?;
            if read == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
            }
            reply.extend_from_slice(&chunk[..read]);
            match protocol::length(table, &reply) {
                Err(what) => return Ok(Err(what)),
                Ok(Some(length)) if reply.len() == length => break,
                // More than an answer: the next one could not be assigned.
                Ok(Some(length)) if reply.len() > length => {
                    return Ok(Err("it says more than was asked".to_owned()));
                }
                Ok(_) => (),
            }
        }
        let answer = protocol::read(table, &reply);
        if answer.is_ok() {
            let mut idle = self.idle.lock();
            let kept = idle.entry(table.clone()).or_default();
            if kept.len() < KEPT {
                kept.push(stream);
            }
        }
        Ok(answer)
    }
}

async fn connect(address: &str) -> io::Result<Box<dyn Stream>> {
    if address.starts_with('/') {
        return Ok(Box::new(UnixStream::connect(address).await?));
    }
    let stream = TcpStream::connect(address).await?;
    // Requests are small and wait for their answers.
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}
