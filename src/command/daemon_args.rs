// SPDX-License-Identifier: GPL-3.0-or-later
//! The choice of a daemon of this machine by options.

use crate::config::{ConfigError, DEFAULT_PATH, INTERFACES_PATH, Kind, SERVER_PATH};
use std::path::{Path, PathBuf};

// No docstring: clap would take it for that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct DaemonArgs {
    /// The server instead of the milter. With --config, the content of the file decides.
    #[arg(long)]
    server: bool,
    /// The interfaces instead of the milter. This is the default if there is no milter.toml, but an interfaces.toml; the server is, if there is
    /// only a server.toml.
    #[arg(long, conflicts_with = "server")]
    interfaces: bool,
    /// The daemon's configuration [default: /etc/bulkmark/milter.toml, with --server server.toml, with --interfaces interfaces.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl DaemonArgs {
    /// Returns the default path of the configuration.
    pub(super) fn default_path(&self) -> &'static str {
        match (self.server, self.interfaces) {
            (true, _) => SERVER_PATH,
            (_, true) => INTERFACES_PATH,
            _ if has_server_alone(|path| Path::new(path).exists()) => SERVER_PATH,
            _ => judging_config(),
        }
    }

    /// Returns the path of the daemon's configuration.
    pub(super) fn path(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| self.default_path().into())
    }

    /// Returns the kind of the daemon with the configuration at `path`: by --server, or else by the content.
    pub(super) fn kind(&self, path: &Path) -> Result<Kind, ConfigError> {
        if self.server { Ok(Kind::Server) } else { Kind::of(path) }
    }
}

/// Returns the default configuration of the daemon that judges mail on this machine: the milter's, or that of interfaces alone.
pub(super) fn judging_config() -> &'static str {
    let is_there = |path: &str| Path::new(path).exists();
    if !is_there(DEFAULT_PATH) && is_there(INTERFACES_PATH) { INTERFACES_PATH } else { DEFAULT_PATH }
}

/// Whether the server is this machine's only daemon.
fn has_server_alone(is_there: impl Fn(&str) -> bool) -> bool {
    is_there(SERVER_PATH) && !is_there(DEFAULT_PATH) && !is_there(INTERFACES_PATH)
}

/// Returns the systemd unit of the daemon with this configuration: a milter beside the first one has an instance of the template.
pub(super) fn unit(config: &Path, daemon: &str) -> String {
    let usual = Path::new(DEFAULT_PATH);
    match config.file_stem() {
        Some(name) if daemon == "milter" && config != usual && config.parent() == usual.parent() => {
            format!("bulkmark-milter@{}", name.to_string_lossy())
        }
        _ => format!("bulkmark-{daemon}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_a_server_alone_is_known() {
        let with = |files: &[&str]| has_server_alone(|path| files.contains(&path));
        assert!(with(&[SERVER_PATH]) && !with(&[]));
        assert!(!with(&[SERVER_PATH, INTERFACES_PATH]) && !with(&[SERVER_PATH, DEFAULT_PATH]));
    }

    #[test]
    fn a_second_milter_has_its_own_unit() {
        let unit = |path: &str, daemon| unit(Path::new(path), daemon);
        assert_eq!(unit("/etc/bulkmark/milter.toml", "milter"), "bulkmark-milter");
        assert_eq!(unit("/etc/bulkmark/outbound.toml", "milter"), "bulkmark-milter@outbound");
        assert_eq!(unit("/tmp/outbound.toml", "milter"), "bulkmark-milter");
        assert_eq!(unit("/etc/bulkmark/interfaces.toml", "interfaces"), "bulkmark-interfaces");
    }
}
