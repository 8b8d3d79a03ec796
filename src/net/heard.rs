// SPDX-License-Identifier: GPL-3.0-or-later
//! How long the other side of a connection may be silent before somebody else takes its place, by what it sends and takes.
//!
//! Whoever hears nothing is waiting; who has something to do, or to wait for elsewhere, is not. A connection that waits has patience for
//! [`NEW`], and for a thousandth of a second more for each byte that comes or goes, up to [`MOST`]. So whoever sends or reads at all keeps
//! its place, and whoever sends a byte now and then does not.

use super::accept::Stream;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The patience with a connection that said nothing yet.
const NEW: Duration = Duration::from_millis(100);

/// The patience with any.
const MOST: Duration = Duration::from_secs(1);

/// What each byte adds.
const BYTE: Duration = Duration::from_millis(1);

/// A time that never comes, in milliseconds.
pub(super) const FOR_EVER: u64 = (1 << 56) - 1;

/// Until when one has patience with a connection, in milliseconds since some beginning, and its rank above that: those of a lower rank
/// go first. For ever while nothing is awaited from it.
#[derive(Debug, Clone)]
pub(super) struct Until(Arc<AtomicU64>);

impl Until {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(FOR_EVER)))
    }

    /// The rank, and the time.
    pub(super) fn get(&self) -> (u8, u64) {
        let until = self.0.load(Ordering::Relaxed);
        (until.to_le_bytes()[7], until & FOR_EVER)
    }

    pub(super) fn set(&self, rank: u8, until: u64) {
        self.0.store(u64::from(rank) << 56 | until.min(FOR_EVER), Ordering::Relaxed);
    }
}

/// A connection whose silence is measured.
pub(super) struct Heard {
    stream: Stream,
    until: Until,
    /// When time began.
    begin: Instant,
    /// The patience that is left.
    patience: Duration,
    /// Since when something is awaited.
    waits: Option<Instant>,
}

impl Heard {
    pub(super) const fn new(stream: Stream, until: Until, begin: Instant) -> Self {
        Self { stream, until, begin, patience: NEW, waits: None }
    }

    /// There is nothing, or nobody takes anything.
    fn wait(&mut self) {
        if self.waits.is_none() {
            let now = Instant::now();
            self.waits = Some(now);
            let until = (now + self.patience).duration_since(self.begin).as_millis();
            self.until.set(0, u64::try_from(until).unwrap_or(FOR_EVER));
        }
    }

    /// Notes what became of bytes that were to go.
    fn wrote(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Pending => self.wait(),
            Poll::Ready(written) => self.hear(*written.as_ref().unwrap_or(&0)),
        }
        written
    }

    /// So many bytes came or went.
    fn hear(&mut self, bytes: usize) {
        if let Some(since) = self.waits.take() {
            self.until.set(0, FOR_EVER);
            self.patience = self.patience.saturating_sub(since.elapsed());
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.patience = MOST.min(self.patience + BYTE.saturating_mul(bytes));
    }
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buffer) else {
            self.wait();
            return Poll::Pending;
        };
        self.hear(buffer.filled().len() - before);
        Poll::Ready(read)
    }
}

impl AsyncWrite for Heard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::timeout;

    /// Waits for something that does not come, and tells how much patience there is, in milliseconds.
    async fn patience(heard: &mut Heard) -> u64 {
        let begin = u64::try_from(heard.begin.elapsed().as_millis()).unwrap();
        assert!(timeout(Duration::ZERO, heard.read(&mut [0; 1])).await.is_err());
        heard.until.get().1 - begin
    }

    /// A byte adds little, and a message all that there is; nothing is awaited from whom nobody reads.
    #[tokio::test]
    async fn bytes_make_patience() {
        let (mut far, near) = duplex(4000);
        let mut heard = Heard::new(Box::new(near), Until::new(), Instant::now());
        assert_eq!(heard.until.get().1, FOR_EVER);
        let new = u64::try_from(NEW.as_millis()).unwrap();
        assert!(patience(&mut heard).await >= new);
        far.write_all(&[b'x'; 3000]).await.unwrap();
        let mut piece = [0; 2990];
        heard.read_exact(&mut piece[..10]).await.unwrap();
        assert_eq!(heard.until.get().1, FOR_EVER, "there may be more");
        assert!(heard.patience <= NEW + 10 * BYTE);
        heard.read_exact(&mut piece).await.unwrap();
        assert_eq!(heard.patience, MOST);
        assert!(patience(&mut heard).await >= 1000);
        // What is sent, and taken, is heard, too.
        heard.patience = Duration::ZERO;
        heard.write_all(&[b'x'; 20]).await.unwrap();
        assert_eq!(heard.patience, 20 * BYTE);
        assert!(timeout(Duration::ZERO, heard.write_all(&[b'x'; 4000])).await.is_err());
        assert_ne!(heard.until.get().1, FOR_EVER, "the other side has to read");
    }
}
