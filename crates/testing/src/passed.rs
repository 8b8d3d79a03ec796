// SPDX-License-Identifier: GPL-3.0-or-later
//! Daemons with sockets that were opened for them, as systemd passes them.

use super::{Daemon, Site, program};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes the shell do the work of systemd: its standard output becomes descriptor 3 and the next ones, which variables announce.
const PASS: &str = "\
exec 3>&1; [ $0 = 1 ] || exec 4>&1
exec >&2; export LISTEN_FDS=$0 LISTEN_PID=${PID:-$$}
exec \"$@\"";

/// Starts a daemon of this site with so many copies of a passed socket.
pub fn start_with(
    site: &Site,
    daemon: &[&str],
    config: &Path,
    socket: impl Into<OwnedFd>,
    times: usize,
) -> Daemon {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", PASS, &times.to_string(), program()]).args(daemon).arg("--config").arg(config);
    site.spawn_by(command.stdout(Stdio::from(socket.into())))
}
