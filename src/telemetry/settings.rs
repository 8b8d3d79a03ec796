// SPDX-License-Identifier: GPL-3.0-or-later
//! The keys of `[log]`.

use serde::{Deserialize, Deserializer};
use std::path::PathBuf;

/// The target of log lines: `syslog`, `journald` or `stderr`; the first two with the socket, `syslog:/PATH`, if it is not the usual one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Target {
    /// The syslog daemon, by `/dev/log` or another socket.
    Syslog(Option<PathBuf>),
    /// The systemd journal, by its own socket or another one.
    Journald(Option<PathBuf>),
    /// Standard error.
    Stderr,
}

impl Default for Target {
    fn default() -> Self {
        Self::Syslog(None)
    }
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (name, path) = text.split_once(':').map_or((&*text, None), |(name, path)| (name, Some(path)));
        match (name, path.map(PathBuf::from)) {
            ("syslog", path) if path.as_ref().is_none_or(|path| path.is_absolute()) => Ok(Self::Syslog(path)),
            ("journald", path) if path.as_ref().is_none_or(|path| path.is_absolute()) => {
                Ok(Self::Journald(path))
            }
            ("stderr", None) => Ok(Self::Stderr),
            _ => Err(format!("found \"{text}\", expected syslog, journald, stderr or syslog:/PATH")),
        }
    }
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Text with fields, for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The least urgent lines that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Failures that stop mail from being judged.
    Error,
    /// Problems that an administrator should look at.
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

/// Which messages have their line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Messages {
    /// All of them.
    #[default]
    All,
    /// Bulk, whitelisted or not, mail that users report as spam, and mail that could not be judged.
    NotClean,
    /// Bulk and spam without whitelisted mail.
    Bulk,
    /// None.
    None,
}

impl Messages {
    /// Whether messages of this verdict are logged.
    #[must_use]
    pub fn has(self, verdict: &str) -> bool {
        match self {
            Self::All => true,
            Self::NotClean => ["bulk", "spam", "whitelisted", "unknown"].contains(&verdict),
            Self::Bulk => ["bulk", "spam"].contains(&verdict),
            Self::None => false,
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

/// `[log]` of a daemon that judges no messages.
#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Plain {
    target: Target,
    format: Format,
    level: Level,
    facility: Facility,
}

impl Settings {
    /// Reads the settings of a daemon that judges no messages and has no key for them.
    ///
    /// # Errors
    /// If a value is invalid, or a key is unknown.
    pub fn of_server<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Plain { target, format, level, facility } = Plain::deserialize(deserializer)?;
        Ok(Self { target, format, level, messages: Messages::default(), facility })
    }
}

/// `[log]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// The target of lines.
    pub target: Target,
    /// The form of lines.
    pub format: Format,
    /// The least urgent lines that are written.
    pub level: Level,
    /// Which messages are logged, if the level admits their lines.
    pub messages: Messages,
    /// The syslog facility.
    pub facility: Facility,
}
