// SPDX-License-Identifier: GPL-3.0-or-later
//! Permissions: the accounts file and the access file of the reference server, and the signature of a request.

use super::request::{ANONYMOUS, Op, Request};
use sha1::{Digest, Sha1};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq;

/// The tolerance for a client's clock, in seconds.
pub(super) const CLOCK: u64 = 300;

/// The names of both files.
pub const FILES: [&str; 2] = ["pyzord.passwd", "pyzord.access"];

/// The permissions of anonymous clients without an access file.
const BY_DEFAULT: [Op; 5] = [Op::Check, Op::Report, Op::Ping, Op::Pong, Op::Info];

/// The reason why a request is not its user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::interfaces) enum Unsigned {
    #[error("Unknown user.")]
    Unknown,
    #[error("Timestamp not within allowed range.")]
    Time,
    #[error("Invalid signature.")]
    Signature,
}

/// A line of one of the files without its apparent effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub path: PathBuf,
    /// The line's number.
    pub line: usize,
    /// The problem.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.what)
    }
}

/// The bytes of a signature.
pub(super) type Signed = [u8; 20];

/// All accounts, and their permissions.
#[derive(Debug, Default)]
pub(in crate::interfaces) struct Accounts {
    /// The key of each user, which signs requests.
    keys: HashMap<String, String>,
    may: HashMap<String, HashSet<Op>>,
    faults: Vec<Fault>,
}

impl Accounts {
    /// Reads both files of a directory. Without one only anonymous clients have permissions, as for the reference server.
    ///
    /// # Errors
    /// The file that cannot be read, and the reason.
    pub(in crate::interfaces) fn load(home: Option<&Path>) -> Result<Self, String> {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
        };
        let mut loaded = Self::default();
        let Some(home) = home else {
            loaded.may.insert(ANONYMOUS.to_owned(), BY_DEFAULT.into());
            return Ok(loaded);
        };
        let [accounts, access] = FILES.map(|name| home.join(name));
        loaded.take_accounts(&accounts, &read(&accounts)?);
        loaded.take_access(&access, &read(&access)?);
        Ok(loaded)
    }

    /// The lines without their apparent effect.
    pub(in crate::interfaces) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Whether there is any key.
    pub(in crate::interfaces) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    fn fault(&mut self, path: &Path, line: usize, what: impl Into<String>) {
        self.faults.push(Fault { path: path.to_owned(), line, what: what.into() });
    }

    /// Lines of `user : key`.
    fn take_accounts(&mut self, path: &Path, text: &str) {
        for (number, line) in entries(text) {
            match line.split(':').map(str::trim).collect::<Vec<_>>()[..] {
                [user, key] if !user.is_empty() && user != ANONYMOUS => {
                    // The signing key is derived once.
                    let salted = hex(&Sha1::digest(format!("{user}:{}", key.to_lowercase())));
                    self.keys.insert(user.to_owned(), salted);
                }
                _ => self.fault(path, number, "passed over; expected USER : KEY"),
            }
        }
    }

    /// Lines of `operations : users : allow` or `deny`; the last one for a user and an operation holds.
    fn take_access(&mut self, path: &Path, text: &str) {
        for (number, line) in entries(text) {
            let line = line.to_lowercase();
            let [ops, users, allow @ ("allow" | "deny")] =
                line.split(':').map(str::trim).collect::<Vec<_>>()[..]
            else {
                self.fault(path, number, "passed over; expected OPERATIONS : USERS : allow, or deny");
                continue;
            };
            let ops = self.operations(path, number, ops);
            let users: Vec<String> = match users {
                "all" => self.keys.keys().cloned().collect(),
                _ => users.split_whitespace().map(str::to_owned).collect(),
            };
            for user in users {
                if user != ANONYMOUS && !self.keys.contains_key(&user) {
                    self.fault(
                        path,
                        number,
                        format!("there is no account \"{user}\"; names are read in small letters here"),
                    );
                }
                let may = self.may.entry(user).or_default();
                match allow {
                    "allow" => may.extend(&ops),
                    _ => may.retain(|op| !ops.contains(op)),
                }
            }
        }
    }

    fn operations(&mut self, path: &Path, number: usize, names: &str) -> Vec<Op> {
        if names == "all" {
            return Op::ALL.iter().map(|(_, op)| *op).collect();
        }
        let mut ops = Vec::new();
        for name in names.split_whitespace() {
            match Op::of(name) {
                Some(op) => ops.push(op),
                None => self.fault(path, number, format!("there is no operation \"{name}\"")),
            }
        }
        ops
    }

    /// Whether this user has this permission.
    pub(super) fn may(&self, user: &str, op: Op) -> bool {
        self.may.get(user).is_some_and(|may| may.contains(&op))
    }

    /// Verifies that a request is its user's, at the time `now`; returns the signature of a signed one, with its time.
    ///
    /// # Errors
    /// The reason why not.
    pub(super) fn verify(&self, request: &Request<'_>, now: u64) -> Result<Option<(Signed, u64)>, Unsigned> {
        if request.user() == ANONYMOUS {
            return Ok(None);
        }
        let key = self.keys.get(request.user()).ok_or(Unsigned::Unknown)?;
        let time = request.time.and_then(|time| u64::try_from(time).ok()).ok_or(Unsigned::Time)?;
        if time.abs_diff(now) > CLOCK {
            return Err(Unsigned::Time);
        }
        let right = sign(&request.signed(), time, key);
        match bool::from(hex(&right).as_bytes().ct_eq(request.signature.as_bytes())) {
            true => Ok(Some((right, time))),
            false => Err(Unsigned::Signature),
        }
    }
}

/// The signature of a text that was sent at this time.
fn sign(text: &str, time: u64, key: &str) -> Signed {
    let mut hash = Sha1::new();
    hash.update(Sha1::digest(text));
    hash.update(format!(":{time}:{key}"));
    hash.finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The lines without comments and empty ones, with their numbers.
fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    numbered.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(access: &str) -> Accounts {
        let mut accounts = Accounts::default();
        accounts.take_accounts(Path::new("passwd"), "# keys\nanna : 0a0B\nbert:0c\nnonsense\n");
        accounts.take_access(Path::new("access"), access);
        accounts
    }

    /// As in the reference server's code, unlike its manual: the last line holds, and `all` are all users with accounts.
    #[test]
    fn the_last_line_of_the_access_file_holds() {
        let accounts = accounts(
            "all : all : allow\nreport whitelist : Bert : deny\nping : anonymous : allow\nbad line\n",
        );
        let may = |user| {
            Op::ALL.iter().filter(|(_, op)| accounts.may(user, *op)).map(|(n, _)| *n).collect::<Vec<_>>()
        };
        assert_eq!(may("anna").len(), 6);
        assert_eq!(may("bert"), ["check", "ping", "pong", "info"]);
        assert_eq!((may("anonymous"), may("nobody")), (vec!["ping"], vec![]));
        let faults: Vec<_> = accounts.faults().iter().map(ToString::to_string).collect();
        let expected = [
            "passwd:4: passed over; expected USER : KEY",
            "access:4: passed over; expected OPERATIONS : USERS : allow, or deny",
        ];
        assert_eq!(faults, expected);
        let none = Accounts::load(None).unwrap();
        assert!(
            none.may("anonymous", Op::Report)
                && !none.may("anonymous", Op::Whitelist)
                && !none.may("anna", Op::Ping)
        );
        assert!(Accounts::load(Some(Path::new("/nowhere"))).unwrap_err().contains("/nowhere"));
    }

    #[test]
    fn a_request_belongs_to_the_owner_of_its_key() {
        let accounts = accounts("all : all : allow");
        let text = "Op: check\nThread: 4711\nPV: 2.1\nUser: anna\nTime: 1000000";
        let signature = hex(&sign(text, 1_000_000, &hex(&Sha1::digest("anna:0a0b"))));
        let verify = |text: &str, now| {
            accounts.verify(&Request::read(text.as_bytes()), now).map(|signed| signed.is_some())
        };
        let signed = format!("{text}\nSig: {signature}\n\n");
        assert_eq!([verify(&signed, 1_000_300), verify(&signed, 999_700)], [Ok(true), Ok(true)]);
        assert_eq!([verify(&signed, 1_000_301), verify(&signed, 999_699)], [Err(Unsigned::Time); 2]);
        assert_eq!(verify(&signed.replace("check", "report"), 1_000_000), Err(Unsigned::Signature));
        assert_eq!(verify(text, 1_000_000), Err(Unsigned::Signature));
        assert_eq!(verify(&signed.replace("anna", "bert"), 1_000_000), Err(Unsigned::Signature));
        assert_eq!(verify(&signed.replace("anna", "nobody"), 1_000_000), Err(Unsigned::Unknown));
        assert_eq!(verify("User: anna\nTime: -1\n", 0), Err(Unsigned::Time));
    }
}
