// SPDX-License-Identifier: GPL-3.0-or-later
//! The control socket. One JSON object a line each way.

use super::backup;
use super::orders;
use super::question::{Answer, Question};
use super::report;
use super::reports::{self, Failure, NameReporter};
use super::status::Daemon;
use crate::net::{Accepted, Bounds, Crowd, Member, Socket, Stream, serve_seated};
use bulkmark_ledger::{Ledger, now};
use bulkmark_types::Signature;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::Semaphore;

/// Length limit of a question in bytes; one for all signatures of a message has about 1,000.
const MAX_LINE: u64 = 16 << 10;

/// Clients at a time.
const MAX_CONNECTIONS: usize = 64;

/// Backups at a time: during each the file grows by all that is written.
const BACKUPS: usize = 1;

/// Reported messages at a time: each is in memory as a whole.
const REPORTS: usize = 4;

/// Orders at a time, each perhaps with a message. They do not wait for reports, which users may send slowly.
const ORDERS: usize = 4;

/// Time limit for reading one question.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The answer of a server to a question about users.
const NO_USERS: &str = "a signature server has no users, ask a milter";

/// Owner and group may connect.
const MODE: u32 = 0o660;

/// A bound control socket; its file is removed when it is dropped.
#[derive(Debug)]
pub struct Control {
    socket: Arc<Socket>,
    turns: Arc<Turns>,
}

/// Bounds of expensive requests.
#[derive(Debug)]
struct Turns {
    backups: Semaphore,
    reports: Semaphore,
    orders: Semaphore,
}

impl Control {
    /// Binds the socket. A missing directory is created if its parent exists.
    ///
    /// # Errors
    /// If the path cannot be used or somebody listens there.
    pub async fn bind(path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.exists()) {
            std::fs::create_dir(directory)?;
        }
        let turns = Turns {
            backups: Semaphore::new(BACKUPS),
            reports: Semaphore::new(REPORTS),
            orders: Semaphore::new(ORDERS),
        };
        Ok(Self { socket: Arc::new(Socket::unix(path, MODE).await?), turns: Arc::new(turns) })
    }

    /// Answers questions. Never returns.
    pub async fn serve(&self, daemon: Arc<Daemon>) {
        let serve = |accepted: Accepted, member: Member| {
            let (daemon, turns) = (Arc::clone(&daemon), Arc::clone(&self.turns));
            async move {
                // A client that goes away is no error.
                let _ = answer_all(accepted.stream, &member, &daemon, &turns).await;
            }
        };
        // Connections without requests make room for new ones.
        let bounds = Bounds { all: MAX_CONNECTIONS, address: usize::MAX, known: usize::MAX };
        serve_seated(Arc::clone(&self.socket), Crowd::new(bounds), std::future::pending(), serve).await;
    }
}

async fn answer_all(stream: Stream, member: &Member, daemon: &Daemon, turns: &Turns) -> io::Result<()> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut reader).take(MAX_LINE);
        let read = tokio::time::timeout(TIMEOUT, limited.read_until(b'\n', &mut line)).await;
        if read?? == 0 {
            return Ok(());
        }
        let question = serde_json::from_slice(&line);
        // A client that waits for its turn is not busy: it can be closed if others need its place.
        let turn = match &question {
            Ok(Question::Report(_)) => turns.reports.acquire().await.ok(),
            Ok(Question::Order(_)) => turns.orders.acquire().await.ok(),
            _ => None,
        };
        let busy = member.busy();
        let answer = match question {
            Ok(Question::Backup) => match turns.backups.try_acquire() {
                Ok(_turn) => return backup::send(&mut writer, daemon).await,
                Err(_) => Answer::Error("another backup is being made".to_owned()),
            },
            Ok(Question::Report(question)) => {
                report::answer(&mut reader, question, daemon.reports.as_ref()).await?
            }
            Ok(Question::Order(given)) => orders::answer(&mut reader, given, daemon).await?,
            Ok(question) => answer(question, daemon).await,
            Err(e) => Answer::Error(format!("the request is invalid: {e}")),
        };
        // Clients that do not read the answer make room, too.
        drop((turn, busy));
        writer.write_all(&answer.line()?).await?;
    }
}

/// Answers a question about user reports and reporters.
async fn user_reports(question: Question, ledger: &Ledger, name: &NameReporter) -> Result<Answer, Failure> {
    Ok(match question {
        Question::Reports(asked) => Answer::Reports(Box::new(reports::overview(ledger, name, asked).await?)),
        Question::Mailing(prefix) => {
            Answer::Mailing(Box::new(reports::mailing_reports(ledger, prefix).await?))
        }
        Question::Forget(reporter) => Answer::Forgotten(reports::forget(ledger, name, reporter).await?),
        Question::Vouch(reporter) => Answer::Vouched(reports::vouch(ledger, name, reporter).await?),
        _ => Answer::Error("unexpected question".to_owned()),
    })
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
        Question::Correspondents(pairs) => match &daemon.correspondents {
            Some(correspondents) => Answer::Correspondents(correspondents.contains(&pairs, now())),
            None => error(NO_USERS.to_owned()),
        },
        Question::Reports(_) | Question::Mailing(_) | Question::Forget(_) | Question::Vouch(_) => {
            match &daemon.reporter {
                Some(name) => {
                    user_reports(question, &daemon.ledger, name).await.unwrap_or_else(|e| match e {
                        e @ (Failure::Unclear(_) | Failure::NoUser(_) | Failure::Nobody) => {
                            Answer::Unclear(e.to_string())
                        }
                        e => error(e.to_string()),
                    })
                }
                None => error(NO_USERS.to_owned()),
            }
        }
        Question::Report(_) | Question::Order(_) => error("a report has a message behind it".to_owned()),
        // A backup has more than one line of answer.
        Question::Backup => error("a backup needs a separate connection".to_owned()),
    }
}
