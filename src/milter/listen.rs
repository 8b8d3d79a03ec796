// SPDX-License-Identifier: GPL-3.0-or-later
//! The milter's listening socket, and how it accepts connections.

use crate::activity::{Connections, Open};
use crate::net::{self, Acceptor, Activation, ActivationError, Address, Mode, Stream};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

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
    acceptor: Acceptor,
    connections: Arc<Connections>,
}

impl Socket {
    /// Binds the address, and counts accepted `connections`. A Unix socket of a dead process is replaced, one of a live process is not.
    ///
    /// # Errors
    /// The address is in use or not allowed.
    pub async fn bind(
        address: &Address,
        mode: Mode,
        connections: Arc<Connections>,
    ) -> Result<Self, BindError> {
        match net::Socket::bind(address, mode.bits()).await {
            Ok(socket) => Ok(Self::new(socket, connections)),
            Err(reason) => Err(BindError { address: address.in_postfix(), reason }),
        }
    }

    /// The socket that systemd passed; if there are several, the one of this name. Its mode is systemd's, too.
    ///
    /// # Errors
    /// There is none, or it is no stream socket.
    pub fn passed(
        activation: &mut Activation,
        name: Option<&str>,
        connections: Arc<Connections>,
    ) -> Result<Self, ActivationError> {
        let socket = match name {
            Some(name) => activation.named(name)?,
            None => activation.socket()?,
        };
        Ok(Self::new(socket, connections))
    }

    fn new(socket: net::Socket, connections: Arc<Connections>) -> Self {
        Self { acceptor: Acceptor::prompt(Arc::new(socket)), connections }
    }

    /// The bound address in Postfix's notation, with the port that the system chose for 0.
    #[must_use]
    pub fn address(&self) -> String {
        let socket = self.acceptor.socket();
        match socket {
            net::Socket::Tcp(_) => format!("inet:{}", socket.address()),
            net::Socket::Unix(..) => socket.address(),
        }
    }

    /// The next connection, with a guard that counts it until dropped.
    pub(super) fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<(Stream, Open)> {
        self.acceptor.poll_accept(cx).map(|accepted| (accepted.stream, self.connections.begin()))
    }
}
