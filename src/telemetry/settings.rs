// SPDX-License-Identifier: GPL-3.0-or-later
//! The keys of `[log]`.

use serde::{Deserialize, Deserializer};
use std::path::PathBuf;

/// The target of log lines: `syslog`, `journald` or `stderr`; the first two with facility and socket, if these are not the usual ones:
/// `syslog:local0`, `syslog:/PATH`, `syslog:local0:/PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Target {
    /// The syslog daemon, by `/dev/log` or another socket.
    Syslog(Facility, Option<PathBuf>),
    /// The systemd journal, by its own socket or another one.
    Journald(Facility, Option<PathBuf>),
    /// Standard error.
    Stderr,
}

impl Default for Target {
    fn default() -> Self {
        Self::Syslog(Facility::Mail, None)
    }
}

impl TryFrom<String> for Target {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut parts = text.split(':').peekable();
        let name = parts.next().unwrap_or_default();
        let facility =
            parts.next_if(|part| !part.starts_with('/')).map_or(Some(Facility::Mail), Facility::named);
        let path = parts.next().map(PathBuf::from);
        let is_well_formed = path.as_ref().is_none_or(|path| path.is_absolute()) && parts.next().is_none();
        match (name, facility.filter(|_| is_well_formed), path) {
            ("syslog", Some(facility), path) => Ok(Self::Syslog(facility, path)),
            ("journald", Some(facility), path) => Ok(Self::Journald(facility, path)),
            ("stderr", Some(Facility::Mail), None) if text == "stderr" => Ok(Self::Stderr),
            ("syslog" | "journald", None, _) if is_well_formed => Err(format!(
                "found \"{text}\", expected {name}:/PATH, or {name}:FACILITY with mail, daemon, user, or local0 to local7"
            )),
            _ => Err(format!(
                "found \"{text}\", expected syslog, journald, stderr, syslog:FACILITY or syslog:/PATH"
            )),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are syslog's own")]
pub enum Facility {
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

impl Facility {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "mail" => Self::Mail,
            "daemon" => Self::Daemon,
            "user" => Self::User,
            "local0" => Self::Local0,
            "local1" => Self::Local1,
            "local2" => Self::Local2,
            "local3" => Self::Local3,
            "local4" => Self::Local4,
            "local5" => Self::Local5,
            "local6" => Self::Local6,
            "local7" => Self::Local7,
            _ => return None,
        })
    }
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
}

impl Settings {
    /// Reads the settings of a daemon that judges no messages and has no key for them.
    ///
    /// # Errors
    /// If a value is invalid, or a key is unknown.
    pub fn of_server<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Plain { target, format, level } = Plain::deserialize(deserializer)?;
        Ok(Self { target, format, level, messages: Messages::default() })
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_its_facility_and_its_socket() {
        let of = |text: &str| Target::try_from(text.to_owned());
        let path = || Some(PathBuf::from("/run/log"));
        for (text, target) in [
            ("syslog", Target::default()),
            ("syslog:local3", Target::Syslog(Facility::Local3, None)),
            ("syslog:/run/log", Target::Syslog(Facility::Mail, path())),
            ("syslog:user:/run/log", Target::Syslog(Facility::User, path())),
            ("journald:daemon", Target::Journald(Facility::Daemon, None)),
            ("stderr", Target::Stderr),
        ] {
            assert_eq!(of(text), Ok(target), "{text}");
        }
        for bad in [
            "syslog:",
            "syslog:run/log",
            "syslog:/a:/b",
            "syslog:mail:log",
            "stderr:mail",
            "stderr:/run/log",
            "",
        ] {
            assert!(of(bad).is_err_and(|e| e.starts_with("found ")), "{bad}");
        }
    }
}
