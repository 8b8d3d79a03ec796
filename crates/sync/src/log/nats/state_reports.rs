// SPDX-License-Identifier: GPL-3.0-or-later
//! State reports of members: the last message of a subject to which only that member may publish.

use super::api::{self, Stored, append, last_of};
use super::clients::Named;
use super::connection::{Connection, key_pair};
use super::names::{AGGREGATORS, ANSWER, CLIENTS, MEMBERS, state_of};
use crate::log::check_name;
use crate::log::settings::Settings;
use crate::log::types::{LogError, MAX_STATE_REPORT, StateReport};
use async_nats::HeaderMap;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::json;
use std::sync::OnceLock;

/// Messages that are fetched at a time.
const AT_A_TIME: usize = 16;

/// The name under which this machine reports its state.
#[derive(Debug)]
pub(super) enum OwnName {
    /// A known name.
    Named(String),
    /// The name that the log's list has for this public nkey; it is cached.
    Keyed(String, OnceLock<String>),
    /// None: the servers do not authenticate.
    Nobody,
}

impl OwnName {
    /// Determines it from the configuration.
    pub(super) fn of(settings: &Settings) -> Result<Self, LogError> {
        if let Some(name) = &settings.name {
            return Ok(Self::Named(name.clone()));
        }
        let Some(seed) = settings.nkey()? else { return Ok(Self::Nobody) };
        Ok(Self::Keyed(key_pair(settings, &seed)?.public_key(), OnceLock::new()))
    }

    async fn name(&self, connection: &Connection) -> Result<&str, LogError> {
        match self {
            Self::Named(name) => Ok(name),
            Self::Keyed(key, name) => match name.get() {
                Some(name) => Ok(name),
                None => {
                    let found = find(connection, key).await?;
                    Ok(name.get_or_init(|| found))
                }
            },
            Self::Nobody => Err(LogError::Denied(
                "the log's servers do not ask who this is, so it has no name".to_owned(),
            )),
        }
    }
}

/// See [`crate::log::Log::aggregators`]. Empty if an older version without this list set the log up.
pub(super) async fn aggregators(connection: &Connection) -> Result<Vec<Named>, LogError> {
    let Some(list) = last_of(connection, CLIENTS.name, AGGREGATORS, ANSWER).await? else {
        return Ok(Vec::new());
    };
    serde_json::from_slice(&list.payload)
        .map_err(|e| LogError::Unavailable(format!("the log's list of aggregators cannot be read: {e}")))
}

/// Returns the name of the aggregator with this nkey.
async fn find(connection: &Connection, nkey: &str) -> Result<String, LogError> {
    let missing = || LogError::NotSetUp("the log does not know this aggregator's name".to_owned());
    let list = aggregators(connection).await?;
    list.into_iter().find(|one| one.nkey.as_deref() == Some(nkey)).map(|one| one.name).ok_or_else(missing)
}

/// See [`crate::log::Log::publish_state`].
pub(super) async fn publish(
    connection: &Connection,
    own_name: &OwnName,
    report: Vec<u8>,
) -> Result<(), LogError> {
    if report.len() > MAX_STATE_REPORT {
        return Err(LogError::Setup(format!(
            "a state report of {} bytes, the log takes {MAX_STATE_REPORT}",
            report.len()
        )));
    }
    let name = own_name.name(connection).await?;
    check_name(name).map_err(LogError::Setup)?;
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Stream", MEMBERS.name);
    append(connection, &state_of(name), &headers, report.into()).await.map(drop)
}

/// See [`crate::log::Log::state_reports`].
pub(super) async fn read(connection: &Connection) -> Result<Vec<StateReport>, LogError> {
    let state = api::state(connection, MEMBERS.name, Some(MEMBERS.subjects)).await?;
    let stored = stream::iter(state.subjects.clone())
        .map(|subject| async move {
            let question = json!({ "last_by_subj": subject });
            api::get(connection, MEMBERS.name, &question).await
        })
        .buffered(AT_A_TIME)
        .try_collect::<Vec<_>>()
        .await?;
    let report = |stored: Stored| {
        let name = stored.subject.strip_prefix("bulkmark.members.")?.to_owned();
        check_name(&name).ok()?;
        let seconds_ago = state.now.duration_since(stored.at).unwrap_or_default().as_secs();
        Some(StateReport { name, seconds_ago, bytes: stored.payload.into() })
    };
    Ok(stored.into_iter().flatten().filter_map(report).collect())
}
