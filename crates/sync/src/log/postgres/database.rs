// SPDX-License-Identifier: GPL-3.0-or-later
//! The servers of a log, and the connection to one of them.

use super::session::{Parameter, Session};
use crate::log::settings::{Address, Host, Settings};
use crate::log::tls::client_tls;
use crate::log::types::LogError;
use crate::state::Link;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// The version of the schema that this program knows.
pub(super) const FORMAT: i32 = 1;

/// The database of a fleet's log.
pub(super) struct Database {
    settings: Settings,
    address: Address,
    pub(super) link: Arc<Link>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    session: Option<Arc<Session>>,
    /// The number of the server that accepted the last connection; it is tried first.
    host: usize,
    /// The last failure to connect, and its time.
    failed: Option<(Instant, LogError)>,
}

impl Database {
    /// Checks the configuration; connects later.
    ///
    /// # Errors
    /// When it is unusable.
    pub(super) fn new(settings: &Settings, link: Arc<Link>) -> Result<Self, LogError> {
        let address = settings.address()?;
        client_tls(settings)?;
        settings.password()?;
        Ok(Self { settings: settings.clone(), address, link, state: Mutex::default() })
    }

    /// Returns the connection; makes one if there is none.
    ///
    /// # Errors
    /// When no server accepts a connection.
    pub(super) async fn session(&self) -> Result<Arc<Session>, LogError> {
        let asked = Instant::now();
        let mut state = self.state.lock().await;
        if let Some(session) = &state.session {
            if !session.is_over() {
                return Ok(Arc::clone(session));
            }
            state.session = None;
        }
        // Another caller failed meanwhile; if each one tried again, the last would wait for the sum of their times.
        if let Some((when, why)) = &state.failed
            && *when > asked
        {
            return Err(copy(why));
        }
        match self.connect(state.host).await {
            Ok((session, host)) => {
                let session = Arc::new(session);
                *state = State { session: Some(Arc::clone(&session)), host, failed: None };
                Ok(session)
            }
            Err(why) => {
                state.failed = Some((Instant::now(), copy(&why)));
                Err(why)
            }
        }
    }

    /// Sends a statement over the connection; see [`Session::ask`].
    pub(super) async fn ask(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, LogError> {
        self.session().await?.ask(sql, parameters).await
    }

    /// Tries all servers, starting with this one.
    async fn connect(&self, first: usize) -> Result<(Session, usize), LogError> {
        let hosts = &self.address.hosts;
        let mut failures: Vec<(String, LogError)> = Vec::new();
        for i in (0..hosts.len()).map(|i| (first + i) % hosts.len()) {
            match self.try_host(&hosts[i]).await {
                Ok(session) => return Ok((session, i)),
                Err(why) => failures.push((shown(&hosts[i]), why)),
            }
        }
        Err(all_of(failures))
    }

    async fn try_host(&self, host: &Host) -> Result<Session, LogError> {
        let database = self.address.database.as_deref().unwrap_or_default();
        let session = Session::open(&self.settings, host, database, &self.link).await?;
        let rows = session.ask("select format from bulkmark.log", &[]).await?;
        let found: Option<i32> = rows.first().map(|row| row.get(0));
        match found {
            Some(FORMAT) => Ok(session),
            None => Err(LogError::NotSetUp(format!(
                "{database} is not ready for a fleet: bulkmark fleet setup makes it so"
            ))),
            Some(other) => Err(LogError::NotSetUp(format!(
                "the log in {database} is of version {other}, this program knows {FORMAT}: {}",
                if other > FORMAT {
                    "a newer bulkmark is needed here"
                } else {
                    "run bulkmark fleet setup of this one"
                }
            ))),
        }
    }
}

/// Formats a server's address for people.
pub(super) fn shown(host: &Host) -> String {
    match host {
        Host::Tcp(name, port) if name.contains(':') => format!("[{name}]:{port}"),
        Host::Tcp(name, port) => format!("{name}:{port}"),
        Host::Unix(directory) => directory.display().to_string(),
    }
}

/// Combines the errors of several servers. An error that an operator must mend takes precedence over one that may pass.
pub(super) fn all_of(mut failures: Vec<(String, LogError)>) -> LogError {
    if let Some(i) = failures.iter().position(|(_, why)| !matches!(why, LogError::Unavailable(_))) {
        let (host, why) = failures.swap_remove(i);
        let text = format!("{host}: {why}");
        return match why {
            LogError::Denied(_) => LogError::Denied(text),
            LogError::NotSetUp(_) => LogError::NotSetUp(text),
            other => other,
        };
    }
    let texts: Vec<_> = failures.iter().map(|(host, why)| format!("{host}: {why}")).collect();
    LogError::Unavailable(texts.join("; "))
}

/// Copies an error.
pub(super) fn copy(error: &LogError) -> LogError {
    match error {
        LogError::Unavailable(what) => LogError::Unavailable(what.clone()),
        LogError::NotStored(what) => LogError::NotStored(what.clone()),
        LogError::RateLimited(what) => LogError::RateLimited(what.clone()),
        LogError::Full(what) => LogError::Full(what.clone()),
        LogError::Denied(what) => LogError::Denied(what.clone()),
        LogError::Gone(place) => LogError::Gone(*place),
        LogError::NotSetUp(what) => LogError::NotSetUp(what.clone()),
        LogError::Setup(what) => LogError::Setup(what.clone()),
    }
}

/// Converts a number for PostgreSQL, which has no unsigned types. Places and times never reach the difference; of random numbers only the
/// bits matter.
pub(super) const fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// The inverse of [`signed`].
pub(super) const fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}

/// The type of most numbers here.
pub(super) const INT8: Type = Type::INT8;
