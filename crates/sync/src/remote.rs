// SPDX-License-Identifier: GPL-3.0-or-later
//! Asks one server.

use super::backoff::apart;
use super::clock;
use super::code::{self, Code};
use super::parameters::{self, Parameters};
use super::settings::Upstream;
use super::state::Link;
use super::wire::{self, Frames, Reports, WireError};
use bulkmark_counts::history::fleet_mark::is_name;
use bulkmark_counts::{BulkMark, Receipt, Vector};
use bulkmark_types::Signature;
use bulkmark_types::told;
use reqwest::{Response, StatusCode, header};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How long a server may say nothing at all; it says every five seconds that it is alive.
const SILENCE: Duration = Duration::from_secs(15);

/// How long a stream may bring nothing that is of use: signs of life and parts of frames are none. For each of so many bytes of a
/// frame that came, it has a second more.
const PROGRESS: Duration = Duration::from_secs(30);
const BYTES_A_SECOND: usize = 4096;

/// Bytes of a vector that stands in an address at most: proxies allow 8 kB, and often less.
const MAX_SINCE: usize = 4096;

/// Bytes of a reason that are read and logged.
const MAX_REASON: usize = 500;

/// Bytes of a receipt at most, and of what a server tells of itself.
const MAX_RECEIPT: usize = 100;
const MAX_STATUS: usize = 16 << 20;

/// Bytes of an answer to a registration.
const MAX_REGISTRATION: usize = 4096;

/// Bytes of a token at most.
const MAX_TOKEN: usize = 256;

/// What a server says to a site that registered.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct Registration {
    /// The client's name at the server.
    pub name: String,
    /// Its token.
    pub token: String,
    /// Whether its reports count before the operator approved it.
    pub counts: bool,
}

/// A server cannot be asked, or has no answer.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// A file that the configuration names.
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
    /// It could not be reached, or the connection broke.
    #[error("{0}")]
    Transport(String),
    /// Its name has no address.
    #[error("its name, or its proxy's, has no address: {0}")]
    Name(String),
    /// Its certificate is not accepted.
    #[error("its certificate is not accepted: {0}")]
    Certificate(String),
    /// It refused.
    #[error("{status}: {reason}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// Why, for programs: by its code, or by its status where it has none. None when neither says anything.
        code: Option<Code>,
        /// What it said, for people.
        reason: String,
    },
    /// It answered something else than was asked for.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// It counts otherwise.
    #[error("other parameters: {0}")]
    Parameters(String),
    /// Its clock is another.
    #[error("{0}")]
    Clock(String),
    /// It says that it is alive, and no more.
    #[error("it sent nothing but signs of life for {} s", PROGRESS.as_secs())]
    Stuck,
    /// It answered more than is taken.
    #[error("an answer of more than {0} bytes")]
    Long(usize),
}

impl RemoteError {
    /// Why the server refused; none when it did not, or that is not known.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { code, .. } => *code,
            _ => None,
        }
    }

    /// Whether both clocks do not agree.
    #[must_use]
    pub fn is_of_clocks(&self) -> bool {
        matches!(self, Self::Clock(_)) || self.code() == Some(Code::Clock)
    }
}

/// One server, and how it is reached.
pub struct Remote {
    http: reqwest::Client,
    /// As the configuration has it, and where requests go.
    url: String,
    base: String,
    token: Option<header::HeaderValue>,
    /// None where the server is only examined.
    parameters: Option<Parameters>,
    /// What is known of the connection.
    pub link: Arc<Link>,
}

impl Remote {
    /// Reads the files that the configuration names. Without `parameters` it takes those that the server has.
    ///
    /// # Errors
    /// When they cannot be read, or the address is invalid.
    pub fn new(
        upstream: &Upstream,
        parameters: Option<Parameters>,
        link: Arc<Link>,
    ) -> Result<Self, RemoteError> {
        upstream.check().map_err(RemoteError::Setup)?;
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|reason| RemoteError::File { path: path.clone(), reason })
        };
        let mut http = reqwest::Client::builder()
            .user_agent(concat!("bulkmark/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIME)
            .read_timeout(SILENCE)
            // Counts come from the address in the configuration, and the token goes to no other.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true);
        if let Some(path) = &upstream.ca_file {
            let certificate = reqwest::Certificate::from_pem(&read(path)?)
                .map_err(|e| RemoteError::Setup(format!("{}: {e}", path.display())))?;
            http = http.tls_certs_only([certificate]);
        }
        let token = match &upstream.token_file {
            None => None,
            Some(path) => {
                let token = String::from_utf8_lossy(&read(path)?).trim().to_owned();
                let mut value = header::HeaderValue::from_str(&format!("Bearer {token}"))
                    .map_err(|_| RemoteError::Setup(format!("{}: expected one token", path.display())))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let url = upstream.url.trim_end_matches('/').to_owned();
        let (base, http) = match url.strip_prefix("unix:") {
            // Neither a name is looked up nor a proxy asked: all goes to the socket.
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
            Err(e) if e.is_of_clocks() => self.link.set_clocks_agree(false),
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
            request = request.header(header::AUTHORIZATION, token.clone());
        }
        let mut response = request.send().await?;
        let status = response.status();
        if status.is_success() {
            let Some(ours) = &self.parameters else { return Ok(response) };
            let theirs = response.headers().get(parameters::HEADER).and_then(|value| value.to_str().ok());
            let sides = ["here", "at the server"];
            ours.check(theirs.unwrap_or_default(), sides)
                .map_err(|what| RemoteError::Parameters(told(&what)))?;
            let date = response.headers().get(header::DATE);
            clock::check(date, "the server", "this machine").map_err(RemoteError::Clock)?;
            return Ok(response);
        }
        let code = match response.headers().get(code::HEADER) {
            Some(value) => value.to_str().ok().and_then(|name| name.parse().ok()),
            None => Code::of_status(status),
        };
        let mut reason = Vec::new();
        let reading = async {
            while reason.len() < MAX_REASON
                && let Ok(Some(piece)) = response.chunk().await
            {
                reason.extend_from_slice(&piece);
            }
        };
        // What came until then will do.
        let _ = tokio::time::timeout(SILENCE, reading).await;
        reason.truncate(MAX_REASON);
        let reason = told(&String::from_utf8_lossy(&reason));
        Err(RemoteError::Refused { status, code, reason })
    }

    /// Reports a batch.
    ///
    /// # Errors
    /// When it was not acknowledged; it may have been counted all the same.
    pub async fn report(&self, reports: &Reports) -> Result<Receipt, RemoteError> {
        let body = reports.encode();
        self.link.sent(body.len());
        let request = self.http.post(format!("{}/v1/reports", self.base)).timeout(SILENCE).body(body);
        let answer = whole(self.send(request).await?, MAX_RECEIPT).await?;
        self.link.received(answer.len());
        Ok(wire::decode_receipt(&answer)?)
    }

    /// Registers this site under a name; `contact` is an address for questions, and may be empty. Nothing waits for longer than 15 s.
    ///
    /// # Errors
    /// When the server does not answer, or takes no such site.
    pub async fn register(&self, name: &str, contact: &str) -> Result<Registration, RemoteError> {
        let body = serde_json::json!({ "name": name, "contact": contact }).to_string();
        let request = self.http.post(format!("{}/v1/register", self.base)).timeout(SILENCE).body(body);
        let answer = whole(self.send(request).await?, MAX_REGISTRATION).await?;
        let registered: Registration =
            serde_json::from_slice(&answer).map_err(|e| RemoteError::Transport(told(&e.to_string())))?;
        // The administrator reads the name on a terminal, in a command for another one; the token is a line of a file.
        let Registration { name, token, .. } = &registered;
        let is_token = (1..=MAX_TOKEN).contains(&token.len()) && token.bytes().all(|b| b.is_ascii_graphic());
        if !is_name(name) || !is_token {
            let why = format!(
                "it registered {name:?} with a token of {} bytes; expected a client's name and one word",
                token.len()
            );
            return Err(RemoteError::Transport(told(&why)));
        }
        Ok(registered)
    }

    /// What the server tells of itself.
    ///
    /// # Errors
    /// When it does not answer, or with something else.
    pub async fn status(&self) -> Result<serde_json::Value, RemoteError> {
        let request = self.http.get(format!("{}/v1/status", self.base)).timeout(SILENCE);
        let answer = whole(self.send(request).await?, MAX_STATUS).await?;
        serde_json::from_slice(&answer).map_err(|e| RemoteError::Transport(told(&e.to_string())))
    }

    /// All updates that `since` lacks, and those that come within `wait`.
    ///
    /// # Errors
    /// When there is no stream; [`Code::UpdatesGone`] when a snapshot must be taken first.
    pub async fn updates(&self, since: &Vector, wait: Duration) -> Result<Stream, RemoteError> {
        self.updates_since(&format!("wait={}", wait.as_secs()), since).await
    }

    /// Asks for updates. A vector of few origins stands in the address; others, for which servers and proxies between have no room
    /// there, in the body. A server that does not read one yet is asked as before.
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

    /// What the server tells of bulk from the count `bound` on: what a holder of `since` lacks, and what comes within `wait`.
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

    /// How often the server counted these signatures, 1,024 at most.
    ///
    /// # Errors
    /// When it does not say so within `patience`.
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

    /// The same for a server, which passes over what counts nowhere any more, and leaves out what it knows another history of. With
    /// `leave`, it also leaves out such origins of which updates are gone that still count.
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

    /// The rows of a snapshot from `from` on: of the newest, or of the one with this number.
    ///
    /// # Errors
    /// When there is no stream; [`Code::SnapshotGone`] when that one is no longer kept.
    pub async fn snapshot(&self, id: Option<u64>, from: u64) -> Result<Stream, RemoteError> {
        let id = id.map(|id| format!("id={id}&")).unwrap_or_default();
        let response = self.send(self.http.get(format!("{}/v1/snapshot?{id}from={from}", self.base))).await?;
        Ok(Stream::new(response, wire::SNAPSHOT, &self.link))
    }
}

/// All of an answer, unless it is longer than `most`.
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
    /// When it brought something of use last.
    progress: Instant,
    /// How long it may bring nothing of use; another time for each stream.
    patience: Duration,
}

impl Stream {
    fn new(response: Response, magic: &'static [u8; 5], link: &Arc<Link>) -> Self {
        let (link, patience) = (Arc::clone(link), apart(PROGRESS));
        Self { response, frames: Frames::new(magic), link, progress: Instant::now(), patience }
    }

    /// The content of the next frame; none at the end.
    ///
    /// # Errors
    /// When the connection breaks, what comes is no frame, or nothing came of which [`progressed`](Self::progressed) was told
    /// for too long.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, RemoteError> {
        loop {
            let seconds = (self.frames.waiting() / BYTES_A_SECOND) as u64;
            let deadline = self.progress + self.patience + Duration::from_secs(seconds);
            if Instant::now() >= deadline {
                return Err(RemoteError::Stuck);
            }
            if let Some(content) = self.frames.take()? {
                self.link.heard();
                return Ok(Some(content));
            }
            let piece = tokio::time::timeout_at(deadline.into(), self.response.chunk());
            let Some(piece) = piece.await.map_err(|_| RemoteError::Stuck)?? else { return Ok(None) };
            self.link.received(piece.len());
            self.frames.push(&piece);
        }
    }

    /// The content of the next frame, if it came already.
    ///
    /// # Errors
    /// When what came is no frame.
    pub fn at_hand(&mut self) -> Result<Option<Vec<u8>>, RemoteError> {
        Ok(self.frames.take()?)
    }

    /// Notes that the last frame was of use.
    pub fn progressed(&mut self) {
        self.progress = Instant::now();
    }
}
