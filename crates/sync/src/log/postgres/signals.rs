// SPDX-License-Identifier: GPL-3.0-or-later
//! Unsolicited messages of a connection: that it ended, and that there are new entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_postgres::{AsyncMessage, Connection, Notification};

/// The payload that a listener sends itself over a channel of PostgreSQL, to see whether anything arrives.
pub(super) const HELLO: &str = "hello";

/// The channels for new entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Batches,
    Steps,
}

impl Channel {
    /// Returns its name in PostgreSQL, where channels belong to a database.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Batches => "bulkmark_batches",
            Self::Steps => "bulkmark_steps",
        }
    }
}

/// The signals of a connection.
#[derive(Clone)]
pub(super) struct Signals {
    batches: watch::Receiver<()>,
    steps: watch::Receiver<()>,
    received: Arc<AtomicBool>,
}

impl Signals {
    /// Returns a receiver that changes when there are new entries, and ends with the connection.
    pub(super) fn of(&self, channel: Channel) -> watch::Receiver<()> {
        match channel {
            Channel::Batches => self.batches.clone(),
            Channel::Steps => self.steps.clone(),
        }
    }

    /// Whether any signal ever came: otherwise the database has none, or something in between drops them.
    pub(super) fn have_come(&self) -> bool {
        self.received.load(Ordering::Relaxed)
    }

    /// Whether the connection is over.
    pub(super) fn ended(&self) -> bool {
        self.steps.has_changed().is_err()
    }
}

/// Creates both ends.
pub(super) fn signals() -> (Driver, Signals) {
    let (batches, batches_receiver) = watch::channel(());
    let (steps, steps_receiver) = watch::channel(());
    let received = Arc::new(AtomicBool::new(false));
    let driver = Driver { batches, steps, received: Arc::clone(&received) };
    (driver, Signals { batches: batches_receiver, steps: steps_receiver, received })
}

/// Drives a connection, and dispatches its signals.
pub(super) struct Driver {
    batches: watch::Sender<()>,
    steps: watch::Sender<()>,
    received: Arc<AtomicBool>,
}

impl Driver {
    /// Moves the bytes of a connection until its end.
    pub(super) async fn run<S, T>(self, mut connection: Connection<S, T>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
        T: AsyncRead + AsyncWrite + Unpin,
    {
        // Errors reach the tasks that wait for answers.
        while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(notification) = message {
                self.dispatch(&notification);
            }
        }
    }

    fn dispatch(&self, notification: &Notification) {
        self.received.store(true, Ordering::Relaxed);
        if notification.payload() == HELLO {
            return;
        }
        for (channel, sender) in [(Channel::Batches, &self.batches), (Channel::Steps, &self.steps)] {
            if notification.channel() == channel.name() {
                sender.send_replace(());
            }
        }
    }
}
