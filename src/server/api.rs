// SPDX-License-Identifier: GPL-3.0-or-later
//! The HTTP API under /v1; docs/protocol.md describes it.

use super::access::Access;
use super::clients::{self, Client, ClientsError};
use super::gate::{Gate, Refused};
use super::limits::Principal;
use super::order_book::OrderBook;
use super::readers::{Alive, Gaps, Position};
use super::settings::Settings;
use super::snapshots::Snapshots;
use super::streaming::{Stream, Wanted, next_updates, send_snapshot, send_updates};
use super::streams::{Place, Streams};
use crate::activity::Activity;
use crate::control::{Daemon, METRICS_TYPE, Parts};
use crate::net::{Caller, network_of};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use bulkmark_counts::{MAX_VECTOR_BYTES, NotCounted, Refusal, Reporter, Role, Vector};
use bulkmark_ledger::{Behind, Ledger, LedgerError, now, random_bytes};
use bulkmark_sync::clock;
use bulkmark_sync::fleet::Fleet;
use bulkmark_sync::wire::{self, Reports, SnapshotHead};
use bulkmark_sync::{Code, ERROR_HEADER, Links, Parameters, Remote};
use bulkmark_types::Signature;
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Timeout of the body of a request.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Maximum of origins in a client's vector that this server does not know: those of a federation that it knows little of.
const MAX_OTHERS: usize = 4096;

/// The longest duration of a stream of updates, in seconds.
pub(super) const MAX_WAIT: u64 = 3600;

/// The threshold of the estimates of false bulk in the metrics of a server: the default of milters.
pub const METRICS_THRESHOLD: u32 = 20;

/// The state shared by all requests.
pub struct Service {
    pub(super) ledger: Ledger,
    pub(super) gate: Arc<Gate>,
    pub(super) parameters: Parameters,
    pub(super) order_book: Option<OrderBook>,
    snapshots: Arc<Snapshots>,
    streams: Arc<Streams>,
    daemon: Arc<Daemon>,
    /// Whether streams must end.
    pub(super) ending: watch::Sender<bool>,
}

/// The answer to a failed request: the reason, for programs and for people.
pub(super) struct Failure(pub(super) Code, pub(super) String);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self(code, text) = self;
        let code_field = [(ERROR_HEADER, HeaderValue::from_static(code.name()))];
        let mut response = (code.status(), code_field, format!("{text}\n")).into_response();
        if code.status() == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let code = match refused {
            Refused::NoToken => Code::TokenMissing,
            Refused::Token | Refused::Expired => Code::TokenInvalid,
            Refused::Role | Refused::OnlyMetrics | Refused::NoMetrics => Code::Role,
            Refused::Unapproved => Code::Unapproved,
            Refused::Blocked => Code::TokenBlocked,
            Refused::Rate | Refused::Slowed | Refused::Checks | Refused::Orders => Code::Rate,
            Refused::MadeUp => Code::MadeUp,
            Refused::Connections | Refused::Streams => Code::TooMany,
        };
        Self(code, refused.to_string())
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        let text = match error {
            // Only the log has path and remedy.
            LedgerError::Unavailable(_) => "the server's ledger cannot be read or written now".to_owned(),
            other => other.to_string(),
        };
        Self(Code::Unavailable, text)
    }
}

impl From<Behind> for Failure {
    fn from(behind: Behind) -> Self {
        let code = match &behind {
            Behind::Refused(Refusal::Gap { .. }) => Code::UpdatesGone,
            Behind::Refused(Refusal::Fork { .. }) => Code::OtherHistory,
            Behind::Refused(_) | Behind::Ledger(_) => Code::Unavailable,
        };
        Self(code, behind.to_string())
    }
}

impl Service {
    /// Creates the service of a ledger. `links` lead to `peers`, or to the log of a `fleet`, whose aggregators take no reports; `activity`
    /// counts the requests.
    ///
    /// # Errors
    /// When the clients cannot be read.
    pub fn new(
        ledger: Ledger,
        parameters: Parameters,
        settings: &Settings,
        links: Arc<Links>,
        peers: Vec<Arc<Remote>>,
        fleet: Option<Arc<Fleet>>,
        activity: Arc<Activity>,
    ) -> Result<Arc<Self>, ClientsError> {
        let gate = Arc::new(Gate::new(settings)?);
        let order_book = fleet.is_none().then(|| OrderBook::open(&settings.state_dir));
        let (of_clients, of_refused) = (Arc::clone(&gate), Arc::clone(&gate));
        let daemon = Daemon::new(Parts {
            name: "server",
            correspondents: None,
            reports: None,
            reporter: None,
            orders: order_book.as_ref().map(|book| Arc::clone(&book.orders)),
            know_mailing: None,
            role: Role::Server,
            address: settings.address.clone(),
            parameters: parameters.clone(),
            ledger: ledger.clone(),
            state_dir: settings.state_dir.clone(),
            links,
            servers: peers,
            fleet,
            asks: None,
            clients: Box::new(move || of_clients.status()),
            refused: Box::new(move || Some(of_refused.refused_requests.status())),
            activity,
        });
        let streams = Streams::new(&settings.limits, Arc::clone(&daemon.activity.load));
        let (snapshots, daemon) = (Arc::default(), Arc::new(daemon));
        let ending = watch::Sender::new(false);
        Ok(Arc::new(Self { ledger, gate, parameters, order_book, snapshots, streams, daemon, ending }))
    }

    /// Ends all streams, so that their connections can be closed.
    pub fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Returns the access of a stream that starts now.
    pub(super) fn access(&self, client: Option<&Client>, headers: &HeaderMap) -> Access {
        let name = client.map(|client| &*client.name);
        Access::new(&self.gate, name, token(headers), self.ending.subscribe())
    }

    /// Returns the daemon behind status and metrics.
    #[must_use]
    pub fn daemon(&self) -> Arc<Daemon> {
        Arc::clone(&self.daemon)
    }

    /// Keeps updates for other servers, once a client has the role of a peer.
    ///
    /// # Errors
    /// When the ledger is not available.
    pub async fn keep_for_peers(&self) -> Result<(), LedgerError> {
        if self.gate.has_peers() { self.ledger.keep_for_peers().await } else { Ok(()) }
    }

    /// Releases snapshots and registrations that nobody used for a while.
    pub fn tidy(&self) {
        self.snapshots.tidy();
        if let Err(e) = self.gate.tidy_registrations(now()) {
            log::warn!("{e}; no registration is forgotten yet");
        }
    }

    /// Withdraws the reports of clients that were removed together with their counts.
    ///
    /// # Errors
    /// When that could not be stored; it must be repeated.
    pub async fn withdraw(&self) -> Result<(), LedgerError> {
        for client in self.gate.withdrawn() {
            if self.ledger.withdraw(client.clone(), now()).await? {
                log::warn!("all reports of the client {client} are withdrawn");
            }
        }
        Ok(())
    }

    /// Refuses a reader with other parameters or another clock, and records it.
    pub(super) fn agree(&self, client: Option<&Client>, headers: &HeaderMap) -> Result<(), Failure> {
        let result = self.compare(headers);
        client.inspect(|client| self.gate.note_program(&client.name, headers));
        if let (Err(Failure(_, why)), Some(client)) = (&result, client) {
            self.gate.refused(&client.name, why, false);
        }
        result
    }

    /// Refuses clients with other parameters or another clock. Browsers and curl send neither, and are not checked.
    pub(super) fn compare(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let Some(theirs) = headers.get(bulkmark_sync::PARAMETERS_HEADER) else { return Ok(()) };
        let theirs = theirs.to_str().unwrap_or_default();
        self.parameters
            .check(theirs, ["at the server", "at the client"])
            .map_err(|what| Failure(Code::Parameters, format!("other parameters: {what}")))?;
        clock::check(headers.get(header::DATE), "the client", "the server")
            .map_err(|what| Failure(Code::Clock, what))
    }

    /// Reserves a place for one more stream.
    pub(super) fn stream(&self, client: Option<&Client>, caller: &Caller) -> Result<Place, Failure> {
        let place = self.streams.enter(principal(client, caller));
        place.ok_or_else(|| self.gate.refuse_any(client, Refused::Streams).into())
    }

    pub(super) fn with_parameters(&self, response: impl IntoResponse) -> Response {
        let mut response = response.into_response();
        if let Ok(value) = HeaderValue::from_str(&self.parameters.to_string()) {
            response.headers_mut().insert(bulkmark_sync::PARAMETERS_HEADER, value);
        }
        // hyper's own date stands still for two days when a clock that was two days ahead is corrected.
        if let Some(date) = clock::date() {
            response.headers_mut().insert(header::DATE, date);
        }
        response
    }
}

/// Counts refused requests by their code.
pub(super) async fn count_refusals(State(service): State<Arc<Service>>, response: Response) -> Response {
    let code = response.headers().get(ERROR_HEADER).and_then(|code| code.to_str().ok()?.parse().ok());
    if let Some(code) = code {
        service.gate.refused_requests.count(code);
    }
    response
}

/// Returns the principal of an admitted request.
fn principal(client: Option<&Client>, caller: &Caller) -> Principal {
    match (client, caller.ip) {
        (Some(client), _) if client.is_approved() => Principal::Client(client.name.as_str().into()),
        (_, Some(ip)) => Principal::Network(network_of(ip)),
        (_, None) => Principal::Here,
    }
}

/// Returns the token of a request.
pub(super) fn token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

pub(super) async fn health(State(service): State<Arc<Service>>) -> Result<&'static str, Failure> {
    if let Some(why) = service.daemon.ailment() {
        return Err(Failure(Code::Unavailable, why.to_owned()));
    }
    Ok("ok\n")
}

pub(super) async fn reports(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let client = service.gate.reporter(token(&headers), &caller)?;
    let name = client.name.clone();
    service.gate.note_program(&name, &headers);
    let result = take_reports(&service, client, &headers, body).await;
    if let Err(Failure(code, why)) = &result
        && code.status().is_client_error()
    {
        let by_limit = matches!(code, Code::Rate | Code::Quota | Code::TooMany);
        service.gate.refused(&name, why, by_limit);
    }
    result
}

async fn take_reports(
    service: &Service,
    client: Client,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    if service.daemon.fleet.is_some() {
        let why = "this is an aggregator of a fleet, and takes reports from its log only: the milter needs [fleet] in the place of upstream";
        return Err(Failure(Code::Fleet, why.to_owned()));
    }
    service.compare(headers)?;
    let late = |_| Failure(Code::BodyTooSlow, "the body took too long".to_owned());
    let large = || Failure(Code::BodyTooLong, format!("expected at most {} bytes", wire::MAX_REPORTS_BYTES));
    // A declared length is checked before the body arrives.
    if http_body::Body::size_hint(&body).lower() > wire::MAX_REPORTS_BYTES as u64 {
        return Err(large());
    }
    let body = axum::body::to_bytes(body, wire::MAX_REPORTS_BYTES);
    let body = tokio::time::timeout(BODY_TIME, body).await.map_err(late)?.map_err(|_| large())?;
    let batch = Reports::decode(&body).map_err(|e| {
        let code = if e.is_other_version() { Code::BodyVersion } else { Code::Body };
        Failure(code, e.to_string())
    })?;
    service.gate.admit(&client, batch.reports.len())?;
    let chance = random_bytes().map_or(0, usize::from_le_bytes);
    service.gate.admit_signatures(&client, &batch.reports, chance)?;
    let signatures = batch.reports.len();
    let reporter = Reporter { client: client.counts_as().to_owned(), spool: batch.spool };
    let limits = client.limits();
    let receipt = service.ledger.take_batch(reporter, batch.number, batch.reports, limits, now()).await?;
    let receipt = receipt.map_err(|e| match e {
        NotCounted::Backwards(e) => Failure(Code::BatchNumber, e.to_string()),
        NotCounted::Waits => Failure(Code::Unavailable, e.to_string()),
        NotCounted::TooManySpools(e) => Failure(Code::TooMany, e.to_string()),
        NotCounted::OverQuota(e) => {
            service.gate.refused(&client.name, "its quota of different signatures is used up", true);
            Failure(Code::Quota, e.to_string())
        }
    })?;
    service.gate.counted(&client.name, signatures);
    service.daemon.activity.reported(signatures as u64, now());
    Ok(service.with_parameters(wire::encode_receipt(receipt)))
}

#[derive(Deserialize)]
pub(super) struct UpdatesQuery {
    since: Option<String>,
    #[serde(default)]
    wait: u64,
    #[serde(default)]
    gaps: Gaps,
    #[serde(default)]
    alive: Alive,
}

pub(super) async fn updates(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Query(query): Query<UpdatesQuery>,
    body: Body,
) -> Result<Response, Failure> {
    let client = service.gate.reader(token(&headers), &caller)?;
    service.agree(client.as_ref(), &headers)?;
    let place = service.stream(client.as_ref(), &caller)?;
    let UpdatesQuery { since, wait, gaps, alive } = query;
    let mut theirs = match since {
        Some(since) => vector_of(&since)?,
        None => {
            let declared =
                http_body::Body::size_hint(&body).upper().and_then(|bytes| usize::try_from(bytes).ok());
            let memory = place.memory(declared.unwrap_or(MAX_VECTOR_BYTES).min(MAX_VECTOR_BYTES)).await;
            let theirs = vector_of(&since_of(body).await?)?;
            drop(memory);
            theirs
        }
    };
    if let Some(client) = client.as_ref().filter(|client| client.role == clients::Role::Peer)
        && service.ledger.awaits_peers()
    {
        // Its vector shows which updates it has.
        service.ledger.receive_vector(client.name.clone(), theirs.clone(), now()).await?;
    }
    // The stream keeps them as long as it lasts.
    theirs.bound_others(&service.ledger.vector(), MAX_OTHERS);
    let theirs = Position::of(theirs);
    // Errors are returned before the stream starts.
    let first = next_updates(&place, &service.ledger, &theirs, gaps).await?;
    let (sink, body) = place.body();
    let until = Instant::now() + Duration::from_secs(wait.min(MAX_WAIT));
    let stream = Stream { place, sink, connection: caller.connection };
    let access = service.access(client.as_ref(), &headers);
    let wanted = Wanted { theirs, gaps, alive, until };
    tokio::spawn(send_updates(stream, access, service.ledger.clone(), wanted, first));
    Ok(service.with_parameters(body))
}

fn vector_of(since: &str) -> Result<Vector, Failure> {
    since.parse().map_err(|e| Failure(Code::Request, format!("since: {e}")))
}

/// Reads the vector in the body of a request, as text. A GET has none, and requests everything.
async fn since_of(body: Body) -> Result<String, Failure> {
    let late = |_| Failure(Code::BodyTooSlow, "the body took too long".to_owned());
    let long = |_| Failure(Code::BodyTooLong, format!("expected at most {MAX_VECTOR_BYTES} bytes"));
    let body = axum::body::to_bytes(body, MAX_VECTOR_BYTES);
    let body = tokio::time::timeout(BODY_TIME, body).await.map_err(late)?.map_err(long)?;
    let bad = |_| Failure(Code::Body, "not a version vector: other bytes than text".to_owned());
    String::from_utf8(body.to_vec()).map_err(bad)
}

#[derive(Deserialize)]
pub(super) struct SnapshotQuery {
    id: Option<u64>,
    #[serde(default)]
    from: u64,
}

pub(super) async fn snapshot(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Query(SnapshotQuery { id, from }): Query<SnapshotQuery>,
) -> Result<Response, Failure> {
    let client = service.gate.reader(token(&headers), &caller)?;
    service.agree(client.as_ref(), &headers)?;
    let place = service.stream(client.as_ref(), &caller)?;
    let gone = || Failure(Code::SnapshotGone, "this snapshot is no longer kept; start again".to_owned());
    let (snapshots, ledger) = (Arc::clone(&service.snapshots), service.ledger.clone());
    let (kept, reader) = (Arc::clone(&snapshots), place.principal().clone());
    let found = place.read(move || {
        let found = match id {
            Some(id) => kept.get(id).map(|snapshot| (id, snapshot)),
            None => Some(kept.newest(&ledger, &reader)?),
        };
        Ok(found
            .map(|(id, snapshot)| Ok::<_, LedgerError>((id, snapshot.count_rows()?, snapshot)))
            .transpose()?)
    });
    let (id, rows, snapshot) = found.await?.ok_or_else(gone)?;
    let head = SnapshotHead { id, rows, vector: snapshot.vector().clone() };
    let (sink, body) = place.body();
    let stream = Stream { place, sink, connection: caller.connection };
    let access = service.access(client.as_ref(), &headers);
    tokio::spawn(send_snapshot(stream, access, (snapshots, snapshot), head, from));
    Ok(service.with_parameters(body))
}

#[derive(Deserialize)]
pub(super) struct CheckQuery {
    signature: String,
}

pub(super) async fn check(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Query(CheckQuery { signature }): Query<CheckQuery>,
) -> Result<Response, Failure> {
    let client = service.gate.reader(token(&headers), &caller)?;
    service.gate.admit_check(client.as_ref(), &principal(client.as_ref(), &caller))?;
    let bad = |e| Failure(Code::Request, format!("signature: {e}"));
    let signature: Signature = signature.parse().map_err(bad)?;
    let count = service.ledger.count(signature, now()).await?;
    Ok(Json(serde_json::json!({ "signature": signature.to_string(), "count": count })).into_response())
}

pub(super) async fn metrics(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    service.gate.scraper(token(&headers), &caller)?;
    let text = service.daemon.metrics(METRICS_THRESHOLD).await;
    Ok(([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response())
}

pub(super) async fn status(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let client = service.gate.reader(token(&headers), &caller)?;
    let mut status = serde_json::to_value(service.daemon.public_status().await?).unwrap_or_default();
    if let Some(expires) = client.and_then(|client| client.expires) {
        status["token-expires"] = expires.into();
    }
    Ok(service.with_parameters(Json(status)))
}
