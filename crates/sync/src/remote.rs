// SPDX-License-Identifier: GPL-3.0-or-later
//! Requests to one server.

use super::backoff::jittered;
use super::clock;
use super::code::{self, Code};
use super::parameters::{self, Parameters};
use super::settings::Upstream;
use super::state::Link;
use super::token::Token;
use super::wire::{self, Frames, Reports, WireError};
use bulkmark_counts::history::fleet_mark::is_name;
use bulkmark_counts::{BulkMark, Receipt, Vector};
use bulkmark_types::Signature;
use bulkmark_types::remote_text;
use reqwest::{Response, StatusCode, header};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeout of connecting.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How long a server may be silent; it sends a sign of life every five seconds.
const SILENCE: Duration = Duration::from_secs(15);

/// How long a stream may bring nothing of use; signs of life and parts of frames do not count. A frame that is on its way gets a second
/// more for each of so many received bytes.
const PROGRESS: Duration = Duration::from_secs(30);
const BYTES_A_SECOND: usize = 4096;

/// Maximum size of a vector in an address: proxies allow 8 kB, often less.
const MAX_SINCE: usize = 4096;

/// Bytes of a reason that are read and logged.
const MAX_REASON: usize = 500;

/// Maximum size of a receipt, and of a server's status.
const MAX_RECEIPT: usize = 100;
const MAX_STATUS: usize = 16 << 20;

/// Maximum size of the answer to a registration.
const MAX_REGISTRATION: usize = 4096;

/// Maximum size of the orders of all sites.
const MAX_ORDERS: usize = 16 << 20;

/// The header with the client's name in an answer with orders.
pub const SITE_HEADER: &str = "bulkmark-site";

/// Timeout of the orders of all sites, beside the wait for a change.
const ORDERS_TIME: Duration = Duration::from_secs(60);

/// Maximum size of a token.
const MAX_TOKEN: usize = 256;

/// A server's answer to a site that registered.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct Registration {
    /// The client's name at the server.
    pub name: String,
    /// Its token.
    pub token: String,
    /// Whether its reports count before the operator approves it.
    pub counts: bool,
}

/// A server's answer to a request for the orders of all sites.
#[derive(Debug, Clone)]
pub struct AllOrders {
    /// The name of this machine's site at the server.
    pub site: Option<String>,
    /// The orders as JSON; none if they did not change in time.
    pub json: Option<Vec<u8>>,
}

/// A request failed.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// A configured file cannot be used.
    #[error("cannot use {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// The address or certificate authority is invalid.
    #[error("{0}")]
    Setup(String),
    /// The server could not be reached, or the connection broke.
    #[error("{0}")]
    Transport(String),
    /// Its name has no address.
    #[error("its name, or its proxy's, has no address: {0}")]
    Name(String),
    /// Its certificate is not accepted.
    #[error("its certificate is not accepted: {0}")]
    Certificate(String),
    /// The server refused.
    #[error("{status}{}", after_colon(.reason))]
    Refused {
        /// The status.
        status: StatusCode,
        /// The machine-readable reason: the code or, without one, what the status means. None if neither is known.
        code: Option<Code>,
        /// The server's text, for people.
        reason: String,
    },
    /// The answer is not what was asked for.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The server has other parameters.
    #[error("other parameters: {0}")]
    Parameters(String),
    /// The clocks differ.
    #[error("{0}")]
    Clock(String),
    /// The server only sends signs of life.
    #[error("it sent only signs of life for {} s", PROGRESS.as_secs())]
    Stuck,
    /// The answer is too long.
    #[error("an answer of more than {0} bytes")]
    Long(usize),
}

/// Returns the text behind a status: some programs on the way send none.
fn after_colon(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

impl RemoteError {
    /// Returns the reason of a refusal; none for other errors, or if it is not known.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { code, .. } => *code,
            _ => None,
        }
    }

    /// Whether the clocks differ.
    #[must_use]
    pub fn is_clock_error(&self) -> bool {
        matches!(self, Self::Clock(_)) || self.code() == Some(Code::Clock)
    }
}

/// A server and the way to it.
pub struct Remote {
    http: reqwest::Client,
    /// As configured, and as requests use it.
    url: String,
    base: String,
    token: Option<Token>,
    /// None if the server is only examined.
    parameters: Option<Parameters>,
    /// The state of the connection.
    pub link: Arc<Link>,
}

impl Remote {
    /// Reads the configured files. Without `parameters`, any server's are accepted.
    ///
    /// # Errors
    /// When they cannot be read, or the address is invalid.
    pub fn new(
        upstream: &Upstream,
        parameters: Option<Parameters>,
        link: Arc<Link>,
    ) -> Result<Self, RemoteError> {
        upstream.check().map_err(RemoteError::Setup)?;
        let unusable = |path: &PathBuf, reason| RemoteError::File { path: path.clone(), reason };
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("bulkmark/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIME)
            .read_timeout(SILENCE)
            // Counts come from the configured address, and the token is sent to no other.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true);
        if let Some(path) = &upstream.ca_file {
            let pem = std::fs::read(path).map_err(|reason| unusable(path, reason))?;
            let certificate = reqwest::Certificate::from_pem(&pem)
                .map_err(|e| RemoteError::Setup(format!("{}: {e}", path.display())))?;
            http = http.tls_certs_only([certificate]);
        }
        let token = |path: &PathBuf| Token::new(path).map_err(|reason| unusable(path, reason));
        let token = upstream.token_file.as_ref().map(token).transpose()?;
        let url = upstream.url.trim_end_matches('/').to_owned();
        let (base, http) = match url.strip_prefix("unix:") {
            // No name is looked up and no proxy asked: everything goes to the socket.
            Some(path) => ("http://localhost".to_owned(), http.unix_socket(path)),
            None => (url.clone(), http),
        };
        let http = http.build().map_err(|e| RemoteError::Setup(e.to_string()))?;
        Ok(Self { http, url, base, token, parameters, link })
    }

    /// The address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, RemoteError> {
        let result = self.exchange(request).await;
        match &result {
            Ok(_) => self.link.set_clocks_agree(true),
            Err(e) if e.is_clock_error() => self.link.set_clocks_agree(false),
            Err(_) => (),
        }
        result
    }

    async fn exchange(&self, request: reqwest::RequestBuilder) -> Result<Response, RemoteError> {
        let mut request = request;
        if let Some(date) = clock::date() {
            request = request.header(header::DATE, date);
        }
        if let Some(parameters) = &self.parameters {
            request = request.header(parameters::HEADER, parameters.to_string());
        }
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, token.header());
        }
        let mut response = request.send().await?;
        let status = response.status();
        if status.is_success() {
            let Some(ours) = &self.parameters else { return Ok(response) };
            let theirs = response.headers().get(parameters::HEADER).and_then(|value| value.to_str().ok());
            let sides = ["here", "at the server"];
            ours.check(theirs.unwrap_or_default(), sides)
                .map_err(|what| RemoteError::Parameters(remote_text(&what)))?;
            let date = response.headers().get(header::DATE);
            clock::check(date, "the server", "this machine").map_err(RemoteError::Clock)?;
            return Ok(response);
        }
        let code = match response.headers().get(code::HEADER) {
            Some(value) => value.to_str().ok().and_then(|name| name.parse().ok()),
            None => Code::of_status(status),
        };
        if let Some(token) = &self.token {
            token.refused(code);
        }
        let mut reason = Vec::new();
        let reading = async {
            while reason.len() < MAX_REASON
                && let Ok(Some(piece)) = response.chunk().await
            {
                reason.extend_from_slice(&piece);
            }
        };
        // The part received so far is enough.
        let _ = tokio::time::timeout(SILENCE, reading).await;
        reason.truncate(MAX_REASON);
        let reason = remote_text(&String::from_utf8_lossy(&reason));
        Err(RemoteError::Refused { status, code, reason })
    }

    /// Sends a batch of reports.
    ///
    /// # Errors
    /// When it was not acknowledged; it may be counted all the same.
    pub async fn report(&self, reports: &Reports) -> Result<Receipt, RemoteError> {
        let body = reports.encode();
        self.link.sent(body.len());
        let request = self.http.post(format!("{}/v1/reports", self.base)).timeout(SILENCE).body(body);
        let answer = whole(self.send(request).await?, MAX_RECEIPT).await?;
        self.link.received(answer.len());
        Ok(wire::decode_receipt(&answer)?)
    }

    /// Registers this site under a name; `contact` is an address for questions, and may be empty. Takes 15 s at most.
    ///
    /// # Errors
    /// When the server does not answer, or refuses the site.
    pub async fn register(&self, name: &str, contact: &str) -> Result<Registration, RemoteError> {
        let body = serde_json::json!({ "name": name, "contact": contact }).to_string();
        let request = self.http.post(format!("{}/v1/register", self.base)).timeout(SILENCE).body(body);
        let answer = whole(self.send(request).await?, MAX_REGISTRATION).await?;
        let registered: Registration = serde_json::from_slice(&answer)
            .map_err(|e| RemoteError::Transport(remote_text(&e.to_string())))?;
        // The administrator copies the name from a terminal into a command; the token becomes a line of a file.
        let Registration { name, token, .. } = &registered;
        let is_token = (1..=MAX_TOKEN).contains(&token.len()) && token.bytes().all(|b| b.is_ascii_graphic());
        if !is_name(name) || !is_token {
            let why = format!(
                "it registered {name:?} with a token of {} bytes; expected a client's name and one word",
                token.len()
            );
            return Err(RemoteError::Transport(remote_text(&why)));
        }
        Ok(registered)
    }

    /// Sends all orders of this machine, as JSON.
    ///
    /// # Errors
    /// When the server does not answer, or refuses them.
    pub async fn give_orders(&self, json: Vec<u8>) -> Result<(), RemoteError> {
        self.link.sent(json.len());
        let request = self.http.post(format!("{}/v1/orders", self.base)).timeout(SILENCE).body(json);
        self.send(request).await.map(drop)
    }

    /// Returns the orders of all sites, once they differ from those of the name `since`.
    ///
    /// # Errors
    /// When the server does not answer, or refuses.
    pub async fn orders(&self, since: &str, wait: Duration) -> Result<AllOrders, RemoteError> {
        let url = format!("{}/v1/orders?since={since}&wait={}", self.base, wait.as_secs());
        let response = self.send(self.http.get(url).timeout(wait + ORDERS_TIME)).await?;
        let site = response.headers().get(SITE_HEADER).and_then(|site| site.to_str().ok());
        let site = site.filter(|site| is_name(site)).map(str::to_owned);
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(AllOrders { site, json: None });
        }
        let json = whole(response, MAX_ORDERS).await?;
        self.link.received(json.len());
        Ok(AllOrders { site, json: Some(json) })
    }

    /// Returns the server's status.
    ///
    /// # Errors
    /// When it does not answer, or with something else.
    pub async fn status(&self) -> Result<serde_json::Value, RemoteError> {
        let request = self.http.get(format!("{}/v1/status", self.base)).timeout(SILENCE);
        let answer = whole(self.send(request).await?, MAX_STATUS).await?;
        serde_json::from_slice(&answer).map_err(|e| RemoteError::Transport(remote_text(&e.to_string())))
    }

    /// Streams all updates that `since` lacks, and later ones for the time `wait`.
    ///
    /// # Errors
    /// When there is no stream; [`Code::UpdatesGone`] when a snapshot must be taken first.
    pub async fn updates(&self, since: &Vector, wait: Duration) -> Result<Stream, RemoteError> {
        self.updates_since(&format!("wait={}", wait.as_secs()), since).await
    }

    /// Requests updates. A short vector is in the address; a long one, for which servers and proxies have no room there, in the body. A
    /// server that does not read a body yet gets it in the address.
    async fn updates_since(&self, query: &str, since: &Vector) -> Result<Stream, RemoteError> {
        let (url, since) = (format!("{}/v1/updates?alive=moved&{query}", self.base), since.to_string());
        let in_address = || self.http.get(format!("{url}&since={since}"));
        let response = if since.len() <= MAX_SINCE {
            self.send(in_address()).await
        } else {
            match self.send(self.http.post(&url).body(since.clone())).await {
                Err(RemoteError::Refused { status, .. }) if status == StatusCode::METHOD_NOT_ALLOWED => {
                    self.send(in_address()).await
                }
                other => other,
            }
        };
        Ok(Stream::new(response?, wire::UPDATES, &self.link))
    }

    /// Streams bulk from the count `bound` on: the notes that a holder of `since` lacks, and later ones for the time `wait`.
    ///
    /// # Errors
    /// When there is no stream.
    pub async fn bulk(&self, since: BulkMark, bound: u32, wait: Duration) -> Result<Stream, RemoteError> {
        let BulkMark { list, number, hash, .. } = since;
        let wait = wait.as_secs();
        let url =
            format!("{}/v1/bulk?bound={bound}&wait={wait}&since={list:016x}:{number}:{hash:016x}", self.base);
        let response = self.send(self.http.get(url)).await?;
        Ok(Stream::new(response, wire::BULK, &self.link))
    }

    /// Returns the server's counts of these signatures, 1,024 at most.
    ///
    /// # Errors
    /// When no answer comes within `patience`.
    pub async fn counts(
        &self,
        signatures: &[Signature],
        patience: Duration,
    ) -> Result<Vec<u32>, RemoteError> {
        let body = wire::encode_question(signatures);
        self.link.sent(body.len());
        let request = self.http.post(format!("{}/v1/counts", self.base)).timeout(patience).body(body);
        let answer = async { whole(self.send(request).await?, wire::MAX_COUNTS_BYTES).await };
        let late = |_| RemoteError::Transport(format!("no counts within {} ms", patience.as_millis()));
        let answer = tokio::time::timeout(patience, answer).await.map_err(late)??;
        self.link.received(answer.len());
        Ok(wire::decode_counts(&answer, signatures.len())?)
    }

    /// Streams updates for a server, which skips those that no longer count, and origins of which it knows another history. With `leave`,
    /// it also skips origins of which updates are gone that still count.
    ///
    /// # Errors
    /// When there is no stream; [`Code::UpdatesGone`] without `leave`, when such updates are gone.
    pub async fn updates_to_server(
        &self,
        since: &Vector,
        wait: Duration,
        leave: bool,
    ) -> Result<Stream, RemoteError> {
        let gaps = if leave { "leave" } else { "over" };
        self.updates_since(&format!("gaps={gaps}&wait={}", wait.as_secs()), since).await
    }

    /// Streams the rows of a snapshot from `from` on: of the newest, or of the one with this id.
    ///
    /// # Errors
    /// When there is no stream; [`Code::SnapshotGone`] when that one is no longer kept.
    pub async fn snapshot(&self, id: Option<u64>, from: u64) -> Result<Stream, RemoteError> {
        let id = id.map(|id| format!("id={id}&")).unwrap_or_default();
        let response = self.send(self.http.get(format!("{}/v1/snapshot?{id}from={from}", self.base))).await?;
        Ok(Stream::new(response, wire::SNAPSHOT, &self.link))
    }
}

/// Reads an answer, unless it is longer than `most`.
async fn whole(mut response: Response, most: usize) -> Result<Vec<u8>, RemoteError> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if piece.len() > most - bytes.len() {
            return Err(RemoteError::Long(most));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// An answer that comes in frames.
pub struct Stream {
    response: Response,
    frames: Frames,
    link: Arc<Link>,
    /// The time of the last useful frame.
    progress: Instant,
    /// How long it may bring nothing of use; different for each stream.
    patience: Duration,
}

impl Stream {
    fn new(response: Response, magic: &'static [u8; 5], link: &Arc<Link>) -> Self {
        let (link, patience) = (Arc::clone(link), jittered(PROGRESS));
        Self { response, frames: Frames::new(magic), link, progress: Instant::now(), patience }
    }

    /// Returns the content of the next frame; none at the end.
    ///
    /// # Errors
    /// When the connection breaks, the data is no frame, or [`progressed`](Self::progressed) was not called for too long.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, RemoteError> {
        loop {
            let seconds = (self.frames.waiting() / BYTES_A_SECOND) as u64;
            let deadline = self.progress + self.patience + Duration::from_secs(seconds);
            if Instant::now() >= deadline {
                return Err(RemoteError::Stuck);
            }
            if let Some(content) = self.frames.take()? {
                self.link.touch();
                return Ok(Some(content));
            }
            let piece = tokio::time::timeout_at(deadline.into(), self.response.chunk());
            let Some(piece) = piece.await.map_err(|_| RemoteError::Stuck)?? else { return Ok(None) };
            self.link.received(piece.len());
            self.frames.push(&piece);
        }
    }

    /// Returns the content of the next frame if it has arrived.
    ///
    /// # Errors
    /// When the data is no frame.
    pub fn at_hand(&mut self) -> Result<Option<Vec<u8>>, RemoteError> {
        Ok(self.frames.take()?)
    }

    /// Records that the last frame was of use.
    pub fn progressed(&mut self) {
        self.progress = Instant::now();
    }
}
