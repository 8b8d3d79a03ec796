// SPDX-License-Identifier: GPL-3.0-or-later
//! One connection to the servers of a log: who this is, questions and their answers, what goes wrong.
//!
//! `async-nats` makes the connection anew for ever. It keeps a note of each question until an answer comes, and so for ever if none
//! does; hence answers have a mailbox of our own here.

use super::names::{ANSWER, info_for_clients, info_of};
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

/// How often a server is asked whether it is alive; the third question without an answer ends the connection.
const SIGNS_OF_LIFE: Duration = Duration::from_secs(5);

/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Between two attempts to connect, at most; and where nobody is there any more to need it.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const NEVER: Duration = Duration::from_secs(3600);

/// Questions that wait for an answer at most; the next one waits until there is room.
const QUESTIONS: usize = 256;

/// Messages that wait to be sent, or to be looked at, at most. Those of a live subscription that do not fit are fetched later.
const OUTGOING: usize = 64;
const INCOMING: usize = 2 * QUESTIONS;

/// A connection, which is made and made again in the background.
pub(super) struct Connection {
    client: Client,
    shared: Arc<Shared>,
    questions: Semaphore,
    answers: JoinHandle<()>,
    /// Whether this is a client's account, with what is imported into it.
    is_client: bool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.answers.abort();
    }
}

/// What the tasks of `async-nats` tell.
struct Shared {
    link: Arc<Link>,
    /// Where answers go to: this and the number of the question.
    inbox: String,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// Grows when messages may have been missed.
    stirred: watch::Sender<u64>,
    /// Why there is no connection; none while there is.
    trouble: Mutex<Option<Trouble>>,
}

/// Why there is no connection.
#[derive(Debug, Clone, Default)]
struct Trouble {
    text: String,
    /// Whether a server does not let this account in.
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
    /// Reads the files that the settings name, and begins to connect.
    pub(super) async fn new(settings: &Settings, link: Arc<Link>) -> Result<Self, LogError> {
        let inbox: [u8; 16] = random_bytes().map_err(|e| LogError::Setup(e.to_string()))?;
        let shared = Arc::new(Shared {
            link,
            inbox: format!("_INBOX.{:032x}.", u128::from_le_bytes(inbox)),
            next: AtomicU64::new(0),
            waiting: Mutex::default(),
            stirred: watch::Sender::new(0),
            trouble: Mutex::new(Some(Trouble::new("it is not connected yet"))),
        });
        let servers = servers(settings)?;
        let options = options(settings, &shared, servers.len())?;
        let unusable = |e: &dyn std::error::Error| LogError::Setup(remote_text(&e.to_string()));
        let client = options.connect(servers).await.map_err(|e| unusable(&e))?;
        let inbox = client.subscribe(format!("{}*", shared.inbox)).await.map_err(|e| unusable(&e))?;
        let answers = tokio::spawn(hand_out(inbox, Arc::clone(&shared)));
        let is_client = settings.client.is_some();
        Ok(Self { client, shared, questions: Semaphore::new(QUESTIONS), answers, is_client })
    }

    pub(super) fn link(&self) -> &Arc<Link> {
        &self.shared.link
    }

    /// Where it is asked how far a stream is.
    pub(super) fn info_of(&self, stream: &str) -> String {
        if self.is_client { info_for_clients(stream) } else { info_of(stream) }
    }

    /// Changes when messages of a live subscription may have been missed: after each reconnection, and when there were too many.
    pub(super) fn stirred(&self) -> watch::Receiver<u64> {
        self.shared.stirred.subscribe()
    }

    /// What is published to a subject from now on.
    pub(super) async fn subscribe(&self, subject: &'static str) -> Result<Subscriber, LogError> {
        let deadline = Instant::now() + ANSWER;
        self.connected(deadline).await?;
        let subscriber = timeout_at(deadline, self.client.subscribe(subject)).await;
        subscriber
            .map_err(|_| self.silent(subject))?
            .map_err(|e| LogError::Unavailable(remote_text(&e.to_string())))
    }

    /// Publishes, and awaits the answer. An error after the deadline at the latest: it may have been heard all the same.
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

    /// Waits for a connection.
    async fn connected(&self, deadline: Instant) -> Result<(), LogError> {
        let mut stirred = self.stirred();
        loop {
            let Some(trouble) = self.shared.trouble.lock().clone() else { return Ok(()) };
            // Nothing is better tomorrow: somebody must see to it.
            if trouble.denied {
                let told = format!("the log does not let this account in: {}", trouble.text);
                return Err(LogError::Denied(told));
            }
            if timeout_at(deadline, stirred.changed()).await.is_err() {
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

/// A question that is forgotten when nobody waits for its answer any more.
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

    fn happened(&self, event: Event) {
        match event {
            Event::Connected => *self.trouble.lock() = None,
            Event::Disconnected => {
                self.trouble.lock().get_or_insert_with(|| Trouble::new("the connection broke"));
                // None of them is answered any more.
                self.waiting.lock().clear();
            }
            Event::SlowConsumer(_) => (),
            Event::ServerError(error) => return self.refused(&error.to_string()),
            _ => return,
        }
        self.stirred.send_modify(|times| *times += 1);
    }

    /// A server refuses to take what was published, and says which subject that was.
    fn refused(&self, error: &str) {
        let Some((_, rest)) = error.split_once("Permissions Violation for Publish to \"") else { return };
        let subject = rest.split('"').next().unwrap_or_default();
        let denied: Vec<_> =
            self.waiting.lock().extract_if(|_, waiting| waiting.subject == subject).collect();
        for (_, waiting) in denied {
            let _ = waiting.answer.send(Err(LogError::Denied(remote_text(error))));
        }
    }

    /// What servers said when it was tried to connect to them.
    fn tried(&self, servers: &[async_nats::Server]) {
        let failed = servers.iter().filter_map(|server| {
            let error = server.last_error.as_deref()?;
            Some(format!("{}: {error}", server.addr.host()))
        });
        let failed: Vec<_> = failed.collect();
        if let (Some(trouble), false) = (&mut *self.trouble.lock(), failed.is_empty()) {
            // It may repeat what a certificate says.
            let denied = servers.iter().filter_map(|server| server.last_error.as_deref()).any(is_denied);
            *trouble = Trouble { text: remote_text(&failed.join("; ")), denied };
        }
        self.stirred.send_modify(|times| *times += 1);
    }
}

/// Whether it is the whole of an error that a server does not let this account in. Words of a certificate or a name of a server in it are not.
fn is_denied(error: &str) -> bool {
    // The library keeps errors of attempts as text alone: the kind, and behind a colon why.
    let rest = error.strip_prefix(&ConnectErrorKind::AuthorizationViolation.to_string());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// Brings each answer to whoever waits for it.
async fn hand_out(mut inbox: Subscriber, shared: Arc<Shared>) {
    while let Some(message) = inbox.next().await {
        shared.link.heard();
        shared.link.received(message.length);
        let number = message.subject.as_str().strip_prefix(&*shared.inbox).and_then(|n| n.parse().ok());
        let waiting = number.and_then(|number: u64| shared.waiting.lock().remove(&number));
        if let Some(waiting) = waiting {
            // Nobody waits for it any more: it came late.
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

fn options(settings: &Settings, shared: &Arc<Shared>, servers: usize) -> Result<ConnectOptions, LogError> {
    let mut options = ConnectOptions::new();
    if let Some(seed) = settings.nkey()? {
        nkeys::KeyPair::from_seed(&seed).map_err(|e| {
            let file = settings.nkey_file.as_deref().unwrap_or_else(|| "".as_ref()).display();
            LogError::Setup(format!("{file}: {e}"))
        })?;
        options = options.nkey(seed);
    } else if let Some(user) = &settings.user {
        options = options.user_and_password(user.clone(), settings.password()?.unwrap_or_default());
    }
    if let Some(config) = client_tls(settings)? {
        options = options.require_tls(true).tls_client_config(config);
    }
    let (of_events, of_attempts, alive) = (Arc::clone(shared), Arc::clone(shared), Arc::downgrade(shared));
    Ok(options
        .name("bulkmark")
        .retry_on_initial_connect()
        // Those that the configuration names, by the names that their certificates have.
        .ignore_discovered_servers()
        .connection_timeout(CONNECT_TIME)
        .ping_interval(SIGNS_OF_LIFE)
        .client_capacity(OUTGOING)
        .subscription_capacity(INCOMING)
        .reconnect_delay_callback(move |attempts| pause(attempts, servers, &alive))
        .reconnect_to_server_callback(move |servers, _| {
            of_attempts.tried(&servers);
            std::future::ready(None)
        })
        .event_callback(move |event| {
            of_events.happened(event);
            std::future::ready(())
        }))
}

/// How long to wait before this attempt to connect. The servers are tried one after the other, and all that had a connection to a
/// server that died do not come to the next one at the same moment.
fn pause(attempts: usize, servers: usize, alive: &Weak<Shared>) -> Duration {
    if alive.strong_count() <= 2 {
        // The callbacks alone are left.
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

    /// What else has these words in it, as a certificate's name may, is a trouble that may pass.
    #[test]
    fn who_is_not_let_in_is_told_by_the_kind_of_the_error() {
        let error = |kind, why: &str| async_nats::ConnectError::with_source(kind, why.to_owned()).to_string();
        let said = "nats: authorization violation";
        assert!(is_denied(&error(ConnectErrorKind::AuthorizationViolation, said)));
        assert!(is_denied(&ConnectErrorKind::AuthorizationViolation.to_string()));
        assert!(!is_denied(&error(
            ConnectErrorKind::Tls,
            "invalid peer certificate: authorization violation"
        )));
        assert!(!is_denied(&error(ConnectErrorKind::Io, said)) && !is_denied("authorization violations"));
    }
}
