// SPDX-License-Identifier: GPL-3.0-or-later
//! A connection on which the whole answer at the end of a message leaves in one write.
//!
//! `indymilter` flushes after each packet. Over TCP a header packet and the reply after it would then be two small
//! segments, and the second may wait 40 ms for the acknowledgement of the first. So packets that change the message
//! are held back until the reply that must follow them.

use super::place::Place;
use crate::activity::Open;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Packets that are always followed by another: add, insert and change header, quarantine.
const HELD: [u8; 4] = [b'h', b'i', b'm', b'q'];

/// Bytes that are held back at most.
const MAX_HELD: usize = 64 << 10;

/// A stream of milter packets.
#[derive(Debug)]
pub(super) struct Coalescing<S> {
    inner: S,
    pending: Vec<u8>,
    /// How much of `pending` is made of whole packets that are held back.
    held: usize,
    place: Place,
    _open: Open,
}

impl<S> Coalescing<S> {
    pub(super) const fn new(inner: S, open: Open, place: Place) -> Self {
        Self { inner, pending: Vec::new(), held: 0, place, _open: open }
    }

    /// Whether all that is pending may be held back: whole packets of a kind that another one follows.
    fn may_hold(&mut self) -> bool {
        while let Some((length, [kind, ..])) = self.pending[self.held..].split_first_chunk::<4>() {
            let length = length.iter().fold(0, |n, &byte| n << 8 | usize::from(byte));
            let end = self.held + 4 + length;
            if !HELD.contains(kind) || end > self.pending.len() {
                return false;
            }
            self.held = end;
        }
        self.held == self.pending.len() && self.held <= MAX_HELD
    }
}

impl<S: AsyncWrite + Unpin> Coalescing<S> {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.held = 0;
        if self.place.is_closed(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        while !self.pending.is_empty() {
            match ready!(Pin::new(&mut self.inner).poll_write(cx, &self.pending))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => drop(self.pending.drain(..written)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Coalescing<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Whoever reads waits for the other side, which must therefore have everything.
        if !self.pending.is_empty() {
            ready!(self.poll_drain(cx))?;
        }
        if self.place.is_closed(cx) {
            // As if the MTA had hung up.
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.inner).poll_read(cx, buf));
        self.place.read(&buf.filled()[before..]);
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Coalescing<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.pending.len() > MAX_HELD {
            ready!(self.poll_drain(cx))?;
        }
        self.place.wrote();
        self.pending.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.pending.is_empty() && self.may_hold() {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::Connections;
    use crate::net::{Bounds, Crowd};
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    fn packet(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len() + 1).unwrap();
        [&[0, 0, 0, length, kind], payload].concat()
    }

    fn coalescing<S>(near: S) -> Coalescing<S> {
        let crowd = Crowd::new(Bounds { all: 1, address: 1, known: 1 });
        let place = Place::new(crowd.admit(None, 0).unwrap(), Duration::from_secs(60));
        Coalescing::new(near, Arc::<Connections>::default().begin(), place)
    }

    async fn write(stream: &mut Coalescing<impl AsyncWrite + Unpin>, packet: &[u8]) {
        // As indymilter does it: in pieces, then a flush.
        for piece in packet.chunks(5) {
            stream.write_all(piece).await.unwrap();
        }
        stream.flush().await.unwrap();
    }

    #[tokio::test]
    async fn an_answer_leaves_in_one_write() {
        let (near, mut far) = duplex(1000);
        let mut stream = coalescing(near);
        let (header, reply) = (packet(b'h', b"X-Bulkmark\0bulk\0"), packet(b'c', b""));
        write(&mut stream, &header).await;
        write(&mut stream, &packet(b'q', b"held\0")).await;
        let mut buffer = [0; 1000];
        tokio::select! {
            biased;
            _ = far.read(&mut buffer) => panic!("a packet left before its reply"),
            () = std::future::ready(()) => (),
        }
        write(&mut stream, &reply).await;
        let n = far.read(&mut buffer).await.unwrap();
        assert_eq!(buffer[..n], [header, packet(b'q', b"held\0"), reply].concat());
    }

    #[tokio::test]
    async fn nothing_is_held_when_the_other_side_is_waited_for() {
        let (near, mut far) = duplex(1000);
        let mut stream = coalescing(near);
        write(&mut stream, &packet(b'h', b"a\0b\0")).await;
        let mut buffer = [0; 100];
        let (n, _) = tokio::join!(far.read(&mut buffer), async {
            tokio::time::timeout(Duration::from_millis(1), stream.read(&mut [0; 1])).await
        });
        assert_eq!(n.unwrap(), 9);
        // A progress packet stands alone and leaves at once.
        write(&mut stream, &packet(b'p', b"")).await;
        assert_eq!(far.read(&mut buffer).await.unwrap(), 5);
    }
}
