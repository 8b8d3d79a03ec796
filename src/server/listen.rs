// SPDX-License-Identifier: GPL-3.0-or-later
//! Where the server listens, and the life of a connection.

use super::api::From;
use super::tls::TlsKeys;
use crate::activity::Connections;
use crate::control::{self, Socket};
use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

/// How long a handshake, and then the head of a request, may take.
const HEAD_TIME: Duration = Duration::from_secs(15);

/// How long answers may still take when the server ends.
const END_TIME: Duration = Duration::from_secs(5);

/// Who may connect to a Unix socket: owner and group.
const UNIX_MODE: u32 = 0o660;

/// Where the server listens: `HOST:PORT` or `unix:/PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Address {
    /// Host and port.
    Tcp(String),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Default for Address {
    fn default() -> Self {
        Self::Tcp("127.0.0.1:8893".to_owned())
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || format!("found {text:?}, expected \"HOST:PORT\" or \"unix:/PATH\"");
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.starts_with('/') { Ok(Self::Unix(path.into())) } else { Err(fault()) };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(fault)?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(fault());
        }
        Ok(Self::Tcp(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Where the server listens.
pub type Place = control::Place<Address>;

/// A bound address.
pub struct Bound {
    socket: Socket,
    tls: Option<Arc<TlsKeys>>,
}

impl Bound {
    /// Binds an address.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub async fn bind(address: &Address, tls: Option<Arc<TlsKeys>>) -> io::Result<Self> {
        let socket = match address {
            Address::Tcp(address) => Socket::tcp(address).await?,
            Address::Unix(path) => Socket::unix(path, UNIX_MODE).await?,
        };
        Ok(Self::new(socket, tls))
    }

    /// What listens already.
    #[must_use]
    pub fn new(socket: Socket, tls: Option<Arc<TlsKeys>>) -> Self {
        Self { socket, tls }
    }

    /// The address, with the port that the system chose.
    #[must_use]
    pub fn address(&self) -> String {
        self.socket.address()
    }

    /// Whether nobody on another machine can reach it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.socket.is_local()
    }

    /// Answers requests until `end` is done, on so many connections at most, which are counted. What is returned is to be waited
    /// for, when this is dropped and nobody can connect any more.
    pub async fn serve(
        &self,
        router: Router,
        most: usize,
        connections: Arc<Connections>,
        end: impl Future<Output = ()>,
    ) -> Open {
        let permits = Arc::new(Semaphore::new(most));
        let graceful = GracefulShutdown::new();
        let mut end = std::pin::pin!(end);
        loop {
            let permit = tokio::select! {
                permit = Arc::clone(&permits).acquire_owned() => permit,
                () = &mut end => break,
            };
            let accepted = tokio::select! {
                accepted = self.accept() => accepted,
                () = &mut end => break,
            };
            match accepted {
                Ok((stream, ip)) => {
                    let (router, watcher) = (router.clone(), graceful.watcher());
                    let (tls, open) = (self.tls.clone(), connections.begin());
                    tokio::spawn(async move {
                        connection(stream, ip, tls, router, watcher).await;
                        drop((permit, open));
                    });
                }
                Err(e) => {
                    log::warn!("cannot take a connection: {e}");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
        Open(graceful)
    }

    async fn accept(&self) -> io::Result<(Stream, Option<IpAddr>)> {
        match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, address): (_, SocketAddr) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Box::new(stream), Some(address.ip())))
            }
            Socket::Unix(listener, _) => Ok((Box::new(listener.accept().await?.0), None)),
        }
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

/// Bytes both ways.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}
type Stream = Box<dyn Duplex>;

async fn connection(
    stream: Stream,
    ip: Option<IpAddr>,
    tls: Option<Arc<TlsKeys>>,
    router: Router,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let stream: Stream = match tls {
        None => stream,
        Some(keys) => match tokio::time::timeout(HEAD_TIME, keys.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => Box::new(stream),
            // Scanners and clients that do not trust the certificate; the latter say so themselves.
            Ok(Err(e)) => return log::debug!("no TLS with {ip:?}: {e}"),
            Err(_) => return,
        },
    };
    let router = router.layer(axum::Extension(axum::extract::ConnectInfo(From(ip))));
    let http = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(e) = watcher.watch(http).await {
        log::debug!("a connection of {ip:?} ended: {e}");
    }
}
