// SPDX-License-Identifier: GPL-3.0-or-later
//! The logger: it never blocks a session, no message can forge a line, and nobody outside can write any number of lines.

use super::limit::{Limits, SPAN};
use super::settings::{Messages, Settings};
use super::sink::Sink;
use bulkmark_types::visible;
use log::{LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Lines that may wait for a slow log daemon; at 200 bytes each, 2 MB.
const QUEUE: usize = 10_000;

/// The pause of the thread that writes lines before it waits for the next one. It is woken a few hundred times a second at most: with many
/// messages, waking it for each line costs more than the line.
const GATHER: Duration = Duration::from_millis(2);

/// Time limit for writing the last lines when a daemon ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The target of the line that each message has, without a limit: mail is counted by these lines. The verdict follows.
const MESSAGES: &str = "bulkmark::message::";

/// The target for messages that are checked, but not counted.
const ASKED: &str = "bulkmark::asked";

enum Item {
    /// A line, and whether it is the line of a message.
    Line(log::Level, String, bool),
    Flush(SyncSender<()>),
}

struct Logger {
    queue: SyncSender<Item>,
    dropped: &'static AtomicU64,
    limits: Arc<Mutex<Limits>>,
}

/// Lines that found the queue full.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// [`Messages`] as a number.
static LOGGED: AtomicU8 = AtomicU8::new(Messages::All as u8);

/// Lines that were lost since the start because the log daemon was too slow.
#[must_use]
pub fn lines_dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Starts logging with these settings. May be called only once.
///
/// # Errors
/// If it was called before, or no thread can be started.
pub fn init(settings: &Settings) -> std::io::Result<()> {
    let (queue, items) = sync_channel(QUEUE);
    let sink = Sink::new(settings);
    let limits = Arc::<Mutex<Limits>>::default();
    let shared = Arc::clone(&limits);
    thread::Builder::new().name("log".to_owned()).spawn(move || write_lines(sink, &items, &shared))?;
    let logger = Logger { queue, dropped: &DROPPED, limits };
    log::set_boxed_logger(Box::new(logger)).map_err(std::io::Error::other)?;
    set_levels(settings);
    Ok(())
}

/// Changes the least urgent level that is written, and which messages are logged.
pub fn set_levels(settings: &Settings) {
    log::set_max_level(settings.level.into());
    LOGGED.store(settings.messages as u8, Ordering::Relaxed);
}

/// Returns which messages are logged now.
fn logged_messages() -> Messages {
    let logged = LOGGED.load(Ordering::Relaxed);
    let all = [Messages::All, Messages::NotClean, Messages::Bulk, Messages::None];
    all.into_iter().find(|&messages| messages as u8 == logged).unwrap_or_default()
}

fn write_lines(mut sink: Sink, items: &Receiver<Item>, limits: &Mutex<Limits>) {
    let mut reported = 0;
    loop {
        let waiting = items.try_recv().or_else(|_| {
            thread::sleep(GATHER);
            // Omitted lines are reported even if nothing more happens.
            items.recv_timeout(SPAN)
        });
        let item = match waiting {
            Ok(item) => Some(item),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let left_out = limits.lock().over(Instant::now(), matches!(item, Some(Item::Flush(_))));
        left_out.iter().for_each(|line| sink.write(log::Level::Warn, line, false));
        let dropped = lines_dropped();
        if dropped > reported {
            let lost = dropped - reported;
            let line = format!("{lost} log lines were lost: the log daemon is too slow");
            sink.write(log::Level::Warn, &line, false);
            reported = dropped;
        }
        match item {
            Some(Item::Line(level, line, is_message)) => sink.write(level, &line, is_message),
            // The waiting thread may have given up.
            Some(Item::Flush(done)) => drop(done.send(())),
            None => (),
        }
    }
}

impl Log for Logger {
    /// Our own lines at the configured level; of libraries, only warnings and errors.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours = metadata.target().starts_with("bulkmark");
        // It logs each attempt to connect; the daemon has one line for all of them, with the server's name.
        if metadata.target().starts_with("rustls_platform_verifier") {
            return false;
        }
        if let Some(verdict) = metadata.target().strip_prefix(MESSAGES)
            && !logged_messages().has(verdict)
        {
            return false;
        }
        metadata.level() <= if ours { log::max_level() } else { LevelFilter::Warn }
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let line = visible(&record.args().to_string());
        let place = (record.target(), record.line().unwrap_or_default());
        let is_message = [MESSAGES, ASKED].iter().any(|target| place.0.starts_with(target));
        if !place.0.starts_with(MESSAGES) && !self.limits.lock().admit(place, &line, Instant::now()) {
            return;
        }
        if self.queue.try_send(Item::Line(record.level(), line, is_message)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) {
        let (done, flushed) = sync_channel(1);
        if self.queue.try_send(Item::Flush(done)).is_ok() {
            let _ = flushed.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}
