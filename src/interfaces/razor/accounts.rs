// SPDX-License-Identifier: GPL-3.0-or-later
//! Accounts for reports: names and derived password states, in one file of the state directory, a line each.

use super::request::LONGEST_NAME;
use super::secret::{Secret, random_text};
use crate::net::{Paid, Rate, Sweeps};
use bulkmark_ledger::directory::StateDirectory;
use bulkmark_types::ClientNetwork;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The name of the file.
pub(in crate::interfaces) const FILE: &str = "razor-accounts";

/// The most accounts: the file then has a megabyte.
const MOST: usize = 10_000;

/// The new accounts of one network at once, and per hour: so no network takes all of them in an hour or a night.
const AT_ONCE: NonZeroU32 = NonZeroU32::new(20).unwrap();
const AN_HOUR: NonZeroU32 = NonZeroU32::new(30).unwrap();

/// The most networks that are remembered.
const NETWORKS: usize = 4096;

/// The least number of bytes of a password.
const SHORTEST_PASSWORD: usize = 8;

/// All accounts.
#[derive(Debug)]
pub(in crate::interfaces) struct Accounts {
    directory: PathBuf,
    known: Mutex<BTreeMap<String, Secret>>,
    /// Held while the file is written. Look-ups do not wait for it.
    writing: Mutex<()>,
    /// The rate of new accounts of each network.
    rate: Rate,
    made: Mutex<(HashMap<Option<ClientNetwork>, Paid>, Sweeps)>,
}

/// The reason why there is no new account.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAccount {
    #[error("somebody has that name")]
    Taken,
    #[error(
        "a name has 1 to {LONGEST_NAME} visible characters, a password {SHORTEST_PASSWORD} to {LONGEST_NAME}"
    )]
    Unfit,
    #[error("there are {MOST} accounts already, and no more are allowed")]
    Full,
    #[error("its network made {AT_ONCE} accounts, and may make {AN_HOUR} an hour")]
    TooMany,
    #[error("the accounts cannot be written: {0}")]
    Disk(#[from] io::Error),
}

impl Accounts {
    /// Reads the file of a state directory; there is none before the first registration.
    pub(in crate::interfaces) fn read(directory: &Path) -> io::Result<Self> {
        let content = match StateDirectory::open(directory)?.read(FILE) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        let mut known = BTreeMap::new();
        for (at, line) in String::from_utf8_lossy(&content).lines().enumerate() {
            let parsed =
                line.split_once(' ').and_then(|(user, secret)| Some((user, Secret::decode(secret)?)));
            let Some((user, secret)) = parsed else {
                let what = format!("line {}: expected a name and 80 hexadecimal digits", at + 1);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            };
            known.insert(user.to_owned(), secret);
        }
        let rate = Rate::new(AN_HOUR, Duration::from_hours(1), AT_ONCE);
        let (known, writing, made) = (Mutex::new(known), Mutex::default(), Mutex::default());
        Ok(Self { directory: directory.to_owned(), known, writing, rate, made })
    }

    /// The secret of a user.
    pub(super) fn secret(&self, user: &str) -> Option<Secret> {
        self.known.lock().get(user).cloned()
    }

    /// Whether a client at this address may create one more account; if so, counts it.
    fn admits(&self, ip: Option<IpAddr>, now: Instant) -> bool {
        let (made, sweeps) = &mut *self.made.lock();
        let network =
            ip.map(|ip| if ip.to_canonical().is_loopback() { Ipv4Addr::LOCALHOST.into() } else { ip });
        let network = network.map(ClientNetwork::of);
        if made.len() >= NETWORKS && !made.contains_key(&network) {
            if sweeps.is_due(now) {
                made.retain(|_, paid| !self.rate.is_over(*paid, now));
            }
            if made.len() >= NETWORKS {
                return false;
            }
        }
        self.rate.admits(made.entry(network).or_default(), 1, now)
    }

    /// Creates an account for a client at this address; a missing name or password is random. Returns both once they are on disk. Blocks on
    /// the disk.
    pub(super) fn add(
        &self,
        ip: Option<IpAddr>,
        (user, password): (Option<String>, Option<String>),
    ) -> Result<(String, String), NoAccount> {
        let user = user.map_or_else(random_text, Ok)?;
        let password = password.map_or_else(random_text, Ok)?;
        let is_fit = |text: &str, least: usize| {
            (least..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
        };
        if !is_fit(&user, 1) || !is_fit(&password, SHORTEST_PASSWORD) {
            return Err(NoAccount::Unfit);
        }
        let _writing = self.writing.lock();
        let mut known = self.known.lock().clone();
        if known.contains_key(&user) {
            return Err(NoAccount::Taken);
        }
        if known.len() >= MOST {
            return Err(NoAccount::Full);
        }
        if !self.admits(ip, Instant::now()) {
            return Err(NoAccount::TooMany);
        }
        known.insert(user.clone(), Secret::of(&password));
        self.write(&known)?;
        *self.known.lock() = known;
        Ok((user, password))
    }

    fn write(&self, known: &BTreeMap<String, Secret>) -> io::Result<()> {
        let content = known.iter().fold(String::new(), |mut content, (user, secret)| {
            let _ = writeln!(content, "{user} {}", secret.encode());
            content
        });
        StateDirectory::open(&self.directory)?.replace(FILE, content.as_bytes(), 0o600)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// An account survives a restart; its file reveals no password and is private.
    #[test]
    fn an_account_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let read = || Accounts::read(directory.path()).unwrap();
        let accounts = read();
        let (user, password) = accounts.add(None, (None, None)).unwrap();
        assert!(user.len() >= 16 && password.len() >= 16 && user != password);
        accounts.add(None, (Some("anna".to_owned()), Some("a-password".to_owned()))).unwrap();
        let path = directory.path().join(FILE);
        let content = std::fs::read_to_string(&path).unwrap();
        assert!(content.contains("anna ") && !content.contains("a-password") && !content.contains(&password));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = read();
        assert_eq!(again.secret("anna"), Some(Secret::of("a-password")));
        assert!(again.secret(&user).is_some() && again.secret("berta").is_none());
    }

    #[test]
    fn invalid_accounts_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let accounts = Accounts::read(directory.path()).unwrap();
        let add = |user: &str, password: &str| {
            accounts.add(None, (Some(user.to_owned()), Some(password.to_owned())))
        };
        for (user, password) in
            [("an na", "a-password"), ("anna", "short"), ("a\nb", "a-password"), ("a", &"x".repeat(65))]
        {
            assert!(matches!(add(user, password), Err(NoAccount::Unfit)), "{user:?}");
        }
        add("anna", "a-password").unwrap();
        assert!(matches!(add("anna", "another-one"), Err(NoAccount::Taken)));
        assert_eq!(accounts.secret("anna"), Some(Secret::of("a-password")), "it stays");
        for n in 1..MOST {
            accounts.known.lock().insert(n.to_string(), Secret::of(""));
        }
        assert!(matches!(add("berta", "a-password"), Err(NoAccount::Full)));
        std::fs::write(directory.path().join(FILE), "anna\n").unwrap();
        assert!(Accounts::read(directory.path()).unwrap_err().to_string().contains("line 1"));
    }

    /// A network that creates accounts as fast as possible leaves room for others.
    #[test]
    fn accounts_of_one_network_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let accounts = Accounts::read(directory.path()).unwrap();
        let (now, at) = (Instant::now(), |ip: &str| Some(ip.parse().unwrap()));
        let made = (0..100).filter(|n| accounts.admits(at(&format!("127.0.0.{}", n + 1)), now)).count();
        assert_eq!(made, 20);
        assert!(accounts.admits(at("192.0.2.7"), now));
        assert!(accounts.admits(at("127.0.0.1"), now + Duration::from_secs(121)));
    }

    /// Many networks would otherwise cost a search of the whole table for each account.
    #[test]
    fn a_full_table_of_networks_is_searched_once_a_second() {
        let directory = tempfile::tempdir().unwrap();
        let accounts = Accounts::read(directory.path()).unwrap();
        let now = Instant::now();
        let network = |n: usize| {
            let [low, high] = u16::try_from(n).unwrap().to_le_bytes();
            Some(IpAddr::from([16, high, low, 1]))
        };
        let admitted = |at: Instant| (0..2 * NETWORKS).filter(|&n| accounts.admits(network(n), at)).count();
        assert_eq!(admitted(now), NETWORKS);
        let later = now + Duration::from_hours(1);
        assert!(accounts.made.lock().1.is_due(later));
        assert_eq!(admitted(later), NETWORKS, "the known ones, and no search for room");
        assert_eq!(admitted(later + Sweeps::PAUSE), NETWORKS);
        assert!(
            accounts.admits(network(2 * NETWORKS), later + Duration::from_hours(1)),
            "there is room again"
        );
    }
}
