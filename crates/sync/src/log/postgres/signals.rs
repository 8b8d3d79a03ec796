// SPDX-License-Identifier: GPL-3.0-or-later
//! What a connection tells without being asked: that it ended, and that there is more to read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_postgres::{AsyncMessage, Connection, Notification};

/// What is told over a channel of PostgreSQL by whoever listens to it, to see whether anything comes.
pub(super) const HELLO: &str = "hello";

/// Where it is told that something was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Batches,
    Steps,
}

impl Channel {
    /// Its name in PostgreSQL, which has names of channels for each database.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Batches => "bulkmark_batches",
            Self::Steps => "bulkmark_steps",
        }
    }
}

/// What is received over a connection.
#[derive(Clone)]
pub(super) struct Signals {
    batches: watch::Receiver<()>,
    steps: watch::Receiver<()>,
    received: Arc<AtomicBool>,
}

impl Signals {
    /// Changes when there is something new to read; ends with the connection.
    pub(super) fn of(&self, channel: Channel) -> watch::Receiver<()> {
        match channel {
            Channel::Batches => self.batches.clone(),
            Channel::Steps => self.steps.clone(),
        }
    }

    /// Whether anything ever came: else this database has no such signals, or something between keeps them back.
    pub(super) fn have_come(&self) -> bool {
        self.received.load(Ordering::Relaxed)
    }

    /// Whether the connection is over.
    pub(super) fn ended(&self) -> bool {
        self.steps.has_changed().is_err()
    }
}

/// Both ends of it.
pub(super) fn signals() -> (Driver, Signals) {
    let (batches, batches_receiver) = watch::channel(());
    let (steps, steps_receiver) = watch::channel(());
    let received = Arc::new(AtomicBool::new(false));
    let driver = Driver { batches, steps, received: Arc::clone(&received) };
    (driver, Signals { batches: batches_receiver, steps: steps_receiver, received })
}

/// Tells what comes over a connection.
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
        // What went wrong is told to those who wait for answers.
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
