// SPDX-License-Identifier: GPL-3.0-or-later
//! Sockets to listen on.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixStream, lookup_host};

/// Connections that may wait to be accepted, as far as the kernel allows (net.core.somaxconn). The usual 128 are fewer than
/// the clients of a server that was away and come back at once; whoever finds no place tries again after a second.
const BACKLOG: u32 = 4096;

/// Binds the first address of `address`, which is `HOST:PORT`, that can be used.
///
/// # Errors
/// When none can.
pub async fn bind_tcp(address: &str) -> io::Result<TcpListener> {
    let mut result = Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    for address in lookup_host(address).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        result = socket.bind(address).and_then(|()| socket.listen(BACKLOG));
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
pub async fn bind_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) {
        // Only a refused connection proves that nobody listens.
        match UnixStream::connect(path).await {
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            _ => return Err(io::ErrorKind::AddrInUse.into()),
        }
    }
    let socket = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(socket)
}
