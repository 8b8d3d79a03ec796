// SPDX-License-Identifier: GPL-3.0-or-later
//! One connection to the servers of a log: authentication, requests with their answers, and errors.
//!
//! `async-nats` reconnects forever. It keeps an entry for each request until its answer comes, forever if none does; so answers have their
//! own inbox here.

use super::names::ANSWER;
use crate::log::settings::{Host, Settings};
use crate::log::tls::client_tls;
use crate::log::types::{LogError, MAX_BYTES};
use crate::state::Link;
use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Message, ServerAddr, StatusCode, Subscriber,
};
use bulkmark_ledger::random_bytes;
use bulkmark_types::remote_text;
use bytes::Bytes;
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// The interval of pings; the third one without an answer ends the connection.
const SIGNS_OF_LIFE: Duration = Duration::from_secs(5);

/// Timeout of connecting.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// The longest pause between two attempts to connect, and the pause when nobody needs the connection any longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const NEVER: Duration = Duration::from_secs(3600);

/// Maximum of requests that wait for an answer; the next one waits until there is room.
const QUESTIONS: usize = 256;

/// Maximum of messages that wait to be sent, or to be handled. Live messages that do not fit are fetched later.
const OUTGOING: usize = 64;
const INCOMING: usize = 2 * QUESTIONS;

/// A connection that is kept up in the background.
pub(super) struct Connection {
    client: Client,
    shared: Arc<Shared>,
    questions: Semaphore,
    answers: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.answers.abort();
    }
}

/// State that the callbacks of `async-nats` share.
struct Shared {
    link: Arc<Link>,
    /// The prefix of the inbox for answers; the number of the request follows.
    inbox: String,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// Incremented when messages may have been missed.
    gaps: watch::Sender<u64>,
    /// The reason why there is no connection; none while there is one.
    trouble: Mutex<Option<Trouble>>,
}

/// The reason why there is no connection.
#[derive(Debug, Clone, Default)]
struct Trouble {
    text: String,
    /// Whether a server rejects this account.
    denied: bool,
}

impl Trouble {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), denied: false }
    }
}

struct Waiting {
    subject: String,
    answer: oneshot::Sender<Result<Message, LogError>>,
}

impl Connection {
    /// Reads the configured files, and starts to connect.
    pub(super) async fn new(settings: &Settings, link: Arc<Link>) -> Result<Self, LogError> {
        let inbox: [u8; 16] = random_bytes().map_err(|e| LogError::Setup(e.to_string()))?;
        let shared = Arc::new(Shared {
            link,
            inbox: format!("_INBOX.{:032x}.", u128::from_le_bytes(inbox)),
            next: AtomicU64::new(0),
            waiting: Mutex::default(),
            gaps: watch::Sender::new(0),
            trouble: Mutex::new(Some(Trouble::new("it is not connected yet"))),
        });
        let servers = servers(settings)?;
        let options = options(settings, &shared, servers.len())?;
        let unusable = |e: &dyn std::error::Error| LogError::Setup(remote_text(&e.to_string()));
        let client = options.connect(servers).await.map_err(|e| unusable(&e))?;
        let inbox = client.subscribe(format!("{}*", shared.inbox)).await.map_err(|e| unusable(&e))?;
        let answers = tokio::spawn(dispatch_answers(inbox, Arc::clone(&shared)));
        Ok(Self { client, shared, questions: Semaphore::new(QUESTIONS), answers })
    }

    pub(super) fn link(&self) -> &Arc<Link> {
        &self.shared.link
    }

    /// Subscribes to gaps: the value changes when live messages may have been missed, after each reconnection and when there were too many.
    pub(super) fn gaps(&self) -> watch::Receiver<u64> {
        self.shared.gaps.subscribe()
    }

    /// Subscribes to a subject.
    pub(super) async fn subscribe(&self, subject: &'static str) -> Result<Subscriber, LogError> {
        let deadline = Instant::now() + ANSWER;
        self.connected(deadline).await?;
        let subscriber = timeout_at(deadline, self.client.subscribe(subject)).await;
        subscriber
            .map_err(|_| self.silent(subject))?
            .map_err(|e| LogError::Unavailable(remote_text(&e.to_string())))
    }

    /// Publishes, and awaits the answer. Returns an error after the deadline at the latest: the request may have been received all the
    /// same.
    pub(super) async fn ask(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        payload: Bytes,
        deadline: Instant,
    ) -> Result<Message, LogError> {
        if payload.len() > MAX_BYTES {
            return Err(LogError::Setup(format!("{} bytes; {MAX_BYTES} are taken at most", payload.len())));
        }
        self.connected(deadline).await?;
        let permit = timeout_at(deadline, self.questions.acquire()).await;
        let _permit = permit.map_err(|_| self.silent(subject))?;
        let (question, answer) = self.shared.question(subject);
        let inbox = format!("{}{}", self.shared.inbox, question.number);
        let size = payload.len();
        let headers = headers.unwrap_or_default();
        let publish = self.client.publish_with_reply_and_headers(subject.to_owned(), inbox, headers, payload);
        let published = timeout_at(deadline, publish).await.map_err(|_| self.silent(subject))?;
        published.map_err(|e| LogError::Unavailable(remote_text(&e.to_string())))?;
        self.shared.link.sent(size);
        let answer = timeout_at(deadline, answer).await.map_err(|_| self.silent(subject))?;
        let answer =
            answer.map_err(|_| LogError::Unavailable("the connection to the log broke".to_owned()))??;
        if answer.status == Some(StatusCode::NO_RESPONDERS) {
            return Err(LogError::Unavailable(format!(
                "nobody answers to {subject}: the log has no leader now, is not set up, or does not let this account do so"
            )));
        }
        Ok(answer)
    }

    /// Waits for the connection.
    async fn connected(&self, deadline: Instant) -> Result<(), LogError> {
        let mut gaps = self.gaps();
        loop {
            let Some(trouble) = self.shared.trouble.lock().clone() else { return Ok(()) };
            // This does not pass by waiting: an operator must act.
            if trouble.denied {
                let text = format!("the log does not let this account in: {}", trouble.text);
                return Err(LogError::Denied(text));
            }
            if timeout_at(deadline, gaps.changed()).await.is_err() {
                let trouble = self.shared.trouble.lock().clone().unwrap_or(trouble);
                return Err(LogError::Unavailable(format!("no connection to the log: {}", trouble.text)));
            }
        }
    }

    fn silent(&self, subject: &str) -> LogError {
        LogError::Unavailable(match self.shared.trouble.lock().clone() {
            Some(trouble) => format!("no connection to the log: {}", trouble.text),
            None => format!("the log does not answer to {subject} in time"),
        })
    }
}

/// A request that is forgotten when nobody waits for its answer any longer.
struct Question<'a> {
    number: u64,
    shared: &'a Shared,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.shared.waiting.lock().remove(&self.number);
    }
}

impl Shared {
    fn question(&self, subject: &str) -> (Question<'_>, oneshot::Receiver<Result<Message, LogError>>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, receiver) = oneshot::channel();
        self.waiting.lock().insert(number, Waiting { subject: subject.to_owned(), answer });
        (Question { number, shared: self }, receiver)
    }

    fn on_event(&self, event: Event) {
        match event {
            Event::Connected => *self.trouble.lock() = None,
            Event::Disconnected => {
                self.trouble.lock().get_or_insert_with(|| Trouble::new("the connection broke"));
                // None of them will be answered.
                self.waiting.lock().clear();
            }
            Event::SlowConsumer(_) => (),
            Event::ServerError(error) => return self.on_refusal(&error.to_string()),
            _ => return,
        }
        self.gaps.send_modify(|times| *times += 1);
    }

    /// Handles a server's refusal of a message, which names its subject.
    fn on_refusal(&self, error: &str) {
        let Some((_, rest)) = error.split_once("Permissions Violation for Publish to \"") else { return };
        let subject = rest.split('"').next().unwrap_or_default();
        let denied: Vec<_> =
            self.waiting.lock().extract_if(|_, waiting| waiting.subject == subject).collect();
        for (_, waiting) in denied {
            let _ = waiting.answer.send(Err(LogError::Denied(remote_text(error))));
        }
    }

    /// Records the servers' errors of attempts to connect.
    fn on_attempt(&self, servers: &[async_nats::Server]) {
        let failed = servers.iter().filter_map(|server| {
            let error = server.last_error.as_deref()?;
            Some(format!("{}: {error}", server.addr.host()))
        });
        let failed: Vec<_> = failed.collect();
        if let (Some(trouble), false) = (&mut *self.trouble.lock(), failed.is_empty()) {
            // It may quote a certificate.
            let denied = servers.iter().filter_map(|server| server.last_error.as_deref()).any(is_denied);
            *trouble = Trouble { text: remote_text(&failed.join("; ")), denied };
        }
        self.gaps.send_modify(|times| *times += 1);
    }
}

/// Whether the whole error says that a server rejects this account. The same text inside a certificate or a server's name does not count.
fn is_denied(error: &str) -> bool {
    // The library keeps errors of attempts as text only: the kind, and after a colon the cause.
    let rest = error.strip_prefix(&ConnectErrorKind::AuthorizationViolation.to_string());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// Passes each answer to the task that waits for it.
async fn dispatch_answers(mut inbox: Subscriber, shared: Arc<Shared>) {
    while let Some(message) = inbox.next().await {
        shared.link.touch();
        shared.link.received(message.length);
        let number = message.subject.as_str().strip_prefix(&*shared.inbox).and_then(|n| n.parse().ok());
        let waiting = number.and_then(|number: u64| shared.waiting.lock().remove(&number));
        if let Some(waiting) = waiting {
            // It came too late if nobody waits.
            let _ = waiting.answer.send(Ok(message));
        }
    }
}

fn servers(settings: &Settings) -> Result<Vec<ServerAddr>, LogError> {
    let scheme = if settings.uses_tls() { "tls" } else { "nats" };
    let url = |host: Host| match host {
        Host::Tcp(name, port) if name.contains(':') => Ok(format!("{scheme}://[{name}]:{port}")),
        Host::Tcp(name, port) => Ok(format!("{scheme}://{name}:{port}")),
        Host::Unix(path) => Err(LogError::Setup(format!("{}: NATS has no Unix sockets", path.display()))),
    };
    let parse = |url: String| {
        url.parse::<ServerAddr>().map_err(|e| LogError::Setup(remote_text(&format!("{url}: {e}"))))
    };
    settings.address()?.hosts.into_iter().map(|host| url(host).and_then(parse)).collect()
}

/// Makes the key of a seed.
pub(super) fn key_pair(settings: &Settings, seed: &str) -> Result<nkeys::KeyPair, LogError> {
    nkeys::KeyPair::from_seed(seed).map_err(|e| {
        let file = settings.secret_file.as_deref().unwrap_or_else(|| "".as_ref()).display();
        LogError::Setup(format!("{file}: {e}"))
    })
}

/// Returns the user of a password; none if there is no password.
pub(super) fn user_and_password(settings: &Settings) -> Result<Option<(String, String)>, LogError> {
    let Some(password) = settings.password()? else { return Ok(None) };
    let missing = || LogError::Setup("name = is missing: the user of the password in secret-file".to_owned());
    Ok(Some((settings.name.clone().ok_or_else(missing)?, password)))
}

fn options(settings: &Settings, shared: &Arc<Shared>, servers: usize) -> Result<ConnectOptions, LogError> {
    let mut options = ConnectOptions::new();
    if let Some(seed) = settings.nkey()? {
        key_pair(settings, &seed)?;
        options = options.nkey(seed);
    } else if let Some((user, password)) = user_and_password(settings)? {
        options = options.user_and_password(user, password);
    }
    if let Some(config) = client_tls(settings)? {
        options = options.require_tls(true).tls_client_config(config);
    }
    let (of_events, of_attempts, alive) = (Arc::clone(shared), Arc::clone(shared), Arc::downgrade(shared));
    Ok(options
        .name("bulkmark")
        .retry_on_initial_connect()
        // Only the configured servers, by the names in their certificates.
        .ignore_discovered_servers()
        .connection_timeout(CONNECT_TIME)
        .ping_interval(SIGNS_OF_LIFE)
        .client_capacity(OUTGOING)
        .subscription_capacity(INCOMING)
        .reconnect_delay_callback(move |attempts| pause(attempts, servers, &alive))
        .reconnect_to_server_callback(move |servers, _| {
            of_attempts.on_attempt(&servers);
            std::future::ready(None)
        })
        .event_callback(move |event| {
            of_events.on_event(event);
            std::future::ready(())
        }))
}

/// Returns the pause before this attempt to connect. The servers are tried one after the other, and the random part keeps all clients of a
/// server that died from moving to the next one at once.
fn pause(attempts: usize, servers: usize, alive: &Weak<Shared>) -> Duration {
    if alive.strong_count() <= 2 {
        // Only the callbacks are left.
        return NEVER;
    }
    let round = u32::try_from(attempts.saturating_sub(1) / servers.max(1)).unwrap_or(u32::MAX);
    let longest = Duration::from_millis(50).saturating_mul(2_u32.saturating_pow(round)).min(LONGEST_PAUSE);
    let [byte] = random_bytes().unwrap_or([128]);
    longest * u32::from(byte) / 255
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same text elsewhere, as in a certificate's name, is a problem that may pass.
    #[test]
    fn denied_accounts_are_recognized_by_the_kind_of_the_error() {
        let error = |kind, why: &str| async_nats::ConnectError::with_source(kind, why.to_owned()).to_string();
        let text = "nats: authorization violation";
        assert!(is_denied(&error(ConnectErrorKind::AuthorizationViolation, text)));
        assert!(is_denied(&ConnectErrorKind::AuthorizationViolation.to_string()));
        assert!(!is_denied(&error(
            ConnectErrorKind::Tls,
            "invalid peer certificate: authorization violation"
        )));
        assert!(!is_denied(&error(ConnectErrorKind::Io, text)) && !is_denied("authorization violations"));
    }
}
