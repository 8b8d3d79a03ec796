// SPDX-License-Identifier: GPL-3.0-or-later
//! A connection on which the other side never waits for an acknowledgement.
//!
//! A system delays acknowledgements for up to 40 ms, in the hope of an answer that carries them. A sender of several small pieces without
//! an answer in between (Sendmail: the commands to a milter) that uses Nagle's algorithm waits that long at the second piece. Here the
//! acknowledgement is sent as soon as more is awaited and nothing was answered.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection that can acknowledge received data.
pub(super) trait Acknowledge {
    /// Sends the acknowledgement now.
    fn acknowledge(&self);
}

impl Acknowledge for TcpStream {
    fn acknowledge(&self) {
        // If the system cannot do this, the other side waits as usual.
        let _ = self.set_quickack(true);
    }
}

/// The connection.
#[derive(Debug)]
pub(super) struct Prompt<S> {
    inner: S,
    /// Whether received data was neither answered nor acknowledged.
    owes: bool,
}

impl<S> Prompt<S> {
    pub(super) const fn new(inner: S) -> Self {
        Self { inner, owes: false }
    }
}

impl<S: AsyncRead + Acknowledge + Unpin> AsyncRead for Prompt<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        match read {
            Poll::Ready(_) => self.owes = true,
            Poll::Pending if self.owes => {
                self.owes = false;
                self.inner.acknowledge();
            }
            Poll::Pending => (),
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prompt<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        // The answer carries the acknowledgement.
        self.owes = false;
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    struct Counting(DuplexStream, Cell<u32>);

    impl Acknowledge for Counting {
        fn acknowledge(&self) {
            self.1.set(self.1.get() + 1);
        }
    }

    impl AsyncRead for Counting {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(cx, buf)
        }
    }

    impl AsyncWrite for Counting {
        fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(cx, buf)
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Once for each wait after data that was not answered.
    #[tokio::test]
    async fn unanswered_data_is_acknowledged() {
        let (mut far, near) = duplex(100);
        let mut stream = Prompt::new(Counting(near, Cell::new(0)));
        let mut buffer = [0; 10];
        let mut acknowledged = Vec::new();
        for answers in [false, true, false] {
            far.write_all(b"command").await.unwrap();
            stream.read_exact(&mut buffer[..7]).await.unwrap();
            if answers {
                stream.write_all(b"answer").await.unwrap();
            }
            for _ in 0..2 {
                let mut wait = std::pin::pin!(stream.read(&mut buffer));
                let waits = std::future::poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx).is_pending())).await;
                assert!(waits);
            }
            acknowledged.push(stream.inner.1.get());
        }
        assert_eq!(acknowledged, [1, 1, 2]);
    }
}
