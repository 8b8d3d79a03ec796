// SPDX-License-Identifier: GPL-3.0-or-later
//! `[interfaces]` of the configuration.

use crate::activity::Interface;
use crate::judging::PyzorDigest;
use crate::net::{Address, Listen, Mode};
use bulkmark_policy::Network;
use serde::Deserialize;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// The default of `idle-timeout`.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// The default of `max-connections`.
pub const MAX_CONNECTIONS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(999);

/// The keys before the first table that apply to all interfaces.
#[derive(Debug, Clone, Copy)]
pub struct Common<'a> {
    /// The mode of Unix sockets.
    pub listen_mode: Mode,
    /// The name of this mail server.
    pub hostname: &'a str,
    /// The most connections of each interface.
    pub max_connections: NonZeroUsize,
    /// The time for a client to be silent, or to send a message or a request.
    pub idle_timeout: Duration,
}

/// `[interfaces.http]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct HttpSettings {
    /// The address.
    pub listen: Listen,
    /// The mode of a Unix socket.
    #[serde(skip)]
    pub listen_mode: Mode,
    /// The file of the required token.
    pub token_file: Option<PathBuf>,
    /// The most connections.
    #[serde(skip)]
    pub max_connections: NonZeroUsize,
    /// The time for a client to send a message.
    #[serde(skip)]
    pub timeout: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            listen_mode: Mode::default(),
            token_file: None,
            max_connections: MAX_CONNECTIONS,
            timeout: IDLE_TIMEOUT,
        }
    }
}

/// The condition for showing counts as `many`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Many {
    /// If users report the message as spam.
    #[default]
    Spam,
    /// Also if it is bulk that no white list wants.
    Bulk,
}

/// `[interfaces.dccifd]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DccifdSettings {
    /// The address.
    pub listen: Listen,
    /// The mode of a Unix socket.
    #[serde(skip)]
    pub listen_mode: Mode,
    /// Other machines that may ask by TCP.
    #[serde(skip)]
    pub networks: Vec<Network>,
    /// Whether messages are counted. Otherwise all are only looked up.
    pub count: bool,
    /// The condition for showing counts as `many`.
    pub many: Many,
    /// The most connections.
    #[serde(skip)]
    pub max_connections: NonZeroUsize,
    /// The time for a client to send a message.
    #[serde(skip)]
    pub timeout: Duration,
}

impl Default for DccifdSettings {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            listen_mode: Mode::default(),
            networks: Vec::new(),
            count: true,
            many: Many::default(),
            max_connections: MAX_CONNECTIONS,
            timeout: IDLE_TIMEOUT,
        }
    }
}

/// `[interfaces.razor]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RazorSettings {
    /// The address.
    pub listen: Listen,
    /// Other machines that may connect.
    #[serde(skip)]
    pub networks: Vec<Network>,
    /// The name of this mail server.
    #[serde(skip)]
    pub hostname: String,
    /// The most connections.
    #[serde(skip)]
    pub max_connections: NonZeroUsize,
    /// The time for a client to be silent, or to send a request.
    #[serde(skip)]
    pub timeout: Duration,
}

impl Default for RazorSettings {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            networks: Vec::new(),
            hostname: String::new(),
            max_connections: MAX_CONNECTIONS,
            timeout: IDLE_TIMEOUT,
        }
    }
}

impl RazorSettings {
    /// The address that is sent to clients, if it listens at this one: the server's name where it listens at all addresses.
    #[must_use]
    pub fn public_address(&self, address: &str) -> String {
        match address.rsplit_once(':') {
            Some((_, port)) if self.listen.is_anywhere() => format!("{}:{port}", self.hostname),
            _ => address.to_owned(),
        }
    }

    /// A key with a wrong value, and its problem.
    fn bad(&self, hostname: &str) -> Option<(&'static str, String)> {
        let Self { listen, networks, .. } = self;
        if matches!(listen.address(), Some(Address::Unix(_))) {
            return Some((
                "razor.listen",
                format!("found \"{listen}\", expected HOST:PORT: its clients know no other"),
            ));
        }
        if listen.is_outside() && networks.is_empty() {
            let why = format!(
                "found \"{listen}\", expected a loopback address, or interfaces.networks that may ask: other machines can reach this address"
            );
            return Some(("razor.listen", why));
        }
        if hostname.is_empty() && listen.is_anywhere() {
            let why = format!(
                "found \"{listen}\", expected one address, or hostname, by which clients reach this machine: they are sent to it"
            );
            return Some(("razor.listen", why));
        }
        None
    }
}

/// The unit of the Pyzor interface's counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountUnit {
    /// Reporters of a digest, each once.
    #[default]
    Reporters,
    /// Reports, as the reference server counts.
    Reports,
}

/// `[interfaces.pyzor]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PyzorSettings {
    /// The address.
    pub listen: Listen,
    /// Other machines that may ask.
    #[serde(skip)]
    pub networks: Vec<Network>,
    /// The directory with `pyzord.passwd`, the users and their keys, and `pyzord.access`, their permissions.
    pub home: Option<PathBuf>,
    /// The unit of counts.
    pub count: CountUnit,
    /// Digests that are not counted, besides those of nothing and of the ends of files.
    pub uncounted: Vec<PyzorDigest>,
}

impl PyzorSettings {
    fn check(&self) -> Result<(), (&'static str, String)> {
        let found = &self.listen;
        if matches!(found.address(), Some(Address::Unix(_))) {
            return Err((
                "pyzor.listen",
                format!("found \"{found}\", expected \"HOST:PORT\": Pyzor's clients ask by UDP"),
            ));
        }
        if found.is_outside() && self.networks.is_empty() {
            let why = format!(
                "found \"{found}\", expected a loopback address, or interfaces.networks that may ask: other machines can reach this address"
            );
            return Err(("pyzor.listen", why));
        }
        Ok(())
    }
}

/// `[interfaces]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Other machines that may ask by TCP or UDP; HTTP uses a token.
    pub networks: Vec<Network>,
    /// HTTP.
    pub http: HttpSettings,
    /// DCC's interface daemon.
    pub dccifd: DccifdSettings,
    /// Razor.
    pub razor: RazorSettings,
    /// Pyzor.
    pub pyzor: PyzorSettings,
}

impl Settings {
    /// Copies the networks to all interfaces.
    pub fn share_networks(&mut self) {
        let Self { networks, dccifd, razor, pyzor, .. } = self;
        for of in [&mut dccifd.networks, &mut razor.networks, &mut pyzor.networks] {
            of.clone_from(networks);
        }
    }

    /// Returns the same settings with these of the whole daemon.
    #[must_use]
    pub fn with(&self, common: Common<'_>) -> Self {
        let Common { listen_mode, hostname, max_connections, idle_timeout } = common;
        let mut settings = self.clone();
        let Self { http, dccifd, razor, .. } = &mut settings;
        (http.listen_mode, dccifd.listen_mode) = (listen_mode, listen_mode);
        hostname.clone_into(&mut razor.hostname);
        for (connections, time) in [
            (&mut http.max_connections, &mut http.timeout),
            (&mut dccifd.max_connections, &mut dccifd.timeout),
            (&mut razor.max_connections, &mut razor.timeout),
        ] {
            (*connections, *time) = (max_connections, idle_timeout);
        }
        settings
    }

    /// Whether there is any interface.
    #[must_use]
    pub fn are_open(&self) -> bool {
        Interface::BESIDE.into_iter().any(|interface| self.address(interface).is_some())
    }

    /// The address of an interface; `None` if it is not configured.
    #[must_use]
    pub const fn address(&self, interface: Interface) -> Option<&Address> {
        match interface {
            Interface::Milter => None,
            Interface::Http => self.http.listen.address(),
            Interface::Dccifd => self.dccifd.listen.address(),
            Interface::Razor => self.razor.listen.address(),
            Interface::Pyzor => self.pyzor.listen.address(),
        }
    }

    /// Checks that the settings fit together, and to the name of this mail server.
    ///
    /// # Errors
    /// A key, and its problem.
    pub fn check(&self, hostname: &str) -> Result<(), (&'static str, String)> {
        let Self { http, dccifd, razor, pyzor, .. } = self;
        pyzor.check()?;
        if http.listen.is_outside() && http.token_file.is_none() {
            let why = format!(
                "found \"{}\", expected a loopback address or unix:/PATH, or a token-file: other machines can reach this address",
                http.listen
            );
            return Err(("http.listen", why));
        }
        if dccifd.listen.is_outside() && dccifd.networks.is_empty() {
            let why = format!(
                "found \"{}\", expected a loopback address or unix:/PATH, or interfaces.networks that may ask: other machines can reach this address",
                dccifd.listen
            );
            return Err(("dccifd.listen", why));
        }
        if let Some(bad) = razor.bad(hostname) {
            return Err(bad);
        }
        Ok(())
    }
}
