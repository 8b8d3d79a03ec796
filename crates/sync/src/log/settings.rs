// SPDX-License-Identifier: GPL-3.0-or-later
//! The configuration of a log.

use super::types::LogError;
use crate::settings::Upstream;
use serde::Deserialize;
use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Maximum size of a file with a password or key.
const MAX_SECRET: u64 = 4096;

/// `[fleet]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// `nats://HOST:PORT,HOST:PORT` or `postgres://HOST:PORT,HOST:PORT/DATABASE`; see [`Address`].
    pub log: String,
    /// The name of this machine in the file of `fleet setup`: the role with PostgreSQL; with NATS the account of a milter, and the user of a
    /// password.
    pub name: Option<String>,
    /// Whether this machine reports, as a milter does.
    #[serde(skip)]
    pub reports: bool,
    /// The file with its password, or with NATS with the seed of its nkey.
    pub secret_file: Option<PathBuf>,
    /// Whether the connection is encrypted; none: yes, unless all hosts are this machine.
    pub tls: Option<bool>,
    /// The authorities that sign the servers' certificates, if the system does not trust them.
    pub ca_file: Option<PathBuf>,
    /// The certificate by which this machine authenticates, with its private key.
    pub cert_file: Option<PathBuf>,
    /// Aggregators that a milter with a partial copy asks for other counts.
    #[serde(default)]
    pub aggregators: Vec<Upstream>,
    /// Whether the report includes its largest mailings.
    #[serde(default)]
    pub mailings: bool,
}

/// The engine of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// NATS JetStream.
    Nats,
    /// PostgreSQL, or a database with its protocol.
    Postgres,
}

impl Engine {
    /// Whether this program was built with it.
    const fn is_here(self) -> bool {
        match self {
            Self::Nats => cfg!(feature = "nats"),
            Self::Postgres => cfg!(feature = "postgres"),
        }
    }

    /// Returns the error of a program that was built without it.
    #[must_use]
    pub fn missing(self) -> LogError {
        let (name, feature) = match self {
            Self::Nats => ("NATS", "nats"),
            Self::Postgres => ("PostgreSQL", "postgres"),
        };
        LogError::Setup(format!(
            "this bulkmark was built without {name}: cargo build --features {feature} has it"
        ))
    }
}

/// The address of one server of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A name or an IP address (one of IPv6 without brackets), and a port.
    Tcp(String, u16),
    /// The directory of PostgreSQL's sockets.
    Unix(PathBuf),
}

impl Host {
    /// Whether it is on this machine.
    fn is_here(&self) -> bool {
        match self {
            Self::Tcp(name, _) => {
                name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
            Self::Unix(_) => true,
        }
    }
}

/// The address of a log, from [`Settings::log`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The engine, by the scheme.
    pub engine: Engine,
    /// At least one; all are equivalent.
    pub hosts: Vec<Host>,
    /// The database, not empty; none with NATS.
    pub database: Option<String>,
}

/// The expected form of an address.
const EXPECTED: &str = "expected \"nats://HOST:PORT,HOST:PORT\" or \"postgres://HOST:PORT/DATABASE\" (on this machine also \
                        \"postgres:///DATABASE?host=/run/postgresql\")";

impl Address {
    /// Parses an address. The default ports are 4222 for NATS and 5432 for PostgreSQL.
    ///
    /// # Errors
    /// The address that was found and the expected form, without passwords.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains('@') {
            return Err(
                "found an address with a user name or password; write them as name = and secret-file ="
                    .to_owned(),
            );
        }
        let unexpected = || format!("found {text:?}, {EXPECTED}");
        let (scheme, rest) = text.split_once("://").ok_or_else(unexpected)?;
        let engine = match scheme {
            "nats" => Engine::Nats,
            "postgres" | "postgresql" => Engine::Postgres,
            _ => return Err(unexpected()),
        };
        if !engine.is_here() {
            return Err(engine.missing().to_string());
        }
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (hosts, path) = match engine {
            // Each address may have the scheme, as in NATS' own clients.
            Engine::Nats => (rest.trim_end_matches('/').replace("nats://", ""), ""),
            Engine::Postgres => {
                let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
                (hosts.to_owned(), path)
            }
        };
        let port = match engine {
            Engine::Nats => 4222,
            Engine::Postgres => 5432,
        };
        let hosts = match (query.map(|query| query.split_once('=')), &*hosts) {
            (None, hosts) => hosts
                .split(',')
                .map(|host| host_of(host.trim(), port).ok_or_else(unexpected))
                .collect::<Result<_, _>>()?,
            (Some(Some(("host", directory))), "")
                if directory.starts_with('/') && engine == Engine::Postgres =>
            {
                vec![Host::Unix(directory.into())]
            }
            (Some(_), _) => return Err(unexpected()),
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let database = match engine {
            Engine::Nats => None,
            Engine::Postgres if path.is_empty() || !path.chars().all(allowed) => return Err(unexpected()),
            Engine::Postgres => Some(path.to_owned()),
        };
        Ok(Self { engine, hosts, database })
    }
}

/// Parses `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`.
fn host_of(text: &str, usual: u16) -> Option<Host> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, rest) = rest.split_once(']')?;
            name.parse::<std::net::Ipv6Addr>().ok()?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
            (name, port)
        }
        None => text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    if name.is_empty() || !name.chars().all(allowed) {
        return None;
    }
    let port = port.map_or(Some(usual), |port| port.parse().ok().filter(|&port| port > 0))?;
    Some(Host::Tcp(name.to_owned(), port))
}

impl Settings {
    /// Returns the address of the log.
    ///
    /// # Errors
    /// When the address is invalid.
    pub fn address(&self) -> Result<Address, LogError> {
        Address::parse(&self.log).map_err(LogError::Setup)
    }

    /// Returns the client under which this machine's reports count.
    #[must_use]
    pub fn reporter(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.reports)
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn uses_tls(&self) -> bool {
        let here = || Address::parse(&self.log).is_ok_and(|address| address.hosts.iter().all(Host::is_here));
        self.tls.unwrap_or_else(|| !here())
    }

    /// Whether it leads to another machine unencrypted.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        let apart = |address: Address| !address.hosts.iter().all(Host::is_here);
        !self.uses_tls() && Address::parse(&self.log).is_ok_and(apart)
    }

    /// Checks all keys.
    ///
    /// # Errors
    /// The name of the first invalid key, and the message for the administrator.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let address = Address::parse(&self.log).map_err(|what| ("log", what))?;
        let fault = |key, what: &str| Err((key, what.to_owned()));
        if !self.reports && !self.aggregators.is_empty() {
            return fault("aggregators", "is for milters: an aggregator holds all counts itself");
        }
        if !self.reports && self.mailings {
            return fault("mailings", "is for milters: an aggregator sees no mail");
        }
        if let Some(name) = &self.name {
            check_name(name).map_err(|what| ("name", what))?;
        }
        match address.engine {
            Engine::Nats if self.name.is_none() && self.reports => {
                return fault(
                    "log",
                    "NATS does not tell a client its own name: name = \"NAME\" is missing, as in fleet setup's file",
                );
            }
            Engine::Postgres if self.name.is_none() => {
                return fault("log", "name = is missing: the role of this machine, as in fleet setup's file");
            }
            _ => (),
        }
        let files = [("ca-file", &self.ca_file), ("cert-file", &self.cert_file)];
        match files.into_iter().find(|(_, file)| file.is_some()) {
            Some((key, _)) if self.tls == Some(false) => fault(key, "is not used, since tls = false"),
            _ => Ok(()),
        }
    }

    /// Reads the password; none if none is configured.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn password(&self) -> Result<Option<String>, LogError> {
        self.secret_file.as_deref().map(secret).transpose()
    }

    /// Reads the seed of the nkey, `SU...`; none if the file has none, so that its text is a password.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn nkey(&self) -> Result<Option<String>, LogError> {
        // nsc and nk write lines around it.
        let seed = |text: String| text.lines().map(str::trim).find(|line| is_seed(line)).map(str::to_owned);
        Ok(self.password()?.and_then(seed))
    }
}

/// Whether a line is the seed of a user's nkey: SU and 56 more letters and digits of base32.
fn is_seed(line: &str) -> bool {
    let is_base32 = |c: u8| c.is_ascii_uppercase() || (b'2'..=b'7').contains(&c);
    line.len() == 58 && line.starts_with("SU") && line.bytes().all(is_base32)
}

/// Checks the name of a client.
///
/// # Errors
/// The name that was found and the expected form.
pub fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
        return Err(format!("found {name:?}, expected 1 to 64 letters, digits, hyphens and underscores"));
    }
    Ok(())
}

/// Reads a file with a secret, without white space at its ends.
fn secret(path: &Path) -> Result<String, LogError> {
    let shown = path.display();
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_SECRET + 1).read_to_string(&mut text))
        .map_err(|e| LogError::Setup(format!("cannot use {shown}: {e}")))?;
    let text = text.trim();
    if text.is_empty() || text.len() as u64 > MAX_SECRET {
        return Err(LogError::Setup(format!(
            "{shown}: expected a password or the seed of an nkey, at most {MAX_SECRET} bytes"
        )));
    }
    Ok(text.to_owned())
}

#[cfg(all(test, feature = "nats", feature = "postgres"))]
mod tests {
    use super::*;

    fn tcp(name: &str, port: u16) -> Host {
        Host::Tcp(name.to_owned(), port)
    }

    #[test]
    fn addresses_name_hosts_and_database() {
        let parsed = |text: &str| Address::parse(text).unwrap();
        let nats = |hosts| Address { engine: Engine::Nats, hosts, database: None };
        assert_eq!(parsed("nats://a"), nats(vec![tcp("a", 4222)]));
        let several = nats(vec![tcp("a", 1), tcp("::1", 4222), tcp("10.0.0.1", 2)]);
        assert_eq!(parsed("nats://a:1,[::1], 10.0.0.1:2/"), several);
        assert_eq!(parsed("nats://a:1,nats://[::1],nats://10.0.0.1:2"), several);
        let postgres = |hosts| Address { engine: Engine::Postgres, hosts, database: Some("bulk".to_owned()) };
        assert_eq!(parsed("postgres://db/bulk"), postgres(vec![tcp("db", 5432)]));
        assert_eq!(parsed("postgresql://a:6,b/bulk"), postgres(vec![tcp("a", 6), tcp("b", 5432)]));
        let here = postgres(vec![Host::Unix("/run/postgresql".into())]);
        assert_eq!(parsed("postgres:///bulk?host=/run/postgresql"), here);
    }

    #[test]
    fn other_addresses_are_refused_and_passwords_not_repeated() {
        for bad in [
            "",
            "a:4222",
            "http://a",
            "nats://",
            "nats://a,",
            "nats://a:0",
            "nats://a:x",
            "nats://a b",
            "nats://[a]",
            "nats://a?host=/x",
            "postgres://a",
            "postgres://a/",
            "postgres:///bulk",
            "postgres://a/b/c",
            "postgres://a/b?sslmode=disable",
            "postgres://a/b?host=/x",
            "postgres:///b?host=x",
        ] {
            assert!(Address::parse(bad).unwrap_err().contains("postgres://HOST:PORT/DATABASE"), "{bad}");
        }
        for secret in ["nats://me:hunter2@a", "postgres://hunter2@a/b", "hunter2@a"] {
            let error = Address::parse(secret).unwrap_err();
            assert!(error.contains("secret-file") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn connections_to_other_machines_are_encrypted_by_default() {
        let settings = |log: &str, tls| Settings { log: log.to_owned(), tls, ..Settings::default() };
        for (log, tls, encrypted, exposed) in [
            ("nats://127.0.0.1,[::1]:5,localhost", None, false, false),
            ("postgres:///b?host=/run/postgresql", None, false, false),
            ("nats://127.0.0.1,mail.example.net", None, true, false),
            ("nats://127.0.0.1", Some(true), true, false),
            ("postgres://db.example.net/b", Some(false), false, true),
        ] {
            let settings = settings(log, tls);
            assert_eq!((settings.uses_tls(), settings.is_exposed()), (encrypted, exposed), "{log}");
        }
    }

    #[test]
    fn keys_that_do_not_go_together_are_named() {
        let check = |text: &str, reports| {
            let settings = Settings { reports, ..toml::from_str(text).unwrap() };
            settings.check().map_err(|(key, what)| format!("{key}: {what}"))
        };
        assert_eq!(check("log = \"nats://a\"\nname = \"mx1\"\nsecret-file = \"/n\"", true), Ok(()));
        assert_eq!(check("log = \"nats://a\"\nsecret-file = \"/n\"", false), Ok(()));
        assert_eq!(check("log = \"postgres://a/b\"\nname = \"mx1\"\nsecret-file = \"/p\"", true), Ok(()));
        let error = check("log = \"nats://a\"\nmailings = true", false).unwrap_err();
        assert!(error.contains("mailings: is for milters"), "{error}");
        for (text, expected) in [
            ("log = \"nats://a\"", "name = \"NAME\" is missing"),
            ("log = \"nats://a\"\nname = \"a.b\"", "name: found \"a.b\""),
            ("log = \"nats://a\"\nname = \"a\"\ntls = false\nca-file = \"/c\"", "ca-file: is not used"),
            ("log = \"postgres://a/b\"", "name = is missing"),
        ] {
            let error = check(text, true).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn secrets_are_in_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        let of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Settings { secret_file: Some(path.clone()), ..Settings::default() }
        };
        assert_eq!(of(" a b \n").password().unwrap().as_deref(), Some("a b"));
        assert_eq!(of(" a b \n").nkey().unwrap(), None);
        let seed = format!("SU{}", "A2".repeat(28));
        let file = format!("----BEGIN USER NKEY SEED----\n{seed}\n----END----\n");
        assert_eq!(of(&file).nkey().unwrap(), Some(seed));
        assert!(of("\n").password().unwrap_err().to_string().contains("expected a password"));
        assert!(of(&"x".repeat(5000)).password().is_err());
        assert_eq!(Settings::default().nkey().unwrap(), None);
    }
}
