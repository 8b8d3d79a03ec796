// SPDX-License-Identifier: GPL-3.0-or-later
//! Who may report: names and what is kept of passwords, in one file of the state directory, a line each.

use super::request::LONGEST_NAME;
use super::secret::{Secret, made_up};
use bulkmark_ledger::directory::StateDirectory;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// Its name.
pub(in crate::doors) const FILE: &str = "razor-accounts";

/// Accounts at most: the file is a megabyte then.
const MOST: usize = 10_000;

/// Bytes of a password at least.
const SHORTEST_PASSWORD: usize = 8;

/// All accounts.
#[derive(Debug)]
pub(in crate::doors) struct Accounts {
    directory: PathBuf,
    known: Mutex<BTreeMap<String, Secret>>,
    /// Held while the file is written, which nobody waits for who only looks.
    writing: Mutex<()>,
}

/// Why there is no new account.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAccount {
    #[error("somebody has that name")]
    Taken,
    #[error(
        "a name has 1 to {LONGEST_NAME} visible characters, a password {SHORTEST_PASSWORD} to {LONGEST_NAME}"
    )]
    Unfit,
    #[error("there are {MOST} accounts, which is the most")]
    Full,
    #[error("the accounts cannot be written: {0}")]
    Disk(#[from] io::Error),
}

impl Accounts {
    /// Reads the file of a state directory; none is there before the first registration.
    pub(in crate::doors) fn read(directory: &Path) -> io::Result<Self> {
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
        Ok(Self { directory: directory.to_owned(), known: Mutex::new(known), writing: Mutex::default() })
    }

    /// What is kept of a user's password.
    pub(super) fn secret(&self, user: &str) -> Option<Secret> {
        self.known.lock().get(user).cloned()
    }

    /// Makes an account; what is not told is made up. Returns name and password once that is on disk. It waits for the disk.
    pub(super) fn add(
        &self,
        user: Option<String>,
        password: Option<String>,
    ) -> Result<(String, String), NoAccount> {
        let user = user.map_or_else(made_up, Ok)?;
        let password = password.map_or_else(made_up, Ok)?;
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

    /// An account is there after a restart, and its file tells no password and is for nobody else.
    #[test]
    fn an_account_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let read = || Accounts::read(directory.path()).unwrap();
        let accounts = read();
        let (user, password) = accounts.add(None, None).unwrap();
        assert!(user.len() >= 16 && password.len() >= 16 && user != password);
        accounts.add(Some("anna".to_owned()), Some("a-password".to_owned())).unwrap();
        let path = directory.path().join(FILE);
        let content = std::fs::read_to_string(&path).unwrap();
        assert!(content.contains("anna ") && !content.contains("a-password") && !content.contains(&password));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = read();
        assert_eq!(again.secret("anna"), Some(Secret::of("a-password")));
        assert!(again.secret(&user).is_some() && again.secret("berta").is_none());
    }

    #[test]
    fn what_cannot_be_an_account_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let accounts = Accounts::read(directory.path()).unwrap();
        let add = |user: &str, password: &str| accounts.add(Some(user.to_owned()), Some(password.to_owned()));
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
}
