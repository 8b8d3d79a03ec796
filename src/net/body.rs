// SPDX-License-Identifier: GPL-3.0-or-later
//! Bodies that are made while they are sent, as fast as the reader takes them.

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Maximum of bytes that wait for a reader.
const WAITING: usize = 64 << 10;

/// Maximum size of a piece: one is made while others are sent.
const PIECE: usize = 16 << 10;

/// How long a reader may take to make room for one more piece before its stream ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// A budget of bytes that may wait for all readers of a kind.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Semaphore>);

impl Budget {
    /// Creates a budget of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        // One piece must fit.
        Self(Arc::new(Semaphore::new(bytes.clamp(PIECE, Semaphore::MAX_PERMITS))))
    }

    /// Waits for the place of so many bytes, which it has until the permit is dropped; none if there is never so much.
    pub async fn take(&self, bytes: u32) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_many_owned(bytes).await.ok()
    }
}

/// The permits of a piece, held until it was sent.
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

/// The sending end of a body.
pub struct Sender {
    /// Unbounded, since the budgets bound its content.
    pieces: mpsc::UnboundedSender<Bytes>,
    own: Budget,
    shared: Vec<Budget>,
    patience: Duration,
}

/// Why nothing more can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// The reader closed the connection.
    Away,
    /// The reader is connected and does not read.
    Stalled,
}

/// Room for one piece.
pub struct Room<'a> {
    pieces: &'a mpsc::UnboundedSender<Bytes>,
    bytes: usize,
    places: Places,
}

impl Sender {
    /// Waits until a piece of so many bytes, 16 kB at most, may be made: no memory is used for a reader that does not read.
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
            // Slow reading by others does not count against this reader.
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

    /// Waits until the reader is gone.
    pub async fn gone(&self) {
        self.pieces.closed().await;
    }
}

impl Room<'_> {
    /// Sends as much of `bytes` as there is room for, and returns its length.
    #[must_use]
    pub fn send(self, bytes: &[u8]) -> usize {
        let sent = bytes.len().min(self.bytes);
        let piece = Piece { bytes: bytes[..sent].to_vec(), _places: self.places };
        // A reader that is gone is noticed at the next request for room.
        let _ = self.pieces.send(Bytes::from_owner(piece));
        sent
    }
}

/// Creates a body and its sender; the body ends when the sender is dropped. Waiting bytes also count against the `shared` budgets.
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

    /// A reader that does not read has 64 kB waiting, and then its stream ends; the bytes count against the shared budget until they are
    /// gone.
    #[tokio::test]
    async fn the_stream_of_a_reader_that_does_not_read_ends() {
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

    /// A stream without room in the shared budget waits for any time, and notices when its reader leaves.
    #[tokio::test]
    async fn a_stream_that_waits_for_others_does_not_end() {
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
