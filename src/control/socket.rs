// SPDX-License-Identifier: GPL-3.0-or-later
//! Unix sockets.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use tokio::net::{UnixListener, UnixStream};

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
