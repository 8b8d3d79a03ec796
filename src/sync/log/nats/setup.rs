// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark fleet setup` with NATS: the accounts, which an administrator includes into nats-server's configuration; then the
//! streams, and the list of clients.

use super::accounts::{self, Identity};
use super::api::{append, last_of};
use super::clients::{Listed, Named};
use super::connection::Connection;
use super::names::{AGGREGATORS, ANSWER, CLIENTS};
use super::streams;
use crate::sync::log::members::{Member, SetUp};
use crate::sync::log::settings::Settings;
use crate::sync::log::types::LogError;
use crate::sync::state::Link;
use async_nats::HeaderMap;
use nkeys::KeyPair;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

/// A new nkey of a user: the seed, which is secret, and the public half.
///
/// # Errors
/// When it cannot be written as text.
pub fn new_nkey() -> Result<(String, String), LogError> {
    let key = KeyPair::new_user();
    let seed = key.seed().map_err(|e| LogError::Setup(e.to_string()))?;
    Ok((seed, key.public_key()))
}

/// Makes ready what a fleet needs. It is the user of `settings` who may do all; each member may do what its duty needs.
///
/// # Errors
/// When a setting or a file cannot be used, or the servers do not do what is asked of them. That the accounts were written is
/// told with the error: the servers must read them before anybody gets in.
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

/// Who sets up; none where the servers ask nobody who it is.
fn admin(settings: &Settings) -> Result<Option<Identity>, LogError> {
    if let Some(seed) = settings.nkey()? {
        let key = KeyPair::from_seed(&seed).map_err(|e| LogError::Setup(format!("nkey-file: {e}")))?;
        return Ok(Some(Identity::Nkey(key.public_key())));
    }
    let Some(user) = &settings.user else { return Ok(None) };
    let password = settings.password()?.unwrap_or_default();
    Ok(Some(Identity::Password(user.clone(), password)))
}

/// Writes the accounts, if they are other ones than before.
fn write(path: &Path, text: &str, dry_run: bool) -> Result<Option<String>, LogError> {
    let failed = |e: io::Error| LogError::Setup(format!("{}: {e}", path.display()));
    match fs::read_to_string(path) {
        Ok(found) if found == text => return Ok(None),
        Ok(_) => (),
        Err(e) if e.kind() == io::ErrorKind::NotFound => (),
        Err(e) => return Err(failed(e)),
    }
    if !dry_run {
        // In place, so that it stays readable for whom it was.
        let mut file = fs::OpenOptions::new();
        let file = file.write(true).create(true).truncate(true).mode(mode(text));
        file.open(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
    }
    Ok(Some(format!("accounts written to {}", path.display())))
}

/// Who may read a new file: nkeys are no secret, passwords are for nats-server's group.
fn mode(text: &str) -> u32 {
    if text.contains("password:") { 0o640 } else { 0o644 }
}

/// Tells aggregators who may report, and who they are themselves.
async fn lists(connection: &Connection, members: &[Member], dry_run: bool) -> Result<Vec<String>, LogError> {
    let mut clients: Vec<Listed> = members.iter().filter_map(Member::client).map(Listed::from).collect();
    clients.sort_by(|a, b| a.name.cmp(&b.name));
    let mut aggregators: Vec<Named> = members.iter().filter_map(Named::of).collect();
    aggregators.sort_by(|a, b| a.name.cmp(&b.name));
    let clients = list(connection, CLIENTS.subjects, &clients, "clients", dry_run).await?;
    let aggregators = list(connection, AGGREGATORS, &aggregators, "aggregators", dry_run).await?;
    Ok(clients.into_iter().chain(aggregators).collect())
}

/// Writes a list, if another one is there.
async fn list<T: Serialize + DeserializeOwned + PartialEq>(
    connection: &Connection,
    subject: &str,
    list: &[T],
    of: &str,
    dry_run: bool,
) -> Result<Option<String>, LogError> {
    let found = match last_of(connection, CLIENTS.name, subject, ANSWER).await {
        Ok(found) => found,
        // There is no stream yet, since nothing was to be done.
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
