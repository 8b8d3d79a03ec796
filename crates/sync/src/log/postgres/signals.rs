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

/// What is heard over a connection.
#[derive(Clone)]
pub(super) struct Signals {
    batches: watch::Receiver<()>,
    steps: watch::Receiver<()>,
    heard: Arc<AtomicBool>,
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
    pub(super) fn work(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// Whether the connection is over.
    pub(super) fn ended(&self) -> bool {
        self.steps.has_changed().is_err()
    }
}

/// Both ends of it.
pub(super) fn signals() -> (Driver, Signals) {
    let (batches, heard_batches) = watch::channel(());
    let (steps, heard_steps) = watch::channel(());
    let heard = Arc::new(AtomicBool::new(false));
    let driver = Driver { batches, steps, heard: Arc::clone(&heard) };
    (driver, Signals { batches: heard_batches, steps: heard_steps, heard })
}

/// Tells what comes over a connection.
pub(super) struct Driver {
    batches: watch::Sender<()>,
    steps: watch::Sender<()>,
    heard: Arc<AtomicBool>,
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
                self.tell(&notification);
            }
        }
    }

    fn tell(&self, notification: &Notification) {
        self.heard.store(true, Ordering::Relaxed);
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
