// SPDX-License-Identifier: GPL-3.0-or-later
//! HTTP on a socket, and the lifetime of a connection.

use super::accept::{Accepted, Stream};
use super::address::Address;
use super::crowd::{Busy, Crowd, Member};
use super::seated::serve_seated;
use super::socket::Socket;
use super::tls::TlsKeys;
use axum::body::{Body, Bytes};
use axum::{Extension, Router};
use http_body::{Frame, SizeHint};
use hyper::body::{Body as _, Incoming};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Timeout of a TLS handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Timeout of the head of a request, after the handshake or the request before.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// Maximum bytes of the head of a request: hyper keeps as many for each connection, complete or not. With the longest vector in an address,
/// which has 4,096 bytes, a head has less than half of it.
const HEAD: usize = 16 << 10;

/// The same for a listener whose requests have whole envelopes in their addresses, which have 65,534 bytes at most, or fields.
const LONG_HEAD: usize = 128 << 10;

/// How long answers may take after the server ends.
const END_TIME: Duration = Duration::from_secs(5);

/// The mode of a Unix socket: owner and group may connect.
const UNIX_MODE: u32 = 0o660;

/// The client of a request, as an extension of the request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The address; none on a Unix socket.
    pub ip: Option<IpAddr>,
    /// Its connection.
    pub connection: Member,
}

/// A listener for HTTP.
pub struct HttpListener {
    socket: Arc<Socket>,
    tls: Option<Arc<TlsKeys>>,
    head: usize,
}

impl HttpListener {
    /// Binds an address.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub async fn bind(address: &Address, tls: Option<Arc<TlsKeys>>) -> io::Result<Self> {
        Ok(Self::new(Socket::bind(address, UNIX_MODE).await?, tls))
    }

    /// Creates a listener on a bound socket.
    #[must_use]
    pub fn new(socket: Socket, tls: Option<Arc<TlsKeys>>) -> Self {
        Self { socket: Arc::new(socket), tls, head: HEAD }
    }

    /// Accepts long heads.
    #[must_use]
    pub fn with_long_heads(self) -> Self {
        Self { head: LONG_HEAD, ..self }
    }

    /// Returns the address, with the port that the system chose.
    #[must_use]
    pub fn address(&self) -> String {
        self.socket.address()
    }

    /// Whether only this machine can reach it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.socket.is_local()
    }

    /// Answers requests until `end` completes, on as many connections as `crowd` allows; the result of `begin` lives as long as a
    /// connection. Wait for the returned value after dropping this listener, so that nobody can connect any longer.
    pub async fn serve<G: Send + 'static>(
        &self,
        router: Router,
        crowd: Arc<Crowd>,
        begin: impl Fn() -> G,
        end: impl Future<Output = ()>,
    ) -> Open {
        let graceful = GracefulShutdown::new();
        let socket = Arc::clone(&self.socket);
        serve_seated(socket, crowd, end, |accepted, member| {
            let (router, watcher, tls, head) =
                (router.clone(), graceful.watcher(), self.tls.clone(), self.head);
            let open = begin();
            async move {
                connection(accepted, member, (tls, head), router, watcher).await;
                drop(open);
            }
        })
        .await;
        Open(graceful)
    }
}

/// Connections on which a request is being answered.
pub struct Open(GracefulShutdown);

impl Open {
    /// Waits until they are closed, for five seconds at most.
    pub async fn closed(self) {
        let _ = tokio::time::timeout(END_TIME, self.0.shutdown()).await;
    }
}

async fn connection(
    Accepted { stream, ip, .. }: Accepted,
    member: Member,
    (tls, head): (Option<Arc<TlsKeys>>, usize),
    router: Router,
    watcher: Watcher,
) {
    let stream: Stream = match tls {
        None => stream,
        Some(keys) => match tokio::time::timeout(HANDSHAKE_TIME, keys.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => Box::new(stream),
            // These are scanners, and clients that do not trust the certificate; the latter report it themselves.
            Ok(Err(e)) => return log::debug!("no TLS with {ip:?}: {e}"),
            Err(_) => return,
        },
    };
    let router = router.layer(Extension(Caller { ip, connection: member.clone() }));
    let answer = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let busy = Arc::new(OnceLock::new());
        let arriving = |body| Arriving { body, member: member.clone(), busy: Arc::clone(&busy) }.looked_at();
        let answer = answer.call(request.map(arriving));
        async move { answer.await.map(|response| response.map(|body| Held { body, _busy: busy })) }
    });
    let http = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(head)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(e) = watcher.watch(http).await {
        log::debug!("a connection of {ip:?} ended: {e}");
    }
}

/// The body of a request. Once it is complete, the request is being answered; until then the connection may be closed to make room.
struct Arriving {
    body: Incoming,
    member: Member,
    busy: Arc<OnceLock<Busy>>,
}

impl Arriving {
    /// Checks whether the body is complete.
    fn looked_at(self) -> Self {
        if self.body.is_end_stream() {
            self.busy.get_or_init(|| self.member.busy());
        }
        self
    }
}

impl http_body::Body for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.busy.get_or_init(|| self.member.busy());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer; until it is sent, its request is being answered.
struct Held {
    body: Body,
    _busy: Arc<OnceLock<Busy>>,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
