// SPDX-License-Identifier: GPL-3.0-or-later
//! Batches on their way to the log: those that are appended at the same time go in one transaction, since the disk is what takes
//! the time of one.

use super::database::{Database, copy, signed, unsigned};
use super::signals::Channel;
use crate::log::types::{BatchId, LogError, MAX_BYTES, Place};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_postgres::types::Type;

/// Batches and bytes of one transaction at most. A batch may always go, however large it is.
const MOST_BATCHES: usize = 64;
const MOST_BYTES: usize = 4 << 20;

/// A batch that waits, and who wants to know.
struct Waiting {
    id: BatchId,
    bytes: Vec<u8>,
    answer: oneshot::Sender<Result<Place, LogError>>,
}

/// Batches that wait. There are as many as somebody waits for.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: VecDeque<Waiting>,
    /// Whether somebody sends them.
    sending: bool,
}

/// Appends a batch, together with others.
///
/// # Errors
/// When the log does not say that it has it.
pub(super) async fn append(
    database: &Arc<Database>,
    outbox: &Arc<Mutex<Outbox>>,
    id: BatchId,
    bytes: Vec<u8>,
) -> Result<Place, LogError> {
    fits(&bytes, "a batch")?;
    let (answer, answered) = oneshot::channel();
    let begin = {
        let mut outbox = outbox.lock();
        outbox.waiting.push_back(Waiting { id, bytes, answer });
        !std::mem::replace(&mut outbox.sending, true)
    };
    if begin {
        // A task, so that whoever gives up waiting does not stop it for the others.
        tokio::spawn(send(Arc::clone(database), Sender::new(outbox)));
    }
    answered.await.unwrap_or_else(|_| Err(LogError::Unavailable("it was not sent".to_owned())))
}

/// Whether the log takes as much.
pub(super) fn fits(bytes: &[u8], what: &str) -> Result<(), LogError> {
    if bytes.len() > MAX_BYTES {
        let text = format!("{what} of {} bytes, the log takes {MAX_BYTES}", bytes.len());
        return Err(LogError::Setup(text));
    }
    Ok(())
}

/// Whoever sends what waits. However it ends, another may begin.
struct Sender {
    outbox: Arc<Mutex<Outbox>>,
    /// Whether it is the one that sends. Once it is not, another may be.
    sends: bool,
}

impl Sender {
    fn new(outbox: &Arc<Mutex<Outbox>>) -> Self {
        Self { outbox: Arc::clone(outbox), sends: true }
    }

    /// So many of those that wait as go together; none when no one waits, and then it does not send any more.
    fn take(&mut self) -> Vec<Waiting> {
        let mut outbox = self.outbox.lock();
        outbox.waiting.retain(|one| !one.answer.is_closed());
        let mut bytes = 0;
        let fit = |one: &&Waiting| {
            bytes += one.bytes.len();
            bytes <= MOST_BYTES
        };
        let many = outbox.waiting.iter().take(MOST_BATCHES).take_while(fit).count();
        let many = many.max(1).min(outbox.waiting.len());
        outbox.sending = many > 0;
        self.sends = outbox.sending;
        outbox.waiting.drain(..many).collect()
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.sends {
            // Only a panic leaves it so. They are told by the end of their channel.
            let mut outbox = self.outbox.lock();
            outbox.sending = false;
            outbox.waiting.clear();
        }
    }
}

async fn send(database: Arc<Database>, mut sender: Sender) {
    loop {
        let batches = sender.take();
        if batches.is_empty() {
            break;
        }
        match store(&database, &batches).await {
            Ok(places) => {
                let mut places = places.into_iter();
                for one in batches {
                    let place = places.next().ok_or_else(|| {
                        LogError::RateLimited("the log takes no more of this client for now".to_owned())
                    });
                    // Who does not wait any more will ask again.
                    let _ = one.answer.send(place);
                }
            }
            Err(why) => {
                for one in batches {
                    let _ = one.answer.send(Err(copy(&why)));
                }
            }
        }
    }
}

async fn store(database: &Database, batches: &[Waiting]) -> Result<Vec<Place>, LogError> {
    let spools: Vec<i64> = batches.iter().map(|one| signed(one.id.spool)).collect();
    let numbers: Vec<i64> = batches.iter().map(|one| signed(one.id.number)).collect();
    let attempts: Vec<i32> = batches.iter().map(|one| one.id.attempt.cast_signed()).collect();
    let bodies: Vec<&[u8]> = batches.iter().map(|one| &*one.bytes).collect();
    let session = database.session().await?;
    database.link.sent(bodies.iter().map(|body| body.len()).sum());
    let parameters = [
        (&spools as _, Type::INT8_ARRAY),
        (&numbers as _, Type::INT8_ARRAY),
        (&attempts as _, Type::INT4_ARRAY),
        (&bodies as _, Type::BYTEA_ARRAY),
    ];
    let sql = "select bulkmark.append($1, $2, $3, $4)";
    let rows = session.ask_and_notify(sql, &parameters, Channel::Batches).await?;
    let places: Vec<i64> = rows.first().map(|row| row.get(0)).unwrap_or_default();
    // Of one who brings more than it may, it takes the first ones.
    if places.is_empty() || places.len() > batches.len() {
        return Err(LogError::Unavailable("it did not say where the batches are".to_owned()));
    }
    Ok(places.into_iter().map(|place| Place(unsigned(place))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting() -> (Waiting, oneshot::Receiver<Result<Place, LogError>>) {
        let (answer, answered) = oneshot::channel();
        (Waiting { id: BatchId { spool: 1, number: 1, attempt: 0 }, bytes: vec![7], answer }, answered)
    }

    /// One that found nothing more to send has nothing to do with what comes before it is gone: another sends that.
    #[test]
    fn what_comes_while_a_sender_leaves_is_not_dropped() {
        let outbox = Arc::new(Mutex::new(Outbox::default()));
        outbox.lock().sending = true;
        let mut leaves = Sender::new(&outbox);
        assert!(leaves.take().is_empty() && !outbox.lock().sending);
        let (one, mut answered) = waiting();
        {
            let mut outbox = outbox.lock();
            outbox.waiting.push_back(one);
            outbox.sending = true;
        }
        let mut next = Sender::new(&outbox);
        drop(leaves);
        assert!(outbox.lock().sending, "the next one sends");
        assert_eq!(next.take().len(), 1);
        assert!(answered.try_recv().is_err());
    }

    /// One that ends while it sends, as by a panic, leaves nobody waiting for ever.
    #[test]
    fn a_sender_that_panics_leaves_nobody_waiting() {
        let outbox = Arc::new(Mutex::new(Outbox { sending: true, ..Outbox::default() }));
        let mut sender = Sender::new(&outbox);
        let ((first, _waits), (second, mut answered)) = (waiting(), waiting());
        outbox.lock().waiting.push_back(first);
        sender.take();
        outbox.lock().waiting.push_back(second);
        drop(sender);
        assert!(!outbox.lock().sending && outbox.lock().waiting.is_empty());
        assert!(matches!(answered.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    }
}
