// SPDX-License-Identifier: GPL-3.0-or-later
//! Who is asked for keys and records.

use bulkmark_policy::{Authentication, NameServer};
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use mail_auth::MessageAuthenticator;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

/// Where the system has its name servers.
const SYSTEM: &str = "/etc/resolv.conf";

/// Answers that are kept. Names are those that white lists have, with a few records each, and an answer has a few hundred bytes.
const KEPT: u64 = 1024;

/// A key that was taken back is not believed for longer, whatever its time to live is.
const LONGEST_KEPT: Duration = Duration::from_hours(1);

/// A key that was not there may be by then.
const LONGEST_MISSED: Duration = Duration::from_mins(1);

/// Nobody can be asked.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("no name server is known: {0}; authentication.nameservers can name some")]
pub struct ResolverError(String);

/// Asks name servers, and keeps what they say for as long as it holds.
pub struct Resolver {
    pub(super) dns: MessageAuthenticator,
    /// The addresses that are asked.
    addresses: Vec<String>,
    servers: Vec<NameServer>,
    timeout: Duration,
    /// When the system's were written down, where they are asked.
    written: Option<SystemTime>,
}

impl Resolver {
    /// Of those that are named, or of the system's.
    ///
    /// # Errors
    /// If there are none.
    pub fn new(settings: &Authentication) -> Result<Self, ResolverError> {
        let servers = settings.nameservers.clone();
        let written = written(&servers);
        let (config, options) = if servers.is_empty() {
            read_system_conf().map_err(|e| ResolverError(format!("{SYSTEM}: {}", told(&e))))?
        } else {
            let all = servers.iter().map(config).collect();
            (ResolverConfig::from_parts(None, Vec::new(), all), ResolverOpts::default())
        };
        let mut options = options;
        // Twice in the time that there is: the first question may be lost, or its server be down. It would go on after that, so that it
        // is the time that ends it.
        options.timeout = settings.timeout / 2;
        options.attempts = 3;
        options.cache_size = KEPT;
        options.positive_max_ttl = Some(LONGEST_KEPT);
        options.negative_max_ttl = Some(LONGEST_MISSED);
        options.use_hosts_file = ResolveHosts::Never;
        // Keys are longer than an answer may be without.
        options.edns0 = true;
        let addresses = config.name_servers().iter().map(address).collect();
        let dns = MessageAuthenticator::new(config, options).map_err(|e| ResolverError(told(&e)))?;
        Ok(Self { dns, addresses, servers, timeout: settings.timeout, written })
    }

    /// Whether these settings would make the same one, and the system has the same name servers still.
    pub(super) fn is_of(&self, settings: &Authentication) -> bool {
        self.servers == settings.nameservers
            && self.timeout == settings.timeout
            && self.written == written(&self.servers)
    }

    /// The addresses that are asked.
    #[must_use]
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Whether anybody answers: that the name has no such record is an answer, too.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn answers(&self, name: &str) -> Result<(), String> {
        let name = Name::from_str_relaxed(name).map_err(|e| e.to_string())?;
        let asked = self.dns.resolver().lookup(name, RecordType::TXT);
        match tokio::time::timeout(self.timeout, asked).await {
            Ok(Ok(_)) | Ok(Err(NetError::Dns(DnsError::NoRecordsFound(_)))) => Ok(()),
            Ok(Err(e)) => Err(told(&e)),
            Err(_) => Err(format!("no answer within {} s", self.timeout.as_secs_f64())),
        }
    }
}

fn config(NameServer(address): &NameServer) -> NameServerConfig {
    let with_port = |mut connection: ConnectionConfig| {
        connection.port = address.port();
        connection
    };
    // Truncated answers are asked for again by TCP.
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(with_port).into();
    NameServerConfig::new(address.ip(), true, connections)
}

/// Where a server is asked; with its port where that is not the usual one.
fn address(server: &NameServerConfig) -> String {
    match server.connections.first().map(|connection| connection.port) {
        Some(53) | None => server.ip.to_string(),
        Some(port) => SocketAddr::new(server.ip, port).to_string(),
    }
}

fn told(error: &NetError) -> String {
    match error {
        NetError::Timeout => "no answer in time".to_owned(),
        error => error.to_string(),
    }
}

/// When the system's name servers were written down, where these are none.
fn written(servers: &[NameServer]) -> Option<SystemTime> {
    let system = || std::fs::metadata(SYSTEM).and_then(|file| file.modified()).ok();
    servers.is_empty().then(system).flatten()
}
