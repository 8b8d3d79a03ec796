// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads batches and steps in order, and waits for new ones.
//!
//! PostgreSQL signals new entries by NOTIFY. Readers do not rely on it: they also poll, and more often if no signal ever came.

use super::database::{Database, INT8, signed, unsigned};
use super::session::Session;
use super::signals::Channel;
use crate::log::Reader;
use crate::log::types::{Batch, LogError, Place, Step};
use crate::state::Link;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_postgres::Row;

/// How often a reader polls: with signals, for those that were lost, and without.
const LOOK: Duration = Duration::from_secs(5);
const LOOK_WITHOUT_SIGNALS: Duration = Duration::from_millis(300);

/// How long it waits after a signal, since more entries come together.
const GATHER: Duration = Duration::from_millis(20);

/// The shortest time between two polls, unless more entries are known to exist. Any member may send signals, and could otherwise keep all
/// others busy.
const SPACING: Duration = Duration::from_millis(100);

/// Maximum of rows that are read at once, and the bytes after which no further row is read.
const MOST_ROWS: usize = 256;
const MOST_BYTES: usize = 4 << 20;

/// The end of the steps, and the steps behind a place; if there are none, one row without a place. A row behind the end is no entry: an
/// aggregator that counted one would begin an epoch, because the log does not reach that far, and so would the next one, for ever.
const STEPS: &str = "select e.last, p.place, p.bytes from bulkmark.ends e left join (
    select place, bytes from (
        select place, bytes, sum(octet_length(bytes)) over (order by place) - octet_length(bytes) as before
        from (select place, bytes from bulkmark.steps where place > $1 order by place limit 256) as few) as sized
    where before < 4194304) as p on p.place <= e.last
where e.name = 'steps' order by p.place";

/// The same query for batches.
const BATCHES: &str = "select e.last, p.place, p.bytes, p.client, p.at from bulkmark.ends e left join (
    select place, bytes, client, at from (
        select place, bytes, client, at, sum(octet_length(bytes)) over (order by place) - octet_length(bytes) as before
        from (select place, bytes, client, at from bulkmark.batches where place > $1 order by place limit 256) as few) as sized
    where before < 4194304) as p on p.place <= e.last
where e.name = 'batches' order by p.place";

/// Reads batches or steps over one connection, and ends with it.
struct Follower {
    session: Arc<Session>,
    link: Arc<Link>,
    channel: Channel,
    signal: watch::Receiver<()>,
    /// The last place that was handed out.
    after: Place,
    /// Rows that were read and not handed out.
    page: VecDeque<Row>,
    /// The times of the last and of the next poll.
    looked: Instant,
    due: Instant,
    /// Whether there was an error.
    ended: bool,
}

impl Follower {
    async fn new(database: &Database, channel: Channel, after: Place) -> Result<Self, LogError> {
        let session = database.session().await?;
        session.listen(channel).await?;
        let signal = session.signals().of(channel);
        let link = Arc::clone(&database.link);
        let now = Instant::now();
        let page = VecDeque::new();
        let mut new =
            Self { session, link, channel, signal, after, page, looked: now, due: now, ended: false };
        // Missing entries are reported at once.
        new.look().await?;
        Ok(new)
    }

    /// Returns the next row. The future may be dropped at any time: state changes only between two waits.
    async fn next(&mut self) -> Result<Row, LogError> {
        if self.ended {
            return Err(lost());
        }
        let next = self.wait().await;
        self.ended = next.is_err();
        next
    }

    async fn wait(&mut self) -> Result<Row, LogError> {
        loop {
            if let Some(row) = self.page.pop_front() {
                self.after = place_of(&row).unwrap_or(self.after);
                return Ok(row);
            }
            while Instant::now() < self.due {
                tokio::select! {
                    changed = self.signal.changed() => {
                        changed.map_err(|_| lost())?;
                        let earliest = (Instant::now() + GATHER).max(self.looked + SPACING);
                        self.due = self.due.min(earliest);
                    }
                    () = tokio::time::sleep_until(self.due) => {}
                }
            }
            self.look().await?;
        }
    }

    /// Reads the next page.
    async fn look(&mut self) -> Result<(), LogError> {
        let sql = match self.channel {
            Channel::Batches => BATCHES,
            Channel::Steps => STEPS,
        };
        self.looked = Instant::now();
        let mut rows = self.session.ask(sql, &[(&signed(self.after.0), INT8)]).await?;
        let last = rows.first().map(|row| Place(unsigned(row.get(0))));
        rows.retain(|row| place_of(row).is_some());
        if self.channel == Channel::Steps {
            self.check(last, rows.first().and_then(place_of))?;
        }
        let bytes: usize = rows.iter().map(|row| row.get::<_, &[u8]>(2).len()).sum();
        self.link.received(bytes);
        // After a full page there may be another one. Later entries are signalled.
        if rows.len() < MOST_ROWS && bytes < MOST_BYTES {
            let pause = if self.session.signals().have_come() { LOOK } else { LOOK_WITHOUT_SIGNALS };
            self.due = self.looked + pause;
        }
        self.page = rows.into();
        Ok(())
    }

    /// Steps have no gaps, so this detects steps that are no longer there, or never existed.
    fn check(&self, last: Option<Place>, first: Option<Place>) -> Result<(), LogError> {
        let follows = match first {
            Some(first) => first.0 == self.after.0 + 1,
            None => last == Some(self.after),
        };
        if follows { Ok(()) } else { Err(LogError::Gone(self.after)) }
    }
}

fn place_of(row: &Row) -> Option<Place> {
    row.get::<_, Option<i64>>(1).map(|place| Place(unsigned(place)))
}

fn lost() -> LogError {
    LogError::Unavailable("the connection was lost".to_owned())
}

/// Reads batches.
pub struct Batches(Follower);

impl Batches {
    pub(super) async fn after(database: &Database, after: Place) -> Result<Self, LogError> {
        Follower::new(database, Channel::Batches, after).await.map(Self)
    }
}

impl Reader for Batches {
    type Item = Batch;

    async fn next(&mut self) -> Result<Batch, LogError> {
        let row = self.0.next().await?;
        Ok(Batch { place: self.0.after, client: row.get(3), at: unsigned(row.get(4)), bytes: row.get(2) })
    }
}

/// Reads steps.
pub struct Steps(Follower);

impl Steps {
    pub(super) async fn after(database: &Database, after: Place) -> Result<Self, LogError> {
        Follower::new(database, Channel::Steps, after).await.map(Self)
    }
}

impl Reader for Steps {
    type Item = Step;

    async fn next(&mut self) -> Result<Step, LogError> {
        let row = self.0.next().await?;
        Ok(Step { place: self.0.after, bytes: row.get(2) })
    }
}
