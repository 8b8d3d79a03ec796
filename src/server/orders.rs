// SPDX-License-Identifier: GPL-3.0-or-later
//! The orders of all sites: mailings that are never refused, and pauses. docs/protocol.md describes the requests.

use super::api::{Failure, Service, token};
use super::clients::Client;
use super::gate::{Gate, Refused};
use super::order_book::{OrderBook, standing};
use super::partial::known;
use super::streaming::Stream;
use crate::net::Caller;
use crate::orders::{Document, Failure as NotTaken, Full, Orders, Post};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bulkmark_ledger::now;
use bulkmark_sync::{Code, SITE_HEADER};
use bytes::Bytes;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of the orders of one machine.
const MOST: usize = 2 << 20;

/// Timeout of their arrival.
const BODY_TIME: Duration = Duration::from_secs(30);

/// How long an answer waits for a change at most, in seconds.
const MAX_WAIT: u64 = 30;

/// How long a client may take to read the lists: those that it reads stay in memory, though others have replaced them.
const READING_TIME: Duration = Duration::from_secs(60);

impl From<NotTaken> for Failure {
    fn from(why: NotTaken) -> Self {
        match why {
            NotTaken::NoRoom(full @ (Full::Site | Full::All)) => Self(Code::TooMany, full.to_string()),
            other => {
                log::error!("orders of a site are not stored: {other}");
                Self(Code::Unavailable, "the server's orders cannot be written now".to_owned())
            }
        }
    }
}

impl Service {
    fn order_book(&self) -> Result<&OrderBook, Failure> {
        let why = "this is an aggregator of a fleet, in which orders hold at the machine that gives them";
        self.order_book.as_ref().ok_or_else(|| Failure(Code::Fleet, why.to_owned()))
    }

    /// Returns the orders; none for an aggregator of a fleet.
    #[must_use]
    pub fn orders(&self) -> Option<Arc<Orders>> {
        self.order_book.as_ref().map(|book| Arc::clone(&book.orders))
    }

    /// Removes the orders of former clients and those that have ended, and confirms the operator's.
    pub async fn tidy_orders(&self) {
        let (Some(orders), gate) = (self.orders(), Arc::clone(&self.gate)) else { return };
        let tidy = move || -> Result<(), NotTaken> {
            let now = now();
            orders.confirm(now)?;
            let clients = gate.all();
            let of = |site: &str| standing(clients.list().iter().find(|client| client.name == site)?, now);
            orders.federation.tidy(of, now)
        };
        if let Ok(Err(e)) = tokio::task::spawn_blocking(tidy).await {
            log::warn!("{e}");
        }
    }
}

#[derive(Deserialize)]
pub(super) struct OrdersQuery {
    #[serde(default)]
    since: String,
    #[serde(default)]
    wait: u64,
}

/// Returns the orders of all sites, once they differ from those that the client has.
pub(super) async fn orders(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Query(OrdersQuery { since, wait }): Query<OrdersQuery>,
) -> Result<Response, Failure> {
    let client = known(service.gate.reader(token(&headers), &caller)?)?;
    service.agree(Some(&client), &headers)?;
    let mut published = service.order_book()?.orders.federation.published();
    let document = |of: &crate::orders::Published| -> Document {
        if client.is_approved() { of.whole.clone() } else { of.without_texts.clone() }
    };
    let mut ending = service.ending.subscribe();
    let change = async {
        // The sender lives as long as the service.
        let found = published.wait_for(|published| document(published).name != since).await;
        found.ok().map(|published| document(&published))
    };
    let found = tokio::select! {
        biased;
        found = change => found,
        () = tokio::time::sleep(Duration::from_secs(wait.min(MAX_WAIT))) => None,
        _ = ending.wait_for(|&ending| ending) => None,
    };
    let mut response = match found {
        Some(Document { json, .. }) => {
            let place = service.stream(Some(&client), &caller)?;
            let (sink, body) = place.body();
            let fields = [
                (header::CONTENT_TYPE, "application/json".to_owned()),
                (header::CONTENT_LENGTH, json.len().to_string()),
            ];
            tokio::spawn(send_lists(Stream { place, sink, connection: caller.connection }, json));
            (fields, body).into_response()
        }
        None => StatusCode::NO_CONTENT.into_response(),
    };
    if let Ok(name) = HeaderValue::from_str(&client.name) {
        response.headers_mut().insert(SITE_HEADER, name);
    }
    Ok(service.with_parameters(response))
}

/// Sends lists to a reader that takes them in time.
async fn send_lists(stream: Stream, json: Bytes) {
    if tokio::time::timeout(READING_TIME, stream.send(&json)).await.is_err() {
        log::debug!("a client is too slow for the orders of all sites");
        stream.connection.close();
    }
}

/// Takes all orders of one machine.
pub(super) async fn give_orders(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let client = service.gate.reporter(token(&headers), &caller)?;
    service.agree(Some(&client), &headers)?;
    let standing =
        standing(&client, now()).ok_or_else(|| refuse(&service.gate, &client, Refused::Unapproved))?;
    let book = service.order_book()?;
    if !book.admits(&client) {
        return Err(refuse(&service.gate, &client, Refused::Orders));
    }
    let post = Post::parse(&body_of(body).await?).map_err(|e| Failure(Code::Body, e.to_string()))?;
    let (orders, name, number) = (Arc::clone(&book.orders), client.name.clone(), post.allowed.len());
    let taking = move || orders.federation.take(&client.name, standing, post, now());
    let taken = tokio::task::spawn_blocking(taking).await;
    let taken = taken.map_err(|_| Failure(Code::Unavailable, "try again later".to_owned()))?;
    if let Err(e) = taken {
        service.gate.refused(&name, &e.to_string(), true);
        return Err(e.into());
    }
    log::debug!("client {name} allows {number} mailings");
    Ok(service.with_parameters(StatusCode::NO_CONTENT))
}

fn refuse(gate: &Gate, client: &Client, why: Refused) -> Failure {
    gate.refuse_any(Some(client), why).into()
}

async fn body_of(body: Body) -> Result<Vec<u8>, Failure> {
    let large = || Failure(Code::BodyTooLong, format!("expected at most {MOST} bytes"));
    // A declared length is checked before the body arrives.
    if http_body::Body::size_hint(&body).lower() > MOST as u64 {
        return Err(large());
    }
    let body = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, MOST)).await;
    let body = body.map_err(|_| Failure(Code::BodyTooSlow, "the body took too long".to_owned()))?;
    Ok(body.map_err(|_| large())?.to_vec())
}
