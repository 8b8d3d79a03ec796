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

/// The passed sockets are unusable.
#[derive(Debug, thiserror::Error)]
pub enum ActivationError {
    /// No socket was passed.
    #[error(
        "systemd passed no socket: systemctl enable --now {daemon}.socket && systemctl restart {daemon}; or write an address in the \
         place of \"{SYSTEMD}\""
    )]
    Nothing {
        /// The name of its units.
        daemon: &'static str,
    },
    /// Another kind of file was passed, or more than one socket.
    #[error(
        "systemd passed {found}, expected one stream socket that listens: see systemctl cat {daemon}.socket"
    )]
    Other {
        /// The passed files.
        found: String,
        /// The name of its units.
        daemon: &'static str,
    },
    /// Not exactly one of several sockets has the name of a listener.
    #[error(
        "systemd passed no socket of its own for the listener \"{name}\", only {found}: write FileDescriptorName={name} into its \
         .socket unit, with Service={daemon}.service"
    )]
    NoName {
        /// The name of the listener.
        name: String,
        /// The names of the passed sockets.
        found: String,
        /// The name of its units.
        daemon: &'static str,
    },
    /// The system refused an operation.
    #[error("the socket that systemd passed cannot be used: {0}")]
    Unusable(#[from] io::Error),
}

/// The sockets that systemd passed to this process.
pub struct Activation {
    sockets: ListenFd,
    /// Those that were not taken yet: their places, and their names in the units.
    left: Vec<(usize, String)>,
    daemon: &'static str,
}

/// A passed file.
enum Found {
    Socket(Socket),
    Other(&'static str),
}

impl Activation {
    /// Takes the sockets that were passed to `daemon`, by the name of its units. Removes the variables about them from the environment, so
    /// it must run before any thread starts.
    #[must_use]
    pub fn take(daemon: &'static str) -> Self {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let sockets = ListenFd::from_env();
        let names = names.split(':').chain(std::iter::repeat("")).map(str::to_owned);
        let left = (0..sockets.len()).zip(names).collect();
        Self { sockets, left, daemon }
    }

    /// Returns the number of sockets that were not taken yet.
    #[must_use]
    pub fn number(&self) -> usize {
        self.left.len()
    }

    /// Takes the socket of the unit with this name (`FileDescriptorName=`).
    ///
    /// # Errors
    /// [`ActivationError`]
    pub fn named(&mut self, name: &str) -> Result<Socket, ActivationError> {
        let mut places =
            self.left.iter().enumerate().filter(|(_, (_, other))| other == name).map(|(at, _)| at);
        let (Some(at), None) = (places.next(), places.next()) else {
            let found: Vec<_> = self.left.iter().map(|(_, other)| format!("\"{other}\"")).collect();
            let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
            return Err(ActivationError::NoName { name: name.to_owned(), found, daemon: self.daemon });
        };
        let (i, _) = self.left.remove(at);
        match self.found(i)? {
            Found::Socket(socket) => Ok(socket),
            Found::Other(what) => {
                Err(ActivationError::Other { found: format!("{what} for \"{name}\""), daemon: self.daemon })
            }
        }
    }

    /// Warns of unused sockets, since the configuration at `path` has an address.
    pub fn ignore(self, path: &Path) {
        if !self.left.is_empty() {
            log::warn!(
                "systemd passed {}, which this configuration does not use: write listen = \"{SYSTEMD}\" in {}, or systemctl disable --now \
                 {}.socket",
                many(self.left.len()),
                path.display(),
                self.daemon
            );
        }
    }

    /// Warns of unused sockets, since this daemon opens its own.
    pub fn refuse(self) {
        if !self.left.is_empty() {
            log::warn!(
                "systemd passed {}, and {} takes none: it opens the sockets of its configuration itself",
                many(self.left.len()),
                self.daemon
            );
        }
    }

    /// Takes the only socket that was passed or is left.
    ///
    /// # Errors
    /// [`ActivationError`]
    pub fn socket(&mut self) -> Result<Socket, ActivationError> {
        let daemon = self.daemon;
        let left = std::mem::take(&mut self.left);
        let found = left.into_iter().map(|(i, _)| self.found(i)).collect::<io::Result<Vec<_>>>()?;
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
        // An error means that it is of another kind; it then stays where it is.
        if let Ok(Some(socket)) = self.sockets.take_tcp_listener(i) {
            if !socket_acceptconn(&socket)? {
                return Ok(DEAF);
            }
            socket.set_nonblocking(true)?;
            return Ok(Found::Socket(Socket::Tcp(vec![TcpListener::from_std(socket)?])));
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
