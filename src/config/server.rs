// SPDX-License-Identifier: GPL-3.0-or-later
//! `server.toml`: every key, and the settings made of it.

use super::error::ConfigError;
use super::milter::load_key;
use super::source::Source;
use crate::net::{Address, Endpoint, Listen, TlsFiles};
use crate::server::{Limits, Registration};
use crate::{alerts, page, server, telemetry};
use bulkmark_counts::Role;
use bulkmark_sync::{Upstream, log};
use bulkmark_types::FederationKey;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The default path of the file.
pub const SERVER_PATH: &str = "/etc/bulkmark/server.toml";

/// The rule for a server without a certificate.
pub const PLAIN_HTTP: &str = "plain HTTP is for loopback addresses and Unix sockets only: set [tls], or plain-http-anywhere = true where \
    something else encrypts";

/// `[sync]` of a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ServerSync {
    /// The time between two updates.
    #[serde(with = "humantime_serde")]
    pub interval: Duration,
    /// How long updates are kept for holders that were away.
    #[serde(with = "humantime_serde")]
    pub keep_updates: Duration,
}

impl Default for ServerSync {
    fn default() -> Self {
        let bulkmark_counts::Federation { sync_interval, keep_updates, .. } =
            bulkmark_counts::Federation::default();
        Self { interval: sync_interval, keep_updates }
    }
}

/// `[status]` of a server. It has no subjects, and a different default port, so that a milter can run on the same machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ServerStatus {
    /// The address of the page.
    pub listen: Listen,
    /// Names by which browsers may ask for it. With a name, other machines may ask.
    pub hosts: Vec<String>,
}

impl Default for ServerStatus {
    fn default() -> Self {
        Self { listen: Listen::here(8723), hosts: Vec::new() }
    }
}

/// The file; every key has a default.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[expect(missing_docs, reason = "conf/server.toml and bulkmark.toml(5) describe the keys")]
pub struct ServerFile {
    #[serde(deserialize_with = "Endpoint::plain")]
    pub listen: Endpoint,
    pub plain_http_anywhere: bool,
    pub anonymous_reading: bool,
    pub registration: Registration,
    pub control: PathBuf,
    pub state_dir: PathBuf,
    pub peer: Vec<Upstream>,
    pub fleet: Option<log::Settings>,
    pub tls: Option<TlsFiles>,
    pub ledger: bulkmark_counts::Settings,
    pub sync: ServerSync,
    pub limits: Limits,
    pub status: ServerStatus,
    pub alerts: alerts::Settings,
    #[serde(deserialize_with = "telemetry::Settings::of_server")]
    pub log: telemetry::Settings,
}

impl Default for ServerFile {
    fn default() -> Self {
        Self {
            listen: Endpoint::here(8721),
            plain_http_anywhere: false,
            anonymous_reading: false,
            registration: Registration::Closed,
            control: "/run/bulkmark/server.sock".into(),
            state_dir: "/var/lib/bulkmark/server".into(),
            peer: Vec::new(),
            fleet: None,
            tls: None,
            ledger: bulkmark_counts::Settings::default(),
            sync: ServerSync::default(),
            limits: Limits::default(),
            status: ServerStatus::default(),
            alerts: alerts::Settings::default(),
            log: telemetry::Settings::default(),
        }
    }
}

/// Reads and checks the server's file at `path`, with a separate result for the key that it names.
///
/// # Errors
/// If the file at `path` itself cannot be used.
pub(super) fn load_server_parts(
    path: &Path,
) -> Result<(ServerFile, Result<FederationKey, ConfigError>), ConfigError> {
    let source = Source::read(path)?;
    let mut file: ServerFile = source.parse()?;
    file.ledger.check().map_err(|(key, message)| source.error(&format!("ledger.{key}"), message))?;
    if file.sync.interval.is_zero() {
        return Err(
            source.error("sync.interval", "found 0s, expected a longer time, for example \"1s\"".to_owned())
        );
    }
    file.ledger.federation.sync_interval = file.sync.interval;
    file.ledger.federation.keep_updates = file.sync.keep_updates;
    file.ledger.federation.serves = file.fleet.is_some();
    file.ledger.federation.peers =
        file.peer.iter().map(|peer| peer.url.trim_end_matches('/').to_owned()).collect();
    file.ledger.federation.for_peers = !file.peer.is_empty();
    source.check_servers("peer", &file.peer)?;
    source.check_fleet(file.fleet.as_ref(), ("peer", &file.peer))?;
    if file.fleet.is_some() && file.registration != Registration::Closed {
        let message = "expected \"closed\": an aggregator of a fleet takes no reports of sites";
        return Err(source.error("registration", message.to_owned()));
    }
    // The addresses of a name are known when the server binds them.
    let is_outside = |address: &Address| address.ip().is_some_and(|ip| !ip.is_loopback());
    if let Endpoint::At(address) = &file.listen
        && file.tls.is_none()
        && !file.plain_http_anywhere
        && is_outside(address)
    {
        return Err(source.error("listen", format!("found \"{address}\", but {PLAIN_HTTP}")));
    }
    file.page().check().map_err(|message| source.error("status.listen", message))?;
    file.alerts.url().map_err(|message| source.error("alerts.webhook", message))?;
    let key = load_key(&source, &file.ledger);
    Ok((file, key))
}

impl ServerFile {
    /// Returns the role of its ledger. The counts of a fleet belong to its log: an aggregator holds them as a milter does.
    #[must_use]
    pub const fn role(&self) -> Role {
        if self.fleet.is_some() { Role::Cache } else { Role::Server }
    }

    /// Returns the settings of the server, which listens at `address`.
    #[must_use]
    pub fn settings(&self, address: String) -> server::Settings {
        server::Settings {
            address,
            anonymous_reading: self.anonymous_reading,
            registration: self.registration,
            limits: self.limits.clone(),
            state_dir: self.state_dir.clone(),
        }
    }

    /// Returns the settings of its page.
    #[must_use]
    pub fn page(&self) -> page::Settings {
        let ServerStatus { listen, hosts } = self.status.clone();
        page::Settings { listen, hosts, ..page::Settings::default() }
    }
}
