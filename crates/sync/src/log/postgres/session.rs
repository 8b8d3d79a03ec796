// SPDX-License-Identifier: GPL-3.0-or-later
//! One connection to a server, shared by all statements.
//!
//! Each statement is its own transaction, so none blocks another one, and none leaves a transaction open.

use super::error::{is_conflict, is_end, is_unknown, meaning};
use super::signals::{Channel, HELLO, Signals, signals};
use super::tls::MakeTls;
use crate::log::settings::{Host, Settings};
use crate::log::tls::client_tls;
use crate::log::types::LogError;
use crate::state::Link;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Error, Row, Statement};

/// Timeout of connecting to one server, TLS and password included.
const CONNECT: Duration = Duration::from_secs(5);

/// Timeout of an answer. The server itself cancels a statement earlier, so this is for a server that hangs or is gone.
const ANSWER: Duration = Duration::from_secs(15);

/// How long the server runs a statement, and waits for locks, in milliseconds.
const STATEMENT_MS: u32 = 10_000;
const LOCK_MS: u32 = 5_000;

/// Idle time before the kernel probes a connection, and the time within which the other side must answer.
const KEEPALIVE: Duration = Duration::from_secs(30);
const UNANSWERED: Duration = Duration::from_secs(20);

/// How often a statement is repeated at once after a conflict.
const CONFLICTS: u32 = 5;

/// A parameter of a statement, with its type.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection.
pub(super) struct Session {
    client: Client,
    link: Arc<Link>,
    driver: JoinHandle<()>,
    signals: Signals,
    listening: [OnceCell<()>; 2],
    /// Prepared statements, by their text: planning one takes longer than running it.
    prepared: Mutex<HashMap<&'static str, Statement>>,
    /// Whether something was denied: the role may have been created again since, which this connection would never notice.
    retired: AtomicBool,
}

impl Session {
    /// Connects to one server, which must be writable.
    ///
    /// # Errors
    /// When it does not accept the connection within [`CONNECT`].
    pub(super) async fn open(
        settings: &Settings,
        host: &Host,
        database: &str,
        link: &Arc<Link>,
    ) -> Result<Self, LogError> {
        let config = config(settings, host, database)?;
        // Files are read for each connection: certificates and passwords are renewed.
        let tls = MakeTls::new(client_tls(settings)?);
        let opening = async {
            let (client, connection) = config.connect(tls).await.map_err(|e| meaning(&e))?;
            let (driver, signals) = signals();
            let driver = tokio::spawn(driver.run(connection));
            let session = Self {
                client,
                link: Arc::clone(link),
                driver,
                signals,
                listening: Default::default(),
                prepared: Mutex::default(),
                retired: AtomicBool::new(false),
            };
            session
                .run(&format!("set statement_timeout = {STATEMENT_MS}; set lock_timeout = {LOCK_MS}"))
                .await
                .map_err(|e| meaning(&e))?;
            Ok(session)
        };
        let late = || LogError::Unavailable(format!("no connection within {} s", CONNECT.as_secs()));
        timeout(CONNECT, opening).await.map_err(|_| late())?
    }

    /// Sends a statement, and returns the rows.
    ///
    /// # Errors
    /// When no usable answer comes in time. The statement may have been executed all the same.
    pub(super) async fn ask(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, LogError> {
        self.in_time(async {
            let statement = self.prepare(sql, parameters).await?;
            self.query(&statement, parameters).await
        })
        .await
    }

    /// Does the same, and notifies listeners of a new entry. If the notification is lost, they poll a little later, so its errors are
    /// ignored.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(super) async fn ask_and_notify(
        &self,
        sql: &'static str,
        parameters: &[Parameter<'_>],
        channel: Channel,
    ) -> Result<Vec<Row>, LogError> {
        let notify = format!("notify {}", channel.name());
        self.in_time(async {
            let statement = self.prepare(sql, parameters).await?;
            // Both are sent at once, and the server runs one after the other.
            let (rows, _) = tokio::join!(self.query(&statement, parameters), self.run(&notify));
            rows
        })
        .await
    }

    async fn prepare(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Statement, Error> {
        let known = self.prepared.lock().get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let types: Vec<Type> = parameters.iter().map(|(_, kind)| kind.clone()).collect();
        let statement = self.client.prepare_typed(sql, &types).await?;
        self.prepared.lock().insert(sql, statement.clone());
        Ok(statement)
    }

    async fn query(&self, statement: &Statement, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Error> {
        let values: Vec<_> = parameters.iter().map(|(value, _)| *value).collect();
        let mut conflicts = 0;
        loop {
            match self.client.query(statement, &values).await {
                Err(e) if is_conflict(&e) && conflicts < CONFLICTS => conflicts += 1,
                answer => return answer,
            }
        }
    }

    /// Awaits an answer within [`ANSWER`]. A connection without an answer is closed.
    async fn in_time(
        &self,
        asking: impl Future<Output = Result<Vec<Row>, Error>>,
    ) -> Result<Vec<Row>, LogError> {
        match timeout(ANSWER, asking).await {
            Ok(Ok(rows)) => {
                self.link.touch();
                Ok(rows)
            }
            Ok(Err(e)) => {
                if is_end(&e) {
                    self.end();
                }
                let why = meaning(&e);
                self.retired.fetch_or(matches!(why, LogError::Denied(_)), Ordering::Relaxed);
                Err(why)
            }
            Err(_) => {
                self.end();
                Err(LogError::Unavailable(format!("no answer for {} s", ANSWER.as_secs())))
            }
        }
    }

    /// Runs statements that have no parameters.
    pub(super) async fn run(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
    }

    /// Subscribes to a channel, if the database has notifications.
    pub(super) async fn listen(&self, channel: Channel) -> Result<(), LogError> {
        let name = channel.name();
        let listening = async {
            for sql in [format!("listen {name}"), format!("notify {name}, '{HELLO}'")] {
                match self.run(&sql).await {
                    Err(e) if !is_unknown(&e) => return Err(meaning(&e)),
                    _ => (),
                }
            }
            Ok(())
        };
        let late = || LogError::Unavailable(format!("no answer for {} s", ANSWER.as_secs()));
        let once = self.listening[channel as usize].get_or_try_init(|| listening);
        timeout(ANSWER, once).await.map_err(|_| late())?.copied()
    }

    pub(super) fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Whether the connection must be replaced.
    pub(super) fn is_over(&self) -> bool {
        self.retired.load(Ordering::Relaxed) || self.client.is_closed() || self.signals.ended()
    }

    /// Closes the connection.
    pub(super) fn end(&self) {
        self.driver.abort();
    }
}

fn config(settings: &Settings, host: &Host, database: &str) -> Result<Config, LogError> {
    let mut config = Config::new();
    config
        .dbname(database)
        .application_name("bulkmark")
        .connect_timeout(CONNECT)
        .keepalives_idle(KEEPALIVE)
        .keepalives_interval(KEEPALIVE / 3)
        .keepalives_retries(2)
        .tcp_user_timeout(UNANSWERED)
        .target_session_attrs(TargetSessionAttrs::ReadWrite)
        .ssl_mode(if settings.uses_tls() { SslMode::Require } else { SslMode::Disable });
    match host {
        Host::Tcp(name, port) => config.host(name).port(*port),
        Host::Unix(directory) => config.host_path(directory),
    };
    if let Some(user) = &settings.name {
        config.user(user);
    }
    if let Some(password) = settings.password()? {
        config.password(password);
    }
    Ok(config)
}
