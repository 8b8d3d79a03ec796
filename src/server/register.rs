// SPDX-License-Identifier: GPL-3.0-or-later
//! The request by which a site registers.

use super::api::{Failure, Service};
use super::registration::{NotRegistered, Registration, RegistrationRequest};
use crate::net::Caller;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Json, Response};
use bulkmark_ledger::now;
use bulkmark_sync::Code;
use bulkmark_types::remote_text;
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of a request.
const MOST: usize = 1024;

/// Timeout of its body.
const BODY_TIME: Duration = Duration::from_secs(10);

impl From<NotRegistered> for Failure {
    fn from(why: NotRegistered) -> Self {
        let code = match why {
            NotRegistered::Name(_) | NotRegistered::Contact(_) => Code::Request,
            NotRegistered::Full | NotRegistered::Network(_) | NotRegistered::Withdrawn => Code::TooMany,
        };
        Self(code, why.to_string())
    }
}

pub(super) async fn register(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let mode = service.gate.registration;
    if mode == Registration::Closed {
        let why = "no site may register here by itself; ask the server's operator for a token (bulkmark client add)";
        return Err(Failure(Code::RegistrationClosed, why.to_owned()));
    }
    service.compare(&headers)?;
    let late = |_| Failure(Code::BodyTooSlow, "the body took too long".to_owned());
    let large = |_| Failure(Code::BodyTooLong, format!("expected at most {MOST} bytes"));
    let body = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, MOST)).await;
    let body = body.map_err(late)?.map_err(large)?;
    let request: RegistrationRequest = serde_json::from_slice(&body)
        .map_err(|e| Failure(Code::Request, format!("expected {{\"name\":...,\"contact\":...}}: {e}")))?;
    let (gate, from) = (Arc::clone(&service.gate), caller.ip.map(|ip| ip.to_canonical()));
    let shown = from.map_or_else(|| "unix".to_owned(), |ip| ip.to_string());
    let contact = remote_text(&request.contact);
    let registering = tokio::task::spawn_blocking(move || gate.register(&request, from, now()));
    let done = registering.await.map_err(|_| Failure(Code::Unavailable, "try again later".to_owned()))?;
    let done = done.map_err(|e| {
        log::error!("a site cannot register: {e}");
        Failure(Code::Unavailable, "the list of clients cannot be written now".to_owned())
    })?;
    let (name, token) = done?;
    log::info!(
        "the site {name} registered from {shown} ({contact}); bulkmark client approve {name} approves it"
    );
    let counts = mode == Registration::Open;
    Ok(service.with_parameters(Json(
        serde_json::json!({ "name": name, "token": token, "approved": false, "counts": counts }),
    )))
}
