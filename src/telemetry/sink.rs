// SPDX-License-Identifier: GPL-3.0-or-later
//! The targets of log lines.

use super::json::object;
use super::settings::{Format, Settings, Target};
use std::borrow::Cow;
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use syslog::{Formatter3164, LoggerBackend};

const IDENTIFIER: &str = "bulkmark";

/// The journal's socket for its native protocol.
const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";

/// A target, and the form of the lines for it.
pub(super) struct Sink {
    to: To,
    format: Format,
}

/// One of the targets. If its daemon went away, each line tries to connect again.
enum To {
    Syslog {
        open: Option<syslog::Logger<LoggerBackend, Formatter3164>>,
        facility: syslog::Facility,
        socket: Option<PathBuf>,
    },
    Journal {
        socket: Option<UnixDatagram>,
        path: PathBuf,
        facility: syslog::Facility,
    },
    Stderr,
}

impl Sink {
    pub(super) fn new(settings: &Settings) -> Self {
        let to = match &settings.target {
            Target::Syslog(facility, socket) => {
                To::Syslog { open: None, facility: (*facility).into(), socket: socket.clone() }
            }
            Target::Journald(facility, socket) => {
                let path = socket.clone().unwrap_or_else(|| JOURNAL_SOCKET.into());
                To::Journal { socket: UnixDatagram::unbound().ok(), path, facility: (*facility).into() }
            }
            Target::Stderr => To::Stderr,
        };
        Self { to, format: settings.format }
    }

    /// Writes one line, which has no control characters; `is_message` if it is the line of a message. If the target fails, the line goes to
    /// standard error, so that a daemon without a log daemon is not silent.
    pub(super) fn write(&mut self, level: log::Level, line: &str, is_message: bool) {
        let line = match self.format {
            Format::Text => Cow::Borrowed(line),
            Format::Json => Cow::Owned(object(level, line, is_message, SystemTime::now())),
        };
        let written = match &mut self.to {
            To::Syslog { open, facility, socket } => {
                send_syslog(open, *facility, socket.as_deref(), level, &line)
            }
            To::Journal { socket, path, facility } => {
                send_journal(socket.as_ref(), path, *facility, level, &line)
            }
            To::Stderr => Err(io::ErrorKind::Unsupported.into()),
        };
        if written.is_err() {
            // Standard error has no buffer: a line that is formatted into it is written piece by piece.
            let line = match self.format {
                Format::Text => format!("bulkmark: {}: {line}\n", level.as_str().to_lowercase()),
                Format::Json => format!("{line}\n"),
            };
            // If standard error is closed, no other place is left for an error.
            let _ = io::stderr().write_all(line.as_bytes());
        }
    }
}

/// Whether a log daemon takes lines.
///
/// # Errors
/// If none does; lines then go to standard error.
pub fn probe(settings: &Settings) -> io::Result<()> {
    match Sink::new(settings).to {
        To::Syslog { facility, socket, .. } => connect_syslog(facility, socket.as_deref()).map(drop),
        To::Journal { path, .. } => UnixDatagram::unbound()?.connect(path),
        To::Stderr => Ok(()),
    }
}

fn send_syslog(
    open: &mut Option<syslog::Logger<LoggerBackend, Formatter3164>>,
    facility: syslog::Facility,
    socket: Option<&Path>,
    level: log::Level,
    line: &str,
) -> io::Result<()> {
    // A logger that was open fails once after the daemon was restarted; a fresh one shows whether the daemon runs.
    for _ in 0..2 {
        let mut logger = match open.take() {
            Some(logger) => logger,
            None => connect_syslog(facility, socket)?,
        };
        let sent = match level {
            log::Level::Error => logger.err(line),
            log::Level::Warn => logger.warning(line),
            log::Level::Info => logger.info(line),
            log::Level::Debug | log::Level::Trace => logger.debug(line),
        };
        if sent.is_ok() {
            *open = Some(logger);
            return Ok(());
        }
    }
    Err(io::ErrorKind::NotConnected.into())
}

fn connect_syslog(
    facility: syslog::Facility,
    socket: Option<&Path>,
) -> io::Result<syslog::Logger<LoggerBackend, Formatter3164>> {
    let formatter =
        Formatter3164 { facility, hostname: None, process: IDENTIFIER.to_owned(), pid: std::process::id() };
    match socket {
        Some(path) => syslog::unix_custom(formatter, path),
        None => syslog::unix(formatter),
    }
    // "Initialization error: Io error: " and the reason.
    .map_err(|e| io::Error::other(e.to_string().rsplit("error: ").next().unwrap_or_default().to_owned()))
}

/// One datagram of `FIELD=value` lines (systemd.journal-fields). The line has no line breaks, so it needs no framing.
fn send_journal(
    socket: Option<&UnixDatagram>,
    path: &Path,
    facility: syslog::Facility,
    level: log::Level,
    line: &str,
) -> io::Result<()> {
    let socket = socket.ok_or(io::ErrorKind::NotConnected)?;
    let priority = match level {
        log::Level::Error => 3,
        log::Level::Warn => 4,
        log::Level::Info => 6,
        log::Level::Debug | log::Level::Trace => 7,
    };
    let facility = facility as u32 >> 3;
    let entry = format!(
        "PRIORITY={priority}\nSYSLOG_FACILITY={facility}\nSYSLOG_IDENTIFIER={IDENTIFIER}\nMESSAGE={line}\n"
    );
    socket.send_to(entry.as_bytes(), path).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::settings::Facility;
    use super::*;

    fn settings(target: fn(Facility, Option<PathBuf>) -> Target, path: &Path) -> Settings {
        Settings { target: target(Facility::Mail, Some(path.to_owned())), ..Settings::default() }
    }

    fn receive(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 1000];
        let n = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..n]).into_owned()
    }

    #[test]
    fn syslog_is_found_again_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut sink = Sink::new(&settings(Target::Syslog, &path));
        sink.write(log::Level::Info, "nobody listens: this goes to standard error", false);
        for round in 0..3 {
            let daemon = UnixDatagram::bind(&path).unwrap();
            sink.write(log::Level::Warn, &format!("round {round}"), false);
            let line = receive(&daemon);
            assert!(line.starts_with("<20>") && line.contains("bulkmark["), "{line}");
            assert!(line.ends_with(&format!("round {round}")), "{line}");
            drop(daemon);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn the_journal_gets_fields() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let journal = UnixDatagram::bind(&path).unwrap();
        Sink::new(&settings(Target::Journald, &path)).write(log::Level::Error, "disk full", false);
        assert_eq!(
            receive(&journal),
            "PRIORITY=3\nSYSLOG_FACILITY=2\nSYSLOG_IDENTIFIER=bulkmark\nMESSAGE=disk full\n"
        );
    }
}
