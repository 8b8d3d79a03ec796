// SPDX-License-Identifier: GPL-3.0-or-later
//! Taking connections: the one loop for all that listen.

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

/// How long no connection is taken after the system refused one (no file descriptors, no memory).
const BACK_OFF: Duration = Duration::from_millis(200);

/// How long the other side may leave what was sent to it without an answer, or take nothing, before the connection is dead.
const UNHEARD: Duration = Duration::from_secs(60);

/// Bytes that the system takes before it can send them. By itself it would take megabytes for somebody who does not read.
const UNSENT: u32 = 128 << 10;

/// Bytes both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection.
pub type Stream = Box<dyn Duplex>;

/// A connection that was taken.
pub struct Accepted {
    /// Its bytes.
    pub stream: Stream,
    /// The other side; none on a Unix socket.
    pub ip: Option<IpAddr>,
    /// The user who runs the other side, on a Unix socket, as the system says.
    pub uid: Option<u32>,
}

/// Takes the connections of a socket.
#[derive(Debug)]
pub struct Acceptor {
    socket: Arc<Socket>,
    back_off: Option<Pin<Box<Sleep>>>,
    is_prompt: bool,
}

/// The next connection of any of these.
fn poll_any(sockets: &[TcpListener], cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
    sockets.iter().map(|socket| socket.poll_accept(cx)).find(Poll::is_ready).unwrap_or(Poll::Pending)
}

impl Acceptor {
    /// Of this socket.
    #[must_use]
    pub fn new(socket: Arc<Socket>) -> Self {
        Self { socket, back_off: None, is_prompt: false }
    }

    /// The same for a protocol in which one side says several things before it is answered: see `Prompt`.
    #[must_use]
    pub fn prompt(socket: Arc<Socket>) -> Self {
        Self { is_prompt: true, ..Self::new(socket) }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The next connection. It never fails: one refused connection must end nobody who listens. After a failure nothing is taken
    /// for a while, since the next attempt would most likely fail, too.
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
                // Where the system cannot do this, a dead connection lasts longer and takes more memory.
                let _ = socket.set_tcp_user_timeout(Some(UNHEARD));
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
