// SPDX-License-Identifier: GPL-3.0-or-later
//! A connection on which the whole answer at the end of a message is sent in one write.
//!
//! `indymilter` flushes after each packet. Over TCP a header packet and the reply after it would then be two small segments, and the second
//! may wait 40 ms for the acknowledgement of the first. So packets that change the message are held back until the reply that must follow
//! them.
//!
//! And the library gets only packets that it can parse: [`Incoming`] repairs packets, and ends the session at invalid ones. A session that
//! ends by an error in the protocol is logged and counted.

use super::incoming::{Fault, Findings, Incoming};
use super::place::Place;
use super::repair::number;
use crate::activity::Open;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

/// The time after which an idle connection is closed; libmilter's own value, above all timeouts of MTAs.
pub(super) const CONNECTION_TIMEOUT: Duration = Duration::from_secs(7210);

/// The packet that makes the MTA continue.
const CONTINUE: [u8; 5] = [0, 0, 0, 1, b'c'];

/// The position of the options in the answer to an offer: after length, command, version and actions.
const OPTIONS_AT: usize = 13;

/// The most bytes for the library for which memory is kept until the next read.
const MAX_KEPT: usize = 64 << 10;

/// Packets that are always followed by another: add, insert and change header, quarantine.
const HELD: [u8; 4] = [b'h', b'i', b'm', b'q'];

/// The most bytes that are held back.
const MAX_HELD: usize = 64 << 10;

/// A stream of milter packets.
#[derive(Debug)]
pub(super) struct Coalescing<S> {
    inner: S,
    pending: Vec<u8>,
    /// The number of bytes in `pending` that are complete packets to hold back.
    held: usize,
    place: Place,
    open: Open,
    incoming: Incoming,
    /// The bytes for the library, and how many of them it has read.
    ready: Vec<u8>,
    given: usize,
    /// Whether the session's end is known, or was announced.
    has_ended: bool,
    /// Whether the end is an error in the protocol.
    has_failed: bool,
    /// The last command, and the time of the MTA's last bytes.
    last: Option<u8>,
    received_at: Instant,
    /// Whether the daemon stops.
    stopping: watch::Receiver<bool>,
}

impl<S> Coalescing<S> {
    pub(super) fn new(inner: S, open: Open, place: Place, stopping: watch::Receiver<bool>) -> Self {
        Self {
            inner,
            pending: Vec::new(),
            held: 0,
            place,
            open,
            incoming: Incoming::new(),
            ready: Vec::new(),
            given: 0,
            has_ended: false,
            has_failed: false,
            last: None,
            received_at: Instant::now(),
            stopping,
        }
    }

    /// Ends the session by an error in the protocol.
    fn fail(&mut self, why: &str) {
        (self.has_ended, self.has_failed) = (true, true);
        self.open.broke();
        log::warn!("the MTA's connection is closed, and its message not judged: {why}");
    }

    /// Takes bytes of the MTA.
    fn take(&mut self, bytes: &[u8]) {
        let mut findings = Findings::default();
        let taken = self.incoming.take(bytes, &mut self.ready, &mut findings);
        self.place.read(&findings.commands);
        self.has_ended |= findings.commands.contains(&b'Q');
        self.last = findings.commands.last().copied().or(self.last);
        self.received_at = Instant::now();
        for what in findings.repaired {
            self.open.mended();
            log::warn!("the MTA sent a malformed packet; its session continues: {what}");
        }
        for _ in 0..findings.owed {
            self.pending.extend_from_slice(&CONTINUE);
        }
        if let Err(fault) = taken {
            self.fail(&fault.to_string());
        }
    }

    /// Gives the library its bytes.
    fn give(&mut self, buf: &mut ReadBuf<'_>) {
        let now = (self.ready.len() - self.given).min(buf.remaining());
        buf.put_slice(&self.ready[self.given..self.given + now]);
        self.given += now;
        if self.given == self.ready.len() {
            self.given = 0;
            self.ready.clear();
            self.ready.shrink_to(MAX_KEPT);
        }
    }

    /// Whether all pending bytes may be held back: complete packets that another one must follow.
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
            match ready!(Pin::new(&mut self.inner).poll_write(cx, &self.pending)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(written) => drop(self.pending.drain(..written)),
                Err(e) => {
                    // The MTA has disconnected.
                    self.has_ended = true;
                    return Poll::Ready(Err(e));
                }
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
        // A reader waits for the other side, which must therefore have everything.
        if !self.pending.is_empty() {
            ready!(self.poll_drain(cx))?;
        }
        let before = buf.filled().len();
        while self.given == self.ready.len() {
            if self.place.is_closed(cx) || self.has_failed {
                // As if the MTA had disconnected.
                self.has_ended = true;
                return Poll::Ready(Ok(()));
            }
            let read = ready!(Pin::new(&mut self.inner).poll_read(cx, buf));
            if read.is_err() || buf.filled().len() == before {
                if !self.incoming.is_between() && !self.has_ended {
                    self.fail(&Fault::Torn.to_string());
                }
                self.has_ended = true;
                return Poll::Ready(read);
            }
            self.take(&buf.filled()[before..]);
            buf.set_filled(before);
            if !self.pending.is_empty() {
                ready!(self.poll_drain(cx))?;
            }
        }
        self.give(buf);
        Poll::Ready(Ok(()))
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
        if self.pending.get(4) == Some(&b'O')
            && let Some(&options) = self.pending.get(OPTIONS_AT..).and_then(<[u8]>::first_chunk)
        {
            self.incoming.agree(number(options));
        }
        if self.pending == CONTINUE && self.incoming.is_surplus() {
            self.pending.clear();
        }
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

impl<S> Drop for Coalescing<S> {
    /// Reports any other end of the session.
    fn drop(&mut self) {
        let is_silent = self.received_at.elapsed() >= CONNECTION_TIMEOUT;
        if !self.has_ended && !is_silent && !*self.stopping.borrow() {
            let after =
                self.last.map_or_else(|| "nothing".to_owned(), |kind| format!("{:?}", char::from(kind)));
            self.fail(&format!("it could not be answered after the packet {after}"));
        }
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
        Coalescing::new(near, Arc::<Connections>::default().begin(), place, watch::channel(false).1)
    }

    async fn write(stream: &mut Coalescing<impl AsyncWrite + Unpin>, packet: &[u8]) {
        // As indymilter does: in pieces, then a flush.
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
        // A progress packet is sent alone and at once.
        write(&mut stream, &packet(b'p', b"")).await;
        assert_eq!(far.read(&mut buffer).await.unwrap(), 5);
    }
}
