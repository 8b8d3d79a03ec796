// SPDX-License-Identifier: GPL-3.0-or-later
//! Sockets to listen on.

use super::address::Address;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixStream, lookup_host};

/// Connections that may wait to be accepted, as far as the kernel allows (net.core.somaxconn). The usual 128 are fewer than
/// the clients of a server that was away and come back at once; whoever finds no place tries again after a second.
const BACKLOG: u32 = 4096;

/// A socket that listens.
#[derive(Debug)]
pub enum Socket {
    /// On a port.
    Tcp(TcpListener),
    /// On a path; with its file, where that is ours.
    Unix(UnixListener, Option<SocketFile>),
}

/// The file of a socket that this process made; it goes when it is dropped.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // If it is gone already, so much the better.
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

    /// Binds the first address of `address`, which is `HOST:PORT`, that can be used.
    ///
    /// # Errors
    /// When none can.
    async fn tcp(address: &str) -> io::Result<Self> {
        let mut result = Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        for address in lookup_host(address).await? {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.set_reuseaddr(true)?;
            result = socket.bind(address).and_then(|()| socket.listen(BACKLOG)).map(Self::Tcp);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Binds a Unix socket at `path` with the permissions `mode`. One that is left from a crash is replaced.
    ///
    /// # Errors
    /// When somebody listens there, or the path cannot be used.
    pub async fn unix(path: &Path, mode: u32) -> io::Result<Self> {
        if fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) {
            // Only a refused connection proves that nobody listens.
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

    /// Its address as the system has it, `HOST:PORT` or `unix:/PATH`, with the port that the system chose where 0 was asked for.
    #[must_use]
    pub fn address(&self) -> String {
        let address = match self {
            Self::Tcp(socket) => socket.local_addr().map(|address| address.to_string()),
            Self::Unix(socket, _) => socket.local_addr().map(|address| {
                let path = address.as_pathname().unwrap_or_else(|| Path::new(""));
                format!("unix:{}", path.display())
            }),
        };
        address.unwrap_or_else(|e| e.to_string())
    }

    /// Whether nobody on another machine can reach it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(socket) => socket.local_addr().is_ok_and(|address| address.ip().is_loopback()),
            Self::Unix(..) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
