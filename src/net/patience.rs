// SPDX-License-Identifier: GPL-3.0-or-later
//! How long the other side of a connection may be silent before another connection takes its place, by the bytes that it sends and takes.
//!
//! A connection waits while nothing arrives; it does not wait while the daemon works for it, or waits elsewhere, or has not read the
//! arrived data yet, which takes long on a busy machine. Its patience is [`NEW`] at
//! first, and a thousandth of a second more for each byte in either direction, up to [`MOST`]. So a client that keeps sending or reading
//! keeps its place, and one that sends a byte now and then does not.

use super::accept::Stream;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The patience with a new connection.
const NEW: Duration = Duration::from_millis(100);

/// The maximum of patience.
const MOST: Duration = Duration::from_secs(1);

/// The patience that each byte adds.
const BYTE: Duration = Duration::from_millis(1);

/// A time that never comes, in milliseconds.
pub(super) const NEVER: u64 = (1 << 56) - 1;

/// The end of the patience with a connection, in milliseconds since some zero, with its rank in the upper bits: lower ranks are closed
/// first. [`NEVER`] while nothing is awaited from it.
#[derive(Debug, Clone)]
pub(super) struct Deadline(Arc<AtomicU64>);

impl Deadline {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(NEVER)))
    }

    /// Returns the rank and the time.
    pub(super) fn get(&self) -> (u8, u64) {
        let until = self.0.load(Ordering::Relaxed);
        (until.to_le_bytes()[7], until & NEVER)
    }

    pub(super) fn set(&self, rank: u8, until: u64) {
        self.0.store(u64::from(rank) << 56 | until.min(NEVER), Ordering::Relaxed);
    }
}

/// Ends the wait as soon as the runtime sees that the socket is ready: the task may be polled much later.
struct Ready {
    until: Deadline,
    task: Waker,
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.until.set(0, NEVER);
        self.task.wake_by_ref();
    }
}

/// A connection whose silence is measured.
pub(super) struct Monitored {
    stream: Stream,
    until: Deadline,
    /// The zero of all times.
    begin: Instant,
    /// The remaining patience.
    patience: Duration,
    /// Since when bytes are awaited.
    waits: Option<Instant>,
    /// Of the task that reads and writes.
    ready: Option<Arc<Ready>>,
}

impl Monitored {
    pub(super) const fn new(stream: Stream, until: Deadline, begin: Instant) -> Self {
        Self { stream, until, begin, patience: NEW, waits: None, ready: None }
    }

    /// Starts or continues to wait, before the socket is asked: if it becomes ready meanwhile, the wait ends. Returns the socket's waker.
    fn wait(&mut self, cx: &Context<'_>) -> Waker {
        let since = *self.waits.get_or_insert_with(Instant::now);
        let until = (since + self.patience).duration_since(self.begin).as_millis();
        self.until.set(0, u64::try_from(until).unwrap_or(NEVER));
        let ready = self.ready.take().filter(|ready| ready.task.will_wake(cx.waker()));
        let ready =
            ready.unwrap_or_else(|| Arc::new(Ready { until: self.until.clone(), task: cx.waker().clone() }));
        Waker::from(Arc::clone(self.ready.insert(ready)))
    }

    /// Writes, and records the result.
    fn write(
        &mut self,
        cx: &Context<'_>,
        write: impl FnOnce(Pin<&mut Stream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let waker = self.wait(cx);
        let written = write(Pin::new(&mut self.stream), &mut Context::from_waker(&waker));
        if let Poll::Ready(written) = &written {
            self.transferred(*written.as_ref().unwrap_or(&0));
        }
        written
    }

    /// Records that so many bytes were transferred.
    fn transferred(&mut self, bytes: usize) {
        if let Some(since) = self.waits.take() {
            self.until.set(0, NEVER);
            self.patience = self.patience.saturating_sub(since.elapsed());
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.patience = MOST.min(self.patience + BYTE.saturating_mul(bytes));
    }
}

impl AsyncRead for Monitored {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let waker = self.wait(cx);
        let read = ready!(Pin::new(&mut self.stream).poll_read(&mut Context::from_waker(&waker), buffer));
        self.transferred(buffer.filled().len() - before);
        Poll::Ready(read)
    }
}

impl AsyncWrite for Monitored {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |stream, cx| stream.poll_write_vectored(cx, pieces))
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

    /// Reads without success, and returns the patience in milliseconds.
    async fn patience(monitored: &mut Monitored) -> u64 {
        let begin = u64::try_from(monitored.begin.elapsed().as_millis()).unwrap();
        assert!(timeout(Duration::ZERO, monitored.read(&mut [0; 1])).await.is_err());
        monitored.until.get().1 - begin
    }

    /// A byte adds little patience, and a message the maximum; without a pending read nothing is awaited.
    #[tokio::test]
    async fn bytes_make_patience() {
        let (mut far, near) = duplex(4000);
        let mut monitored = Monitored::new(Box::new(near), Deadline::new(), Instant::now());
        assert_eq!(monitored.until.get().1, NEVER);
        let new = u64::try_from(NEW.as_millis()).unwrap();
        assert!(patience(&mut monitored).await >= new);
        far.write_all(&[b'x'; 3000]).await.unwrap();
        let mut piece = [0; 2990];
        monitored.read_exact(&mut piece[..10]).await.unwrap();
        assert_eq!(monitored.until.get().1, NEVER, "there may be more");
        assert!(monitored.patience <= NEW + 10 * BYTE);
        monitored.read_exact(&mut piece).await.unwrap();
        assert_eq!(monitored.patience, MOST);
        assert!(patience(&mut monitored).await >= 1000);
        // Written bytes count, too.
        monitored.patience = Duration::ZERO;
        monitored.write_all(&[b'x'; 20]).await.unwrap();
        assert_eq!(monitored.patience, 20 * BYTE);
        assert!(timeout(Duration::ZERO, monitored.write_all(&[b'x'; 4000])).await.is_err());
        assert_ne!(monitored.until.get().1, NEVER, "the other side has to read");
    }

    /// Arrived data ends the wait before anybody reads it.
    #[tokio::test]
    async fn a_ready_socket_does_not_wait() {
        let (mut far, near) = duplex(10);
        let mut monitored = Monitored::new(Box::new(near), Deadline::new(), Instant::now());
        let mut reads = Box::pin(async { monitored.read(&mut [0; 20]).await });
        let mut cx = Context::from_waker(Waker::noop());
        assert!(reads.as_mut().poll(&mut cx).is_pending());
        drop(reads);
        assert_ne!(monitored.until.get().1, NEVER);
        far.write_all(b"x").await.unwrap();
        assert_eq!(monitored.until.get().1, NEVER);
        assert!(monitored.waits.is_some(), "nothing was read");
    }
}
