// SPDX-License-Identifier: GPL-3.0-or-later
//! Accepting connections: the one loop for all listeners.

use super::prompt::Prompt;
use super::socket::Socket;
use socket2::SockRef;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

/// The pause after the system refused a connection (no file descriptors, no memory).
const BACK_OFF: Duration = Duration::from_millis(200);

/// How long the other side may leave sent data unacknowledged before the connection is dead.
const UNACKNOWLEDGED: Duration = Duration::from_secs(60);

/// Unsent bytes that the system buffers. By default it would buffer megabytes for a reader that does not read.
const UNSENT: u32 = 128 << 10;

/// A byte stream in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection.
pub type Stream = Box<dyn Duplex>;

/// An accepted connection.
pub struct Accepted {
    /// Its bytes.
    pub stream: Stream,
    /// The address of the other side; none on a Unix socket.
    pub ip: Option<IpAddr>,
    /// The user of the other side, as the system says; only on a Unix socket.
    pub uid: Option<u32>,
}

/// Accepts the connections of a socket.
#[derive(Debug)]
pub struct Acceptor {
    socket: Arc<Socket>,
    back_off: Option<Pin<Box<Sleep>>>,
    is_prompt: bool,
}

/// Polls for a connection on any of these.
fn poll_any(sockets: &[TcpListener], cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
    sockets.iter().map(|socket| socket.poll_accept(cx)).find(Poll::is_ready).unwrap_or(Poll::Pending)
}

impl Acceptor {
    /// Creates the acceptor of a socket.
    #[must_use]
    pub fn new(socket: Arc<Socket>) -> Self {
        Self { socket, back_off: None, is_prompt: false }
    }

    /// Creates one for a protocol in which one side sends several pieces before it is answered: see `Prompt`.
    #[must_use]
    pub fn prompt(socket: Arc<Socket>) -> Self {
        Self { is_prompt: true, ..Self::new(socket) }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Polls for the next connection. Never fails: one refused connection must not end a listener. After a failure it pauses, since the
    /// next attempt would most likely fail, too.
    pub fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<Accepted> {
        loop {
            if let Some(pause) = &mut self.back_off {
                ready!(pause.as_mut().poll(cx));
                self.back_off = None;
            }
            match ready!(self.poll_once(cx)) {
                Ok(accepted) => return Poll::Ready(accepted),
                Err(e) => {
                    log::error!(
                        "{}: cannot take a connection: {e}; trying again in {} ms",
                        self.socket.address(),
                        BACK_OFF.as_millis()
                    );
                    self.back_off = Some(Box::pin(sleep(BACK_OFF)));
                }
            }
        }
    }

    fn poll_once(&self, cx: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        Poll::Ready(match &*self.socket {
            Socket::Tcp(sockets) => ready!(poll_any(sockets, cx)).and_then(|(stream, address)| {
                stream.set_nodelay(true)?;
                let socket = SockRef::from(&stream);
                // Without these options, a dead connection lasts longer and takes more memory.
                let _ = socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
                let _ = socket.set_tcp_notsent_lowat(UNSENT);
                let stream: Stream =
                    if self.is_prompt { Box::new(Prompt::new(stream)) } else { Box::new(stream) };
                Ok(Accepted { stream, ip: Some(address.ip()), uid: None })
            }),
            Socket::Unix(socket, _) => ready!(socket.poll_accept(cx)).map(|(stream, _)| {
                let uid = stream.peer_cred().ok().map(|peer| peer.uid());
                Accepted { stream: Box::new(stream), ip: None, uid }
            }),
        })
    }
}
