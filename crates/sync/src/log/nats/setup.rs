// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark fleet setup` with NATS: the accounts, which an administrator includes in nats-server's configuration; then the streams, and
//! the list of clients.

use super::accounts::{self, Identity};
use super::api::{append, last_of};
use super::clients::{Listed, Named};
use super::connection::{Connection, key_pair, user_and_password};
use super::names::{AGGREGATORS, ANSWER, CLIENTS};
use super::streams;
use crate::log::members::{Member, SetUp};
use crate::log::settings::Settings;
use crate::log::types::LogError;
use crate::state::Link;
use async_nats::HeaderMap;
use nkeys::KeyPair;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;
use std::sync::Arc;

/// Creates an nkey for a user: the secret seed, and the public half.
///
/// # Errors
/// When it cannot be written as text.
pub fn new_nkey() -> Result<(String, String), LogError> {
    let key = KeyPair::new_user();
    let seed = key.seed().map_err(|e| LogError::Setup(e.to_string()))?;
    Ok((seed, key.public_key()))
}

/// Sets up the log of a fleet. The user of `settings` gets all rights; each member those that its duty needs.
///
/// # Errors
/// When a setting or a file cannot be used, or the servers refuse a request. The error also says if the accounts were written: the servers
/// must read them before anybody is let in. In a dry run, that is no error.
pub async fn setup(settings: &Settings, members: &[Member], how: &SetUp) -> Result<Vec<String>, LogError> {
    let mut lines = Vec::new();
    let written = match &how.accounts {
        Some(path) => {
            let text = accounts::text(admin(settings)?.as_ref(), members)?;
            write(path, &text, how.dry_run)?
        }
        None => None,
    };
    lines.extend(written.clone());
    let link = Arc::new(Link::new(&settings.log));
    let connection = Connection::new(settings, link).await?;
    let ready = async {
        let mut lines = streams::make_ready(&connection, how.replicas, how.dry_run).await?;
        lines.extend(lists(&connection, members, how.dry_run).await?);
        Ok(lines)
    };
    match (ready.await, written) {
        (Ok(more), _) => lines.extend(more),
        (Err(LogError::Denied(what) | LogError::Unavailable(what)), Some(_)) if how.dry_run => {
            lines.push(format!(
                "streams cannot be looked at yet, and would be made once the servers have these accounts: {what}"
            ));
        }
        (Err(LogError::Denied(what) | LogError::Unavailable(what)), Some(written)) => {
            return Err(LogError::Unavailable(format!(
                "{written}; include it in nats-server's configuration, have each server reload that twice (nats-server --signal \
                 reload), and run this again: {what}"
            )));
        }
        (Err(error), _) => return Err(error),
    }
    Ok(lines)
}

/// Returns the credentials of the user who sets up; none if the servers need none.
fn admin(settings: &Settings) -> Result<Option<Identity>, LogError> {
    if let Some(seed) = settings.nkey()? {
        return Ok(Some(Identity::Nkey(key_pair(settings, &seed)?.public_key())));
    }
    Ok(user_and_password(settings)?.map(|(user, password)| Identity::Password(user, password)))
}

/// Writes the accounts if they changed, or shows them.
fn write(path: &Path, text: &str, dry_run: bool) -> Result<Option<String>, LogError> {
    let failed = |e: io::Error| LogError::Setup(format!("{}: {e}", path.display()));
    let old = match fs::read_to_string(path) {
        Ok(old) => old,
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(failed(e)),
    };
    let is_open = fs::metadata(path).is_ok_and(|old| old.permissions().mode() & !mode(text) & 0o777 != 0);
    if old == text && !(is_open && has_passwords(text)) {
        return Ok(None);
    }
    if dry_run {
        return Ok(Some(format!("accounts would be written to {}:\n{}", path.display(), hidden(text))));
    }
    replace(path, text).map_err(failed)?;
    Ok(Some(format!("accounts written to {}", path.display())))
}

/// Replaces a file by one with this text, and the same owner and group. A reader sees all of the old or all of the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // Follow a link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = match fs::metadata(&path) {
        Ok(old) => Some(old),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    // Never write to a file that somebody else put there.
    match fs::remove_file(&new) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => (),
    }
    let written = write_new(&new, text, old.as_ref()).and_then(|()| fs::rename(&new, &path));
    if written.is_err() {
        // It contains passwords.
        let _ = fs::remove_file(&new);
    }
    written
}

fn write_new(new: &Path, text: &str, old: Option<&fs::Metadata>) -> io::Result<()> {
    // Nobody else may read it before its owner is set.
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    if let Some(old) = old {
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
            fchown(&file, Some(old.uid()), Some(old.gid()))?;
        }
    }
    let mode = match old.map(|old| old.permissions().mode() & 0o777) {
        Some(before) if has_passwords(text) => before & mode(text),
        Some(before) => before,
        None => mode(text),
    };
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn has_passwords(text: &str) -> bool {
    text.contains("password:")
}

/// Returns the mode of a new file: nkeys are no secret, passwords are for nats-server's group.
fn mode(text: &str) -> u32 {
    if has_passwords(text) { 0o640 } else { 0o644 }
}

/// Returns the accounts without their passwords.
fn hidden(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        match line.split_once("password: ") {
            Some((before, rest)) => {
                // As written by `accounts`: quoted, with a backslash before quotes and backslashes of the password.
                let mut is_escaped = false;
                let end = rest.char_indices().skip(1).find(|(_, c)| {
                    let is_end = *c == '"' && !is_escaped;
                    is_escaped = *c == '\\' && !is_escaped;
                    is_end
                });
                let behind = end.map_or("", |(i, _)| &rest[i + 1..]);
                shown += &format!("{before}password: \"...\"{behind}\n");
            }
            None => shown += &format!("{line}\n"),
        }
    }
    shown.truncate(shown.trim_end().len());
    shown
}

/// Writes the lists of clients and of aggregators.
async fn lists(connection: &Connection, members: &[Member], dry_run: bool) -> Result<Vec<String>, LogError> {
    let mut clients: Vec<Listed> = members.iter().filter_map(Member::client).map(Listed::from).collect();
    clients.sort_by(|a, b| a.name.cmp(&b.name));
    let mut aggregators: Vec<Named> = members.iter().filter_map(Named::of).collect();
    aggregators.sort_by(|a, b| a.name.cmp(&b.name));
    let clients = list(connection, CLIENTS.subjects, &clients, "clients", dry_run).await?;
    let aggregators = list(connection, AGGREGATORS, &aggregators, "aggregators", dry_run).await?;
    Ok(clients.into_iter().chain(aggregators).collect())
}

/// Writes a list if it changed.
async fn list<T: Serialize + DeserializeOwned + PartialEq>(
    connection: &Connection,
    subject: &str,
    list: &[T],
    of: &str,
    dry_run: bool,
) -> Result<Option<String>, LogError> {
    let found = match last_of(connection, CLIENTS.name, subject, ANSWER).await {
        Ok(found) => found,
        // There is no stream yet, since a dry run makes none.
        Err(_) if dry_run => None,
        Err(error) => return Err(error),
    };
    if found.is_some_and(|found| serde_json::from_slice::<Vec<T>>(&found.payload).is_ok_and(|l| l == list)) {
        return Ok(None);
    }
    if !dry_run {
        let text = serde_json::to_vec(list).map_err(|e| LogError::Setup(e.to_string()))?;
        append(connection, subject, &HeaderMap::new(), text.into()).await?;
    }
    Ok(Some(format!("list of {} {of} written", list.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH: &str = "A: { users: [ { user: \"mx1\", password: \"s\\\"e, c\\\\\" } ] }\n";
    const WITHOUT: &str = "A: { users: [ { nkey: UA } ] }\n";

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// Passwords are only for nats-server's group, also in a file that everybody could read before; a reader sees one whole text.
    #[test]
    fn accounts_are_replaced_atomically() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("accounts.conf");
        assert!(write(&path, WITHOUT, false).unwrap().unwrap().starts_with("accounts written to"));
        assert_eq!(mode_of(&path), 0o644);
        assert_eq!(write(&path, WITHOUT, false).unwrap(), None);
        let reader = fs::File::open(&path).unwrap();
        write(&path, WITH, false).unwrap();
        assert_eq!(mode_of(&path), 0o640, "it has passwords now");
        assert_eq!(io::read_to_string(reader).unwrap(), WITHOUT, "it was not written over");
        assert_eq!(fs::read_to_string(&path).unwrap(), WITH);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(write(&path, WITH, false).unwrap().is_some(), "it is open to all");
        assert_eq!(mode_of(&path), 0o640);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(write(&path, WITH, false).unwrap(), None);
        // A link stays one.
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, WITHOUT, false).unwrap();
        assert_eq!(mode_of(&path), 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left beside it");
    }

    #[test]
    fn a_dry_run_shows_no_password() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("accounts.conf");
        let shown = write(&path, WITH, true).unwrap().unwrap();
        assert!(shown.contains("would be written") && !shown.contains("e, c"), "{shown}");
        assert!(shown.ends_with("{ user: \"mx1\", password: \"...\" } ] }"), "{shown}");
        assert!(!path.exists());
    }
}
