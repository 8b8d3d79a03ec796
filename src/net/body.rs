// SPDX-License-Identifier: GPL-3.0-or-later
//! An answer whose body is made while it is sent, as fast as its reader takes it.

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Bytes that wait for a reader at most.
const WAITING: usize = 64 << 10;

/// Bytes of a piece at most: one is made while others are sent.
const PIECE: usize = 16 << 10;

/// How long a reader may take until there is room for one more piece before it is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes that may wait for all readers of a kind together.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Semaphore>);

impl Budget {
    /// Of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        // One piece must fit.
        Self(Arc::new(Semaphore::new(bytes.clamp(PIECE, Semaphore::MAX_PERMITS))))
    }

    async fn take(&self, bytes: u32) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_many_owned(bytes).await.ok()
    }
}

/// What holds a piece's place in the budgets until it was sent.
type Places = Vec<OwnedSemaphorePermit>;

struct Piece {
    bytes: Vec<u8>,
    _places: Places,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

struct Pieces(mpsc::UnboundedReceiver<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Where the pieces go in.
pub struct Sender {
    /// What is in it is bounded by the budgets.
    pieces: mpsc::UnboundedSender<Bytes>,
    own: Budget,
    shared: Vec<Budget>,
    patience: Duration,
}

/// Why nothing more can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// The reader went away.
    Away,
    /// It is there and does not read.
    Stalled,
}

/// Room for one piece.
pub struct Room<'a> {
    pieces: &'a mpsc::UnboundedSender<Bytes>,
    bytes: usize,
    places: Places,
}

impl Sender {
    /// Waits until a piece of so many bytes, 16 kB at most, may be made: nothing is held in memory for a reader who does not read.
    ///
    /// # Errors
    /// When nobody reads it.
    pub async fn room(&self, bytes: usize) -> Result<Room<'_>, Gone> {
        let bytes = bytes.min(PIECE);
        let size = u32::try_from(bytes).unwrap_or(u32::MAX);
        let own = tokio::select! {
            own = tokio::time::timeout(self.patience, self.own.take(size)) => own.map_err(|_| Gone::Stalled)?,
            () = self.gone() => return Err(Gone::Away),
        };
        let mut places: Places = own.into_iter().collect();
        for budget in &self.shared {
            // That others read slowly is not held against this one.
            tokio::select! {
                place = budget.take(size) => places.extend(place),
                () = self.gone() => return Err(Gone::Away),
            }
        }
        Ok(Room { pieces: &self.pieces, bytes, places })
    }

    /// Sends these bytes, piece by piece.
    ///
    /// # Errors
    /// When nobody reads them.
    pub async fn send(&self, bytes: &[u8]) -> Result<(), Gone> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = &rest[self.room(rest.len()).await?.send(rest)..];
        }
        Ok(())
    }

    /// Is done when the reader went away.
    pub async fn gone(&self) {
        self.pieces.closed().await;
    }
}

impl Room<'_> {
    /// Sends as much from the beginning of `bytes` as there is room for, and returns how much that is.
    #[must_use]
    pub fn send(self, bytes: &[u8]) -> usize {
        let sent = bytes.len().min(self.bytes);
        let piece = Piece { bytes: bytes[..sent].to_vec(), _places: self.places };
        // Whoever is gone is noticed when the next room is asked for.
        let _ = self.pieces.send(Bytes::from_owner(piece));
        sent
    }
}

/// A body, and the end by which it is filled; it ends when that is dropped. What waits counts against the `shared` budgets, too.
pub fn streamed(shared: Vec<Budget>) -> (Sender, Body) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let sender = Sender { pieces: sender, own: Budget::new(WAITING), shared, patience: PATIENCE };
    (sender, Body::new(Pieces(receiver)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Body as _;
    use std::future::poll_fn;

    /// Who does not read has 64 kB waiting and is then given up; what waits counts for all, and no more once it is gone.
    #[tokio::test]
    async fn a_reader_who_does_not_read_is_given_up() {
        let shared = Budget::new(1 << 20);
        let (mut sender, mut body) = streamed(vec![shared.clone()]);
        sender.patience = Duration::ZERO;
        let bytes: Vec<u8> = (0..=255).cycle().take(200_000).collect();
        assert_eq!(sender.send(&bytes).await, Err(Gone::Stalled));
        assert_eq!(shared.0.available_permits(), (1 << 20) - WAITING);
        drop(sender);
        let mut read = Vec::new();
        while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            read.extend_from_slice(&frame.into_data().unwrap());
        }
        assert_eq!(read, bytes[..WAITING]);
        assert_eq!(shared.0.available_permits(), 1 << 20);
    }

    /// A stream that finds no room in the budget of all waits for as long as that takes, and is woken when its reader leaves.
    #[tokio::test]
    async fn who_waits_for_others_is_not_given_up() {
        let shared = Budget::new(PIECE);
        let (first, taken) = streamed(vec![shared.clone()]);
        first.send(&[1; PIECE]).await.unwrap();
        let (mut second, body) = streamed(vec![shared]);
        second.patience = Duration::ZERO;
        let waits = tokio::spawn(async move { second.send(&[2; 9]).await });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished(), "it is given up");
        drop(body);
        assert_eq!(waits.await.unwrap(), Err(Gone::Away));
        drop(taken);
    }
}
