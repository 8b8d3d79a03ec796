// SPDX-License-Identifier: GPL-3.0-or-later
//! An answer whose body is made while it is sent.

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// Pieces that wait for a reader at most.
const WAITING: usize = 4;

/// How long a reader may take for a piece before it is given up.
const PATIENCE: Duration = Duration::from_secs(30);

struct Pieces(mpsc::Receiver<Bytes>);

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
pub struct Sender(mpsc::Sender<Bytes>);

/// The reader is gone or does not read.
#[derive(Debug)]
pub struct Gone;

impl Sender {
    /// Puts a piece in.
    ///
    /// # Errors
    /// When nobody reads it.
    pub async fn send(&self, piece: Vec<u8>) -> Result<(), Gone> {
        match tokio::time::timeout(PATIENCE, self.0.send(piece.into())).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Gone),
        }
    }
}

/// A body, and the end by which it is filled; it ends when that is dropped.
pub fn streamed() -> (Sender, Body) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Sender(sender), Body::new(Pieces(receiver)))
}
