// SPDX-License-Identifier: GPL-3.0-or-later
//! Directories that a daemon needs, and that nobody makes for it.

use std::fs;
use std::io;
use std::path::Path;

/// Directories that systemd's units make at the start.
const MADE_AT_START: [&str; 2] = ["/run/bulkmark", "/var/lib/bulkmark"];

/// Keys of paths at which the daemon makes files.
pub(super) const PLACES: [&str; 2] = ["state-dir", "control"];

/// Returns a warning if the directory for this value of a key is missing: that of the state, or that of a Unix socket.
///
/// # Errors
/// If the daemon does not start without it.
pub(super) fn missing_directory(key: &str, value: &str) -> Result<Option<String>, String> {
    let is_listener = key.split(['.', '[']).next() == Some("listen");
    let socket = || if is_listener || key.ends_with(".listen") { value.strip_prefix("unix:") } else { None };
    let directory = match key {
        "state-dir" => Some(Path::new(value)),
        // The daemon makes the directory of this one.
        "control" => Path::new(value).parent().and_then(Path::parent),
        _ => socket().and_then(|socket| Path::new(socket).parent()),
    };
    let is_made = |directory: &Path| MADE_AT_START.iter().any(|made| directory.starts_with(made));
    let is_missing =
        |directory: &Path| fs::metadata(directory).is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
    let wanted = directory.filter(|directory| directory.is_absolute() && !is_made(directory));
    let Some(missing) = wanted.filter(|directory| is_missing(directory)) else { return Ok(None) };
    let message = format!("the directory {} is missing", missing.display());
    if is_listener || PLACES.contains(&key) {
        return Err(format!("the daemon will not start: {message}"));
    }
    Ok(Some(format!("nothing will listen there: {message}")))
}
