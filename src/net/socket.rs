// SPDX-License-Identifier: GPL-3.0-or-later
//! Sockets to listen on.

use super::address::Address;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixStream, lookup_host};

/// Maximum of connections that wait to be accepted, as far as the kernel allows (net.core.somaxconn). The usual 128 are fewer than the
/// clients of a server that return at once after an outage; a client without a place retries after a second.
const BACKLOG: u32 = 4096;

/// A listening socket.
#[derive(Debug)]
pub enum Socket {
    /// A port of one address or, if a name has several, of all.
    Tcp(Vec<TcpListener>),
    /// A path, with its file if this process created it.
    Unix(UnixListener, Option<SocketFile>),
}

/// The file of a socket that this process created; removed when dropped.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = fs::remove_file(&self.0);
    }
}

impl Socket {
    /// Binds an address; the file of a Unix socket gets the permissions `mode`.
    ///
    /// # Errors
    /// When it cannot be used.
    pub async fn bind(address: &Address, mode: u32) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => Self::tcp(address).await,
            Address::Unix(path) => Self::unix(path, mode).await,
        }
    }

    /// Binds all addresses of `address`, which is `HOST:PORT`, since clients that know a name use any of them. Logs those that cannot be
    /// bound.
    ///
    /// # Errors
    /// When none can be bound.
    async fn tcp(address: &str) -> io::Result<Self> {
        Self::tcp_at(lookup_host(address).await?)
    }

    fn tcp_at(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<Self> {
        let mut error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let (mut sockets, mut tried, mut failed) = (Vec::<TcpListener>::new(), Vec::new(), Vec::new());
        for mut address in addresses {
            if tried.contains(&address) {
                continue;
            }
            tried.push(address);
            if address.port() == 0
                && let Some(first) = sockets.first()
            {
                address.set_port(first.local_addr()?.port());
            }
            match listen(address) {
                Ok(socket) => sockets.push(socket),
                Err(e) => {
                    failed.push(format!("{address}: {e}"));
                    error = e;
                }
            }
        }
        let Some(first) = sockets.first() else { return Err(error) };
        if let Ok(first) = first.local_addr()
            && !failed.is_empty()
        {
            log::warn!(
                "listening on {first}, but not on other addresses of the same name: {}",
                failed.join(", ")
            );
        }
        Ok(Self::Tcp(sockets))
    }

    /// Binds a Unix socket at `path` with the permissions `mode`. Replaces one that a crash left.
    ///
    /// # Errors
    /// When a process listens there, or the path cannot be used.
    pub async fn unix(path: &Path, mode: u32) -> io::Result<Self> {
        if fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) {
            // Only a refused connection proves that no process listens.
            match UnixStream::connect(path).await {
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
                _ => return Err(io::ErrorKind::AddrInUse.into()),
            }
        }
        let socket = UnixListener::bind(path)?;
        let file = SocketFile(path.to_owned());
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        Ok(Self::Unix(socket, Some(file)))
    }

    /// Returns its address (the first of several), `HOST:PORT` or `unix:/PATH`, with the port that the system chose for 0.
    #[must_use]
    pub fn address(&self) -> String {
        let address = match self {
            Self::Tcp(sockets) => match sockets.first() {
                Some(socket) => socket.local_addr().map(|address| address.to_string()),
                None => Err(io::ErrorKind::NotConnected.into()),
            },
            Self::Unix(socket, _) => socket.local_addr().map(|address| {
                let path = address.as_pathname().unwrap_or_else(|| Path::new(""));
                format!("unix:{}", path.display())
            }),
        };
        address.unwrap_or_else(|e| e.to_string())
    }

    /// Whether only this machine can reach it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(sockets) => sockets
                .iter()
                .all(|socket| socket.local_addr().is_ok_and(|address| address.ip().is_loopback())),
            Self::Unix(..) => true,
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpStream;

    /// On many machines `localhost` is `::1` and 127.0.0.1.
    #[tokio::test]
    async fn all_addresses_of_a_name_are_bound() {
        let addresses = ["127.0.0.1:0", "127.0.0.2:0", "127.0.0.1:0", "192.0.2.1:0"];
        let socket = Socket::tcp_at(addresses.iter().map(|address| address.parse().unwrap())).unwrap();
        let Socket::Tcp(sockets) = &socket else { unreachable!() };
        assert_eq!(sockets.len(), 2, "one is no address of this machine");
        assert!(socket.is_local());
        let mut acceptor = crate::net::Acceptor::new(std::sync::Arc::new(socket));
        let port = acceptor.socket().address().rsplit_once(':').unwrap().1.to_owned();
        for host in ["127.0.0.2", "127.0.0.1"] {
            let (accepted, client) = tokio::join!(
                std::future::poll_fn(|cx| acceptor.poll_accept(cx)),
                TcpStream::connect(format!("{host}:{port}"))
            );
            assert_eq!(accepted.ip, Some(client.unwrap().local_addr().unwrap().ip()));
        }
        assert!(Socket::tcp_at(std::iter::empty()).is_err());
    }

    #[tokio::test]
    async fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let socket = Socket::unix(&path, 0o600).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = Socket::unix(&path, 0o600).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());
        fs::write(&path, "a file of somebody").unwrap();
        assert!(Socket::unix(&path, 0o600).await.is_err(), "no file is removed that is no socket");
    }
}
