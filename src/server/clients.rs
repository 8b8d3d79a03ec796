// SPDX-License-Identifier: GPL-3.0-or-later
//! The clients of a server: names, roles, limits, and hashes of tokens, in one file of the state directory.

use super::acts::{Deed, Registered};
use super::quota::Quota;
use super::tokens::{Tokens, hash};
use bulkmark_counts::Limits;
use bulkmark_ledger::directory::StateDirectory;
use bulkmark_ledger::random_bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// The name of the file.
pub(super) const FILE_NAME: &str = "clients.json";

/// Maximum of stored acts of operators. Sites that register by themselves add none, so they cannot push any out.
const MOST_DEEDS: usize = 2000;

/// The role of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Report, and read.
    #[default]
    Report,
    /// Read counts, updates and snapshots.
    Read,
    /// Read as another server of the federation does.
    Peer,
    /// Read the metrics, which include all clients, and nothing else.
    Metrics,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Report => "report",
            Self::Read => "read",
            Self::Peer => "peer",
            Self::Metrics => "metrics",
        })
    }
}

/// One client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Client {
    /// Its name, for logs.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// The most that it can add to any signature's count; none for the operator's own mail servers.
    pub max_influence: Option<NonZeroU32>,
    /// The different signatures that it can report in a window, if its influence is limited; none for the default share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
    /// Reports a second; none for the server's default.
    pub rate: Option<NonZeroU32>,
    /// When its tokens expire, in seconds since 1970; none for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Its registration, if it registered by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<Registered>,
    /// SHA-256 of its tokens in hexadecimal digits, the newest last; two during a rotation.
    tokens: Vec<String>,
}

impl Client {
    /// Returns the client without its registration.
    pub(super) fn grant(&self) -> Self {
        Self { registered: None, ..self.clone() }
    }

    /// Whether its tokens have expired.
    #[must_use]
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Returns the limits of its influence.
    #[must_use]
    pub fn limits(&self) -> Option<Limits> {
        let quota = self.quota.unwrap_or_default().millionths();
        self.max_influence.map(|influence| Limits { influence: influence.get(), quota })
    }
}

/// The rights that the administrator grants a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grant {
    /// The role.
    pub role: Role,
    /// See [`Client::max_influence`].
    pub max_influence: Option<NonZeroU32>,
    /// See [`Client::quota`].
    pub quota: Option<Quota>,
    /// See [`Client::rate`].
    pub rate: Option<NonZeroU32>,
    /// See [`Client::expires`].
    pub expires: Option<u64>,
}

/// All clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clients {
    pub(super) clients: Vec<Client>,
    /// The names of clients that were removed together with their counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) withdrawn: Vec<String>,
    /// The last acts of operators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    audit: Vec<Deed>,
    /// Index of the tokens as they were read.
    #[serde(skip)]
    tokens: Tokens,
}

/// Clients cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum ClientsError {
    /// The file cannot be read or written.
    #[error("cannot use {path}: {reason}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// It is not in this program's format.
    #[error("{path} is not a list of clients: {reason}; restore it from a backup of the state directory")]
    Form {
        /// The file.
        path: PathBuf,
        /// The error of the parser.
        reason: serde_json::Error,
    },
    /// The name is taken.
    #[error("the client {0:?} already exists; use rotate for a new token")]
    Exists(String),
    /// There is no such client.
    #[error("there is no client {0:?}")]
    Unknown(String),
    /// It shares the limits of all unapproved sites.
    #[error(
        "the client {0:?} waits for approval, and all such sites have the limits of one partner together; bulkmark client approve {0} takes limits"
    )]
    Unapproved(String),
    /// It needs no approval.
    #[error("the client {0:?} needs no approval")]
    Approved(String),
    /// Its counts are not separate from those of other unapproved sites.
    #[error(
        "the reports of {0:?} are kept with those of all unapproved sites: remove it without --with-counts, or all of them with \
         bulkmark client remove --unapproved"
    )]
    Together(String),
    /// Its counts are not separate.
    #[error(
        "the client {0:?} has no limit of influence, so its counts were added to those of all others and cannot be told apart; \
         remove it without --with-counts, and they expire with their windows"
    )]
    NotApart(String),
    /// The name is invalid.
    #[error("found the name {0:?}, expected 1 to 64 letters, digits, dots, underscores or hyphens")]
    Name(String),
}

/// Creates a token: 256 bits, with a prefix that people and scanners for secrets recognize.
fn new_token() -> io::Result<String> {
    let bytes: [u8; 32] = random_bytes()?;
    Ok(bytes.iter().fold("bulkmark_".to_owned(), |text, byte| text + &format!("{byte:02x}")))
}

fn check_name(name: &str) -> Result<(), ClientsError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_valid = !name.is_empty() && name.len() <= 64 && name.chars().all(allowed);
    if is_valid { Ok(()) } else { Err(ClientsError::Name(name.to_owned())) }
}

impl Clients {
    /// Reads the clients of a state directory; none if there is no file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(directory: &Path) -> Result<Self, ClientsError> {
        let path = directory.join(FILE_NAME);
        match StateDirectory::open(directory).and_then(|directory| directory.read(FILE_NAME)) {
            Ok(bytes) => {
                let clients: Self =
                    serde_json::from_slice(&bytes).map_err(|reason| ClientsError::Form { path, reason })?;
                Ok(clients.indexed())
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(reason) => Err(ClientsError::Io { path, reason }),
        }
    }

    /// Changes the clients of a state directory: reads, changes and writes them under a lock.
    ///
    /// # Errors
    /// When the file cannot be read or written, or `change` fails; nothing is changed then.
    pub fn edit<T>(
        directory: &Path,
        change: impl FnOnce(&mut Self) -> Result<T, ClientsError>,
    ) -> Result<T, ClientsError> {
        let path = directory.join(FILE_NAME);
        let io = |reason| ClientsError::Io { path: path.clone(), reason };
        let state = StateDirectory::open(directory).map_err(io)?;
        let _lock = state.lock("clients.lock").map_err(io)?;
        let mut clients = Self::load(directory)?;
        let value = change(&mut clients)?;
        let text = serde_json::to_vec_pretty(&clients)
            .map_err(|reason| ClientsError::Form { path: path.clone(), reason })?;
        state.replace(FILE_NAME, &text, 0o600).map_err(io)?;
        Ok(value)
    }

    /// Returns all clients, in the order in which they were added.
    #[must_use]
    pub fn list(&self) -> &[Client] {
        &self.clients
    }

    /// Adds a client and returns its token, which is not stored.
    ///
    /// # Errors
    /// When there is one of this name, or the name is invalid.
    pub fn add(&mut self, name: &str, grant: Grant) -> Result<String, ClientsError> {
        check_name(name)?;
        if self.clients.iter().any(|client| client.name == name) {
            return Err(ClientsError::Exists(name.to_owned()));
        }
        let token = token()?;
        let tokens = vec![hash(&token)];
        let Grant { role, max_influence, quota, rate, expires } = grant;
        self.withdrawn.retain(|withdrawn| withdrawn != name);
        let (name, registered) = (name.to_owned(), None);
        self.clients.push(Client { name, role, max_influence, quota, rate, expires, registered, tokens });
        Ok(token)
    }

    /// Returns the clients that other servers of the federation may take over: all but peers and unapproved sites.
    #[must_use]
    pub fn export(&self) -> Vec<Client> {
        let is_shared = |client: &&Client| client.role != Role::Peer && client.is_approved();
        self.clients.iter().filter(is_shared).cloned().collect()
    }

    /// Takes over clients of another server with their tokens: clients of the same name are replaced, all others stay. Returns the number
    /// of new or changed ones.
    ///
    /// # Errors
    /// When a name is invalid, or that of a peer or unapproved site here.
    pub fn import(&mut self, clients: Vec<Client>) -> Result<usize, ClientsError> {
        let mut changed = 0;
        for client in clients {
            check_name(&client.name)?;
            let place = self.clients.iter().position(|own| own.name == client.name);
            match place.map(|i| &mut self.clients[i]) {
                Some(own) if own.role == Role::Peer || !own.is_approved() => {
                    return Err(ClientsError::Exists(client.name));
                }
                Some(own) if *own == client => (),
                Some(own) => {
                    *own = client;
                    changed += 1;
                }
                None => {
                    self.withdrawn.retain(|withdrawn| *withdrawn != client.name);
                    self.clients.push(client);
                    changed += 1;
                }
            }
        }
        Ok(changed)
    }

    /// Changes the rights of a client.
    ///
    /// # Errors
    /// When there is no such client, or it is not approved: its reports count with those of all unapproved sites, which would get its limits.
    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut Client)) -> Result<(), ClientsError> {
        let client = self.find(name)?;
        if !client.is_approved() {
            return Err(ClientsError::Unapproved(name.to_owned()));
        }
        change(client);
        Ok(())
    }

    /// Gives a client a new token; the old one stays valid until the next rotation.
    ///
    /// # Errors
    /// When there is no such client.
    pub fn rotate(&mut self, name: &str) -> Result<String, ClientsError> {
        let client = self.find(name)?;
        let token = token()?;
        client.tokens.push(hash(&token));
        let old = client.tokens.len().saturating_sub(2);
        client.tokens.drain(..old);
        Ok(token)
    }

    /// Removes a client with its tokens.
    ///
    /// # Errors
    /// When there is no such client.
    pub fn remove(&mut self, name: &str) -> Result<(), ClientsError> {
        self.find(name)?;
        self.clients.retain(|client| client.name != name);
        Ok(())
    }

    /// Removes a limited client; the server withdraws all its reports, everywhere.
    ///
    /// # Errors
    /// When there is no such client, or its counts are not separate.
    pub fn remove_with_counts(&mut self, name: &str) -> Result<(), ClientsError> {
        let client = self.find(name)?;
        if !client.is_approved() {
            return Err(ClientsError::Together(name.to_owned()));
        }
        if client.max_influence.is_none() {
            return Err(ClientsError::NotApart(name.to_owned()));
        }
        self.remove(name)?;
        self.withdrawn.push(name.to_owned());
        Ok(())
    }

    /// Stores an act of an operator.
    pub fn note(&mut self, deed: Deed) {
        self.audit.push(deed);
        let over = self.audit.len().saturating_sub(MOST_DEEDS);
        self.audit.drain(..over);
    }

    /// Returns the stored acts, the last one last.
    #[must_use]
    pub fn audit(&self) -> &[Deed] {
        &self.audit
    }

    /// Returns the clients that were removed together with their counts.
    #[must_use]
    pub fn withdrawn(&self) -> &[String] {
        &self.withdrawn
    }

    pub(super) fn find(&mut self, name: &str) -> Result<&mut Client, ClientsError> {
        let found = self.clients.iter_mut().find(|client| client.name == name);
        found.ok_or_else(|| ClientsError::Unknown(name.to_owned()))
    }

    fn indexed(mut self) -> Self {
        let clients = self.clients.iter().enumerate();
        let hashes = clients.flat_map(|(i, client)| client.tokens.iter().map(move |hash| (&**hash, i)));
        self.tokens = Tokens::new(hashes);
        self
    }

    /// Returns the client with this token, as of the last reading.
    #[must_use]
    pub fn authenticate(&self, token: &str) -> Option<&Client> {
        self.clients.get(self.tokens.find(token)?)
    }
}

fn token() -> Result<String, ClientsError> {
    new_token().map_err(|reason| ClientsError::Io { path: "the system's random numbers".into(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Files that root changes belong to the owner of the directory, the server.
    #[test]
    fn the_list_belongs_to_the_owner_of_its_directory() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
        let directory = tempfile::tempdir().unwrap();
        if fs::metadata(directory.path()).unwrap().uid() != 0 {
            println!("SKIPPED: only root can give files to others");
            assert!(std::env::var_os("CI").is_none(), "this must not be skipped in CI");
            return;
        }
        chown(directory.path(), Some(65534), Some(65534)).unwrap();
        for name in ["mx1", "mx2"] {
            Clients::edit(directory.path(), |clients| clients.add(name, Grant::default())).unwrap();
            for file in [FILE_NAME, "clients.lock"] {
                let meta = fs::metadata(directory.path().join(file)).unwrap();
                assert_eq!((meta.uid(), meta.gid()), (65534, 65534), "{file}");
            }
        }
        let mode = fs::metadata(directory.path().join(FILE_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn tokens_open_and_change() {
        let directory = tempfile::tempdir().unwrap();
        let edit = |change: &dyn Fn(&mut Clients) -> Result<String, ClientsError>| {
            Clients::edit(directory.path(), |clients| change(clients))
        };
        let first = edit(&|clients| clients.add("mx1", Grant::default())).unwrap();
        assert!(edit(&|clients| clients.add("mx1", Grant::default())).is_err());
        assert!(edit(&|clients| clients.add("a b", Grant::default())).is_err());
        let second = edit(&|clients| clients.rotate("mx1")).unwrap();
        let clients = Clients::load(directory.path()).unwrap();
        let name = |clients: &Clients, token: &str| clients.authenticate(token).map(|c| c.name.clone());
        assert_eq!(name(&clients, &first).as_deref(), Some("mx1"), "both are valid while it changes");
        assert_eq!(name(&clients, &second).as_deref(), Some("mx1"));
        assert_eq!(name(&clients, "bulkmark_00"), None);
        let text = fs::read_to_string(directory.path().join(FILE_NAME)).unwrap();
        assert!(!text.contains(&first) && !text.contains(&second), "only hashes are kept");
        edit(&|clients| clients.rotate("mx1")).unwrap();
        assert_eq!(name(&Clients::load(directory.path()).unwrap(), &first), None, "the oldest is gone");
        Clients::edit(directory.path(), |clients| clients.remove("mx1")).unwrap();
        assert_eq!(name(&Clients::load(directory.path()).unwrap(), &second), None);
        assert!(Clients::edit(directory.path(), |clients| clients.remove("mx1")).is_err());
    }
}
