// SPDX-License-Identifier: GPL-3.0-or-later
//! What the configuration says of logs.

use serde::Deserialize;
use std::path::PathBuf;

/// Where log lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The syslog daemon, by `/dev/log`.
    #[default]
    Syslog,
    /// The systemd journal, by its own socket.
    Journald,
    /// Standard error.
    Stderr,
}

/// The least urgent lines that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// What stops mail from being judged.
    Error,
    /// What an administrator should look at.
    Warn,
    /// One line a message.
    #[default]
    Info,
    /// For finding faults.
    Debug,
}

impl From<Level> for log::LevelFilter {
    fn from(level: Level) -> Self {
        match level {
            Level::Error => Self::Error,
            Level::Warn => Self::Warn,
            Level::Info => Self::Info,
            Level::Debug => Self::Debug,
        }
    }
}

/// The syslog facility.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are syslog's own")]
pub enum Facility {
    #[default]
    Mail,
    Daemon,
    User,
    Local0,
    Local1,
    Local2,
    Local3,
    Local4,
    Local5,
    Local6,
    Local7,
}

impl From<Facility> for syslog::Facility {
    fn from(facility: Facility) -> Self {
        match facility {
            Facility::Mail => Self::LOG_MAIL,
            Facility::Daemon => Self::LOG_DAEMON,
            Facility::User => Self::LOG_USER,
            Facility::Local0 => Self::LOG_LOCAL0,
            Facility::Local1 => Self::LOG_LOCAL1,
            Facility::Local2 => Self::LOG_LOCAL2,
            Facility::Local3 => Self::LOG_LOCAL3,
            Facility::Local4 => Self::LOG_LOCAL4,
            Facility::Local5 => Self::LOG_LOCAL5,
            Facility::Local6 => Self::LOG_LOCAL6,
            Facility::Local7 => Self::LOG_LOCAL7,
        }
    }
}

/// `[log]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Where lines go.
    pub target: Target,
    /// The least urgent lines that are written.
    pub level: Level,
    /// The syslog facility.
    pub facility: Facility,
    /// The socket of the syslog daemon or the journal, where it is not the usual one.
    pub socket: Option<PathBuf>,
}
