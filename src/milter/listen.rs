// SPDX-License-Identifier: GPL-3.0-or-later
//! Where the milter listens, and how connections are taken.

use super::stream::Coalescing;
use crate::activity::Connections;
use crate::control::{self, Passed, PassedError};
use indymilter::{EitherStream, Listener};
use serde::Deserialize;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Sleep, sleep};

/// How long no connection is taken after the system refused one (no file descriptors, no memory).
const BACK_OFF: Duration = Duration::from_millis(200);

/// An address in Postfix's notation: `inet:host:port` or `unix:/path`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Listen {
    /// A host and port, as one text.
    Inet(String),
    /// An absolute path.
    Unix(PathBuf),
}

impl Default for Listen {
    fn default() -> Self {
        Self::Inet("127.0.0.1:8892".to_owned())
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let inet = text.strip_prefix("inet6:").or_else(|| text.strip_prefix("inet:"));
        let unix = text.strip_prefix("unix:").or_else(|| text.strip_prefix("local:"));
        match (inet, unix) {
            (Some(address), _)
                if address
                    .rsplit_once(':')
                    .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) =>
            {
                Ok(Self::Inet(address.to_owned()))
            }
            (_, Some(path)) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            _ => Err(format!(
                "found \"{text}\", expected inet:HOST:PORT such as \"inet:127.0.0.1:8892\", or unix:/PATH"
            )),
        }
    }
}

impl TryFrom<String> for Listen {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(address) => write!(f, "inet:{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Where the milter listens.
pub type Place = control::Place<Listen>;

/// The permissions of a Unix socket, written in octal: "0660".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Mode(u32);

impl Default for Mode {
    fn default() -> Self {
        Self(0o660)
    }
}

impl TryFrom<String> for Mode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mode = u32::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o777);
        mode.map(Self).ok_or_else(|| format!("found \"{text}\", expected an octal mode such as \"0660\""))
    }
}

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {reason}")]
pub struct BindError {
    address: String,
    reason: io::Error,
}

/// A socket that listens for the MTA.
#[derive(Debug)]
pub struct Socket {
    socket: control::Socket,
    back_off: Option<Pin<Box<Sleep>>>,
    connections: Arc<Connections>,
}

impl Socket {
    /// Binds the address, and counts the `connections` that it takes. A Unix socket that a dead process left behind is replaced, one that is alive is not.
    ///
    /// # Errors
    /// When the address is in use or not allowed.
    pub async fn bind(listen: &Listen, mode: Mode, connections: Arc<Connections>) -> Result<Self, BindError> {
        let bound = match listen {
            Listen::Inet(address) => control::Socket::tcp(address).await,
            Listen::Unix(path) => control::Socket::unix(path, mode.0).await,
        };
        match bound {
            Ok(socket) => Ok(Self { socket, back_off: None, connections }),
            Err(reason) => Err(BindError { address: listen.to_string(), reason }),
        }
    }

    /// The socket that systemd passed; its mode is systemd's, too.
    ///
    /// # Errors
    /// When there is none, or another thing.
    pub fn passed(passed: Passed, connections: Arc<Connections>) -> Result<Self, PassedError> {
        Ok(Self { socket: passed.socket()?, back_off: None, connections })
    }

    /// The bound address in Postfix's notation, with the port that the system chose where 0 was asked for.
    #[must_use]
    pub fn address(&self) -> String {
        let address = self.socket.address();
        match &self.socket {
            control::Socket::Tcp(_) => format!("inet:{address}"),
            control::Socket::Unix(..) => address,
        }
    }

    /// The number of connections that were taken and are still open.
    pub(super) fn connections(&self) -> usize {
        self.connections.open()
    }

    fn poll_accept_once(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<EitherStream<TcpStream, UnixStream>>> {
        Poll::Ready(match &self.socket {
            control::Socket::Tcp(socket) => ready!(socket.poll_accept(cx)).and_then(|(stream, _)| {
                stream.set_nodelay(true)?;
                Ok(EitherStream::Tcp(stream))
            }),
            control::Socket::Unix(socket, _) => {
                ready!(socket.poll_accept(cx)).map(|(stream, _)| EitherStream::Unix(stream))
            }
        })
    }
}

impl Listener for Socket {
    type Io = Coalescing<EitherStream<TcpStream, UnixStream>>;

    /// Never fails: one refused connection must not end the milter. After a failure nothing is taken for a while,
    /// since the next attempt would most likely fail, too.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Io>> {
        loop {
            if let Some(pause) = &mut self.back_off {
                ready!(pause.as_mut().poll(cx));
                self.back_off = None;
            }
            match ready!(self.poll_accept_once(cx)) {
                Ok(stream) => {
                    return Poll::Ready(Ok(Coalescing::new(stream, self.connections.begin())));
                }
                Err(e) => {
                    log::error!("cannot take a connection: {e}; trying again in {} ms", BACK_OFF.as_millis());
                    self.back_off = Some(Box::pin(sleep(BACK_OFF)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn addresses_are_read() {
        for good in ["inet:127.0.0.1:8892", "inet:[::1]:8892", "inet:localhost:0", "unix:/run/b.sock"] {
            assert_eq!(good.parse::<Listen>().unwrap().to_string(), good);
        }
        for bad in
            ["", "inet:8892", "inet:127.0.0.1:99999", "unix:run/b.sock", "127.0.0.1:8892", "inet::8892"]
        {
            assert!(bad.parse::<Listen>().is_err(), "{bad}");
        }
        assert_eq!(Mode::try_from("0640".to_owned()).unwrap().0, 0o640);
        assert!(Mode::try_from("abc".to_owned()).is_err() && Mode::try_from("7777".to_owned()).is_err());
    }

    #[tokio::test]
    async fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let listen = Listen::Unix(path.clone());
        let socket = Socket::bind(&listen, Mode(0o600), Arc::default()).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = Socket::bind(&listen, Mode(0o600), Arc::default()).await.unwrap_err();
        assert_eq!(error.reason.kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());
        fs::write(&path, "a file of somebody").unwrap();
        assert!(
            Socket::bind(&listen, Mode(0o600), Arc::default()).await.is_err(),
            "no file is removed that is no socket"
        );
    }
}
