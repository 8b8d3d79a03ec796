// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads a stream from a place on, and then new messages, without a consumer on the servers: existing messages are fetched one by one,
//! several at a time, and new ones arrive live. A live message may be lost, and is only a hint, or saves a request; the number of each
//! message shows whether one is missing.

use super::api::{self, State, Stored, get, header};
use super::connection::Connection;
use super::names::{Live, Stream};
use crate::log::Reader;
use crate::log::types::{LogError, Place};
use async_nats::{Message, Subscriber};
use bulkmark_ledger::random_bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Messages that are requested at a time, and those that wait to be taken.
const AT_A_TIME: u64 = 8;
const WAITING: usize = 4;

/// The silence after which the stream's state is requested: live messages may be lost without a trace. All followers use different times.
const SILENCE: Duration = Duration::from_secs(10);

/// How often a request is repeated for a message that one node has and another not yet, and the pauses before it.
const TRIES: u32 = 12;
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Makes an item of a message; none for a message that does not belong there.
pub(super) type Make<T> = fn(Stored) -> Option<T>;

/// Reads a stream.
pub struct Follower<T> {
    items: mpsc::Receiver<Result<T, LogError>>,
    task: JoinHandle<()>,
}

impl<T> Drop for Follower<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<T: Send + 'static> Reader for Follower<T> {
    type Item = T;

    async fn next(&mut self) -> Result<T, LogError> {
        let ended = || Err(LogError::Unavailable("this reader of the log has ended".to_owned()));
        self.items.recv().await.unwrap_or_else(ended)
    }
}

impl<T: Send + 'static> Follower<T> {
    /// Starts behind a place. `is_whole` is whether no message behind it may be missing.
    pub(super) async fn new(
        connection: &Arc<Connection>,
        stream: &'static Stream,
        after: Place,
        is_whole: bool,
        make: Make<T>,
    ) -> Result<Self, LogError> {
        let gaps = connection.gaps();
        let live = match stream.live {
            Some((subject, how)) => Some((connection.subscribe(subject).await?, how)),
            None => None,
        };
        let state = api::state(connection, stream.name, None).await?;
        let (sender, items) = mpsc::channel(WAITING);
        let mut task = Task {
            connection: Arc::clone(connection),
            stream,
            is_whole,
            make,
            made: state.made,
            place: after.0,
            known: after.0,
            live,
            gaps,
            items: sender,
        };
        task.learn(&state)?;
        let task = tokio::spawn(async move {
            if let Err(error) = task.run().await {
                let _ = task.items.send(Err(error)).await;
            }
        });
        Ok(Self { items, task })
    }
}

struct Task<T> {
    connection: Arc<Connection>,
    stream: &'static Stream,
    is_whole: bool,
    make: Make<T>,
    /// The identity of the stream at the start.
    made: u64,
    /// The last message that was handed on or skipped.
    place: u64,
    /// The last message that is known to exist.
    known: u64,
    live: Option<(Subscriber, Live)>,
    gaps: watch::Receiver<u64>,
    items: mpsc::Sender<Result<T, LogError>>,
}

impl<T: Send + 'static> Task<T> {
    async fn run(&mut self) -> Result<(), LogError> {
        loop {
            while self.place < self.known {
                self.fetch().await?;
            }
            self.wait().await?;
        }
    }

    /// Waits for a new message; hands it on at once if it is the next one.
    async fn wait(&mut self) -> Result<(), LogError> {
        let [byte] = random_bytes().unwrap_or([128]);
        let silence = SILENCE.mul_f64(0.75 + f64::from(byte) / 510.0);
        let message = tokio::select! {
            message = next(&mut self.live) => Some(message),
            _ = self.gaps.changed() => None,
            () = sleep(silence) => None,
        };
        let Some(message) = message else {
            let state = api::state(&self.connection, self.stream.name, None).await?;
            return self.learn(&state);
        };
        self.connection.link().touch();
        self.connection.link().received(message.length);
        match self.live {
            Some((_, Live::Whole)) => self.take_live(message).await,
            _ => {
                self.note_number(&message);
                Ok(())
            }
        }
    }

    /// Records the number of a live message.
    fn note_number(&mut self, message: &Message) {
        let number = header(message, "Nats-Sequence").and_then(|number| number.parse().ok());
        self.known = self.known.max(number.unwrap_or(0));
    }

    async fn take_live(&mut self, message: Message) -> Result<(), LogError> {
        let place = Place(self.place + 1);
        if header(&message, "Nats-Sequence").and_then(|number| number.parse().ok()) != Some(place.0) {
            self.note_number(&message);
            return Ok(());
        }
        let subject = message.subject.to_string();
        self.hand_on(Stored { place, subject, at: SystemTime::now(), payload: message.payload }).await
    }

    /// Takes over the state from the stream's leader.
    fn learn(&mut self, state: &State) -> Result<(), LogError> {
        let is_cut = state.last < self.place || state.made != self.made;
        if is_cut || self.is_whole && state.first > self.place + 1 {
            return Err(LogError::Gone(Place(self.place)));
        }
        self.known = state.last;
        // Dropped messages are skipped.
        self.place = self.place.max(state.first.saturating_sub(1)).min(state.last);
        Ok(())
    }

    /// Fetches and hands on some of the messages that are known to exist.
    async fn fetch(&mut self) -> Result<(), LogError> {
        let last = self.known.min(self.place + AT_A_TIME);
        let connection = Arc::clone(&self.connection);
        let (name, subjects) = (self.stream.name, self.stream.subjects);
        let mut answers: FuturesOrdered<_> = (self.place + 1..=last)
            .map(|number| {
                let question = json!({ "seq": number, "next_by_subj": subjects });
                let connection = &connection;
                async move { get(connection, name, &question).await }
            })
            .collect();
        while let Some(found) = answers.next().await {
            match found? {
                // The message after a gap, which the request before it found, too.
                Some(found) if found.place.0 <= self.place => (),
                Some(found) if found.place.0 == self.place + 1 => self.hand_on(found).await?,
                _ => {
                    drop(answers);
                    return self.search().await;
                }
            }
        }
        Ok(())
    }

    /// Searches for the next message, which is not at its place: a node lags behind, or there is a gap.
    async fn search(&mut self) -> Result<(), LogError> {
        let question = json!({ "seq": self.place + 1, "next_by_subj": self.stream.subjects });
        let mut pause = FIRST_PAUSE;
        let mut beyond = None;
        for _ in 0..TRIES {
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            let state = api::state(&self.connection, self.stream.name, None).await?;
            self.learn(&state)?;
            if self.place >= self.known {
                return Ok(());
            }
            beyond = get(&self.connection, self.stream.name, &question).await?;
            if beyond.as_ref().is_some_and(|found| found.place.0 == self.place + 1) {
                break;
            }
        }
        match beyond {
            Some(found) if found.place.0 == self.place + 1 || !self.is_whole => self.hand_on(found).await,
            Some(_) => Err(LogError::Gone(Place(self.place))),
            None => Err(LogError::Unavailable(format!(
                "{} does not find message {}, which it has",
                self.stream.name,
                self.place + 1
            ))),
        }
    }

    /// Hands a message to the reader once it has room. Live messages are recorded meanwhile, and fetched later.
    async fn hand_on(&mut self, stored: Stored) -> Result<(), LogError> {
        self.place = stored.place.0;
        self.known = self.known.max(self.place);
        let Some(item) = (self.make)(stored) else { return Ok(()) };
        let items = self.items.clone();
        let sending = items.send(Ok(item));
        tokio::pin!(sending);
        loop {
            tokio::select! {
                biased;
                sent = &mut sending => {
                    return sent.map_err(|_| LogError::Unavailable("the reader is gone".to_owned()));
                }
                message = next(&mut self.live) => self.note_number(&message),
            }
        }
    }
}

/// Returns the next live message. Waits forever if there is no subscription, or the connection is closed.
async fn next(live: &mut Option<(Subscriber, Live)>) -> Message {
    if let Some((subscriber, _)) = live
        && let Some(message) = subscriber.next().await
    {
        return message;
    }
    std::future::pending().await
}
