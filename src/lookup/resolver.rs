// SPDX-License-Identifier: GPL-3.0-or-later
//! The DNS resolver for keys and records.

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

/// The system's configuration of name servers.
const SYSTEM: &str = "/etc/resolv.conf";

/// The most answers that are cached. They belong to names in white lists, with a few records each, and have a few hundred bytes.
const KEPT: u64 = 1024;

/// The longest time that an answer is cached, whatever its time to live is: a revoked key is not valid for longer.
const LONGEST_KEPT: Duration = Duration::from_hours(1);

/// The longest time that a missing key is cached: it may exist by then.
const LONGEST_MISSED: Duration = Duration::from_mins(1);

/// There is no name server.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("no name server is known: {0}; authentication.nameservers can name some")]
pub struct ResolverError(String);

/// Asks name servers, and caches their answers.
pub struct Resolver {
    pub(super) dns: MessageAuthenticator,
    /// The addresses of the name servers.
    addresses: Vec<String>,
    servers: Vec<NameServer>,
    timeout: Duration,
    /// The modification time of the system's configuration, if it is used.
    written: Option<SystemTime>,
}

impl Resolver {
    /// A resolver with the configured name servers, or with the system's.
    ///
    /// # Errors
    /// There are none.
    pub fn new(settings: &Authentication) -> Result<Self, ResolverError> {
        let servers = settings.nameservers.clone();
        let written = written(&servers);
        let (config, options) = if servers.is_empty() {
            read_system_conf().map_err(|e| ResolverError(format!("{SYSTEM}: {}", describe(&e))))?
        } else {
            let all = servers.iter().map(config).collect();
            (ResolverConfig::from_parts(None, Vec::new(), all), ResolverOpts::default())
        };
        let mut options = options;
        // Two attempts in the available time: the first question may be lost, or its server be down. A third attempt makes sure that the
        // timeout ends it.
        options.timeout = settings.timeout / 2;
        options.attempts = 3;
        options.cache_size = KEPT;
        options.positive_max_ttl = Some(LONGEST_KEPT);
        options.negative_max_ttl = Some(LONGEST_MISSED);
        options.use_hosts_file = ResolveHosts::Never;
        // Keys are longer than an answer without EDNS.
        options.edns0 = true;
        let addresses = config.name_servers().iter().map(address).collect();
        let dns = MessageAuthenticator::new(config, options).map_err(|e| ResolverError(describe(&e)))?;
        Ok(Self { dns, addresses, servers, timeout: settings.timeout, written })
    }

    /// Whether these settings would make the same resolver, and the system's configuration is unchanged.
    pub(super) fn is_of(&self, settings: &Authentication) -> bool {
        self.servers == settings.nameservers
            && self.timeout == settings.timeout
            && self.written == written(&self.servers)
    }

    /// The addresses of the name servers.
    #[must_use]
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Checks that a name server answers: a missing record is an answer, too.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub async fn answers(&self, name: &str) -> Result<(), String> {
        let name = Name::from_str_relaxed(name).map_err(|e| e.to_string())?;
        let asked = self.dns.resolver().lookup(name, RecordType::TXT);
        match tokio::time::timeout(self.timeout, asked).await {
            Ok(Ok(_)) | Ok(Err(NetError::Dns(DnsError::NoRecordsFound(_)))) => Ok(()),
            Ok(Err(e)) => Err(describe(&e)),
            Err(_) => Err(format!("no answer within {} s", self.timeout.as_secs_f64())),
        }
    }
}

fn config(NameServer(address): &NameServer) -> NameServerConfig {
    let with_port = |mut connection: ConnectionConfig| {
        connection.port = address.port();
        connection
    };
    // Truncated answers are requested again by TCP.
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(with_port).into();
    NameServerConfig::new(address.ip(), true, connections)
}

/// The address of a server, with its port if that is not the usual one.
fn address(server: &NameServerConfig) -> String {
    match server.connections.first().map(|connection| connection.port) {
        Some(53) | None => server.ip.to_string(),
        Some(port) => SocketAddr::new(server.ip, port).to_string(),
    }
}

fn describe(error: &NetError) -> String {
    match error {
        NetError::Timeout => "no answer in time".to_owned(),
        error => error.to_string(),
    }
}

/// The modification time of the system's configuration, if there are no other `servers`.
fn written(servers: &[NameServer]) -> Option<SystemTime> {
    let system = || std::fs::metadata(SYSTEM).and_then(|file| file.modified()).ok();
    servers.is_empty().then(system).flatten()
}
