// SPDX-License-Identifier: GPL-3.0-or-later
//! The listener, and what is asked of it.

use super::host::is_ours;
use super::settings::Settings;
use crate::control::{Daemon, METRICS_TYPE};
use crate::server::{Address, Bound};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::io;
use std::sync::Arc;

/// Connections at a time; each open page keeps one.
const MAX_CONNECTIONS: usize = 64;

/// The page cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The address cannot be used.
    #[error("cannot listen on {address} (status.listen): {reason}")]
    Bind {
        /// As the configuration has it.
        address: String,
        /// What the system says.
        reason: io::Error,
    },
    /// The address leads out of this machine.
    #[error(
        "{address} (status.listen) can be reached from other machines, and there is no password; allow-remote = true allows it"
    )]
    Remote {
        /// As it was bound.
        address: String,
    },
}

/// A bound page.
pub struct Page {
    bound: Bound,
    asked: Asked,
}

/// What all requests share.
#[derive(Clone)]
struct Asked {
    daemon: Arc<Daemon>,
    threshold: Arc<dyn Fn() -> u32 + Send + Sync>,
    /// Names of ours; none where nobody can have come by another.
    hosts: Option<Arc<[String]>>,
}

impl Page {
    /// Binds the page of this daemon; none where the configuration wants none. False bulk is estimated at `threshold`.
    ///
    /// # Errors
    /// [`PageError`]
    pub async fn bind(
        settings: &Settings,
        daemon: Arc<Daemon>,
        threshold: impl Fn() -> u32 + Send + Sync + 'static,
    ) -> Result<Option<Self>, PageError> {
        let Some(address) = &settings.listen.0 else { return Ok(None) };
        let bound = Bound::bind(address, None)
            .await
            .map_err(|reason| PageError::Bind { address: address.to_string(), reason })?;
        if !bound.is_local() && !settings.allow_remote {
            return Err(PageError::Remote { address: bound.address() });
        }
        let hosts = matches!(address, Address::Tcp(_)).then(|| settings.hosts.clone().into());
        Ok(Some(Self { bound, asked: Asked { daemon, threshold: Arc::new(threshold), hosts } }))
    }

    /// Where it is, as a browser wants it.
    #[must_use]
    pub fn url(&self) -> String {
        let address = self.bound.address();
        if address.starts_with("unix:") { address } else { format!("http://{address}/") }
    }

    /// Answers for ever.
    pub async fn serve(self) {
        let router = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(health))
            .layer(from_fn_with_state(self.asked.clone(), guard))
            .with_state(self.asked);
        self.bound.serve(router, MAX_CONNECTIONS, Arc::default(), std::future::pending()).await;
    }
}

/// Refuses whoever came by a strange name.
async fn guard(State(asked): State<Asked>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if let Some(hosts) = &asked.hosts
        && !is_ours(host, hosts)
    {
        let why =
            "this page is not known by that name; ask by its address, or add the name to hosts of [status]\n";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    let mut response = next.run(request).await;
    let fields = response.headers_mut();
    fields.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn metrics(State(asked): State<Asked>) -> impl IntoResponse {
    let text = asked.daemon.metrics((asked.threshold)()).await;
    ([(header::CONTENT_TYPE, METRICS_TYPE)], text)
}

async fn health(State(asked): State<Asked>) -> (StatusCode, &'static str) {
    if asked.daemon.ledger.is_available() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the ledger's disk failed\n")
    }
}
