// SPDX-License-Identifier: GPL-3.0-or-later
//! Batches on their way to the log. Batches that are appended at the same time share a transaction, since most of its time is the disk's.

use super::database::{Database, copy, signed, unsigned};
use super::signals::Channel;
use crate::log::types::{BatchId, LogError, MAX_BYTES, Place};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_postgres::types::Type;

/// Maximum of batches and bytes in one transaction. A single batch may always be sent, however large it is.
const MOST_BATCHES: usize = 64;
const MOST_BYTES: usize = 4 << 20;

/// A waiting batch, and the channel for its answer.
struct Waiting {
    id: BatchId,
    bytes: Vec<u8>,
    answer: oneshot::Sender<Result<Place, LogError>>,
}

/// Waiting batches, one for each waiting caller.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: VecDeque<Waiting>,
    /// Whether a task sends them.
    sending: bool,
}

/// Appends a batch, together with others.
///
/// # Errors
/// When the log does not acknowledge it.
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
        // A task, so that a caller that stops waiting does not stop it for the others.
        tokio::spawn(send(Arc::clone(database), Sender::new(outbox)));
    }
    answered.await.unwrap_or_else(|_| Err(LogError::Unavailable("it was not sent".to_owned())))
}

/// Checks the size against the log's limit.
pub(super) fn fits(bytes: &[u8], what: &str) -> Result<(), LogError> {
    if bytes.len() > MAX_BYTES {
        let text = format!("{what} of {} bytes, the log takes {MAX_BYTES}", bytes.len());
        return Err(LogError::Setup(text));
    }
    Ok(())
}

/// The task that sends waiting batches. However it ends, another one can start.
struct Sender {
    outbox: Arc<Mutex<Outbox>>,
    /// Whether it is the current sender. Afterwards another one may be.
    sends: bool,
}

impl Sender {
    fn new(outbox: &Arc<Mutex<Outbox>>) -> Self {
        Self { outbox: Arc::clone(outbox), sends: true }
    }

    /// Takes as many waiting batches as fit into a transaction; none if none wait, and then this sender is done.
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
            // Only a panic leads here. The callers notice that their channel ended.
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
                    // A caller that no longer waits will repeat its request.
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
    // From a client above its rate, the log takes only the first ones.
    if places.is_empty() || places.len() > batches.len() {
        return Err(LogError::Unavailable("it did not return the places of the batches".to_owned()));
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

    /// A sender that found nothing to send does not touch batches that come before it is dropped: the next one sends them.
    #[test]
    fn batches_that_come_while_a_sender_leaves_are_not_dropped() {
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

    /// A sender that ends while it sends, as by a panic, leaves nobody waiting forever.
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
