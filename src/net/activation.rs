// SPDX-License-Identifier: GPL-3.0-or-later
//! Sockets that systemd opened and passed to a daemon (systemd.socket(5)).

use super::address::SYSTEMD;
use super::socket::Socket;
use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;
use std::fmt;
use std::io;
use std::path::Path;
use tokio::net::{TcpListener, UnixListener};

/// What was passed cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ActivationError {
    /// Nothing was passed.
    #[error(
        "systemd passed no socket: systemctl enable --now {daemon}.socket && systemctl restart {daemon}; or write an address in the \
         place of \"{SYSTEMD}\""
    )]
    Nothing {
        /// The name of its units.
        daemon: &'static str,
    },
    /// Something else was, or more than one.
    #[error(
        "systemd passed {found}, expected one stream socket that listens: see systemctl cat {daemon}.socket"
    )]
    Other {
        /// What it is.
        found: String,
        /// The name of its units.
        daemon: &'static str,
    },
    /// The system does not let it be used.
    #[error("the socket that systemd passed cannot be used: {0}")]
    Unusable(#[from] io::Error),
}

/// What systemd passed to this process.
pub struct Activation {
    sockets: ListenFd,
    daemon: &'static str,
}

/// One of them.
enum Found {
    Socket(Socket),
    Other(&'static str),
}

impl Activation {
    /// Takes what was passed to `daemon`, as its units are called. The variables that tell of it are taken out of the environment,
    /// so this must come before any thread.
    #[must_use]
    pub fn take(daemon: &'static str) -> Self {
        Self { sockets: ListenFd::from_env(), daemon }
    }

    /// Warns of sockets on which nobody will answer, since the configuration at `path` has an address.
    pub fn ignore(self, path: &Path) {
        if self.sockets.len() > 0 {
            log::warn!(
                "systemd passed {}, which this configuration does not use: write listen = \"{SYSTEMD}\" in {}, or systemctl disable --now \
                 {}.socket",
                many(self.sockets.len()),
                path.display(),
                self.daemon
            );
        }
    }

    /// The socket that was passed.
    ///
    /// # Errors
    /// [`ActivationError`]
    pub fn socket(mut self) -> Result<Socket, ActivationError> {
        let daemon = self.daemon;
        let found = (0..self.sockets.len()).map(|i| self.found(i)).collect::<io::Result<Vec<_>>>()?;
        let text = match <[Found; 1]>::try_from(found) {
            Ok([Found::Socket(socket)]) => return Ok(socket),
            Ok([Found::Other(what)]) => what.to_owned(),
            Err(found) if found.is_empty() => return Err(ActivationError::Nothing { daemon }),
            Err(found) => {
                let list: Vec<_> = found.iter().map(ToString::to_string).collect();
                format!("{}: {}", many(list.len()), list.join(", "))
            }
        };
        Err(ActivationError::Other { found: text, daemon })
    }

    fn found(&mut self, i: usize) -> io::Result<Found> {
        const DEAF: Found = Found::Other("a stream socket that does not listen");
        // An error means that it is of another kind, and leaves it where it is.
        if let Ok(Some(socket)) = self.sockets.take_tcp_listener(i) {
            if !socket_acceptconn(&socket)? {
                return Ok(DEAF);
            }
            socket.set_nonblocking(true)?;
            return Ok(Found::Socket(Socket::Tcp(TcpListener::from_std(socket)?)));
        }
        if let Ok(Some(socket)) = self.sockets.take_unix_listener(i) {
            if !socket_acceptconn(&socket)? {
                return Ok(DEAF);
            }
            if socket.local_addr()?.as_pathname().is_none() {
                return Ok(Found::Other("a Unix socket without a path"));
            }
            socket.set_nonblocking(true)?;
            return Ok(Found::Socket(Socket::Unix(UnixListener::from_std(socket)?, None)));
        }
        let datagrams = self.sockets.take_udp_socket(i).is_ok() || self.sockets.take_unix_datagram(i).is_ok();
        Ok(Found::Other(if datagrams { "a datagram socket" } else { "no stream socket of TCP or Unix" }))
    }
}

fn many(sockets: usize) -> String {
    if sockets == 1 { "a socket".to_owned() } else { format!("{sockets} sockets") }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(socket) => f.write_str(&socket.address()),
            Self::Other(what) => f.write_str(what),
        }
    }
}
