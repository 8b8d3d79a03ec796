// SPDX-License-Identifier: GPL-3.0-or-later
//! `[interfaces]` of the configuration.

use crate::activity::Interface;
use crate::judging::PyzorDigest;
use crate::net::{Address, Listen, Mode};
use bulkmark_policy::Network;
use serde::Deserialize;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// The time that a client gets by default to send a message or a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The most connections of an interface, by default.
const CONNECTIONS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(99);

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
    /// Accepted host names, besides addresses and localhost.
    pub hosts: Vec<String>,
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
            hosts: Vec::new(),
            max_connections: CONNECTIONS,
            timeout: TIMEOUT,
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
            max_connections: CONNECTIONS,
            timeout: TIMEOUT,
        }
    }
}

/// The clients that may register.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Registers {
    /// None any longer.
    Nobody,
    /// Clients on this machine.
    #[default]
    Local,
    /// All that may connect.
    All,
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
    /// The name or address by which clients reach it; if empty, `listen`.
    pub name: String,
    /// The clients that may register.
    pub register: Registers,
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
            name: String::new(),
            register: Registers::default(),
            max_connections: CONNECTIONS,
            timeout: TIMEOUT,
        }
    }
}

impl RazorSettings {
    /// The address that is sent to clients, if it listens at this one.
    #[must_use]
    pub fn public_address<'a>(&'a self, address: &'a str) -> &'a str {
        if self.name.is_empty() { address } else { &self.name }
    }

    /// A key with a wrong value, and its problem.
    fn bad(&self) -> Option<(&'static str, String)> {
        let Self { listen, networks, name, .. } = self;
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
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
        if name.len() > LONGEST_HOST || !name.chars().all(is_letter) {
            return Some(("razor.name", format!("found {name:?}, expected HOST or HOST:PORT")));
        }
        if name.is_empty() && listen.is_anywhere() {
            let why =
                "found \"\", expected the HOST:PORT by which clients reach it, since listen names no address";
            return Some(("razor.name", why.to_owned()));
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

/// The most requests of an address in a second, by default.
const RATE: NonZeroU32 = NonZeroU32::MIN.saturating_add(499);

/// `[interfaces.pyzor]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct PyzorSettings {
    /// The address.
    pub listen: Listen,
    /// Other machines that may ask.
    #[serde(skip)]
    pub networks: Vec<Network>,
    /// The file of users and their keys.
    pub accounts_file: Option<PathBuf>,
    /// The file of permissions.
    pub access_file: Option<PathBuf>,
    /// The unit of counts.
    pub count: CountUnit,
    /// Digests that are not counted, besides those of nothing and of the ends of files.
    pub uncounted: Vec<PyzorDigest>,
    /// The most requests of an address in a second.
    pub max_rate: NonZeroU32,
}

impl Default for PyzorSettings {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            networks: Vec::new(),
            accounts_file: None,
            access_file: None,
            count: CountUnit::default(),
            uncounted: Vec::new(),
            max_rate: RATE,
        }
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// The most connections of each interface.
    pub max_connections: NonZeroUsize,
    /// The time for a client to be silent, or to send a message or a request.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
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

/// The most characters of a host name with a port.
const LONGEST_HOST: usize = 255;

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_connections: CONNECTIONS,
            timeout: TIMEOUT,
            networks: Vec::new(),
            http: HttpSettings::default(),
            dccifd: DccifdSettings::default(),
            razor: RazorSettings::default(),
            pyzor: PyzorSettings::default(),
        }
    }
}

impl Settings {
    /// Copies the common settings to all interfaces.
    pub fn share(&mut self, listen_mode: Mode) {
        let Self { max_connections, timeout, networks, http, dccifd, razor, pyzor } = self;
        for of in [&mut dccifd.networks, &mut razor.networks, &mut pyzor.networks] {
            of.clone_from(networks);
        }
        (http.listen_mode, dccifd.listen_mode) = (listen_mode, listen_mode);
        for (connections, time) in [
            (&mut http.max_connections, &mut http.timeout),
            (&mut dccifd.max_connections, &mut dccifd.timeout),
            (&mut razor.max_connections, &mut razor.timeout),
        ] {
            (*connections, *time) = (*max_connections, *timeout);
        }
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

    /// Checks that the settings fit together.
    ///
    /// # Errors
    /// A key, and its problem.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
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
        if let Some(bad) = razor.bad() {
            return Err(bad);
        }
        if self.timeout.is_zero() {
            return Err(("timeout", "found 0s, expected a longer time, for example \"10s\"".to_owned()));
        }
        Ok(())
    }
}
